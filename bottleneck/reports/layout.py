"""Lines of a terminal: columns, hanging bullets, bars; no line ends in a space."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

GAP = "  "


@dataclass(frozen=True)
class Signs:
    """The characters to draw with, by what the terminal's encoding has."""

    blocks: str
    """Parts of a cell in rising order, a full one last."""
    cap: str
    dash: str
    none: str


UNICODE = Signs(blocks="▏▎▍▌▋▊▉█", cap="◀ cap", dash="–", none="·")
ASCII = Signs(blocks="#", cap="<- cap", dash="-", none=".")


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    cells: tuple[str, ...]
    style: str = ""


@dataclass
class Columns:
    """A table whose first column alone gives way where the terminal is narrow."""

    titles: tuple[str, ...]
    right: frozenset[int] = frozenset()
    """Columns that are aligned to the right."""
    rows: list[Row] = field(default_factory=list)

    def add(self, *cells: str, style: str = "") -> None:
        """One more line."""
        self.rows.append(Row(cells, style))

    def print(self, console: Console) -> None:
        """Writes it within the console's width."""
        lines = [Row(self.titles, "dim"), *self.rows]
        widths = [max(cell_len(row.cells[at]) for row in lines) for at in range(len(self.titles))]
        rest = sum(widths[1:]) + len(GAP) * (len(widths) - 1)
        widths[0] = max(8, min(widths[0], console.width - rest))
        for row in lines:
            cells = [
                _cell(text, width, at in self.right)
                for at, (text, width) in enumerate(zip(row.cells, widths, strict=True))
            ]
            line(console, GAP.join(cells), row.style)


def _cell(text: str, width: int, right: bool) -> str:
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "~"
    return " " * (width - cell_len(text)) + text if right else set_cell_size(text, width)


def line(console: Console, text: str, style: str = "") -> None:
    """One line as it is: no markup, no highlighting, no wrapping.

    What the terminal's encoding has no character for is written as its escape.
    """
    shown = text.rstrip().encode(console.encoding, "backslashreplace").decode(console.encoding)
    console.print(Text(shown, style=style), no_wrap=True, overflow="ignore", crop=False)


def paragraph(console: Console, text: str, style: str = "", bullet: str = "") -> None:
    """Text wrapped to the console's width; a bullet hangs in front."""
    indent = " " * len(bullet)
    wrapped = textwrap.wrap(
        text,
        max(20, console.width),
        initial_indent=bullet,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    for each in wrapped:
        line(console, each, style)


def bullets(console: Console, title: str, lines: Sequence[str]) -> None:
    """A heading and its points; nothing where there are none."""
    if lines:
        heading(console, title)
    for each in lines:
        paragraph(console, each, bullet="- ")


def heading(console: Console, text: str) -> None:
    """A blank line and a title."""
    console.print()
    line(console, text, "bold")


def signs(console: Console) -> Signs:
    """Blocks where the encoding has them, else ASCII."""
    try:
        "".join((UNICODE.blocks, UNICODE.cap, UNICODE.dash, UNICODE.none)).encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return ASCII if console.legacy_windows else UNICODE


def bar(value: float, most: float, width: int, with_signs: Signs) -> str:
    """A bar in parts of a cell; one longer than the scale ends in a sign that says so."""
    full_sign = with_signs.blocks[-1]
    if value > most:
        return full_sign * (width - 1) + ">"
    parts = len(with_signs.blocks)
    full, rest = divmod(max(1, round(value / most * width * parts)), parts)
    return full_sign * full + (with_signs.blocks[rest - 1] if rest else "")
