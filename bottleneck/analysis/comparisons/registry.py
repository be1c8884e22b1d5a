"""All axes of comparison, and what makes a comparison of a report unreliable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.comparisons import copies, disks, messages, small_files, smb, starts, tcp
from bottleneck.analysis.comparisons.axis import Limits, comparisons
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text
from probes.core.records import SIDES

AXES = (
    copies.DIALECT,
    starts.INITIATOR,
    copies.NATIVE,
    smb.SECURITY,
    smb.REQUESTS,
    smb.CHANNELS,
    small_files.SMALL_FILES,
    small_files.LISTING,
    small_files.PARALLEL,
    starts.DURABILITY,
    copies.DIRECTION,
    copies.CACHE,
    disks.ZONES,
    disks.PLACE,
    disks.RANDOM,
    disks.SUSTAINED,
    tcp.BUFFERS,
    messages.MESSAGES,
    tcp.WINDOWS,
    messages.DATAGRAMS,
)


def all_comparisons(report: Report, limits: Limits) -> Iterator[Comparison]:
    """Yields all comparisons, with a note on those disturbed or beyond a link's rate."""
    for axis in AXES:
        for each in comparisons(axis, report, limits):
            doubt, crowd = _impossible(report, each), _crowd(report, each)
            if doubt:
                yield replace(each, sentence=doubt, significant=False)
            elif crowd and axis.is_unreliable_on_busy_cores:
                sentence = f"Unreliable ({crowd}): {each.sentence}"
                yield replace(each, sentence=sentence, significant=False)
            else:
                yield each


def _impossible(report: Report, comparison: Comparison) -> str:
    measured = (steps.found_at(report, index) for index in comparison.steps)
    doubts = (hardware_limits.impossible(report, each) for each in measured if each is not None)
    return next(filter(None, doubts), "")


def _crowd(report: Report, comparison: Comparison) -> str:
    """Returns the largest CPU share of other processes during its steps, in words; empty: none."""
    crowd = (0.0, "")
    for index in comparison.steps:
        result = steps.found_at(report, index)
        for side in SIDES:
            load = None if result is None else load_of(report, result, side)
            if load is not None and load.is_crowded:
                share = percent_text(load.others_ratio)
                text = f"other processes used {share} of the {side}'s CPU, which was full"
                crowd = max(crowd, (load.others_ratio, text))
    return crowd[1]
