"""`bottleneck compare BEFORE.json AFTER.json`: what changed, and whether it was foreseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import exits, interrupts, options

LONGEST_NOTE = 600
Before = Annotated[
    Path, typer.Argument(metavar="BEFORE.json", help="The earlier report, or its ticket.")
]
After = Annotated[Path, typer.Argument(metavar="AFTER.json", help="The later one.")]


def compare(
    before: Before,
    after: After,
    format: options.TextOrJson = "text",
    units: options.Units = "si",
    redact: options.Redact = False,
    verbose: options.Verbose = False,
) -> int:
    """What changed between two reports, with the noise taken into account."""
    with interrupts.held():
        from bottleneck.analysis import changes
        from bottleneck.cli import documents, loading
        from bottleneck.reports import terminal
        from bottleneck.reports.compare import print_change, to_json
        from bottleneck.reports.document import points
        from bottleneck.reports.units import shown_as

    output = documents.output(options.Documents(units=units, redact=redact))
    first, second = (output.showable(loading.load(each)) for each in (before, after))

    found = changes.compare(first, second)

    def write() -> None:
        if format == "json":
            documents.to_stdout(json.dumps(to_json(found), indent=1, allow_nan=False) + "\n")
            return
        with shown_as(output.units):
            # Anew, since its sentences are made of rates.
            told = found if output.units == "si" else changes.compare(first, second)
            console = terminal.console()
            print_change(told, console, verbose)
            for when, each in (("before", first), ("after", second)):
                if "ticket" in each.tool:
                    title = f"The report {when} is a ticket"
                    terminal.show(console, points(title, each.notes, longest=LONGEST_NOTE))

    shown = documents.shown(write)
    made = [e for e in found.copies if e.before_bytes_per_second and e.after_bytes_per_second]
    return exits.DONE if shown and made else exits.INCOMPLETE
