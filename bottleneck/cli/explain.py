"""`bottleneck explain REPORT.json`: the diagnosis of a saved report, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import completion, exits, interrupts, options

File = Annotated[
    Path,
    typer.Argument(
        metavar="REPORT.json",
        help="A report written by --json; or a ticket, or an observations file with your figures.",
    ),
]
FORMATS = ("text", "html", "ticket", "json", "junit", "svg")
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="F",
        help="text, html, ticket, json, junit, or svg: the disks' zone curves as a drawing.",
        autocompletion=completion.one_of(*FORMATS),
    ),
]


def explain(
    file: File,
    format: Format = "text",
    target_rate: options.TargetRate = None,
    json: options.Json = None,
    html: options.Html = None,
    ticket: options.Ticket = None,
    junit: options.Junit = None,
    units: options.Units = "si",
    redact: options.Redact = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Diagnose a saved report again, offline."""
    with interrupts.held():
        from bottleneck.cli import documents, loading
        from bottleneck.reports.zone_curve_svg import zone_curves_svg
        from probes.stage import Refused

    if format not in FORMATS:
        raise Refused("usage", f"--format {format!r} is none of {', '.join(FORMATS)}")
    paths = {"json": json, "html": html, "ticket": ticket, "junit": junit}
    if format in paths:
        if paths[format] not in (None, documents.STDOUT):
            raise Refused("usage", f"--format {format} and --{format} F: it is written once")
        paths[format] = documents.STDOUT
    output = documents.output(**paths, quiet=quiet, verbose=verbose, style=units, redact=redact)
    loaded = output.showable(loading.wanted(loading.load(file), target_rate))
    if format == "svg":
        drawing = zone_curves_svg(loaded)
        if drawing is None:
            raise Refused("usage", f"{file}: no disk was measured zone by zone: nothing to draw")
        done = documents.shown(lambda: documents.to_stdout(drawing))
        return exits.DONE if done else exits.INCOMPLETE
    done = documents.written(loaded, documents.diagnosed(loaded)[0], output)
    return exits.DONE if done else exits.INCOMPLETE
