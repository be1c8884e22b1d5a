"""rate = min(ceiling, bytes in flight / round trip), fitted to what was measured; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CLEAR_RATIO = 1.25
"""The knee, ceiling x round trip, has to lie that far inside of the points to be seen by them."""


@dataclass(frozen=True)
class Fit:
    """The curve that is nearest to all points, their rates taken as ratios (least squares of log).

    A part of the curve that no point lies on is None: nothing is known of it. All is None where
    the points have one number of bytes in flight alone, or there is no point.
    """

    ceiling_bytes_per_second: float | None
    """Asymptotic rate: what more bytes in flight do not raise."""
    rtt_seconds: float | None
    """Effective round trip, the server's work included."""
    worst_residual_ratio: float | None
    """The largest of |measured / fitted - 1|."""

    def rate(self, in_flight_bytes: float) -> float:
        """Bytes per second expected with that much in flight. Raises ValueError: nothing known."""
        bounds = []
        if self.ceiling_bytes_per_second is not None:
            bounds.append(self.ceiling_bytes_per_second)
        if self.rtt_seconds is not None:
            bounds.append(in_flight_bytes / self.rtt_seconds)
        return min(bounds)


def fit(points: Sequence[tuple[float, float]]) -> Fit:
    """The Fit of points (bytes in flight, bytes per second), both > 0.

    Every split into points on the slope (fewest bytes in flight) and points at the ceiling is
    tried: within a part the best value is the mean of the logarithms.
    """
    if len({flight for flight, _ in points}) < 2:
        return Fit(None, None, None)
    ordered = sorted((math.log(flight), math.log(rate)) for flight, rate in points)
    flights = [flight for flight, _ in ordered]
    # a split between two points of the same bytes in flight would put one point on both parts
    splits = [
        at for at in range(len(ordered) + 1) if at in (0, len(ordered)) or _grows(flights, at)
    ]
    tried = [_of_split(ordered, at) for at in splits]
    best = min(tried, key=lambda each: _error(each, ordered))
    if best.ceiling_bytes_per_second is not None and best.rtt_seconds is not None:
        knee = best.ceiling_bytes_per_second * best.rtt_seconds
        if knee * CLEAR_RATIO > math.exp(flights[-1]):
            best = _of_split(ordered, len(ordered))
        elif knee < CLEAR_RATIO * math.exp(flights[0]):
            best = _of_split(ordered, 0)
    worst = max(abs(rate / best.rate(flight) - 1) for flight, rate in points)
    return Fit(best.ceiling_bytes_per_second, best.rtt_seconds, worst)


def _grows(flights: Sequence[float], at: int) -> bool:
    return flights[at] > flights[at - 1]


def _of_split(ordered: Sequence[tuple[float, float]], at: int) -> Fit:
    slope, flat = ordered[:at], ordered[at:]
    ceiling = math.exp(sum(rate for _, rate in flat) / len(flat)) if flat else None
    rtt = math.exp(sum(flight - rate for flight, rate in slope) / len(slope)) if slope else None
    return Fit(ceiling, rtt, None)


def _error(fitted: Fit, ordered: Sequence[tuple[float, float]]) -> float:
    return sum((rate - math.log(fitted.rate(math.exp(flight)))) ** 2 for flight, rate in ordered)
