"""How the bytes of one end moved: evenly, or in bursts with silence between them; pure.

A process that a CPU quota stops works at the start of each period alone (sched-bwc.rst of the
kernel: 100 ms, unless it is set), which its peer sees as bursts that come at even distances.
"""

from __future__ import annotations

import statistics
from typing import List, Optional, Sequence, Tuple

from probes.records import Details

LEAST_DISTANCES = 4
"""Fewer tell nothing of how even they are."""
SILENCE_SECONDS = 0.04
"""Between two replies: of a period of 100 ms, a quota of half a core leaves more than that."""


def of_counter(looks: Sequence[Tuple[float, Optional[float]]]) -> Details:
    """What a counter of bytes tells, from looks: when (seconds), and the counter then.

    silent_ratio: share of the time between looks in which it stood still; absent: not known.
    """
    known = [(when, count) for when, count in looks if count is not None]
    if len(known) < 2 or known[-1][0] <= known[0][0]:
        return {}
    pairs = list(zip(known, known[1:]))
    silent = sum(now - before for (before, less), (now, more) in pairs if more <= less)
    return {"silent_ratio": silent / (known[-1][0] - known[0][0])}


def of_moments(moments: Sequence[float]) -> Details:
    """What the moments tell at which something arrived, in seconds; empty: too few.

    silent_ratio: share of the time in gaps of SILENCE_SECONDS and more. bursts: how many such gaps
    ended; burst_count_median: arrivals in one. burst_seconds_median, with _low and _high
    (quartiles): from the start of one burst to that of the next, where there are several.
    """
    if len(moments) < 2 or moments[-1] <= moments[0]:
        return {}
    silent, starts = 0.0, []
    for index, (before, now) in enumerate(zip(moments, moments[1:])):
        if now - before >= SILENCE_SECONDS:
            silent += now - before
            starts.append(index + 1)
    told: Details = {"silent_ratio": silent / (moments[-1] - moments[0]), "bursts": len(starts)}
    pairs = list(zip(starts, starts[1:]))
    apart: List[float] = [moments[later] - moments[earlier] for earlier, later in pairs]
    if len(apart) >= LEAST_DISTANCES:
        low, middle, high = statistics.quantiles(apart, n=4)
        told.update(burst_seconds_median=middle, burst_seconds_low=low, burst_seconds_high=high)
        told["burst_count_median"] = statistics.median(last - first for first, last in pairs)
    return told
