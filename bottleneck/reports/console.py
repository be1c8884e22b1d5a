"""A diagnosis on a terminal: the verdict first, then what it stands on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from bottleneck.analysis.finding import Diagnosis
from bottleneck.report import Report
from bottleneck.reports import copies, stages
from bottleneck.reports.comparisons import comparisons
from bottleneck.reports.disks import disk_points, zone_curves
from bottleneck.reports.document import Block, Text
from bottleneck.reports.hosts import interface_points, path
from bottleneck.reports.terminal import show
from bottleneck.units import explorer_note

SETTINGS_SHOWN = 4


def print_report(
    report: Report, diagnosis: Diagnosis, console: Console, verbose: bool = False
) -> None:
    """Writes the whole diagnosis; readable from 80 columns on.

    verbose: ceilings, ladder, evidence and advice of every copy, not of the headline's alone, and
    every row of the comparisons. Foreign text is made safe, and none of it is read as markup.
    """
    show(console, _blocks(report, diagnosis, verbose))


def _blocks(report: Report, diagnosis: Diagnosis, verbose: bool) -> Iterator[Block]:
    chosen = diagnosis.chosen
    shown = diagnosis.copies if verbose else tuple(each for each in [chosen] if each)
    yield from copies.verdict(diagnosis, report.status)
    yield from copies.copies(diagnosis)
    yield from copies.grid(diagnosis)
    for copy in shown:
        yield from copies.ceilings(copy)
        yield from copies.ladder(copy)
    for copy in shown:
        yield from copies.target(copy)
    yield from zone_curves(report)
    yield from comparisons(diagnosis, verbose)
    yield from stages.stages(report)
    yield from path(report)
    yield from interface_points(report)
    yield from disk_points(report)
    for copy in shown:
        which = copies.which(copy) if verbose else ""
        yield from copies.evidence(copy, which, None if verbose else copies.EVIDENCE_SHOWN)
        yield from copies.advice(copy, which)
    yield from stages.costly(report, None if verbose else SETTINGS_SHOWN)
    yield from stages.missing(report)
    if verbose:
        yield from stages.reasons(report)
    yield from stages.notes(report)
    if chosen is not None and chosen.bytes_per_second:
        yield Text(explorer_note(chosen.bytes_per_second), "quiet", apart=True)
