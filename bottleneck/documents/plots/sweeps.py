"""Sweeps of buffer sizes, and what messages take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.documents.document import RawRow
from bottleneck.documents.plots import charts, shapes
from bottleneck.documents.plots.shapes import WIDTH, label, text_width
from bottleneck.documents.tcp_tables import buffer_text
from bottleneck.report.report import Report
from bottleneck.text.safe import safe
from bottleneck.text.units import count_text, range_text, rate_text, seconds_text, size_text

MOST_SWEEPS, MOST_LATENCIES = 4, 1
MOST_POINTS = 400
"""Points of a sweep or of a latency stage."""
RIGHT = WIDTH - 8.0
SWEEP_BOX = (34.0, RIGHT, 190.0)
LATENCY_BOX = (24.0, RIGHT, 210.0)
FIT_POINTS = 60
WAYS: tuple[tuple[str, str, str, charts.Dot], ...] = (
    ("warm_one_seconds", "open connection", "fill-series-1", shapes.circle),
    ("cold_one_seconds", "new connection", "fill-series-2", shapes.square),
    ("cold_two_seconds", "new connection, two round trips", "fill-series-4", shapes.diamond),
)
"""The rows' times, in words, and how they are drawn."""


def sweeps(report: Report, diagnosis: Diagnosis) -> Iterator[charts.Plot]:
    """Yields a drawing for each sweep of at least two buffer sizes."""
    for suffix, each, sentence in charts.comparisons_of(diagnosis, "buffers", MOST_SWEEPS):
        rows = sorted(each.rows, key=lambda row: row["buffer_bytes"])[:MOST_POINTS]
        knee = _knee(report, each, rows)
        caption = sentence + charts.drawn_note(rows, each.rows, "sizes")
        titles = ("buffer", "rate", "range", "")
        cells = [_sweep_cells(row, knee) for row in rows]
        drawing = _sweep(rows, knee)
        yield charts.plot(f"sweep{suffix}", _title(rows[0]), caption, drawing, titles, cells)


def _knee(report: Report, each: Comparison, rows: list[RawRow]) -> float | None:
    """Returns the knee that the stage reports, where it measured that size; None: it has none."""
    test = steps.found_at(report, each.steps[0])
    knee = None if test is None else steps.positive(test.outcome.details, "knee_bytes")
    return knee if any(row["buffer_bytes"] == knee for row in rows) else None


def _title(row: RawRow) -> str:
    if row["over"] == "loopback":
        return f"Buffer sizes on the {row['initiator']} (loopback)"
    return f"Buffer sizes over TCP, {safe(row['verb'] or 'one way', 16)}"


def _sweep_cells(row: RawRow, knee: float | None) -> tuple[str, ...]:
    low, high = row["low_bytes_per_second"], row["high_bytes_per_second"]
    return (
        buffer_text(row["buffer_bytes"]),
        rate_text(row["bytes_per_second"]),
        range_text(low, high) if high > low else "",
        "knee" if row["buffer_bytes"] == knee else "",
    )


def _sweep(rows: list[RawRow], knee: float | None) -> charts.Drawing:
    highest = 1.05 * max(max(row["high_bytes_per_second"], row["bytes_per_second"]) for row in rows)
    smallest, largest = (float(row["buffer_bytes"]) for row in (rows[0], rows[-1]))
    sizes = smallest, max(2 * smallest, largest)
    rates = charts.rate_ticks(highest)
    chart = charts.chart(*rates, sizes, (0.0, highest), SWEEP_BOX, inset=6, logarithmic="x")
    chart.level_axis(charts.power_ticks(smallest, largest, 2, size_text), "buffer size per call")
    if knee is not None:
        place, (top, _, bottom) = chart.x.place(knee), SWEEP_BOX
        text = f"knee {buffer_text(knee)}"
        half = text_width(text) / 2
        chart.add(shapes.line(place, top - 8, place, bottom, "guide knee"))
        middle = min(WIDTH - half, max(half + 40, place))
        chart.add(label(middle, top - 12, text, "strong", "middle"))
    chart.curve(((r["buffer_bytes"], r["bytes_per_second"]) for r in rows), "line-series-1")
    for row in rows:
        size, rate = row["buffer_bytes"], row["bytes_per_second"]
        chart.whisker(size, row["low_bytes_per_second"], row["high_bytes_per_second"])
        chart.dot(size, rate, "fill-series-1", f"{buffer_text(size)}: {rate_text(rate)}")
    return SWEEP_BOX[2] + 40, chart.parts


@dataclass(frozen=True)
class Fit:
    """The line t(n) = latency + n / bandwidth as the stage fitted it."""

    latency_seconds: float
    bytes_per_second: float

    def seconds(self, message_bytes: float) -> float:
        """Returns the time of a message by the fit."""
        return self.latency_seconds + message_bytes / self.bytes_per_second

    @property
    def text(self) -> str:
        """Returns `t(n) = 404 us + n / 113 MB/s`."""
        latency, rate = seconds_text(self.latency_seconds), rate_text(self.bytes_per_second)
        return f"t(n) = {latency} + n / {rate}"


def latencies(report: Report, diagnosis: Diagnosis) -> Iterator[charts.Plot]:
    """Yields a drawing for each latency stage with times; the line where there is one."""
    for suffix, each, sentence in charts.comparisons_of(diagnosis, "messages", MOST_LATENCIES):
        sent = (row for row in each.rows if row["message_bytes"] >= 1)
        rows = [row for row in sent if set(_times(row)) != {None}][:MOST_POINTS]
        if not rows:
            continue
        fit = _fit(report, each)
        title = "Time by message size"
        titles = ("message", *(words for _, words, _, _ in WAYS), "fit")
        cells = [_latency_cells(row, fit) for row in rows]
        yield charts.plot(f"latency{suffix}", title, sentence, _latency(rows, fit), titles, cells)


def _times(row: RawRow) -> list[float | None]:
    return [row[way] for way, _, _, _ in WAYS]


def _fit(report: Report, each: Comparison) -> Fit | None:
    test = steps.found_at(report, each.steps[0])
    details = None if test is None else test.outcome.details
    names = ("latency_seconds", "bandwidth_bytes_per_second")
    latency, bandwidth = (steps.positive(details, "fit", name) for name in names)
    broken = steps.items(details, "fit", "pieces")
    return None if latency is None or bandwidth is None or broken else Fit(latency, bandwidth)


def _latency_cells(row: RawRow, fit: Fit | None) -> tuple[str, ...]:
    size = row["message_bytes"]
    return (
        f"{count_text(size)} B",
        *("" if each is None else seconds_text(each) for each in _times(row)),
        "" if fit is None else seconds_text(fit.seconds(size)),
    )


def _latency(rows: list[RawRow], fit: Fit | None) -> charts.Drawing:
    smallest, largest = (float(row["message_bytes"]) for row in (rows[0], rows[-1]))
    largest = max(10 * smallest, largest)
    times = [each for row in rows for each in _times(row) if each is not None]
    if fit is not None:
        times += [fit.seconds(smallest), fit.seconds(largest)]
    ticks = charts.ticks_at(charts.log_figures(min(times), max(times)), seconds_text)
    ends = ticks[0].value, ticks[-1].value
    title, sizes = "time of request and response", (smallest, largest)
    chart = charts.chart(title, ticks, sizes, ends, LATENCY_BOX, inset=6, logarithmic="xy")
    tens = charts.power_ticks(smallest, largest, 10, _size, limit=5)
    chart.level_axis(tens, "message size")
    if fit is not None:
        _draw_fit(fit, chart)
    entries: list[tuple[charts.Mark, str]] = []
    for way, words, name, dot in WAYS:
        timed = [row for row in rows if row[way] is not None]
        for row in timed:
            size, seconds = row["message_bytes"], row[way]
            tip = f"{count_text(size)} B, {words}: {seconds_text(seconds)}"
            chart.dot(size, seconds, name, tip, dot)
        entries += [(charts.dot_mark(dot, name), words)] if timed else []
    if fit is not None:
        entries.append((charts.dashes("line-series-1", 7), fit.text))
    legend, below = charts.key(entries, LATENCY_BOX[2] + 42)
    return below + 2, [*chart.parts, legend]


def _draw_fit(fit: Fit, chart: charts.Chart) -> None:
    """Adds the line, and where a message takes twice the latency."""
    x, bottom = chart.x, chart.y.start
    ratio = x.high / x.low
    sizes = [x.low * ratio ** (i / FIT_POINTS) for i in range(FIT_POINTS + 1)]
    chart.curve(((each, fit.seconds(each)) for each in sizes), "dashed line-series-1", fit.text)
    half = fit.latency_seconds * fit.bytes_per_second
    if x.low < half < x.high:
        place = x.place(half)
        chart.add(shapes.line(place, chart.y.place(fit.seconds(half)), place, bottom, "guide half"))
        offset, anchor = (-5, "end") if place > WIDTH / 2 else (5, "start")
        text = f"half the rate: {size_text(half)}"
        chart.add(label(place + offset, bottom - 6, text, "strong", anchor))


def _size(size: float) -> str:
    """Returns the size of a message, a power of ten: `1 B`, `10 kB`, `1 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * scale:
            return f"{count_text(size / scale)} {unit}"
    return f"{count_text(size)} B"
