"""`bottleneck history [F]`: the runs that --history kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from bottleneck.cli import exits, interrupts, options

MOST_LISTED = 10_000
File = Annotated[
    str | None,
    typer.Argument(metavar="[F]", help="What --history named; default: as it is configured."),
]
Most = Annotated[int, typer.Option("--most", metavar="N", help="So many runs, the latest first.")]


def history(
    context: typer.Context,
    file: File = None,
    most: Most = 30,
    format: options.TextOrJson = "text",
    units: options.Units = "si",
) -> int:
    """List the runs that --history kept, each with the copy that its summary spoke of."""
    with interrupts.held():
        import os

        from bottleneck import history as kept
        from bottleneck.cli import configuration, documents
        from bottleneck.reports import terminal
        from bottleneck.reports.trend import print_runs
        from bottleneck.reports.units import shown_as
        from probes.stage import Refused

    if not 1 <= most <= MOST_LISTED:
        raise Refused("usage", f"--most: from 1 to {MOST_LISTED}")
    style = documents.output(options.Documents(units=units)).units
    if file is None:
        known = configuration.commands(context.find_root().command)
        told = configuration.settings("diagnose", known, os.environ)
        file = str(told["history"].value) if "history" in told else kept.USUAL
    try:
        path = kept.path_of(file)
        if path is None:
            raise Refused("usage", "no history is kept: --history is none")
        runs = kept.History(path).runs(most)
    except kept.HistoryError as error:
        raise Refused("usage", str(error)) from None

    def write() -> None:
        if format == "json":
            found = {"runs": [asdict(each) for each in runs]}
            documents.to_stdout(json.dumps(found, indent=1) + "\n")
            return
        console = terminal.console()
        with shown_as(style):
            print_runs(runs, console)

    return exits.DONE if documents.shown(write) else exits.INCOMPLETE
