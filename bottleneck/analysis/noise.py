"""Whether two rates differ by more than their own noise; pure arithmetic."""

from __future__ import annotations

from probes.core.records import Spread

REPEATED_RATIO = 1.1
"""Least difference of the medians where both sides have runs that do not meet."""
SINGLE_RATIO = 1.25
"""The same where a side was measured once: nothing tells how far off that one run is. A run that
lies among those of the other side is no difference, however far it is from their median."""


def factor(first: float, second: float) -> float:
    """The greater of two rates over the lesser."""
    return max(first, second) / min(first, second)


def differ(first: Spread, second: Spread) -> bool:
    """Whether the difference would be there again: medians apart, and the runs do not meet."""
    least = SINGLE_RATIO if min(first.runs, second.runs) < 2 else REPEATED_RATIO
    apart = first.low > second.high or second.low > first.high
    return apart and factor(first.median, second.median) > least
