"""The zone curves; on a terminal a column a piece of the disk, the files' places under it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.comparisons.zones import all_zones
from bottleneck.analysis.disk_zones import Zones
from bottleneck.report import Report
from bottleneck.reports.document import FileMark, ZoneCurve
from bottleneck.reports.layout import Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.units import megabytes_text, megabytes_unit

ROWS = 8
LEAST_COLUMNS, MOST_COLUMNS = 20, 120
LABEL = 8
"""Characters left of the chart: the rate of its lines."""
MOST_FILES = 8
NAMES = {"sequential": "this run's own file", "file": "the file"}


def zone_curves(report: Report) -> Iterator[ZoneCurve]:
    """One for each disk that was measured zone by zone."""
    for each in all_zones(report):
        yield ZoneCurve(_title(each), each, tuple(_marks(report, each))[:MOST_FILES])


def _title(zones: Zones) -> str:
    """What the curve is of, in one line; safe to print."""
    setting = zones.found.step.setting
    side = safe(steps.word(setting, "side") or zones.found.step.initiator, 16)
    does = "written" if steps.word(setting, "verb") == "write" else "read"
    device = f" {safe(zones.device, 32)}" if zones.device else ""
    return f"{side} disk{device}, {does} zone by zone, {megabytes_unit()}"


def _marks(report: Report, zones: Zones) -> Iterator[FileMark]:
    """The files of a report that lie on the disk of a curve; the sentences' names for them."""
    for found in steps.measured(report, "disk"):
        place, name = disk_zones.place_of(found), NAMES.get(disk_zones.pattern(found))
        side = steps.word(found.step.setting, "side")
        spans = () if place is None else place.spans_on(zones.device)
        if name is None or not spans or side != steps.word(zones.found.step.setting, "side"):
            continue
        # A cached read has the same file as the uncached one.
        if steps.word(found.step.setting, "cache") == "uncached":
            yield FileMark(name, tuple((span.from_ratio, span.to_ratio) for span in spans))


def chart(curve: ZoneCurve, width: int, signs: Signs) -> Iterator[str]:
    """The lines of one chart on a terminal of so many columns."""
    columns = max(LEAST_COLUMNS, min(MOST_COLUMNS, width - LABEL - 2))
    zones = curve.zones
    most = max(zone.bytes_per_second for zone in zones.zones)
    levels = [_rate_at(zones, (at + 0.5) / columns) for at in range(columns)]
    side, corner, floor = "│└─" if signs.rising else "|+-"
    for row in range(ROWS, 0, -1):
        label = megabytes_text(most * row / ROWS) if row in (ROWS, ROWS // 2) else ""
        cells = "".join(_cell(level, most, row, signs) for level in levels)
        yield f"{label:>{LABEL}} {side}{cells}".rstrip()
    edge, last = "0 %", "100 %"
    if zones.curve is not None and zones.curve.falls:
        edge, last = "0 %, outer edge", "inner edge, 100 %"
    yield f"{'0':>{LABEL}} {corner}{floor * columns}"
    yield f"{'':>{LABEL}}  {edge}{last:>{columns - len(edge)}}"
    weak = _weak_line(zones, columns)
    if weak:
        yield f"{'weak':>{LABEL}}  {weak}".rstrip()
    for mark in curve.files:
        yield from _mark_lines(mark, columns)


def _rate_at(zones: Zones, ratio: float) -> float | None:
    """The zone's own rate at a position; None: no zone was measured there."""
    for zone in zones.zones:
        if zone.from_ratio <= ratio <= zone.to_ratio:
            return zone.bytes_per_second
    return None


def _cell(level: float | None, most: float, row: int, signs: Signs) -> str:
    if level is None:
        return " "
    eighths = round(level / most * ROWS * 8) - (row - 1) * 8
    if not signs.rising:
        return "#" if eighths >= 4 else " "
    return " " if eighths <= 0 else signs.rising[min(8, eighths) - 1]


def _weak_line(zones: Zones, columns: int) -> str:
    curve = zones.curve
    weak = [zones.zones[at] for at in curve.weak] if curve is not None else []
    spans = [(zone.from_ratio, zone.to_ratio) for zone in weak]
    return _line(spans, columns, "!") if spans else ""


def _mark_lines(mark: FileMark, columns: int) -> Iterator[str]:
    drawn = _line(mark.spans, columns, "^")
    text = mark.text
    after = len(drawn.rstrip()) + 1
    if after + len(text) <= columns:
        yield f"{'':>{LABEL}}  {drawn.rstrip()} {text}"
        return
    before = len(drawn) - len(drawn.lstrip())
    if before > len(text):
        start = before - len(text) - 1
        yield f"{'':>{LABEL}}  {' ' * start}{text} {drawn.strip()}"
        return
    yield f"{'':>{LABEL}}  {drawn.rstrip()}"
    yield f"{'':>{LABEL}}  {text}"


def _line(spans: Sequence[tuple[float, float]], columns: int, sign: str) -> str:
    """A sign under each column that a span touches; at least one for each span."""
    cells = [" "] * columns
    for begin, end in spans:
        first = min(columns - 1, math.floor(begin * columns))
        last = max(first, min(columns, math.ceil(end * columns)) - 1)
        cells[first : last + 1] = sign * (last - first + 1)
    return "".join(cells)
