"""Where writing becomes slower for good: the moment at which a cache on the way is full."""

from __future__ import annotations

import math
from typing import NamedTuple, Optional, Sequence, Tuple

LEAST_WINDOWS = 4
"""On either side of the knee: fewer are a hiccup."""
LEAST_RATIO = 1.5
"""A cache is at least so much faster than what lies behind it."""
LEAST_SIGMAS = 6.0
"""The best of many places to cut pure noise in two differs by up to four."""

Window = Tuple[float, int]
"""Seconds of one stretch of a run, and the bytes that were taken in it."""


class Knee(NamedTuple):
    """A change of rate."""

    at_bytes: int
    """Taken before it."""
    before_bytes_per_second: float
    after_bytes_per_second: float


def find(windows: Sequence[Window]) -> Optional[Knee]:
    """Where two constant rates, the second lower, fit the windows best; pure.

    By least squares, each window weighing as long as it took. None where no cut leaves a second
    rate that is lower by a third, and by six standard errors of the two means.
    """
    spans = [each for each in windows if each[0] > 0]
    best: Optional[Tuple[float, int]] = None
    for cut in range(LEAST_WINDOWS, len(spans) - LEAST_WINDOWS + 1):
        before, after = _mean(spans[:cut]), _mean(spans[cut:])
        if before <= after:
            continue
        residual = _residual(spans[:cut], before) + _residual(spans[cut:], after)
        if best is None or residual < best[0]:
            best = residual, cut
    if best is None:
        return None
    first, second = spans[: best[1]], spans[best[1] :]
    before, after = _mean(first), _mean(second)
    doubt = math.hypot(_error(first, before), _error(second, after))
    if before < LEAST_RATIO * after or before - after < LEAST_SIGMAS * doubt:
        return None
    return Knee(sum(size for _, size in first), before, after)


def _mean(spans: Sequence[Window]) -> float:
    return sum(size for _, size in spans) / sum(seconds for seconds, _ in spans)


def _residual(spans: Sequence[Window], rate: float) -> float:
    return sum(seconds * (size / seconds - rate) ** 2 for seconds, size in spans)


def _error(spans: Sequence[Window], rate: float) -> float:
    """Standard error of the mean."""
    variance = _residual(spans, rate) / sum(seconds for seconds, _ in spans)
    return math.sqrt(variance / (len(spans) - 1))
