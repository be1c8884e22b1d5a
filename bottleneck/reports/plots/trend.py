"""The rate of a copy over its runs, with each run's range, and where its cap became another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.axes import Scale, margin, rate_ticks, rules
from bottleneck.reports.plots.plot import Plot, numbered, plot
from bottleneck.reports.plots.shapes import LINE, WIDTH, label, text_width
from bottleneck.reports.safe import safe
from bottleneck.reports.units import range_text, rate_text
from bottleneck.reports.words import dialect_text
from bottleneck.trend import Point, Trend

MOST_TRENDS = 8
MOST_POINTS = 120
MOST_CAPS = 8
TOP, BOTTOM = 36.0, 176.0
RIGHT = WIDTH - 6.0


def trend_plots(trends: Sequence[Trend]) -> tuple[Plot, ...]:
    """A drawing for each trend of two runs and more, the newest runs of long ones."""
    told = [each for each in trends if len(each.points) > 1]
    return tuple(_plot(f"trend-{at}", each, more) for at, each, more in numbered(told, MOST_TRENDS))


def _plot(name: str, trend: Trend, more: str) -> Plot:
    points = trend.points[-MOST_POINTS:]
    changes = _changes(points)
    title = f"{safe(trend.copy, 40)}, {dialect_text(trend.dialect)}, over {len(points)} runs"
    sentence = _sentence(trend, points, changes) + more
    rows = (
        (
            safe(each.started, 40),
            rate_text(each.bytes_per_second),
            range_text(each.low_bytes_per_second, each.high_bytes_per_second),
            safe(each.cap, 60),
        )
        for each in points
    )
    titles = ("run", "rate", "low to high", "cap")
    return plot(name, title, sentence, _drawn(points, changes), titles, rows)


def _changes(points: Sequence[Point]) -> list[int]:
    """Indices of the first run of each new cap, the very first run's too; bounded, the newest."""
    starts = [at for at, each in enumerate(points) if at == 0 or each.cap != points[at - 1].cap]
    return starts[-MOST_CAPS:]


def _sentence(trend: Trend, points: Sequence[Point], changes: list[int]) -> str:
    rates = [each.bytes_per_second for each in points]
    told = f"{len(points)} runs between {range_text(min(rates), max(rates))}"
    if len(points) < len(trend.points):
        told += f", the newest of {len(trend.points)}"
    turns = sum(at > 0 for at in changes)
    many = "once" if turns == 1 else f"{turns} times"
    return f"{told}; the cap {'is the same in all' if not turns else f'became another {many}'}."


def _drawn(points: Sequence[Point], changes: list[int]) -> tuple[float, list[str]]:
    most = 1.05 * max(max(each.high_bytes_per_second, each.bytes_per_second) for each in points)
    unit, ticks = rate_ticks(most)
    left = margin(ticks)
    x = Scale(0.0, float(len(points) - 1), left + 8, RIGHT - 8)
    y = Scale(0.0, most, BOTTOM, TOP)
    parts = [label(0, 12, unit, "muted"), *rules(ticks, y, left, RIGHT)]
    line = [(x.at(at), y.at(each.bytes_per_second)) for at, each in enumerate(points)]
    parts.append(shapes.polyline(line, "stroke line-series-1"))
    for at, each in enumerate(points):
        low, high = y.at(each.low_bytes_per_second), y.at(each.high_bytes_per_second)
        if high < low:
            parts.append(shapes.upright_whisker(x.at(at), low, high, 2))
        tip = f"{safe(each.started, 40)}: {rate_text(each.bytes_per_second)}, {safe(each.cap, 60)}"
        parts.append(shapes.circle(*line[at], 3, "fill-series-1", tip))
    free = 0.0
    for number, at in enumerate(changes, 1):
        place = x.at(at)
        if at:
            # Between the last run with the old cap and the first with the new one.
            place = (place + x.at(at - 1)) / 2
            parts.append(shapes.line(place, TOP - 6, place, BOTTOM, "guide turn"))
        if place >= free:
            parts.append(label(place, TOP - 10, f"{number}", "strong", "middle"))
            free = place + text_width("00")
    ends = _day(points[0]), _day(points[-1])
    parts.append(label(left, BOTTOM + 16, ends[0], "muted", width=(RIGHT - left) / 2 - 4))
    parts.append(label(RIGHT, BOTTOM + 16, ends[1], "muted", "end", (RIGHT - left) / 2 - 4))
    below = BOTTOM + 24
    parts.append(label(0, below + LINE - 3, "the cap", "muted"))
    below += LINE
    for number, at in enumerate(changes, 1):
        since = f"{number}  from {_day(points[at])}: {safe(points[at].cap, 60)}"
        parts.append(label(0, below + LINE - 3, since))
        below += LINE
    return below + 4, parts


def _day(point: Point) -> str:
    """The day of a run: `2026-11-20`."""
    try:
        return datetime.fromisoformat(point.started).date().isoformat()
    except ValueError:
        return safe(point.started, 24)
