"""A heat map: rates by two settings, the figure in each cell, one cell framed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bottleneck.reports.document import Heat, HeatCell
from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.axes import key, rate_unit
from bottleneck.reports.plots.shapes import FONT, LINE, WIDTH, label, text_width
from bottleneck.reports.units import rate_text

MOST_ROWS, MOST_COLUMNS = 16, 8
TOP = 34.0
ONE_LINE, TWO_LINES = 22.0, 36.0
HEAT_LEVELS = 5
"""Of the style sheet, the lowest first."""


def heat_map(heat: Heat) -> tuple[float, list[str]]:
    """The drawing's height and its shapes; cells beyond MOST_ROWS and MOST_COLUMNS are left out."""
    cells = within(heat.cells)
    rows = sorted({each.row for each in cells})
    columns = sorted({each.column for each in cells})
    most = max(each.bytes_per_second for each in cells)
    unit, scale = rate_unit(most)
    names = [heat.row_text(each) for each in rows]
    left = min(WIDTH / 3, max(text_width(each) for each in [*names, heat.rows]) + 8)
    wide = (WIDTH - left) / len(columns)
    seconds = [each.second for each in cells if each.second]
    two = bool(seconds) and max(map(text_width, seconds)) <= wide - 4
    tall = TWO_LINES if two else ONE_LINE
    parts = [
        label(left, 12, f"{heat.columns}, {unit}", "muted"),
        label(0, TOP - 6, heat.rows, "muted", width=left - 4),
    ]
    for at, column in enumerate(columns):
        text = heat.column_text(column)
        parts.append(label(left + (at + 0.5) * wide, TOP - 6, text, "", "middle", wide))
    for at, text in enumerate(names):
        middle = TOP + (at + 0.5) * tall + FONT / 3
        parts.append(label(left - 6, middle, text, "", "end", left - 6))
    for each in cells:
        x, y = left + columns.index(each.column) * wide, TOP + rows.index(each.row) * tall
        parts += _cell(each, (x, y, wide, tall), most, scale, two, heat)
    framed = [each for each in cells if each.framed]
    for each in framed:
        x, y = left + columns.index(each.column) * wide, TOP + rows.index(each.row) * tall
        parts.append(_frame(x + 0.5, y + 0.5, wide - 1, tall - 1))
    below = TOP + len(rows) * tall + 4
    if two:
        parts.append(label(0, below + LINE - 3, f"second figure: {heat.second}", "muted"))
        below += LINE
    shown, below = key([(_swatch, heat.framed)] if framed else [], below)
    return below + 2, [*parts, shown]


def _frame(x: float, y: float, width: float, height: float) -> str:
    """An outline that shows on a dark cell and on a light one: dark within light."""
    inner = shapes.rect(x + 2.5, y + 2.5, width - 5, height - 5, "frame")
    return shapes.rect(x + 1, y + 1, width - 2, height - 2, "frame around") + inner


def _swatch(x: float, y: float) -> str:
    return shapes.rect(x - 5, y - 5, 12, 10, "frame")


def within(cells: Sequence[HeatCell]) -> tuple[HeatCell, ...]:
    """Those that a map has room for: the first of each setting in rising order."""
    rows = sorted({each.row for each in cells})[:MOST_ROWS]
    columns = sorted({each.column for each in cells})[:MOST_COLUMNS]
    return tuple(each for each in cells if each.row in rows and each.column in columns)


def level(bytes_per_second: float, most: float) -> int:
    """Which of the map's steps a rate has: equal shares of the highest rate."""
    return min(HEAT_LEVELS - 1, int(HEAT_LEVELS * bytes_per_second / most))


def cell_text(figure: float) -> str:
    """Three digits: `118`, `23.6`, `0.52`."""
    if figure >= 99.5:
        return f"{figure:,.0f}"
    if figure >= 9.95:
        return f"{figure:.1f}"
    return f"{figure:.2f}" if figure >= 0.01 else "<0.01"


def _cell(
    each: HeatCell,
    box: tuple[float, float, float, float],
    most: float,
    scale: float,
    two: bool,
    heat: Heat,
) -> Iterator[str]:
    x, y, wide, tall = box
    step = level(each.bytes_per_second, most)
    tip = (
        f"{heat.row_text(each.row)} x {heat.column_text(each.column)}: "
        f"{rate_text(each.bytes_per_second)}{each.second and ', '}{each.second}"
    )
    yield shapes.rect(x + 0.5, y + 0.5, wide - 1, tall - 1, f"heat-{step}", tip)
    text = cell_text(each.bytes_per_second / scale)
    name, middle = f"on-heat-{step}", x + wide / 2
    first = y + tall / 2 + FONT / 3 - (LINE / 2 if two else 0)
    yield label(middle, first, text, name, "middle", wide)
    if two and each.second:
        yield label(middle, first + LINE, each.second, name, "middle", wide)
