"""`bottleneck explain REPORT.json`: the diagnosis of a saved report, offline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bottleneck.cli import exits, interrupts, options

File = Annotated[
    Path,
    typer.Argument(
        metavar="REPORT.json",
        help="A report written by --json; or a ticket, or an observations file with your figures.",
    ),
]
Format = Annotated[
    str,
    options.format_of(
        *("text", "html", "ticket", "json", "junit", "svg"),
        help="text, html, ticket, json, junit, or svg: the disks' zone curves as a drawing.",
    ),
]


def explain(
    file: File,
    format: Format = "text",
    target_rate: options.TargetRate = None,
    *,
    shown: options.Documents,
    screen: options.Screen,
) -> int:
    """Diagnose a saved report again, offline."""
    with interrupts.held():
        from bottleneck.cli import documents, loading
        from bottleneck.cli.command_line import KINDS
        from bottleneck.cli.pending import STDOUT
        from bottleneck.reports.plots.zones import zone_curves_svg
        from probes.stage import Refused

    if format in KINDS:
        alone: dict[str, Any] = {format: STDOUT}
        if getattr(shown, format) not in (None, STDOUT):
            raise Refused("usage", f"--format {format} and --{format} F: it is written once")
        shown = replace(shown, **alone)
    output = documents.output(shown, screen.quiet, screen.verbose)
    loaded = output.showable(loading.wanted(loading.load(file), target_rate))
    if format == "svg":
        drawing = zone_curves_svg(loaded)
        if drawing is None:
            raise Refused("usage", f"{file}: no disk was measured zone by zone: nothing to draw")
        done = documents.shown(lambda: documents.to_stdout(drawing))
    else:
        done = documents.written(loaded, documents.diagnosed(loaded)[0], output)
    return exits.DONE if done else exits.INCOMPLETE
