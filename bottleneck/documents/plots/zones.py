"""Each disk from its outer tracks to its inner: zones, the fit, weak ones, files' locations."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.comparisons.axis import comparisons
from bottleneck.analysis.comparisons.disks import ZONES, both_ways
from bottleneck.analysis.disk_zones import Zones
from bottleneck.analysis.finding import Diagnosis
from bottleneck.documents.disks import zone_curves
from bottleneck.documents.document import FileMark, ZoneCurve
from bottleneck.documents.plots import charts, shapes
from bottleneck.documents.plots.shapes import LINE, WIDTH, label, sheet, text_width
from bottleneck.report.report import Report
from bottleneck.text.safe import safe
from bottleneck.text.units import percent_text, rate_text

MOST_DISKS, MOST_ALONE = 3, 16
SENTENCE_CHARACTERS = 1000
MOST_ZONES = 400
MOST_SPANS = 64
TOP, BOTTOM = 22.0, 172.0
CURVE_POINTS = 60
RIGHT = WIDTH - 4.0
LEAST_BAR = 4.0
"""Least width of a bar: a file that was placed is a sliver of its disk."""


def zones(report: Report, diagnosis: Diagnosis) -> Iterator[charts.Plot]:
    """Yields a drawing for each disk that was measured zone by zone."""
    texts = {each.steps: each.sentence for each in diagnosis.comparisons if each.about == "zones"}
    curves = list(zone_curves(report))
    for number, curve in enumerate(curves[:MOST_DISKS], 1):
        each, count = curve.zones, len(curve.zones.zones)
        sentence = shapes.opening(texts.get((each.step.index,), "The rate of each zone."))
        if number == MOST_DISKS < len(curves):
            sentence += f" {len(curves) - number} more are not drawn."
        if count > MOST_ZONES:
            sentence += f" {MOST_ZONES} of {count} zones are drawn."
        writes = () if curve.writes is None else _rows(curve.writes, each)
        rows = (*_rows(each, curve.writes), *writes, *map(_file_row, curve.files))
        titles = ("location", "read", "write", "ratio", "fit", "")
        yield charts.plot(f"zones-{number}", _title(curve), sentence, _drawing(curve), titles, rows)


def _title(curve: ZoneCurve) -> str:
    heading = curve.title.rpartition(",")[0]
    return heading[:1].upper() + heading[1:]


def zone_curves_svg(report: Report) -> str | None:
    """Returns one drawing of all disks that stands alone, for explain; None: there is none."""
    curves = list(zone_curves(report))[:MOST_ALONE]
    if not curves:
        return None
    sentences = [safe(each.sentence, SENTENCE_CHARACTERS) for each in comparisons(ZONES, report)]
    text = " ".join(sentences[:MOST_ALONE])
    parts: list[str] = []
    below = 0.0
    for curve in curves:
        parts.append(label(0, below + LINE, _title(curve), "strong"))
        height, drawing = _drawing(curve)
        parts.append(shapes.translate(0, below + LINE + 6, drawing))
        below += height + LINE + 12
    style = sheet("colours", "plots")
    return shapes.drawing("zones", "Disk rate by zone", text, below, parts, style) + "\n"


def _rows(each: Zones, other: Zones | None) -> Iterator[tuple[str, ...]]:
    for index, zone in enumerate(each.zones[:MOST_ZONES]):
        *rates, ratio = both_ways(zone, each.step.setting.verb, other).values()
        yield (
            f"{percent_text(zone.from_ratio)} to {percent_text(zone.to_ratio)}",
            *("" if rate is None else rate_text(rate) for rate in rates),
            "" if ratio is None else percent_text(ratio),
            "" if each.curve is None else rate_text(each.curve.rate_at(zone.centre_ratio)),
            "weak" if _is_weak(each, index) else "",
        )


def _file_row(mark: FileMark) -> tuple[str, ...]:
    spans = mark.spans[:MOST_SPANS]
    place = f"{percent_text(spans[0][0])} to {percent_text(spans[0][1])}"
    rest = f" and {len(spans) - 1} more extents" if len(spans) > 1 else ""
    return f"{place}{rest}", *[""] * 4, mark.text


def _is_weak(each: Zones, index: int) -> bool:
    return each.curve is not None and index in each.curve.weak


def _drawing(curve: ZoneCurve) -> charts.Drawing:
    each = curve.zones
    drawn = each.zones[:MOST_ZONES]
    written = curve.writes.zones[:MOST_ZONES] if curve.writes is not None else ()
    peak = 1.05 * max(zone.high_bytes_per_second for zone in (*drawn, *written))
    chart = charts.chart(*charts.rate_ticks(peak), 1.0, peak, (TOP, RIGHT, BOTTOM))
    for index, zone in enumerate(drawn):
        chart.add(*_zone(each, index, chart))
        low, high = zone.low_bytes_per_second, zone.high_bytes_per_second
        chart.whisker(zone.centre_ratio, low, high)
    for zone in written:
        tip = f"written at {percent_text(zone.centre_ratio)}: {rate_text(zone.bytes_per_second)}"
        place = chart.x.place(zone.centre_ratio), chart.y.place(zone.bytes_per_second)
        chart.add(shapes.circle(*place, 3, "fill-series-4", tip))
        chart.whisker(zone.centre_ratio, zone.low_bytes_per_second, zone.high_bytes_per_second)
    disc = each.curve
    if disc is not None:
        places = [i / CURVE_POINTS for i in range(CURVE_POINTS + 1)]
        points = ((ratio, disc.rate_at(ratio)) for ratio in places)
        chart.curve(points, "dashed line-series-2", "fit of a hard disk")
    falls = ", outer to inner tracks" if disc is not None and disc.falls else ""
    percents = charts.ticks_at((0.0, 0.25, 0.5, 0.75, 1.0), percent_text)
    chart.level_axis(percents, f"location on disk{falls}")
    below = BOTTOM + 40
    for mark in curve.files:
        chart.add(*_file(mark, chart.x, below))
        below += LINE + 12
    entries = [(charts.swatch("fill-series-1", 12, 8), "zone, read" if written else "zone")]
    if written:
        entries.append((lambda x, y: shapes.circle(x, y, 3, "fill-series-4"), "zone, write"))
    if disc is not None:
        entries.append((charts.stroke("dashed line-series-2", 8), "fit of a hard disk"))
    legend, below = charts.key(entries, below + 2)
    return below + 2, [*chart.parts, legend]


def _zone(each: Zones, index: int, chart: charts.Chart) -> Iterator[str]:
    zone, x = each.zones[index], chart.x
    weak = "weak zone" if _is_weak(each, index) else "zone"
    begin, end = x.place(zone.from_ratio), x.place(zone.to_ratio)
    top = chart.y.place(zone.bytes_per_second)
    wide = max(LEAST_BAR, end - begin - 1)
    tip = (
        f"{weak} {index + 1}, {percent_text(zone.from_ratio)} to "
        f"{percent_text(zone.to_ratio)}: {rate_text(zone.bytes_per_second)}"
    )
    begin = min(max(x.start, (begin + end - wide - 1) / 2), RIGHT - wide)
    if weak == "zone":
        yield shapes.rect(begin, top, wide, BOTTOM - top, "fill-series-1", tip)
        return
    yield shapes.rect(begin, top, wide, BOTTOM - top, "track open line-cap", tip)
    yield shapes.hatch(begin, top, wide, BOTTOM - top, "line-cap")
    around = each.zones[max(0, index - 1) : index + 2]
    above = min(chart.y.place(each.high_bytes_per_second) for each in around) - 6
    half = text_width("weak") / 2
    middle = min(WIDTH - half, max(x.start + half, begin + wide / 2))
    yield label(middle, above, "weak", "strong", "middle")


def _file(mark: FileMark, x: charts.Scale, top: float) -> Iterator[str]:
    """Yields a file's extents on the axis of the disk, its name above them where there is room."""
    yield label(0, top + 11, mark.text, "fill-series-3", width=float(WIDTH))
    yield shapes.rect(x.start, top + 16, x.end - x.start, 7, "track")
    for begin, end in mark.spans[:MOST_SPANS]:
        wide = max(2.0, x.place(end) - x.place(begin))
        tip = f"{mark.text}, {percent_text(begin)} to {percent_text(end)}"
        start = min(x.place(begin), x.end - wide)
        yield shapes.rect(start, top + 16, wide, 7, "fill-series-3", tip)
