"""Output of a benchmark's table and figures: --json F writes a file, - only to stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def teller(wanted_json: str | None) -> Callable[[str], None]:
    """Returns the printer of table lines: to stderr if stdout holds the document."""
    table = sys.stderr if wanted_json == "-" else sys.stdout

    def tell(line: str) -> None:
        print(line, file=table, flush=True)

    return tell


def write(document: dict[str, Any], wanted_json: str | None) -> None:
    """Writes the document where --json says; nowhere without it."""
    text = json.dumps(document, indent=1) + "\n"
    if wanted_json == "-":
        sys.stdout.write(text)
    elif wanted_json:
        Path(wanted_json).write_text(text)
