"""Sweeps of buffer sizes, and what messages take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.documents.document import Found
from bottleneck.documents.plots import charts, shapes
from bottleneck.documents.plots.shapes import WIDTH, label, text_width
from bottleneck.documents.tcp_tables import buffer_text
from bottleneck.report.report import Report
from bottleneck.text.safe import safe
from bottleneck.text.units import count_text, range_text, rate_text, seconds_text, size_text

MOST_SWEEPS, MOST_LATENCIES = 4, 1
MOST_POINTS = 400
"""Of a sweep or of a latency stage."""
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
    """A drawing for each sweep of at least two buffer sizes."""
    for at, each, sentence in charts.compared(diagnosis, "buffers", MOST_SWEEPS):
        rows = sorted(each.rows, key=lambda row: row["buffer_bytes"])[:MOST_POINTS]
        knee = _knee(report, each, rows)
        told = sentence + charts.bounded(rows, each.rows, "sizes")
        titles = ("buffer", "rate", "range", "")
        cells = [_sweep_cells(row, knee) for row in rows]
        drawn = _sweep(rows, knee)
        yield charts.plot(f"sweep{at}", _title(rows[0]), told, drawn, titles, cells)


def _knee(report: Report, each: Comparison, rows: list[Found]) -> float | None:
    """As the stage reports it, where it measured that size; None: it reports none."""
    found = steps.found_at(report, each.steps[0])
    told = None if found is None else steps.positive(found.outcome.details, "knee_bytes")
    return told if any(row["buffer_bytes"] == told for row in rows) else None


def _title(row: Found) -> str:
    if row["over"] == "loopback":
        return f"Buffer sizes on the {row['initiator']} (loopback)"
    return f"Buffer sizes over TCP, {safe(row['verb'] or 'one way', 16)}"


def _sweep_cells(row: Found, knee: float | None) -> tuple[str, ...]:
    low, high = row["low_bytes_per_second"], row["high_bytes_per_second"]
    return (
        buffer_text(row["buffer_bytes"]),
        rate_text(row["bytes_per_second"]),
        range_text(low, high) if high > low else "",
        "knee" if row["buffer_bytes"] == knee else "",
    )


def _sweep(rows: list[Found], knee: float | None) -> charts.Drawn:
    most = 1.05 * max(max(row["high_bytes_per_second"], row["bytes_per_second"]) for row in rows)
    least, largest = (float(rows[at]["buffer_bytes"]) for at in (0, -1))
    sizes = least, max(2 * least, largest)
    rates = charts.rate_ticks(most)
    made = charts.chart(*rates, sizes, (0.0, most), SWEEP_BOX, inset=6, logarithmic="x")
    made.level_axis(charts.power_ticks(least, largest, 2, size_text), "buffer size per call")
    if knee is not None:
        at, (top, _, bottom) = made.x.at(knee), SWEEP_BOX
        text = f"knee {buffer_text(knee)}"
        half = text_width(text) / 2
        made.add(shapes.line(at, top - 8, at, bottom, "guide knee"))
        middle = min(WIDTH - half, max(half + 40, at))
        made.add(label(middle, top - 12, text, "strong", "middle"))
    made.curve(((r["buffer_bytes"], r["bytes_per_second"]) for r in rows), "line-series-1")
    for row in rows:
        size, rate = row["buffer_bytes"], row["bytes_per_second"]
        made.whisker(size, row["low_bytes_per_second"], row["high_bytes_per_second"])
        made.dot(size, rate, "fill-series-1", f"{buffer_text(size)}: {rate_text(rate)}")
    return SWEEP_BOX[2] + 40, made.parts


@dataclass(frozen=True)
class Fit:
    """The line t(n) = latency + n / bandwidth as the stage fitted it."""

    latency_seconds: float
    bytes_per_second: float

    def seconds(self, message_bytes: float) -> float:
        """The time of a message by the fit."""
        return self.latency_seconds + message_bytes / self.bytes_per_second

    @property
    def text(self) -> str:
        """`t(n) = 404 us + n / 113 MB/s`."""
        latency, rate = seconds_text(self.latency_seconds), rate_text(self.bytes_per_second)
        return f"t(n) = {latency} + n / {rate}"


def latencies(report: Report, diagnosis: Diagnosis) -> Iterator[charts.Plot]:
    """A drawing for each latency stage with times; the line where there is one."""
    for at, each, sentence in charts.compared(diagnosis, "messages", MOST_LATENCIES):
        sent = (row for row in each.rows if row["message_bytes"] >= 1)
        rows = [row for row in sent if set(_times(row)) != {None}][:MOST_POINTS]
        if not rows:
            continue
        fit = _fit(report, each)
        title = "Time by message size"
        titles = ("message", *(words for _, words, _, _ in WAYS), "fit")
        told = [_latency_cells(row, fit) for row in rows]
        yield charts.plot(f"latency{at}", title, sentence, _latency(rows, fit), titles, told)


def _times(row: Found) -> list[float | None]:
    return [row[way] for way, _, _, _ in WAYS]


def _fit(report: Report, each: Comparison) -> Fit | None:
    found = steps.found_at(report, each.steps[0])
    details = None if found is None else found.outcome.details
    names = ("latency_seconds", "bandwidth_bytes_per_second")
    latency, bandwidth = (steps.positive(details, "fit", name) for name in names)
    broken = steps.items(details, "fit", "pieces")
    return None if latency is None or bandwidth is None or broken else Fit(latency, bandwidth)


def _latency_cells(row: Found, fit: Fit | None) -> tuple[str, ...]:
    size = row["message_bytes"]
    return (
        f"{count_text(size)} B",
        *("" if each is None else seconds_text(each) for each in _times(row)),
        "" if fit is None else seconds_text(fit.seconds(size)),
    )


def _latency(rows: list[Found], fit: Fit | None) -> charts.Drawn:
    least, largest = (float(rows[at]["message_bytes"]) for at in (0, -1))
    largest = max(10 * least, largest)
    times = [each for row in rows for each in _times(row) if each is not None]
    if fit is not None:
        times += [fit.seconds(least), fit.seconds(largest)]
    ticks = charts.ticks_at(charts.around(min(times), max(times)), seconds_text)
    ends = ticks[0].value, ticks[-1].value
    title, sizes = "time of request and response", (least, largest)
    made = charts.chart(title, ticks, sizes, ends, LATENCY_BOX, inset=6, logarithmic="xy")
    tens = charts.power_ticks(least, largest, 10, _size, most=5)
    made.level_axis(tens, "message size")
    if fit is not None:
        _draw_fit(fit, made)
    entries: list[tuple[charts.Mark, str]] = []
    for way, words, name, dot in WAYS:
        told = [row for row in rows if row[way] is not None]
        for row in told:
            size, seconds = row["message_bytes"], row[way]
            tip = f"{count_text(size)} B, {words}: {seconds_text(seconds)}"
            made.dot(size, seconds, name, tip, dot)
        entries += [(charts.dot_mark(dot, name), words)] if told else []
    if fit is not None:
        entries.append((charts.dashes("line-series-1", 7), fit.text))
    shown, below = charts.key(entries, LATENCY_BOX[2] + 42)
    return below + 2, [*made.parts, shown]


def _draw_fit(fit: Fit, made: charts.Chart) -> None:
    """The line, and where a message takes twice the latency."""
    x, bottom = made.x, made.y.start
    ratio = x.high / x.low
    sizes = [x.low * ratio ** (at / FIT_POINTS) for at in range(FIT_POINTS + 1)]
    made.curve(((each, fit.seconds(each)) for each in sizes), "dashed line-series-1", fit.text)
    half = fit.latency_seconds * fit.bytes_per_second
    if x.low < half < x.high:
        at = x.at(half)
        made.add(shapes.line(at, made.y.at(fit.seconds(half)), at, bottom, "guide half"))
        aside, anchor = (-5, "end") if at > WIDTH / 2 else (5, "start")
        text = f"half the rate: {size_text(half)}"
        made.add(label(at + aside, bottom - 6, text, "strong", anchor))


def _size(size: float) -> str:
    """Messages are powers of ten: `1 B`, `10 kB`, `1 MB`."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * scale:
            return f"{count_text(size / scale)} {unit}"
    return f"{count_text(size)} B"
