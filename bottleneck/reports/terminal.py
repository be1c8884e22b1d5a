"""A document's blocks on a terminal: as wide as it is, in the characters that it has."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from bottleneck.reports import layout
from bottleneck.reports.document import (
    POINTER,
    Bar,
    Block,
    Cell,
    Column,
    Facts,
    Heat,
    Points,
    Sparks,
    Table,
    Text,
    Verbatim,
    ZoneCurve,
)
from bottleneck.reports.layout import GAP, UNICODE, Signs
from bottleneck.reports.units import (
    count_text,
    megabytes_text,
    megabytes_unit,
    rate_text,
    size_text,
)
from bottleneck.reports.zone_curve import chart

STYLES = {"": "", "strong": "bold", "quiet": "dim", "alarm": "magenta"}
MARKS = {"": "", "chosen": "bold", "cap": "bold red", "soft": "dim"}
FIGURE_COLUMNS, LEAST_HEAT_COLUMNS, MOST_HEAT_COLUMNS = 7, 3, 12
"""Of a heat map: of each figure, and of the bar beside it."""
LABEL_COLUMNS = 12
"""As wide as `push Mbit/s` and `BDP 1.13 MiB`."""
MOST_ROWS, MOST_COLUMNS = 16, 8


def show(console: Console, blocks: Iterable[Block]) -> None:
    """Writes blocks one below the other; foreign text in them is no markup."""
    signs = layout.signs(console)
    for block in blocks:
        match block:
            case Table():
                _table(console, block, signs)
            case Heat():
                _table(console, _heat_map(block, console.width, signs), signs)
            case Sparks():
                _sparks(console, block, signs)
            case ZoneCurve():
                layout.heading(console, block.title)
                for drawn in chart(block, console.width, signs):
                    layout.line(console, drawn)
            case _:
                _prose(console, block)


def _prose(console: Console, block: Text | Points | Facts | Verbatim) -> None:
    match block:
        case Text(text, style, hanging, apart):
            if apart:
                console.print()
            layout.paragraph(console, text, STYLES[style], hanging)
        case Points(title, lines, left_out):
            layout.heading(console, title)
            for each in lines:
                layout.paragraph(console, each, bullet="- ")
            _more(console, left_out)
        case Facts(rows):
            for term, told in rows:
                words = told if isinstance(told, str) else ", ".join(told)
                layout.paragraph(console, f"{term}: {words}")
        case Verbatim(lines):
            for each in lines:
                layout.line(console, each)


def _more(console: Console, left_out: int) -> None:
    if left_out > 0:
        layout.line(console, f"  and {left_out} more with --verbose", "dim")


def _table(console: Console, table: Table, signs: Signs) -> None:
    """The richest form of it that fits, under its title."""
    while True:
        shown = [
            (at, each)
            for at, each in enumerate(table.columns)
            if each.least_columns <= console.width
        ]
        lines = [tuple(_plain(column.title, signs) for _, column in shown)]
        for row in table.rows:
            cells = (_cell(row.cells[at], each, console.width, signs) for at, each in shown)
            lines.append(tuple(cells))
        widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
        fits = table.least_columns <= console.width and _whole(widths) <= console.width
        if table.narrower is None or fits:
            break
        table = table.narrower
    if table.title:
        layout.heading(console, table.title)
    widths[0] = max(8, min(widths[0], widths[0] + console.width - _whole(widths)))
    styles = ["dim", *(MARKS[row.mark] for row in table.rows)]
    for texts, style in zip(lines, styles, strict=True):
        fitted = (
            _fitted(text, width, column.right)
            for text, width, (_, column) in zip(texts, widths, shown, strict=True)
        )
        if table.rows:
            layout.line(console, GAP.join(fitted), style)
    if table.note:
        layout.line(console, table.note, "dim")
    _more(console, table.left_out)


def _whole(widths: list[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _cell(cell: Cell, column: Column, width: int, signs: Signs) -> str:
    match cell:
        case None:
            return signs.none
        case Bar(value, most, sign):
            drawn = layout.bar(value, most, column.bar(width) if column.bar else 1, signs)
            return _plain(f"{drawn} {sign}".rstrip(), signs)
        case text:
            return _plain(text, signs)


def _plain(text: str, signs: Signs) -> str:
    return text.replace(UNICODE.dash, signs.dash).replace(POINTER, signs.knee)


def _fitted(text: str, width: int, right: bool) -> str:
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "~"
    return " " * (width - cell_len(text)) + text if right else set_cell_size(text, width)


def _heat_map(heat: Heat, width: int, signs: Signs) -> Table:
    """Each rate as a figure and as a bar; the knee in brackets."""
    cells = {(each.row, each.column): each for each in heat.cells}
    rows = sorted({row for row, _ in cells})[:MOST_ROWS]
    across = sorted({column for _, column in cells})[:MOST_COLUMNS]
    most = max((each.bytes_per_second for each in heat.cells), default=1.0)
    room = width - LABEL_COLUMNS - len(across) * (len(GAP) + FIGURE_COLUMNS + 1)
    each_bar = room // max(1, len(across))
    each_bar = 0 if each_bar < LEAST_HEAT_COLUMNS else min(MOST_HEAT_COLUMNS, each_bar)
    titles = (f"{heat.verb} {megabytes_unit()}", *(f"x {count_text(each)}" for each in across))
    table = Table("", tuple(Column(f"{each:>{FIGURE_COLUMNS}}") for each in titles))
    between = heat.line
    for row in rows:
        if between is not None and row >= between[0]:
            table.add(f"{between[1]} {size_text(between[0])}", *("" for _ in across))
            between = None
        drawn = []
        for column in across:
            cell = cells.get((row, column))
            if cell is None:
                drawn.append("")
                continue
            figure = megabytes_text(cell.bytes_per_second)
            figure = f"[{figure}]" if cell.framed and heat.knee else figure
            length = (
                layout.bar(cell.bytes_per_second, most, each_bar, signs)
                if each_bar
                else layout.spark(cell.bytes_per_second, most, signs)
            )
            drawn.append(f"{figure:>{FIGURE_COLUMNS}} {length}")
        table.add(heat.row_text(row), *drawn)
    return table


def _sparks(console: Console, sparks: Sparks, signs: Signs) -> None:
    """Each rate as a height, a knee's in brackets; nothing where the encoding has no heights."""
    if not signs.rising:
        return
    heights = [layout.spark(each, sparks.most, signs) for each in sparks.rates]
    drawn = "".join(f"[{each}]" if at in sparks.knees else each for at, each in enumerate(heights))
    first, last = sparks.ends
    best = rate_text(max(sparks.rates))
    told = f"{sparks.label:<4} {first:>7} {drawn} {last}, best {best}".strip()
    layout.line(console, f"  {told}")
