"""The smallest buffer that is enough; pure."""

from __future__ import annotations

from typing import Optional, Sequence

from probes.records import Details

ENOUGH_RATIO = 0.95
"""Of the best: a larger buffer than that takes is not worth its memory."""
NOISE_RATIO = 0.9
"""Enough as well where the fastest of a point's runs is, but not below this."""
LEAST_AGAIN_RATIO = 0.8
"""A second run of the best that is slower than that was disturbed."""


def knee(
    points: Sequence[Details], again_bytes_per_second: Optional[float] = None
) -> Optional[int]:
    """The smallest buffer_bytes that reaches 95 % of the best rate, or might; None: no points.

    points: buffer_bytes, bytes_per_second, high_bytes_per_second. again_bytes_per_second: of the
    best point's second run; where it was less, it is what the others have to reach, as the highest
    of many that scatter is too high.
    """
    if not points:
        return None
    best = max(float(each["bytes_per_second"]) for each in points)
    if again_bytes_per_second is not None:
        best = max(LEAST_AGAIN_RATIO * best, min(best, again_bytes_per_second))
    return min(int(each["buffer_bytes"]) for each in points if _enough(each, best))


def _enough(point: Details, best: float) -> bool:
    rate, high = float(point["bytes_per_second"]), float(point["high_bytes_per_second"])
    return rate >= ENOUGH_RATIO * best or (
        rate >= NOISE_RATIO * best and high >= ENOUGH_RATIO * best
    )
