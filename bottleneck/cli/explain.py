"""`bottleneck explain REPORT.json`: the diagnosis of a saved report, offline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import exits, interrupts, options

File = Annotated[
    Path,
    typer.Argument(
        metavar="REPORT.json",
        help="A report written by --json; or an observations file, figures that you have.",
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format", metavar="F", help="text, json, or svg: the disks' zone curves as a drawing."
    ),
]


def explain(
    file: File,
    format: Format = "text",
    target_rate: options.TargetRate = None,
    verbose: options.Verbose = False,
) -> int:
    """Diagnose a saved report again, offline."""
    with interrupts.held():
        from bottleneck.analysis import diagnose
        from bottleneck.cli import loading, running
        from bottleneck.reports.zone_curve_svg import zone_curves_svg
        from probes.stage import Refused

    if format not in {"text", "json", "svg"}:
        raise Refused("usage", f"--format {format!r} is none of text, json and svg")
    loaded = loading.wanted(loading.load(file), target_rate)
    if format == "svg":
        drawing = zone_curves_svg(loaded)
        if drawing is None:
            raise Refused("usage", f"{file}: no disk was measured zone by zone: nothing to draw")
        done = running.shown(lambda: sys.stdout.write(drawing))
        return exits.DONE if done else exits.INCOMPLETE
    to_stdout = "-" if format == "json" else None
    done = running.written(loaded, diagnose(loaded), running.Output(to_stdout, False, verbose))
    return exits.DONE if done else exits.INCOMPLETE
