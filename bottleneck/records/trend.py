"""Rate of each copy over several reports of one path: drift and unusual reports; pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from bottleneck.analysis import noise, steps
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report.report import Report
from bottleneck.text.safe import safe
from bottleneck.text.units import percent_text, rate_text
from probes.core.records import Spread

SCHEMA = "copy-bottleneck/trend/1"
LEAST_OTHERS = 2
"""Other reports that are needed to know the usual spread."""
ENOUGH_OTHERS = 3
"""Least number of other reports at which a smaller difference counts."""
LEAST_TO_TRIM = 5
"""Least number of reports whose lowest and highest are left out as mishaps."""

DATE_CHARACTERS = 10
LEAST_REPORTS, LEAST_DEVIATIONS = 6, 2.3
"""Reports that a drift needs, and its least distance from chance in standard deviations."""


@dataclass(frozen=True)
class Point:
    """A copy in one report."""

    started: str
    """Start of the run, ISO 8601 with offset."""
    bytes_per_second: float
    low_bytes_per_second: float
    high_bytes_per_second: float
    cap: str
    """Component, side and cause: `disk/server/read`."""
    confidence: float


@dataclass(frozen=True)
class Unusual:
    """A report whose rate lies outside the others' range."""

    started: str
    bytes_per_second: float
    standing: Literal["lower", "higher"]
    usual_low_bytes_per_second: float
    usual_high_bytes_per_second: float


@dataclass(frozen=True)
class Drift:
    """Change of a rate from report to report, by the line through all of them."""

    since: str
    """Start of the first report."""
    before_bytes_per_second: float
    after_bytes_per_second: float
    """End of the line, which a single bad report hardly moves."""

    @property
    def loss(self) -> float:
        """Lost share of the rate; below 0: it is faster now."""
        return 1 - self.after_bytes_per_second / self.before_bytes_per_second

    @property
    def words(self) -> str:
        """`22% less since 2026-11-01`."""
        way = "less" if self.loss > 0 else "more"
        return f"{percent_text(abs(self.loss))} {way} since {safe(self.since[:DATE_CHARACTERS])}"

    @property
    def rates(self) -> str:
        """`118 MB/s to 92.1 MB/s`."""
        ends = self.before_bytes_per_second, self.after_bytes_per_second
        return " to ".join(map(rate_text, ends))


@dataclass(frozen=True)
class Trend:
    """Rates of one copy in all reports that have it."""

    copy: str
    dialect: str
    points: tuple[Point, ...]
    """Points, the oldest first; at least one."""
    unusual: tuple[Unusual, ...] = ()
    drift: Drift | None = None
    """None: its reports show no direction."""


@dataclass(frozen=True)
class Trends:
    """Trends of all copies in several reports of one path."""

    reports: int
    started: str
    ended: str
    """Start of the last report; `started` is that of the first."""
    copies: tuple[Trend, ...]
    """Trends, those of the last report's copies first."""
    left_out: tuple[str, ...]
    """Reports of another path: start, and the difference."""


def began(report: Report) -> datetime:
    """Returns the start of a run; a time without an offset counts as UTC."""
    when = datetime.fromisoformat(report.started)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def another_path(first: Report, other: Report) -> tuple[str, str, str] | None:
    """Returns what differs (share, client or server) with both names; None: the same path."""
    for what, one, two in (
        ("share", first.target.get("share"), other.target.get("share")),
        ("client", first.client and first.client.name, other.client and other.client.name),
        ("server", first.server and first.server.name, other.server and other.server.name),
    ):
        if one is not None and two is not None and one != two:
            return what, str(one), str(two)
    return None


def trends(reports: Sequence[Report]) -> Trends:
    """Returns the trends of all copies, without reports of another path than the last one's."""
    ordered = sorted(reports, key=began)
    differ = [(each, another_path(ordered[-1], each)) for each in ordered]
    same = [each for each, what in differ if what is None]
    by_copy: dict[tuple[str, str], list[Point]] = {}
    for report in reversed(same):
        for key, point in _points(report).items():
            by_copy.setdefault(key, []).insert(0, point)
    copies = (
        Trend(*key, tuple(points), tuple(unusual(points)), drift(points))
        for key, points in by_copy.items()
    )
    left_out = tuple(f"{each.started}: {what[0]} {what[2]}" for each, what in differ if what)
    return Trends(len(same), same[0].started, same[-1].started, tuple(copies), left_out)


def _points(report: Report) -> dict[tuple[str, str], Point]:
    """Returns a point for each copy with a rate; of several of one name, the diagnosis' first."""
    copy_steps = steps.made_copies(report)
    points: dict[tuple[str, str], Point] = {}
    for copy in diagnose(report).copies:
        rate = copy.bytes_per_second
        if rate is None:
            continue
        step = copy_steps.get((copy.copy, copy.dialect, copy.initiator, rate))
        spread = Spread(rate, rate, rate, 1) if step is None else step.rate
        cap, confidence = copy.verdict.words, copy.verdict.confidence
        point = Point(report.started, rate, spread.low, spread.high, cap, confidence)
        points.setdefault((copy.copy, copy.dialect), point)
    return points


def unusual(points: Sequence[Point]) -> list[Unusual]:
    """Returns reports that lie outside the others' range by more than its width, oldest first.

    Of many others the outermost at each end is left out: one bad night does not hide another.
    """
    outliers = []
    for index, each in enumerate(points):
        others = [*points[:index], *points[index + 1 :]]
        if len(others) < LEAST_OTHERS:
            return []
        trimmed = 1 if len(others) >= LEAST_TO_TRIM else 0
        low = sorted(other.low_bytes_per_second for other in others)[trimmed]
        high = sorted(other.high_bytes_per_second for other in others)[-1 - trimmed]
        middle = statistics.median(other.bytes_per_second for other in others)
        threshold = noise.REPEATED_RATIO if len(others) >= ENOUGH_OTHERS else noise.SINGLE_RATIO
        if noise.factor(middle, each.bytes_per_second) <= threshold:
            continue
        if each.high_bytes_per_second < low - (high - low):
            outliers.append(Unusual(each.started, each.bytes_per_second, "lower", low, high))
        elif each.low_bytes_per_second > high + (high - low):
            outliers.append(Unusual(each.started, each.bytes_per_second, "higher", low, high))
    return outliers


def drift(points: Sequence[Point]) -> Drift | None:
    """Returns the change of a rate from the first report to the last; None: no more than noise.

    Most pairs of reports have to lie the same way (Mann and Kendall's test), and the line through
    the middle of their slopes (Theil and Sen's) has to move by more than a repeated run does.
    Source: Sen, Journal of the American Statistical Association 63 (1968), p. 1379.
    """
    rates = [each.bytes_per_second for each in points]
    count = len(rates)
    pairs = [(i, j) for j in range(count) for i in range(j)]
    if count < LEAST_REPORTS:
        return None
    direction = sum((rates[j] > rates[i]) - (rates[j] < rates[i]) for i, j in pairs)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    slope = statistics.median((rates[j] - rates[i]) / (j - i) for i, j in pairs)
    middle = statistics.median(rate - slope * index for index, rate in enumerate(rates))
    start, end = middle, middle + slope * (count - 1)
    if abs(direction) < LEAST_DEVIATIONS * deviation or min(start, end) <= 0:
        return None
    if noise.factor(start, end) <= noise.REPEATED_RATIO:
        return None
    return Drift(points[0].started, start, end)


def cap_change(trend: Trend) -> tuple[Point, Point] | None:
    """Returns the last two consecutive points with different caps; None: it never changed.

    Points without a named cap are skipped.
    """
    with_cap = [point for point in trend.points if not point.cap.startswith("unknown/")]
    pairs = zip(with_cap, with_cap[1:], strict=False)
    return next((pair for pair in reversed(list(pairs)) if pair[0].cap != pair[1].cap), None)
