"""A document's blocks on a terminal: as wide as it is, in the characters that it has.

No line ends in a space; foreign text in them is no markup.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from rich import text as rich_text
from rich.cells import cell_len, set_cell_size
from rich.console import Console

from bottleneck.documents import document
from bottleneck.documents.zone_chart import zone_chart
from bottleneck.text.units import count_text, megabytes_text, megabytes_unit, size_text

GAP = "  "
UNKNOWN_SIZE = (100, 24)
"""Columns and lines of a pipe: what a reader of a log can take."""
PROSE_COLUMNS = 120
"""The longest line of sentences: eyes lose the next one behind a longer one."""
STYLES = {"": "", "strong": "bold", "quiet": "dim", "alarm": "magenta"}
MARKS = {"": "", "chosen": "bold", "cap": "bold red", "soft": "dim"}
FIGURE_COLUMNS, LEAST_HEAT_COLUMNS, MOST_HEAT_COLUMNS = 7, 3, 12
"""Columns of each figure of a heat map, and of the bar beside it."""
LEAST_LABEL_COLUMNS, LEAST_COLUMNS = 16, 3
"""Characters that a first column keeps, and columns that a table keeps, where there is no room."""
LABEL_COLUMNS = 12
"""Width of `push Mbit/s` and `BDP 1.13 MiB`."""
MOST_ROWS, MOST_COLUMNS = 16, 8


@dataclass(frozen=True)
class Signs:
    """The characters to draw with, by what the terminal's encoding has."""

    blocks: str
    """Parts of a cell in rising order, a full one last."""
    rising: str
    """Heights of a cell in rising order; empty: there are none."""
    knee: str
    dash: str
    micro: str
    none: str


UNICODE = Signs(blocks="▏▎▍▌▋▊▉█", rising="▁▂▃▄▅▆▇█", knee="◀", dash="–", micro="\u00b5", none="·")
WITHOUT_BLOCKS = {
    **{ord(block): str(height) for height, block in enumerate(UNICODE.rising, 1)},
    **{0xB1: "+-", 0x2026: "..."},
}
"""Replacements for blocks, plus-minus and ellipsis in an encoding without blocks."""
ASCII = Signs(blocks="#", rising="", knee="<-", dash="-", micro="u", none=".")


def console(stderr: bool = False) -> Console:
    """Returns a console on stdout or stderr, as wide as its terminal.

    Colours: NO_COLOR and CLICOLOR=0 forbid them, FORCE_COLOR and CLICOLOR_FORCE ask for them where
    no terminal is, TTY_COMPATIBLE and TERM=dumb are obeyed too; a prohibition is stronger
    (no-color.org, bixense.com/clicolors, force-color.org).
    """
    stream = sys.stderr if stderr else sys.stdout
    # For a dumb terminal rich assumes 80 columns.
    is_terminal = stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    size = (None, None) if is_terminal else shutil.get_terminal_size(UNKNOWN_SIZE)
    forced = os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0")
    forbidden = os.environ.get("CLICOLOR") == "0" and not (forced or os.environ.get("FORCE_COLOR"))
    return Console(
        stderr=stderr,
        width=size[0],
        height=size[1],
        highlight=False,
        # None leaves it to rich, which knows all but CLICOLOR and CLICOLOR_FORCE.
        force_terminal=True if forced else None,
        no_color=True if forbidden else None,
    )


def line(console: Console, text: str, style: str = "") -> None:
    """Writes one line as it is: no markup, no highlighting, no wrapping.

    A character that the terminal's encoding lacks is written as its escape.
    """
    printed = printable(_plain(text.rstrip(), signs_of(console)), console)
    console.print(rich_text.Text(printed, style=style), no_wrap=True, overflow="ignore", crop=False)


def printable(text: str, console: Console) -> str:
    """Returns the text with escapes for characters that the terminal's encoding lacks."""
    return text.encode(console.encoding, "backslashreplace").decode(console.encoding)


def paragraph(console: Console, text: str, style: str = "", bullet: str = "") -> None:
    """Writes text wrapped to the console's width; a bullet hangs in front."""
    wrapped = textwrap.wrap(
        text,
        max(20, min(console.width, PROSE_COLUMNS)),
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_on_hyphens=False,
    )
    for each in wrapped:
        line(console, each, style)


def write_heading(console: Console, text: str) -> None:
    """Writes a blank line and a title."""
    console.print()
    paragraph(console, text, "bold")


def signs_of(console: Console) -> Signs:
    """Returns blocks where the encoding has them, else ASCII."""
    try:
        "".join(vars(UNICODE).values()).encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return ASCII if console.legacy_windows and console.is_terminal else UNICODE


def bar(value: float, scale: float, width: int, with_signs: Signs) -> str:
    """Returns a bar in parts of a cell; one longer than the scale ends in a sign that says so."""
    full_sign = with_signs.blocks[-1]
    if value > scale:
        return full_sign * (width - 1) + ">"
    parts = len(with_signs.blocks)
    full, rest = divmod(max(1, round(value / scale * width * parts)), parts)
    return full_sign * full + (with_signs.blocks[rest - 1] if rest else "")


def spark(value: float, scale: float, with_signs: Signs) -> str:
    """Returns a value as the height of one cell; empty where the encoding has no such cells."""
    heights = with_signs.rising
    level = max(0, min(len(heights), round(value / scale * len(heights))) - 1)
    return heights[level] if heights else ""


def show(console: Console, blocks: Iterable[document.Block]) -> None:
    """Writes blocks one below the other; foreign text in them is no markup."""
    signs = signs_of(console)
    for block in blocks:
        match block:
            case document.Table():
                _table(console, block, signs)
            case document.Heat():
                _table(console, _heat_map(block, console.width, signs), signs)
            case document.ZoneCurve():
                write_heading(console, block.title)
                for text in zone_chart(block, console.width, signs.rising):
                    line(console, text)
            case _:
                _prose(console, block)


def _prose(
    console: Console, block: document.Text | document.Points | document.Facts | document.Verbatim
) -> None:
    match block:
        case document.Text(text, style, hanging, apart):
            if apart or not text:
                console.print()
            paragraph(console, text, STYLES[style], hanging)
        case document.Points(title, lines, left_out):
            write_heading(console, title)
            for each in lines:
                paragraph(console, each, bullet="- ")
            _print_rest(console, left_out)
        case document.Facts(rows):
            for term, fact in rows:
                words = fact if isinstance(fact, str) else ", ".join(fact)
                paragraph(console, f"{term}: {words}")
        case document.Verbatim(lines):
            for each in lines:
                line(console, each)


def _print_rest(console: Console, left_out: int) -> None:
    if left_out > 0:
        line(console, f"  and {left_out} more with --verbose", "dim")


def _table(console: Console, table: document.Table, signs: Signs) -> None:
    """Writes the richest form of a table that fits, under its title."""
    while True:
        columns = enumerate(table.columns)
        visible = [(i, each) for i, each in columns if each.least_columns <= console.width]
        lines = [tuple(_plain(column.title, signs) for _, column in visible)]
        for row in table.rows:
            cells = (_cell(row.cells[i], each, console.width, signs) for i, each in visible)
            lines.append(tuple(cells))
        widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
        inset = GAP if table.inset else ""
        room = console.width - len(inset)
        fits = table.least_columns <= console.width and _total_width(widths) <= room
        if table.narrower is None or fits:
            break
        table = table.narrower
    if table.title:
        write_heading(console, table.title)
    sizes = _room(lines, [each for _, each in visible], room)
    for texts, style in zip(lines, ["dim", *(MARKS[row.mark] for row in table.rows)], strict=True):
        fitted = (_fitted_text(texts[i], width, visible[i][1].right) for i, width in sizes.items())
        if table.rows and any(texts):
            line(console, inset + GAP.join(fitted), style)
    if table.note:
        paragraph(console, table.note, "dim")
    _print_rest(console, table.left_out)


def _room(
    lines: list[tuple[str, ...]], columns: list[document.Column], room: int
) -> dict[int, int]:
    """Returns the columns that are shown, and their widths: the first one gives way.

    Where its texts would be too short, or two read alike, bars go instead, then the last columns.
    """
    widths = {i: max(map(cell_len, cells)) for i, cells in enumerate(zip(*lines, strict=True))}
    texts = {each[0] for each in lines}
    while True:
        space = room - _total_width([width for i, width in widths.items() if i]) - len(GAP)
        first = min(widths[0], max(8, space))
        is_distinct = len({_fitted_text(each, first, False) for each in texts}) == len(texts)
        if (
            is_distinct
            and space >= min(widths[0], LEAST_LABEL_COLUMNS)
            or len(widths) < LEAST_COLUMNS
        ):
            return {**widths, 0: first}
        bars = (i for i in widths if i and columns[i].bar)
        del widths[next(bars, max(widths))]


def _total_width(widths: list[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _cell(cell: document.Cell, column: document.Column, width: int, signs: Signs) -> str:
    match cell:
        case None:
            return signs.none
        case document.Bar(value, scale, sign):
            length = bar(value, scale, column.bar(width) if column.bar else 1, signs)
            return _plain(f"{length} {sign}".rstrip(), signs)
        case text:
            return _plain(text, signs)


def _plain(text: str, signs: Signs) -> str:
    for sign in ("dash", "micro", "knee"):
        text = text.replace(getattr(UNICODE, sign), getattr(signs, sign))
    if not signs.rising:
        text = text.translate(WITHOUT_BLOCKS)
    return text


def _fitted_text(text: str, width: int, right: bool) -> str:
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "~"
    return " " * (width - cell_len(text)) + text if right else set_cell_size(text, width)


def _heat_map(heat: document.Heat, width: int, signs: Signs) -> document.Table:
    """Returns each rate as a figure and as a bar; the knee in brackets."""
    cells = {(each.row, each.column): each for each in heat.cells}
    rows = sorted({row for row, _ in cells})[:MOST_ROWS]
    across = sorted({column for _, column in cells})[:MOST_COLUMNS]
    peak = max((each.bytes_per_second for each in heat.cells), default=1.0)
    room = width - LABEL_COLUMNS - len(across) * (len(GAP) + FIGURE_COLUMNS + 1)
    each_bar = room // max(1, len(across))
    each_bar = 0 if each_bar < LEAST_HEAT_COLUMNS else min(MOST_HEAT_COLUMNS, each_bar)
    titles = (f"{heat.verb} {megabytes_unit()}", *(f"x {count_text(each)}" for each in across))
    table = document.Table("", tuple(document.Column(f"{e:>{FIGURE_COLUMNS}}") for e in titles))
    between = heat.line
    for row in rows:
        if between is not None and row >= between[0]:
            table.add(f"{between[1]} {size_text(between[0])}", *("" for _ in across))
            between = None
        texts = []
        for column in across:
            cell = cells.get((row, column))
            if cell is None:
                texts.append("")
                continue
            figure = megabytes_text(cell.bytes_per_second)
            figure = f"[{figure}]" if cell.framed and heat.knee else figure
            rate = cell.bytes_per_second
            length = bar(rate, peak, each_bar, signs) if each_bar else spark(rate, peak, signs)
            texts.append(f"{figure:>{FIGURE_COLUMNS}} {length}")
        table.add(heat.row_text(row), *texts)
    return table
