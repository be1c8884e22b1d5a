"""TOML from elsewhere, read within limits: its parser's seconds grow faster than its text.

Each key is looked up along all parts of its table's name, and each part of a dotted key along all
parts before it: what bounds both is counted before it is parsed.
"""

from __future__ import annotations

import tomllib
from typing import Any

LARGEST_BYTES = 256 << 10
MOST_LINES = 5_000
MOST_DOTS = 200
"""In one line: no name of a key or a table has more parts."""


class NotBounded(ValueError):
    """A text that is no TOML, or too much of it; one line that says what."""


def loads(content: bytes, largest_bytes: int = LARGEST_BYTES) -> dict[str, Any]:
    """The table in a TOML text. Errors: NotBounded."""
    if len(content) > largest_bytes:
        raise NotBounded(f"larger than {largest_bytes} bytes")
    lines = content.split(b"\n")
    if len(lines) > MOST_LINES:
        raise NotBounded(f"not TOML: more than {MOST_LINES} lines")
    if any(line.count(b".") > MOST_DOTS for line in lines):
        raise NotBounded(f"not TOML: a line has more than {MOST_DOTS} dots")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise NotBounded(f"not TOML: {reason.splitlines()[0][:160]}") from None
