"""What stands side by side in a report: one file a comparison, each tested against the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import (
    beginning,
    caches,
    datagrams,
    dialects,
    directions,
    durability,
    initiators,
    latency,
    native,
    place,
    random_reads,
    requests,
    security,
    small_files,
    sustained,
    sweep,
    told_starts,
    windows,
    zones,
)
from bottleneck.analysis.cpu import load_of
from bottleneck.analysis.finding import Comparison
from bottleneck.report import Report
from bottleneck.reports.units import percent_text
from probes.records import SIDES

Compare = Callable[[Report], Iterator[Comparison]]

COMPARISONS: tuple[Compare, ...] = (
    dialects.compare,
    initiators.compare,
    told_starts.compare,
    native.compare,
    security.compare,
    requests.compare,
    small_files.compare,
    durability.compare,
    directions.compare,
    caches.compare,
    beginning.compare,
    zones.compare,
    place.compare,
    random_reads.compare,
    sustained.compare,
    sweep.compare,
    latency.compare,
    windows.compare,
    datagrams.compare,
)
"""Each yields what the report has both sides of, and nothing where it has not."""

UNTOUCHED = ("small-files", "durability")
"""The one names a crowd in its verdict, the other is of single runs."""


def compared(report: Report) -> Iterator[Comparison]:
    """All comparisons of a report; what strangers on the cores have blurred is told as such."""
    for compare in COMPARISONS:
        for each in compare(report):
            crowd = "" if each.about in UNTOUCHED else _crowd(report, each)
            if crowd:
                sentence = f"Not to be relied on, since {crowd} meanwhile: {each.sentence}"
                yield replace(each, sentence=sentence, significant=False)
            else:
                yield each


def _crowd(report: Report, comparison: Comparison) -> str:
    """The most that other processes took of a host while something of it was measured."""
    most = (0.0, "")
    for index in comparison.steps:
        found = steps.found_at(report, index)
        for side in SIDES:
            seen = None if found is None else load_of(report, found, side)
            if seen is not None and seen.crowded:
                taken = f"other processes took {percent_text(seen.others_ratio)} of the {side}'s"
                most = max(most, (seen.others_ratio, f"{taken} full cores"))
    return most[1]
