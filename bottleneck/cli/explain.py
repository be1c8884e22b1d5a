"""The commands on what is stored: `explain` and `compare` reports, `history`."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bottleneck.cli import exits, interrupts, options
from bottleneck.reports.formats import KINDS

if TYPE_CHECKING:
    from rich.console import Console

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="[REPORT.json]",
        help="Report written by --json, ticket, or observations file with your own figures "
        "[default: the last diagnosis].",
    ),
]
Format = Annotated[
    str,
    options.format_of(
        *("text", *KINDS, "svg"),
        help=f"Format: text, {', '.join(KINDS)}, or svg (a plot of the disks' zones).",
    ),
]


def explain(
    file: File = None,
    format: Format = "text",
    *,
    wanted: options.Wanted,
    shown: options.Documents,
    screen: options.Screen,
) -> int:
    """Diagnose a saved report again, offline.

    Contacts no host and measures nothing.
    """
    with interrupts.held():
        from bottleneck import last_report
        from bottleneck.cli import documents, loading
        from bottleneck.reports.plots.zones import zone_curves_svg
        from probes.stage import Refused

    output = documents.output(documents.in_format(format, shown), screen)
    file = file or last_report.path()
    if file is None or not file.exists():
        named = "no diagnosis is kept" if file is None or file == last_report.path() else file
        raise Refused("usage", f"{named}: not found; run bottleneck diagnose or name a report")
    loaded, rate = loading.load(file), loading.target_rate(wanted.target_rate)
    if rate is not None:
        loaded = replace(loaded, target_rate_bytes_per_second=rate)
    loaded = output.showable(loaded)
    if format == "svg":
        drawing = zone_curves_svg(loaded)
        if drawing is None:
            raise Refused("usage", f"{file}: no disk zones measured; cannot plot")
        done = documents.shown(lambda: documents.to_stdout(drawing))
    else:
        done = documents.written(loaded, documents.diagnosed(loaded)[0], output)
    return exits.DONE if done else exits.INCOMPLETE


LONGEST_NOTE = 600
Before = Annotated[Path, typer.Argument(metavar="BEFORE.json", help="Earlier report or ticket.")]
After = Annotated[Path, typer.Argument(metavar="AFTER.json", help="Later report or ticket.")]


def compare(
    before: Before,
    after: After,
    format: options.TextOrJson = "text",
    *,
    shown: options.Shown,
    screen: options.Verbose,
) -> int:
    """Show what changed between two reports.

    A difference counts only if it exceeds the noise of both reports.
    """
    with interrupts.held():
        from bottleneck.analysis import changes
        from bottleneck.cli import documents, loading
        from bottleneck.reports import terminal
        from bottleneck.reports.compare import print_change, to_json
        from bottleneck.reports.document import points

    output = documents.output(shown)
    first, second = (output.showable(loading.load(each)) for each in (before, after))

    found = changes.compare(first, second)

    def words(console: Console) -> None:
        # Anew, since its sentences are made of rates.
        told = found if output.units == "si" else changes.compare(first, second)
        print_change(told, console, screen.verbose)
        for when, each in (("before", first), ("after", second)):
            if "ticket" in each.tool:
                title = f"The report {when} is a ticket"
                terminal.show(console, points(title, each.notes, longest=LONGEST_NOTE))

    done = documents.answered(format, to_json(found), words, output.units)
    made = [e for e in found.copies if e.before_bytes_per_second and e.after_bytes_per_second]
    return exits.DONE if done and made else exits.INCOMPLETE


MOST_LISTED = 10_000
Kept = Annotated[
    str | None, typer.Argument(metavar="[FILE]", help="FILE of --history [default: as configured].")
]


@options.group("Output")
class Listed(options.Reading):
    """Which runs are listed, and how."""

    most: int = options.value("N", "Number of runs to list, newest first.", 30)


def history(
    context: typer.Context,
    file: Kept = None,
    format: options.TextOrJson = "text",
    *,
    listed: Listed,
) -> int:
    """List stored runs.

    Shows when each run began, its slowest copy and what limited that copy.
    """
    with interrupts.held():
        import os

        from bottleneck import history as kept
        from bottleneck.cli import configuration, documents
        from bottleneck.reports.trend import print_runs
        from probes.stage import Refused

    if not 1 <= listed.most <= MOST_LISTED:
        raise Refused("usage", f"--most: must be from 1 to {MOST_LISTED}")
    style = documents.output(listed).units
    if file is None:
        known = configuration.commands(context.find_root().command)
        told = configuration.settings("diagnose", known, os.environ)
        file = str(told["history"].value) if "history" in told else kept.USUAL
    try:
        path = kept.path_of(file)
        if path is None:
            raise Refused("usage", "--history none: no runs are stored")
        runs = kept.History(path).runs(listed.most)
    except kept.HistoryError as error:
        raise Refused("usage", str(error)) from None

    plain = {"runs": [asdict(each) for each in runs]}
    done = documents.answered(format, plain, partial(print_runs, runs), style)
    return exits.DONE if done else exits.INCOMPLETE
