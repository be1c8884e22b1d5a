"""What messages take over their size, and the line t(n) = latency + n / bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.report import Report
from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.axes import (
    Mark,
    Scale,
    around,
    key,
    margin,
    marks_below,
    power_ticks,
    rules,
    told_ticks,
)
from bottleneck.reports.plots.plot import Plot, numbered, plot
from bottleneck.reports.plots.shapes import WIDTH, label
from bottleneck.reports.table import Row
from bottleneck.reports.units import count_text, rate_text, seconds_text, size_text

MOST_PLOTS = 1
MOST_SIZES = 400
TOP, BOTTOM = 24.0, 210.0
RIGHT = WIDTH - 8.0
FIT_POINTS = 60
Dot = Callable[[float, float, float, str, str], str]
WAYS: tuple[tuple[str, str, str, Dot], ...] = (
    ("warm_one", "one round trip, warm", "fill-series-1", shapes.circle),
    ("cold_one", "a connection each", "fill-series-2", shapes.square),
    ("cold_two", "and two round trips", "fill-series-4", shapes.diamond),
)
"""Names of the rows' times, in words, and how they are drawn."""


@dataclass(frozen=True)
class Fit:
    """The line as the stage fitted it."""

    latency_seconds: float
    bytes_per_second: float

    def seconds(self, message_bytes: float) -> float:
        """What a message takes by it."""
        return self.latency_seconds + message_bytes / self.bytes_per_second

    @property
    def text(self) -> str:
        """`t(n) = 404 us + n / 113 MB/s`."""
        return f"{seconds_text(self.latency_seconds)} + n / {rate_text(self.bytes_per_second)}"


def latencies(report: Report, diagnosis: Diagnosis) -> Iterator[Plot]:
    """A drawing for each latency stage with times; the line where there is one."""
    found = [each for each in diagnosis.comparisons if each.about == "messages"]
    for at, each, more in numbered(found, MOST_PLOTS):
        rows = [row for row in each.rows if row["message_bytes"] >= 1 and _times(row)][:MOST_SIZES]
        if not rows:
            continue
        fit, name = _fit(report, each), f"latency-{at}"
        title, sentence = "What a message takes, by its size", shapes.told(each.sentence) + more
        titles = ("message", *(words for _, words, _, _ in WAYS), "the line")
        told = [_told(row, fit) for row in rows]
        yield plot(name, title, sentence, _drawn(rows, fit), titles, told)


def _times(row: Row) -> list[float]:
    told = (row[f"{way}_seconds"] for way, _, _, _ in WAYS)
    return [each for each in told if each is not None]


def _fit(report: Report, each: Comparison) -> Fit | None:
    found = steps.found_at(report, each.steps[0])
    details = None if found is None else found.outcome.details
    names = ("latency_seconds", "bandwidth_bytes_per_second")
    latency, bandwidth = (steps.positive(details, "fit", name) for name in names)
    return None if latency is None or bandwidth is None else Fit(latency, bandwidth)


def _told(row: Row, fit: Fit | None) -> tuple[str, ...]:
    size = row["message_bytes"]
    times = (row[f"{way}_seconds"] for way, _, _, _ in WAYS)
    return (
        f"{count_text(size)} B",
        *("" if each is None else seconds_text(each) for each in times),
        "" if fit is None else seconds_text(fit.seconds(size)),
    )


def _drawn(rows: list[Row], fit: Fit | None) -> tuple[float, list[str]]:
    least, largest = (float(rows[at]["message_bytes"]) for at in (0, -1))
    largest = max(10 * least, largest)
    times = [each for row in rows for each in _times(row)]
    if fit is not None:
        times += [fit.seconds(least), fit.seconds(largest)]
    ticks = told_ticks(around(min(times), max(times)), seconds_text)
    shortest, longest = ticks[0].value, ticks[-1].value
    left = margin(ticks)
    x = Scale(least, largest, left + 6, RIGHT - 6, logarithmic=True)
    y = Scale(shortest, longest, BOTTOM, TOP, logarithmic=True)
    parts = [label(0, 12, "time of a message and its answer", "muted")]
    parts += rules(ticks, y, left, RIGHT)
    sizes = told_ticks(power_ticks(least, largest, 10, most=5), _size)
    parts += marks_below(sizes, x, BOTTOM, WIDTH)
    parts.append(label((left + RIGHT) / 2, BOTTOM + 34, "size of the message", "muted", "middle"))
    if fit is not None:
        parts += _line(fit, x, y, shortest)
    entries: list[tuple[Mark, str]] = []
    for way, words, name, dot in WAYS:
        told = [row for row in rows if row[f"{way}_seconds"] is not None]
        for row in told:
            seconds = row[f"{way}_seconds"]
            tip = f"{count_text(row['message_bytes'])} B, {words}: {seconds_text(seconds)}"
            parts.append(dot(x.at(row["message_bytes"]), y.at(seconds), 3, name, tip))
        if told:
            entries.append((_swatch(dot, name), words))
    if fit is not None:
        bar = "stroke dashed line-series-1"
        entries.append((lambda a, b: shapes.line(a - 6, b, a + 7, b, bar), f"t(n) = {fit.text}"))
    shown, below = key(entries, BOTTOM + 42)
    return below + 2, [*parts, shown]


def _line(fit: Fit, x: Scale, y: Scale, shortest: float) -> Iterator[str]:
    ratio = x.high / x.low
    sizes = [x.low * ratio ** (at / FIT_POINTS) for at in range(FIT_POINTS + 1)]
    points = [(x.at(each), y.at(fit.seconds(each))) for each in sizes]
    yield shapes.polyline(points, "stroke dashed line-series-1", f"t(n) = {fit.text}")
    half = fit.latency_seconds * fit.bytes_per_second
    if x.low < half < x.high:
        at = x.at(half)
        yield shapes.line(at, y.at(fit.seconds(half)), at, y.at(shortest), "guide half")
        text, near = f"half the rate: {size_text(half)}", at > WIDTH / 2
        yield label(
            at + (-5 if near else 5), BOTTOM - 6, text, "strong", "end" if near else "start"
        )


def _swatch(dot: Dot, name: str) -> Mark:
    return lambda x, y: dot(x, y, 3, name, "")


def _size(size: float) -> str:
    """Messages are powers of ten: `1 B`, `10 kB`, `1 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * scale:
            return f"{count_text(size / scale)} {unit}"
    return f"{count_text(size)} B"
