"""`bottleneck compare BEFORE.json AFTER.json`: what changed, and whether it was foreseen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import exits, interrupts, options

Before = Annotated[Path, typer.Argument(metavar="BEFORE.json", help="The earlier report.")]
After = Annotated[Path, typer.Argument(metavar="AFTER.json", help="The later one.")]
Format = Annotated[str, typer.Option("--format", metavar="F", help="text or json.")]


def compare(
    before: Before, after: After, format: Format = "text", verbose: options.Verbose = False
) -> int:
    """What changed between two reports, with the noise taken into account."""
    with interrupts.held():
        from bottleneck.analysis import changes
        from bottleneck.cli import loading, running
        from bottleneck.reports.compare import print_change, to_json
        from probes.stage import Refused

    if format not in {"text", "json"}:
        raise Refused("usage", f"--format {format!r} is neither text nor json")
    found = changes.compare(loading.load(before), loading.load(after))

    def write() -> None:
        if format == "json":
            sys.stdout.write(json.dumps(to_json(found), indent=1, allow_nan=False) + "\n")
        else:
            print_change(found, running.console(), verbose)

    shown = running.shown(write)
    made = [e for e in found.copies if e.before_bytes_per_second and e.after_bytes_per_second]
    return exits.DONE if shown and made else exits.INCOMPLETE
