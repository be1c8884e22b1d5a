"""The model of a spinning disc, fitted to rates by zone: pure arithmetic.

At a constant angular rate the linear one grows with the radius, and the address with the area that
lies outside it, so that rate^2 falls linearly with the address:
rate(x) = outer * sqrt(1 - x * (1 - (inner / outer)^2)), x from 0 (outer edge) to 1 (inner).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

LEAST_ZONES = 3
"""Fewest zones of a curve: two points lie on every curve."""
LEAST_FOR_WEAK = 5
"""Fewest zones, to distinguish a weak one from a curve that bends."""
WEAK_RATIO = 0.1
"""Least distance of a weak zone below the curve; 4 sigma of the others if that is more."""
WEAK_SIGMAS = 4.0
ROUGH_RATIO = 0.1
"""Least typical distance from a curve that describes nothing."""
FLAT_RATIO = 0.9
"""Inner over outer rate, which no spinning disc reaches."""
USUAL_DOUBT_RATIO = 0.02
"""Error of a zone without a spread, as a share of its rate."""
LEAST_DOUBT_RATIO = 0.005
_NORMAL = 1.4826
"""Standard deviation over the median distance from the median, of a normal distribution."""


@dataclass(frozen=True)
class Zone:
    """A span of the device, 0 to 1 in address order, and its rate in bytes per second."""

    from_ratio: float
    to_ratio: float
    bytes_per_second: float
    low_bytes_per_second: float
    high_bytes_per_second: float

    @property
    def centre_ratio(self) -> float:
        return (self.from_ratio + self.to_ratio) / 2

    @property
    def doubt(self) -> float:
        """Error of the curve's rate, as a share of the rate."""
        spread = self.high_bytes_per_second - self.low_bytes_per_second
        ratio = spread / 2 / self.bytes_per_second if spread > 0 else USUAL_DOUBT_RATIO
        return max(LEAST_DOUBT_RATIO, ratio)


@dataclass(frozen=True)
class Curve:
    """rate(x)^2 = square + slope * x, in bytes per second, fitted to zones."""

    square: float
    slope: float
    doubt: float
    """Standard error of inner over outer."""
    weak: tuple[int, ...]
    """Indices of the zones that are far below it; they did not bend it."""
    partial: bool = False
    """Whether its zones cover only a part of the disk, so that the rest is extrapolated."""

    def rate_at(self, ratio: float) -> float:
        """Returns the rate at a position; positions beyond the device are its edges."""
        return math.sqrt(self.square + self.slope * min(1.0, max(0.0, ratio)))

    def rate_over(self, from_ratio: float, to_ratio: float) -> float:
        """Returns the rate of reading a span from end to end: its bytes over their time.

        By the integral of 1 / rate over the span it is the mean of the rates at both ends.
        """
        return (self.rate_at(from_ratio) + self.rate_at(to_ratio)) / 2

    @property
    def outer_bytes_per_second(self) -> float:
        """Rate at the first address, where a disc is widest."""
        return self.rate_at(0.0)

    @property
    def inner_bytes_per_second(self) -> float:
        """Rate at the last address."""
        return self.rate_at(1.0)

    @property
    def ratio(self) -> float:
        """Outer over inner."""
        return self.outer_bytes_per_second / self.inner_bytes_per_second

    @property
    def is_flat(self) -> bool:
        """Whether the rate is constant within the noise: of an SSD, a virtual disk, a RAID."""
        return self.share + (0.0 if self.partial else 2 * self.doubt) > FLAT_RATIO

    @property
    def share(self) -> float:
        """The slower edge's rate over the faster one's."""
        return min(self.ratio, 1 / self.ratio)

    @property
    def falls(self) -> bool:
        """Whether the rate falls from the first address to the last, like a spinning disc's."""
        return not self.is_flat and self.slope < 0


def fit_curve(zones: Sequence[Zone]) -> Curve | None:
    """Fits a curve to zones; None: too few, or they lie on none.

    Weighted least squares, each zone by its spread. Zones far off the curve through the medians are
    left out, so that a weak zone does not bend it.
    """
    places = {each.centre_ratio for each in zones}
    if len(places) < LEAST_ZONES:
        return None
    near, start = list(zones), _through_medians(zones)
    if len(places) >= LEAST_FOR_WEAK and start is not None:
        away = [abs(_away(zone, *start)) for zone in zones]
        bound = max(WEAK_RATIO, WEAK_SIGMAS * _NORMAL * median(away))
        near = [zone for zone, each in zip(zones, away, strict=True) if each <= bound]
    if len({each.centre_ratio for each in near}) < LEAST_ZONES:
        return None
    line = _least_squares(near)
    if line is None:
        return None
    square, slope, variance = line
    residual = math.sqrt(fmean(_away(each, square, slope) ** 2 for each in near))
    if residual > ROUGH_RATIO:
        return None
    inner = math.sqrt((square + slope) / square)
    # The fit's own scatter, or the spread of the zones.
    doubt = math.sqrt(variance) / square / 2 / inner
    weak_bound = max(WEAK_RATIO, WEAK_SIGMAS * residual)
    weak = tuple(
        index
        for index, zone in enumerate(zones)
        if len(places) >= LEAST_FOR_WEAK and _away(zone, square, slope) < -weak_bound
    )
    return Curve(square, slope, doubt, weak)


def _away(zone: Zone, square: float, slope: float) -> float:
    """Returns the distance of a zone from a curve, as a share of the curve."""
    due = square + slope * zone.centre_ratio
    return zone.bytes_per_second / math.sqrt(due) - 1 if due > 0 else math.inf


def _through_medians(zones: Sequence[Zone]) -> tuple[float, float] | None:
    """Returns the robust line through the squares of the rates (Theil, Sen)."""
    points = [(each.centre_ratio, each.bytes_per_second**2) for each in zones]
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x1 != x2]
    slope = median(slopes)
    square = median(y - slope * x for x, y in points)
    return (square, slope) if square > 0 and square + slope > 0 else None


def _least_squares(zones: Sequence[Zone]) -> tuple[float, float, float] | None:
    """Returns square, slope and the slope's variance; None: no positive rate at an edge."""
    points = [(each.centre_ratio, each.bytes_per_second**2) for each in zones]
    weights = [1 / (2 * each.doubt * each.bytes_per_second**2) ** 2 for each in zones]
    x_mean, y_mean = (fmean(each, weights) for each in zip(*points, strict=True))
    pairs = list(zip(weights, points, strict=True))
    spread = math.fsum(w * (x - x_mean) ** 2 for w, (x, _) in pairs)
    if not spread > 0:
        return None
    slope = math.fsum(w * (x - x_mean) * (y - y_mean) for w, (x, y) in pairs) / spread
    square = y_mean - slope * x_mean
    if not (square > 0 and square + slope > 0 and math.isfinite(square + slope)):
        return None
    around = math.fsum(w * (y - square - slope * x) ** 2 for w, (x, y) in pairs)
    return square, slope, max(1.0, around / (len(points) - 2)) / spread
