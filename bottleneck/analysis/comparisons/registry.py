"""What stands side by side in a report, each tested against the noise: one table of all axes.

Two copies that differ in one thing are an Axis (see pairs.py): which copies it pairs, its rows, its
sentence. Figures of one stage side by side are a function that makes its rows (see table.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.comparisons import (
    copies,
    disks,
    messages,
    small_files,
    smb,
    starts,
    tcp,
)
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text
from probes.core.records import SIDES

Compare = Callable[[Report], Iterator[Comparison]]

COMPARISONS: tuple[Compare, ...] = (
    copies.dialects,
    starts.INITIATOR.compare,
    starts.told,
    copies.NATIVE.compare,
    smb.security,
    smb.requests,
    smb.channels,
    small_files.compare,
    copies.durability,
    copies.DIRECTION.compare,
    copies.CACHE.compare,
    disks.by_zone,
    disks.places,
    disks.random_reads,
    disks.writing,
    tcp.buffers,
    messages.latencies,
    tcp.windows,
    messages.datagrams,
)
"""Each yields what the report has both sides of, and nothing where it has not."""

UNTOUCHED = ("small-files", "durability")
"""The one names a crowd in its verdict, the other is of single runs."""


def compared(report: Report) -> Iterator[Comparison]:
    """All comparisons of a report; those disturbed, or beyond what a link carries, say so."""
    for compare in COMPARISONS:
        for each in compare(report):
            doubt, crowd = _impossible(report, each), ""
            if not doubt and each.about not in UNTOUCHED:
                crowd = _crowd(report, each)
            if doubt or crowd:
                sentence = doubt or f"Unreliable ({crowd}): {each.sentence}"
                yield replace(each, sentence=sentence, significant=False)
            else:
                yield each


def _impossible(report: Report, comparison: Comparison) -> str:
    """Why one of its steps cannot have moved what it says; empty: they all can."""
    made = (steps.found_at(report, index) for index in comparison.steps)
    doubts = (hardware_limits.impossible(report, each) for each in made if each is not None)
    return next(filter(None, doubts), "")


def _crowd(report: Report, comparison: Comparison) -> str:
    """The most that other processes took of a host while something of it was measured."""
    most = (0.0, "")
    for index in comparison.steps:
        found = steps.found_at(report, index)
        for side in SIDES:
            seen = None if found is None else load_of(report, found, side)
            if seen is not None and seen.crowded:
                taken = f"other processes used {percent_text(seen.others_ratio)} of the {side}'s"
                most = max(most, (seen.others_ratio, f"{taken} CPU, which was full"))
    return most[1]
