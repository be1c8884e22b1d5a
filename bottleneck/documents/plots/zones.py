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
"""Wide: a file that was placed is a sliver of its disk."""


def zones(report: Report, diagnosis: Diagnosis) -> Iterator[charts.Plot]:
    """A drawing for each disk that was measured zone by zone."""
    told = {each.steps: each.sentence for each in diagnosis.comparisons if each.about == "zones"}
    for at, curve, more in charts.numbered(list(zone_curves(report)), MOST_DISKS):
        each = curve.zones
        sentence = shapes.opening(told.get((each.found.index,), "The rate of each zone.")) + more
        sentence += charts.bounded(each.zones[:MOST_ZONES], each.zones, "zones")
        writes = () if curve.writes is None else _rows(curve.writes, each)
        rows = (*_rows(each, curve.writes), *writes, *map(_file_row, curve.files))
        titles = ("location", "read", "write", "ratio", "fit", "")
        yield charts.plot(f"zones-{at}", _title(curve), sentence, _drawn(curve), titles, rows)


def _title(curve: ZoneCurve) -> str:
    heading = curve.title.rpartition(",")[0]
    return heading[:1].upper() + heading[1:]


def zone_curves_svg(report: Report) -> str | None:
    """The same as one drawing that stands alone, for explain; None: there is nothing to draw."""
    found = list(zone_curves(report))[:MOST_ALONE]
    if not found:
        return None
    sentences = [safe(each.sentence, SENTENCE_CHARACTERS) for each in comparisons(ZONES, report)]
    text = " ".join(sentences[:MOST_ALONE])
    parts: list[str] = []
    below = 0.0
    for curve in found:
        parts.append(label(0, below + LINE, _title(curve), "strong"))
        height, shown = _drawn(curve)
        parts.append(shapes.moved(0, below + LINE + 6, shown))
        below += height + LINE + 12
    style = sheet("colours", "plots")
    title = "Disk rate by zone"
    return shapes.drawing("zones", title, text, below, parts, style) + "\n"


def _rows(each: Zones, other: Zones | None) -> Iterator[tuple[str, ...]]:
    for at, zone in enumerate(each.zones[:MOST_ZONES]):
        both = both_ways(zone, each.found.setting.verb, other)
        *rates, ratio = both.values()
        yield (
            f"{percent_text(zone.from_ratio)} to {percent_text(zone.to_ratio)}",
            *("" if rate is None else rate_text(rate) for rate in rates),
            "" if ratio is None else percent_text(ratio),
            "" if each.curve is None else rate_text(each.curve.rate_at(zone.centre_ratio)),
            "weak" if _is_weak(each, at) else "",
        )


def _file_row(mark: FileMark) -> tuple[str, ...]:
    spans = mark.spans[:MOST_SPANS]
    where = f"{percent_text(spans[0][0])} to {percent_text(spans[0][1])}"
    more = f" and {len(spans) - 1} more extents" if len(spans) > 1 else ""
    return f"{where}{more}", *[""] * 4, mark.text


def _is_weak(each: Zones, at: int) -> bool:
    return each.curve is not None and at in each.curve.weak


def _drawn(curve: ZoneCurve) -> charts.Drawn:
    each = curve.zones
    drawn = each.zones[:MOST_ZONES]
    written = curve.writes.zones[:MOST_ZONES] if curve.writes is not None else ()
    most = 1.05 * max(zone.high_bytes_per_second for zone in (*drawn, *written))
    made = charts.chart(*charts.rate_ticks(most), (0.0, 1.0), (0.0, most), (TOP, RIGHT, BOTTOM))
    for at, zone in enumerate(drawn):
        made.add(*_zone(each, at, made))
        low, high = zone.low_bytes_per_second, zone.high_bytes_per_second
        made.whisker(zone.centre_ratio, low, high)
    for zone in written:
        tip = f"written at {percent_text(zone.centre_ratio)}: {rate_text(zone.bytes_per_second)}"
        made.dot(zone.centre_ratio, zone.bytes_per_second, "fill-series-4", tip)
        made.whisker(zone.centre_ratio, zone.low_bytes_per_second, zone.high_bytes_per_second)
    disc = each.curve
    if disc is not None:
        places = [at / CURVE_POINTS for at in range(CURVE_POINTS + 1)]
        points = ((at, disc.rate_at(at)) for at in places)
        made.curve(points, "dashed line-series-2", "fit of a hard disk")
    falls = ", outer to inner tracks" if disc is not None and disc.falls else ""
    percents = charts.ticks_at((0.0, 0.25, 0.5, 0.75, 1.0), percent_text)
    made.level_axis(percents, f"location on disk{falls}")
    below = BOTTOM + 40
    for mark in curve.files:
        made.add(*_file(mark, made.x, below))
        below += LINE + 12
    entries = [(charts.dot_mark(_bar, "fill-series-1"), "zone, read" if written else "zone")]
    if written:
        entries.append((charts.dot_mark(shapes.circle, "fill-series-4"), "zone, write"))
    if disc is not None:
        entries.append((charts.dashes("line-series-2", 8), "fit of a hard disk"))
    shown, below = charts.key(entries, below + 2)
    return below + 2, [*made.parts, shown]


def _bar(x: float, y: float, radius: float, name: str, tip: str) -> str:
    return shapes.rect(x - 2 * radius, y - 4, 4 * radius, 8, name, tip)


def _zone(each: Zones, at: int, made: charts.Chart) -> Iterator[str]:
    zone, x = each.zones[at], made.x
    weak = "weak zone" if _is_weak(each, at) else "zone"
    begin, end, top = x.at(zone.from_ratio), x.at(zone.to_ratio), made.y.at(zone.bytes_per_second)
    wide = max(LEAST_BAR, end - begin - 1)
    tip = (
        f"{weak} {at + 1}, {percent_text(zone.from_ratio)} to "
        f"{percent_text(zone.to_ratio)}: {rate_text(zone.bytes_per_second)}"
    )
    begin = min(max(x.start, (begin + end - wide - 1) / 2), RIGHT - wide)
    if weak == "zone":
        yield shapes.rect(begin, top, wide, BOTTOM - top, "fill-series-1", tip)
        return
    yield shapes.rect(begin, top, wide, BOTTOM - top, "track open line-cap", tip)
    yield shapes.hatch(begin, top, wide, BOTTOM - top, "line-cap")
    near = each.zones[max(0, at - 1) : at + 2]
    above = min(made.y.at(each.high_bytes_per_second) for each in near) - 6
    half = text_width("weak") / 2
    middle = min(WIDTH - half, max(x.start + half, begin + wide / 2))
    yield label(middle, above, "weak", "strong", "middle")


def _file(mark: FileMark, x: charts.Scale, top: float) -> Iterator[str]:
    """A file's extents on the axis of the disk, its name above them where there is room."""
    yield label(0, top + 11, mark.text, "fill-series-3", width=float(WIDTH))
    yield shapes.rect(x.start, top + 16, x.end - x.start, 7, "track")
    for begin, end in mark.spans[:MOST_SPANS]:
        wide = max(2.0, x.at(end) - x.at(begin))
        tip = f"{mark.text}, {percent_text(begin)} to {percent_text(end)}"
        at = min(x.at(begin), x.end - wide)
        yield shapes.rect(at, top + 16, wide, 7, "fill-series-3", tip)
