"""`bottleneck history [F]`: the runs that --history kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from bottleneck.cli import completion, exits, interrupts, options

MOST_LISTED = 10_000
File = Annotated[
    str | None,
    typer.Argument(metavar="[F]", help="What --history named; default: as it is configured."),
]
Most = Annotated[int, typer.Option("--most", metavar="N", help="So many runs, the latest first.")]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="F",
        help="text or json.",
        autocompletion=completion.one_of("text", "json"),
    ),
]


def history(
    file: File = None, most: Most = 30, format: Format = "text", units: options.Units = "si"
) -> int:
    """List the runs that --history kept, each with the copy that its summary spoke of."""
    with interrupts.held():
        import os

        from bottleneck import configuration
        from bottleneck import history as kept
        from bottleneck.cli import configured, documents, terminal
        from bottleneck.cli.app import app
        from bottleneck.reports import layout
        from bottleneck.reports.trend import print_runs
        from bottleneck.reports.units import shown_as
        from probes.stage import Refused

    if format not in {"text", "json"}:
        raise Refused("usage", f"--format {format!r} is neither text nor json")
    if not 1 <= most <= MOST_LISTED:
        raise Refused("usage", f"--most: from 1 to {MOST_LISTED}")
    style = documents.output(style=units).units
    if file is None:
        told = configuration.settings("diagnose", configured.kinds(app), os.environ)
        file = str(told["history"].value) if "history" in told else kept.USUAL
    path = kept.path_of(file)
    if path is None:
        raise Refused("usage", "no history is kept: --history is none")
    try:
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
            print_runs(runs, console, layout.signs(console))

    return exits.DONE if documents.shown(write) else exits.INCOMPLETE
