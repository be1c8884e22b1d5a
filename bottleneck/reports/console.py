"""A diagnosis on a terminal: the answer on one screen, and the sections of its details."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rich.console import Console

from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.report import Report
from bottleneck.reports import copies, stages
from bottleneck.reports.answer import answer
from bottleneck.reports.comparisons import comparisons
from bottleneck.reports.disks import disk_points, zone_curves
from bottleneck.reports.document import Block, Text
from bottleneck.reports.formats import ALL
from bottleneck.reports.hosts import interface_points, path
from bottleneck.reports.terminal import show
from bottleneck.safe import safe
from bottleneck.units import explorer_note
from probes.records import Measured

Section = Callable[[Report, Diagnosis, bool], Iterator[Block]]


def print_report(
    report: Report,
    diagnosis: Diagnosis,
    console: Console,
    sections: Sequence[str] = (),
    kept: bool = False,
) -> None:
    """Writes the answer and the sections asked for, readable from 80 columns on.

    kept: whether `explain` finds this report without its file's name.
    A report without copies, as of one stage, has all of its figures shown. Foreign text is made
    safe, and none of it is read as markup.
    """
    wanted = sections or (() if diagnosis.copies else (ALL,))
    if diagnosis.copies:
        show(console, answer(report, diagnosis, kept))
    elif diagnosis.comparisons or not any(isinstance(e, Measured) for _, e in report.entries):
        # Of one stage its figures are the answer.
        show(console, [Text(safe(diagnosis.summary, 2000), "strong")])
    for name, section in SECTIONS.items():
        if name in wanted or ALL in wanted:
            show(console, section(report, diagnosis, ALL in sections))


def _about(diagnosis: Diagnosis, verbose: bool, *abouts: str) -> Iterator[Block]:
    found = tuple(each for each in diagnosis.comparisons if each.about in abouts)
    # The tables of TCP have their sentences alone beside copies, unless somebody asks.
    asked = verbose or bool(diagnosis.copies)
    yield from comparisons(replace(diagnosis, comparisons=found), asked)


def _shown(diagnosis: Diagnosis, verbose: bool) -> tuple[CopyDiagnosis, ...]:
    """The copies that a section speaks of: the chosen one, or all."""
    chosen = diagnosis.chosen
    return diagnosis.copies if verbose else tuple(each for each in [chosen] if each)


def _copies(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    yield from copies.copies(diagnosis)
    yield from copies.grid(diagnosis)
    abouts = ("direction", "cache", "initiator", "native", "durability", "dialect", "start")
    yield from _about(diagnosis, verbose, *abouts)
    chosen = diagnosis.chosen
    if chosen is not None and chosen.bytes_per_second:
        yield Text(explorer_note(chosen.bytes_per_second), "quiet", apart=True)


def _limits(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    for copy in _shown(diagnosis, verbose):
        yield from copies.ceilings(copy)
        yield from copies.ladder(copy)
        if copy is not diagnosis.chosen:
            yield from copies.target(copy)


def _evidence(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    for copy in diagnosis.copies:
        yield from copies.evidence(copy, copies.which(copy))
        if copy is not diagnosis.chosen:
            yield from copies.advice(copy, copies.which(copy))


def _disks(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    yield from zone_curves(report)
    yield from _about(diagnosis, verbose, "zones", "place", "random", "sustained")
    yield from disk_points(report)


def _network(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    yield from path(report)
    yield from interface_points(report)
    yield from _about(diagnosis, verbose, "buffers", "messages", "windows", "datagrams")


def _smb(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    yield from _about(diagnosis, verbose, "security", "requests", "channels")


def _small_files(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    yield from _about(diagnosis, verbose, "small-files")


def _settings(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    yield from stages.costly(report)


def _measurements(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    yield from stages.stages(report)


def _skipped(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    yield from stages.missing(report)
    yield from stages.notes(report)
    yield from stages.reasons(report)


SECTIONS: dict[str, Section] = {
    "copies": _copies,
    "limits": _limits,
    "evidence": _evidence,
    "disks": _disks,
    "network": _network,
    "smb": _smb,
    "small-files": _small_files,
    "settings": _settings,
    "measurements": _measurements,
    "skipped": _skipped,
}
"""In the order in which they are shown; formats.SECTIONS has their names."""
