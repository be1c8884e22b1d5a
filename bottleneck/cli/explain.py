"""The commands on stored reports: `explain` and `compare`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from bottleneck.cli import exits, interrupts, options
from bottleneck.documents.formats import KINDS

if TYPE_CHECKING:
    from rich.console import Console

    from bottleneck.cli.documents import Output
    from bottleneck.report.report import Report

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILES]",
        help="Report, ticket, observations, packet capture (.pcap, .pcapng, .gz), or outputs of "
        "iperf3, fio, ping, smbclient, rsync, robocopy, dd, diskspd or ss, all of one case. "
        "server:FILE and client:FILE say where it was measured [default: the last diagnosis].",
    ),
]
_FORMATS = f"Format: text, {', '.join(KINDS)}, or svg (a plot of the disks' zones)."
Format = Annotated[str, options.format_of("text", *KINDS, "svg", help=_FORMATS)]


@options.group("Figures")
class Figures:
    """Figures of a case beside its files."""

    copy: list[str] | None = options.value("COPY", "A copy, as 'pull 38MB/s' (repeatable).")
    link: str | None = options.value("RATE", "Rate of both hosts' links, such as 1Gbit/s.")
    rtt: str | None = options.value("TIME", "RTT, such as 2ms.")
    tcp: str | None = options.value("RATE", "Raw TCP in the direction of the copies (iperf3).")
    disk_read: str | None = options.value("RATE", "Sequential read rate of the source's disk.")
    disk_write: str | None = options.value("RATE", "Sequential write rate of the target's disk.")
    from_: str | None = options.value("SIDE", "Where FILE was measured: client or server.")
    template: bool = options.flag("Print an observations file to fill in.")


def explain(
    files: Files = None,
    format: Format = "text",
    *,
    figures: Figures,
    goal: options.Goal,
    outputs: options.Documents,
    screen: options.Screen,
) -> int:
    """Diagnose a saved report again, or figures that you have.

    Contacts no host and measures nothing.
    """
    with interrupts.defer():
        from bottleneck.cli import documents, loading
        from bottleneck.cli.completion import checked_word
        from bottleneck.documents.plots.zones import zone_curves_svg
        from bottleneck.estimate.template import TEMPLATE
        from bottleneck.report import last_report
        from probes.core.records import SIDES
        from probes.core.stage import Refused

    if figures.template:
        print(TEMPLATE, end="")
        return exits.DONE
    output = documents.output(documents.in_format(format, outputs), screen)
    side = None if figures.from_ is None else checked_word("--from", figures.from_, SIDES)
    rates = (figures.tcp, figures.disk_read, figures.disk_write)
    typed = loading.TypedFigures(tuple(figures.copy or ()), figures.link, figures.rtt, side, *rates)
    names = list(files or ())
    if not names and typed == loading.TypedFigures():
        last = last_report.path()
        if last is None or not last.exists():
            remedy = "run `bottleneck diagnose`, or give a report file"
            raise Refused("usage", f"no earlier diagnosis found; {remedy}")
        names = [str(last)]
    loaded, rate = loading.load_case(names, typed), loading.target_rate(goal.target_rate)
    if rate is not None:
        loaded = replace(loaded, target_rate_bytes_per_second=rate)
    loaded = output.showable(loaded)
    if format == "svg":
        drawing = zone_curves_svg(loaded)
        if drawing is None:
            raise Refused("usage", f"{names[0]}: no disk zones measured; cannot plot")
        done = documents.show(lambda: documents.to_stdout(drawing))
    else:
        done = _write_meaning(loaded, output)
    return exits.DONE if done else exits.INCOMPLETE


def _write_meaning(loaded: Report, output: Output) -> bool:
    """Writes what a report means; whether all of it was measured, decided and written."""
    from bottleneck.cli import documents

    diagnosis = documents.safe_diagnosis(loaded)[0]
    done = documents.write_all(loaded, diagnosis, output) and loaded.status == "complete"
    return done and not documents.is_unsure(diagnosis, only_steps=not diagnosis.copies)


MOST_COMPARED = 100
Reports = Annotated[
    list[str],
    typer.Argument(
        metavar="REPORTS",
        help="Reports, the earlier one first; or a folder or 'pattern*' of reports.",
    ),
]


def compare(
    files: Reports,
    format: options.TextOrJson = "text",
    *,
    presentation: options.RedactablePresentation,
    screen: options.Verbose,
) -> int:
    """Show what changed between reports, and why.

    Next to each copy that changed stand the settings and facts that differ. Of two reports, a
    difference counts only if it exceeds the noise of both. Of more, the trend of each copy and
    the unusual reports are shown.
    """
    with interrupts.defer():
        from bottleneck.cli import documents, loading
        from bottleneck.documents.trend import print_trends
        from bottleneck.records import trend
        from probes.core.stage import Refused
        from probes.core.typed import to_plain

    output = documents.output(presentation)
    skipped: list[str] = []
    loaded = (each for name in files for each in loading.each_of(name, skipped))
    reports = [output.showable(each) for each in loaded]
    for each in skipped:
        exits.complain(each)
    if len(reports) > MOST_COMPARED:
        raise Refused("usage", f"compare: {len(reports)} reports, at most {MOST_COMPARED} are read")
    if len(reports) < 2:
        raise Refused("usage", "compare: use two reports or more, or a folder of them")
    if len(reports) == 2:
        first, second = reports if len(files) == 2 else sorted(reports, key=trend.began)
        return _compare_two(first, second, format, output, screen.verbose)

    together = trend.trends(reports)
    words = partial(print_trends, together)
    document = {"schema": trend.SCHEMA, **to_plain(together)}
    done = documents.answer(format, document, words, output.units)
    return exits.DONE if done and together.copies and not skipped else exits.INCOMPLETE


def _compare_two(first: Report, second: Report, format: str, output: Output, verbose: bool) -> int:
    """Writes what changed from one report to another, and returns the exit code."""
    from bottleneck.analysis import changes
    from bottleneck.cli import documents
    from bottleneck.documents.compare import SCHEMA, print_change
    from probes.core.typed import to_plain

    change = changes.compare(first, second)

    def words(console: Console) -> None:
        # Compared again in that style, since its sentences contain rates.
        styled = change if output.units == "si" else changes.compare(first, second)
        print_change(styled, console, verbose)

    done = documents.answer(format, {"schema": SCHEMA, **to_plain(change)}, words, output.units)
    compared = [e for e in change.copies if e.before_bytes_per_second and e.after_bytes_per_second]
    return exits.DONE if done and compared else exits.INCOMPLETE
