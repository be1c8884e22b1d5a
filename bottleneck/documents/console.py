"""A diagnosis on a terminal: the answer on one screen, and the sections of its details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from rich.console import Console

from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.phrases import dialect_text
from bottleneck.documents import copies, stages
from bottleneck.documents.answer import answer, verdict
from bottleneck.documents.comparisons import comparisons
from bottleneck.documents.disks import disk_points, jobs, zone_curves
from bottleneck.documents.document import Block, Text, points
from bottleneck.documents.formats import ALL, SECTIONS
from bottleneck.documents.hosts import interface_points, path
from bottleneck.documents.terminal import show
from bottleneck.report.report import Report
from bottleneck.text.safe import safe
from bottleneck.text.units import explorer_note
from probes.core.records import Measured


def print_report(
    report: Report,
    diagnosis: Diagnosis,
    console: Console,
    sections: Sequence[str] = (),
    is_recorded: bool = False,
) -> None:
    """Writes the answer and the sections asked for, readable from 80 columns on.

    is_recorded: whether `explain` finds this report without its file's name.
    A report without copies, as of one stage, has all of its figures shown. Foreign text is made
    safe, and none of it is read as markup.
    """
    names = sections or (() if diagnosis.copies else (ALL,))
    console.record = console.is_terminal
    if diagnosis.copies:
        show(console, answer(report, diagnosis, is_recorded, has_sections=ALL in names))
    elif diagnosis.comparisons or not any(isinstance(e, Measured) for _, e in report.entries):
        # The figures of one stage are the answer.
        show(console, [Text(safe(diagnosis.summary, 2000), "strong")])
    for name in SECTIONS:
        if name in names or ALL in names:
            blocks = list(_section(name, report, diagnosis, ALL in sections))
            if not blocks and name in sections and name != ALL:
                blocks = [Text(f"Nothing to show in section {name}.", "quiet", apart=True)]
            show(console, blocks)
    if console.is_terminal and diagnosis.copies:
        # Where the text does not fit, its first line has scrolled away.
        lines = console.export_text(clear=True).count("\n")
        if lines >= console.height:
            show(console, [replace(next(verdict(report, diagnosis)), apart=True)])


OF_COPIES = ("direction", "cache", "initiator", "native", "durability", "dialect")


def _section(name: str, report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    """Yields the blocks of one of formats.SECTIONS."""
    tables_of = partial(_comparisons_of, diagnosis, verbose)
    match name:
        case "copies":
            yield from copies.copies(report, diagnosis)
            yield from (*copies.work(report), *copies.cache_growth(report))
            yield from tables_of(*OF_COPIES)
            if diagnosis.main_copy is not None and diagnosis.main_copy.bytes_per_second:
                yield Text(explorer_note(diagnosis.main_copy.bytes_per_second), "quiet", apart=True)
        case "time":
            yield from _time(diagnosis, verbose)
        case "limits":
            yield from _limits(diagnosis, verbose)
        case "evidence":
            yield from _evidence(diagnosis)
        case "disks":
            yield from zone_curves(report)
            yield from tables_of("zones", "place", "random", "sustained")
            yield from disk_points(report)
        case "network":
            yield from (*path(report), *interface_points(report))
            yield from tables_of("buffers", "messages", "windows", "datagrams")
        case "smb":
            yield from tables_of("security", "requests", "channels")
        case "small-files":
            yield from tables_of("small-files", "listing", "parallel")
        case "settings":
            yield from stages.costly(report)
        case "measurements":
            yield from (*stages.stages(report), *jobs(report))
            yield from (*stages.runs(report), *stages.transfers(report))
        case "skipped":
            yield from stages.missing_tests(report)
            yield from points("Notes", report.notes)
            yield from stages.reasons(report)


def _time(diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    tables = [table for copy in diagnosis.copies for table in copies.time(copy)]
    yield from tables
    if not tables and not verbose and diagnosis.copies:
        yield Text("Where the time of these copies went is unknown.", "quiet")


def _comparisons_of(diagnosis: Diagnosis, verbose: bool, *kinds: str) -> Iterator[Block]:
    selection = tuple(each for each in diagnosis.comparisons if each.about in kinds)
    # Beside copies all rows are shown.
    complete = verbose or bool(diagnosis.copies)
    yield from comparisons(replace(diagnosis, comparisons=selection), complete)


def _limits(diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    for copy in diagnosis.copies:
        if verbose or copy is diagnosis.main_copy:
            yield from (*copies.ceilings(copy), *copies.ladder(copy))
        if verbose and copy is not diagnosis.main_copy:
            yield from copies.target(copy)


def _evidence(diagnosis: Diagnosis) -> Iterator[Block]:
    for copy in diagnosis.copies:
        name = f" ({safe(copy.copy, 40)}, {dialect_text(copy.dialect)})"
        yield from points(f"Evidence{name}", copy.evidence)
        if copy is not diagnosis.main_copy:
            yield from points(f"Advice{name}", copy.advice)
