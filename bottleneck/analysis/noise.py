"""Whether two rates differ by more than their own noise; pure arithmetic."""

from __future__ import annotations

from probes.core.records import Spread

REPEATED_RATIO = 1.1
"""Least ratio of two sides' medians at which they differ, if both have several runs."""
SINGLE_RATIO = 1.25
"""Least ratio if a side was measured once, whose error is not known. A run that lies among those of
the other side is no difference, however far it is from their median."""


def factor(first: float, second: float) -> float:
    """Returns the greater of two rates over the lesser."""
    return max(first, second) / min(first, second)


def differ(first: Spread, second: Spread) -> bool:
    """Whether a difference is repeatable: medians apart, and the runs do not overlap."""
    threshold = SINGLE_RATIO if min(first.runs, second.runs) < 2 else REPEATED_RATIO
    apart = first.low > second.high or second.low > first.high
    return apart and factor(first.median, second.median) > threshold
