"""The rates of one kind of copy over many runs, as a history knows them; pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Literal

from bottleneck.analysis import noise

LEAST_BEFORE = 3
"""Runs before the last one, from which on they show how far runs lie apart by themselves."""
LEAST_TO_TRIM = 5
"""The same, from which on the lowest and the highest may be mishaps."""

Standing = Literal["lower", "higher", "usual", "unknown"]


@dataclass(frozen=True)
class Point:
    """One run."""

    started: str
    """ISO 8601 with its offset."""
    bytes_per_second: float
    low_bytes_per_second: float
    high_bytes_per_second: float
    cap: str
    """Component, side and cause: `disk/server/read`."""
    confidence: float


@dataclass(frozen=True)
class Trend:
    """All that a history has of one copy between the same two ends."""

    copy: str
    dialect: str
    points: tuple[Point, ...]
    """The oldest first; at least one."""


@dataclass(frozen=True)
class Kept:
    """One run of a history, with the copy that its summary speaks of."""

    started: str
    share: str
    client: str
    server: str | None
    status: str
    copy: str | None
    """None: no copy was made."""
    dialect: str | None
    bytes_per_second: float | None
    cap: str | None
    confidence: float | None


def usual_range(trend: Trend) -> tuple[float, float] | None:
    """Lowest and highest rate of the runs before the last one, bytes per second.

    Of many the outermost one at each end is left out: one bad night widens nothing. None: there
    are too few of them.
    """
    before = trend.points[:-1]
    if len(before) < LEAST_BEFORE:
        return None
    left_out = 1 if len(before) >= LEAST_TO_TRIM else 0
    lows = sorted(point.low_bytes_per_second for point in before)
    highs = sorted(point.high_bytes_per_second for point in before)
    return lows[left_out], highs[-1 - left_out]


def standing(trend: Trend) -> Standing:
    """Where the last run lies: outside of what the runs before it did by themselves, or not.

    "unknown": there are too few of them to tell.
    """
    usual = usual_range(trend)
    if usual is None:
        return "unknown"
    last = trend.points[-1]
    middle = statistics.median(point.bytes_per_second for point in trend.points[:-1])
    if noise.factor(middle, last.bytes_per_second) <= noise.REPEATED_RATIO:
        return "usual"
    if last.high_bytes_per_second < usual[0]:
        return "lower"
    return "higher" if last.low_bytes_per_second > usual[1] else "usual"


def cap_change(trend: Trend) -> tuple[Point, Point] | None:
    """The last two runs in a row with different caps; None: it never changed.

    Runs that named no cap are passed over.
    """
    named = [point for point in trend.points if not point.cap.startswith("unknown/")]
    pairs = zip(named, named[1:], strict=False)
    return next((pair for pair in reversed(list(pairs)) if pair[0].cap != pair[1].cap), None)
