"""Throughput over the size of the buffer, with the knee: loopback and TCP, a drawing each."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.report import Report
from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.axes import (
    Scale,
    margin,
    marks_below,
    power_ticks,
    rate_ticks,
    rules,
    told_ticks,
)
from bottleneck.reports.plots.plot import Plot, numbered, plot
from bottleneck.reports.plots.shapes import WIDTH, label, text_width
from bottleneck.reports.safe import safe
from bottleneck.reports.table import Row
from bottleneck.reports.tcp_tables import buffer_text
from bottleneck.reports.units import range_text, rate_text, size_text

MOST_SWEEPS = 4
MOST_POINTS = 400
TOP, BOTTOM = 34.0, 190.0
RIGHT = WIDTH - 8.0


def sweeps(report: Report, diagnosis: Diagnosis) -> Iterator[Plot]:
    """A drawing for each sweep of at least two buffer sizes."""
    found = [each for each in diagnosis.comparisons if each.about == "buffers"]
    for at, each, more in numbered(found, MOST_SWEEPS):
        name = f"sweep-{at}"
        rows = sorted(each.rows, key=lambda row: row["buffer_bytes"])[:MOST_POINTS]
        knee = _knee(report, each, rows)
        title, sentence = _title(each.rows[0]), shapes.told(each.sentence) + more
        if len(rows) < len(each.rows):
            sentence += f" {len(rows)} of {len(each.rows)} sizes are drawn."
        drawn = BOTTOM + 40, _drawn(rows, knee)
        titles = ("buffer", "rate", "low to high", "")
        yield plot(name, title, sentence, drawn, titles, [_told(row, knee) for row in rows])


def _knee(report: Report, each: Comparison, rows: list[Row]) -> float | None:
    """As the stage told it, where it measured that size; None: it tells none."""
    found = steps.found_at(report, each.steps[0])
    told = None if found is None else steps.positive(found.outcome.details, "knee_bytes")
    return told if any(row["buffer_bytes"] == told for row in rows) else None


def _title(row: Row) -> str:
    if row["over"] == "loopback":
        return f"Buffer sizes on the {row['initiator']} alone (loopback)"
    return f"Buffer sizes over TCP, {safe(row['verb'] or 'one way', 16)}"


def _told(row: Row, knee: float | None) -> tuple[str, ...]:
    low, high = row["low_bytes_per_second"], row["high_bytes_per_second"]
    return (
        buffer_text(row["buffer_bytes"]),
        rate_text(row["bytes_per_second"]),
        range_text(low, high) if high > low else "",
        "knee" if row["buffer_bytes"] == knee else "",
    )


def _drawn(rows: list[Row], knee: float | None) -> Iterator[str]:
    most = 1.05 * max(max(row["high_bytes_per_second"], row["bytes_per_second"]) for row in rows)
    unit, ticks = rate_ticks(most)
    left = margin(ticks)
    least, largest = (float(rows[at]["buffer_bytes"]) for at in (0, -1))
    x = Scale(least, max(2 * least, largest), left + 6, RIGHT - 6, logarithmic=True)
    y = Scale(0.0, most, BOTTOM, TOP)
    yield label(0, 12, unit, "muted")
    yield from rules(ticks, y, left, RIGHT)
    sizes = told_ticks(power_ticks(least, largest, 2), size_text)
    yield from marks_below(sizes, x, BOTTOM, WIDTH)
    middle = (left + RIGHT) / 2
    yield label(middle, BOTTOM + 34, "buffer of each call", "muted", "middle")
    if knee is not None:
        yield from _mark(x.at(knee), f"knee {buffer_text(knee)}")
    points = [(x.at(row["buffer_bytes"]), y.at(row["bytes_per_second"])) for row in rows]
    yield shapes.polyline(points, "stroke line-series-1")
    for row, (across, up) in zip(rows, points, strict=True):
        low, high = (y.at(row[f"{end}_bytes_per_second"]) for end in ("low", "high"))
        if low > high:
            yield shapes.upright_whisker(across, low, high)
        tip = f"{buffer_text(row['buffer_bytes'])}: {rate_text(row['bytes_per_second'])}"
        yield shapes.circle(across, up, 3, "fill-series-1", tip)


def _mark(at: float, text: str) -> Iterator[str]:
    """An upright guide with its words on top."""
    half = text_width(text) / 2
    yield shapes.line(at, TOP - 8, at, BOTTOM, "guide knee")
    yield label(min(WIDTH - half, max(half + 40, at)), TOP - 12, text, "strong", "middle")
