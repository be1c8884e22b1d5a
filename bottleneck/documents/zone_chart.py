"""A disk's rate over its addresses as characters, and where files lie on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bottleneck.analysis.disk_zones import Zones
from bottleneck.documents import document
from bottleneck.text.units import megabytes_text

CHART_ROWS = 8
LEAST_CHART_COLUMNS, MOST_CHART_COLUMNS = 20, 120
WRITTEN = "w"
"""Sign of the write rate, on the columns of the read rate."""
CHART_LABEL = 8
"""Characters left of a disk's chart: the rate of its lines."""


def zone_chart(curve: document.ZoneCurve, width: int, rising: str) -> Iterator[str]:
    """Yields the lines of one chart on a terminal of so many columns.

    rising: heights of a cell in rising order; empty: the terminal has none.
    """
    columns = max(LEAST_CHART_COLUMNS, min(MOST_CHART_COLUMNS, width - CHART_LABEL - 2))
    zones, writes = curve.zones, curve.writes
    both = (*zones.zones, *(writes.zones if writes is not None else ()))
    peak = max(zone.bytes_per_second for zone in both)
    places = [(column + 0.5) / columns for column in range(columns)]
    written = [None if writes is None else _rate_at(writes, each) for each in places]
    levels = [_rate_at(zones, each) for each in places]
    side, corner, floor = "│└─" if rising else "|+-"
    for row in range(CHART_ROWS, 0, -1):
        label = (
            megabytes_text(peak * row / CHART_ROWS) if row in (CHART_ROWS, CHART_ROWS // 2) else ""
        )
        pieces = (_piece(level, peak, row, rising) for level in levels)
        cells = "".join(
            WRITTEN if rate is not None and math.ceil(rate / peak * CHART_ROWS) == row else piece
            for rate, piece in zip(written, pieces, strict=True)
        )
        yield f"{label:>{CHART_LABEL}} {side}{cells}".rstrip()
    edge, last = "0%", "100%"
    if zones.curve is not None and zones.curve.falls:
        edge, last = "0%, outer tracks", "inner tracks, 100%"
    yield f"{'0':>{CHART_LABEL}} {corner}{floor * columns}"
    yield f"{'':>{CHART_LABEL}}  {edge}{last:>{columns - len(edge)}}"
    if writes is not None:
        yield f"{WRITTEN:>{CHART_LABEL}}  write rate"
    weak = _weak_line(zones, columns)
    if weak:
        yield f"{'weak':>{CHART_LABEL}}  {weak}".rstrip()
    for mark in curve.files:
        yield from _mark_lines(mark, columns)


def _rate_at(zones: Zones, ratio: float) -> float | None:
    """Returns the rate of the zone nearest to a position; None: none was measured so far out."""
    if not zones.zones[0].from_ratio <= ratio <= zones.zones[-1].to_ratio:
        return None
    nearest = min(zones.zones, key=lambda zone: max(zone.from_ratio - ratio, ratio - zone.to_ratio))
    return nearest.bytes_per_second


def _piece(level: float | None, peak: float, row: int, rising: str) -> str:
    if level is None:
        return " "
    eighths = round(level / peak * CHART_ROWS * 8) - (row - 1) * 8
    if not rising:
        return "#" if eighths >= 4 else " "
    return " " if eighths <= 0 else rising[min(8, eighths) - 1]


def _weak_line(zones: Zones, columns: int) -> str:
    curve = zones.curve
    weak = [zones.zones[index] for index in curve.weak] if curve is not None else []
    spans = [(zone.from_ratio, zone.to_ratio) for zone in weak]
    return _underline(spans, columns, "!") if spans else ""


def _mark_lines(mark: document.FileMark, columns: int) -> Iterator[str]:
    signs = _underline(mark.spans, columns, "^")
    text = mark.text
    end = len(signs.rstrip()) + 1
    if end + len(text) <= columns:
        yield f"{'':>{CHART_LABEL}}  {signs.rstrip()} {text}"
        return
    indent = len(signs) - len(signs.lstrip())
    if indent > len(text):
        start = indent - len(text) - 1
        yield f"{'':>{CHART_LABEL}}  {' ' * start}{text} {signs.strip()}"
        return
    yield f"{'':>{CHART_LABEL}}  {signs.rstrip()}"
    yield f"{'':>{CHART_LABEL}}  {text}"


def _underline(spans: Sequence[tuple[float, float]], columns: int, sign: str) -> str:
    """Returns a sign under each column that a span touches; at least one for each span."""
    cells = [" "] * columns
    for begin, end in spans:
        first = min(columns - 1, math.floor(begin * columns))
        last = max(first, min(columns, math.ceil(end * columns)) - 1)
        cells[first : last + 1] = sign * (last - first + 1)
    return "".join(cells)
