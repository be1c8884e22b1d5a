"""Blocks of a document, whatever its format: sentences, points, tables, bars, maps.

A section yields blocks; a renderer (terminal.py, html.py for pages) knows blocks, not their
subject. All texts are plain and safe; a range has a dash (\u2013), None is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from bottleneck.analysis.disk_zones import Zones
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.phrases import cell_text
from bottleneck.text.safe import safe
from bottleneck.text.units import megabytes_unit

COMMON = 100
"""Columns of a terminal that most people have, and of a pipe."""
ON_PAGES = 1 << 30
"""Columns that no terminal has: such a column is shown on pages only."""
WIDE, VERY_WIDE = 110, 160
"""Columns of a terminal that has room for longer bars, and for more of them."""
LONGEST_POINT = 600
Style = Literal["", "strong", "quiet", "alarm"]
Mark = Literal["", "chosen", "cap", "soft"]
"""chosen: the subject of the document; cap: its bottleneck; soft: a limit that may be higher."""


@dataclass(frozen=True)
class Text:
    text: str
    style: Style = ""
    hanging: str = ""
    """A sign in front: the paragraph belongs to what stands above it."""
    apart: bool = False
    """Whether a line is left above it."""
    label: bool = False
    """Whether it begins with a word and a colon that stand out."""


@dataclass(frozen=True)
class Points:
    """A list under its heading."""

    title: str
    lines: tuple[str, ...]
    left_out: int = 0


@dataclass(frozen=True)
class Bar:
    """A figure as a length; one beyond the scale ends in a sign that says so."""

    value: float
    scale: float
    sign: str = ""
    """Text at its end."""


Cell = str | Bar | None
RawRow = dict[str, Any]
"""A row of a comparison as the analysis has it."""
POINTER = "\u25c0"
"""Points at a row: `\u25c0 cap`."""


@dataclass(frozen=True)
class Column:
    """Title of a table's column, and how its cells are set."""

    title: str
    right: bool = False
    bar: Callable[[int], int] | None = None
    """Cells of the longest bar on a terminal of so many columns, for a column of bars."""
    least_columns: int = 0
    """Columns of a terminal that has room for it."""


@dataclass(frozen=True)
class Row:
    """A line of a table: its first cell names it."""

    cells: tuple[Cell, ...]
    mark: Mark = ""


@dataclass
class Table:
    """Rows under their titles; the first column gives way where there is no room."""

    title: str
    columns: tuple[Column, ...]
    rows: list[Row] = field(default_factory=list)
    note: str = ""
    suffix: str = ""
    """Words that tell it from other tables of its title in one document."""
    left_out: int = 0
    """Number of rows that are not shown."""
    inset: bool = False
    """Whether it stands a little to the right, under what it belongs to."""
    narrower: Table | None = None
    """Table for a terminal that has no room for this one."""
    least_columns: int = 0
    """Columns of a terminal that has room for it, if it fits at all."""

    def add(self, *cells: Cell, mark: Mark = "") -> None:
        self.rows.append(Row(cells, mark))


@dataclass(frozen=True)
class HeatCell:
    """One rate at its two settings."""

    row: float
    column: float
    bytes_per_second: float
    second: str = ""
    """A figure below the rate; empty: none is known."""
    framed: bool = False


@dataclass(frozen=True)
class Heat:
    """Rates by two settings: what these are, how they are written, and what a frame means."""

    cells: tuple[HeatCell, ...]
    rows: str
    columns: str
    row_text: Callable[[float], str]
    column_text: Callable[[float], str]
    verb: str = ""
    second: str = ""
    framed: str = ""
    knee: bool = False
    """Whether the framed cell is a knee: a terminal frames nothing else."""
    suffix: str = ""
    """Words that tell it from other maps of its settings in one document."""
    line: tuple[float, str] | None = None
    """Setting of a line between the rows, and its name."""


@dataclass(frozen=True)
class ZoneCurve:
    """A disk's rate over its addresses, and where files lie on it."""

    title: str
    zones: Zones
    files: tuple[FileMark, ...]
    writes: Zones | None = None
    """Write rates of the same disk, where the zones were read."""


@dataclass(frozen=True)
class FileMark:
    """A file's place on the disk of a curve."""

    text: str
    spans: tuple[tuple[float, float], ...]
    """Start and end of each extent, as ratios of the disk."""


Fact = tuple[str, str | tuple[str, ...]]
"""A term, and what is known of it in one line or in several."""


@dataclass(frozen=True)
class Facts:
    """Terms with what is known of them."""

    rows: tuple[Fact, ...]
    name: str = "pairs"
    """CSS class on a page."""


@dataclass(frozen=True)
class Verbatim:
    """Lines as they are: a command, figures."""

    lines: tuple[str, ...]
    language: str = ""


Block = Text | Points | Table | Facts | Verbatim | Heat | ZoneCurve


def columns(*titles: str, right: str = "") -> tuple[Column, ...]:
    """Returns plain columns; right: the numbers, from 0, of those that hold figures."""
    to_right = {int(each) for each in right.split()}
    return tuple(Column(title, index in to_right) for index, title in enumerate(titles))


def points(
    title: str, lines: Iterable[str], limit: int | None = None, longest: int = LONGEST_POINT
) -> Iterator[Points]:
    """Yields a list of the first lines, made safe; nothing where there are none."""
    every = tuple(lines)
    texts = tuple(safe(each, longest) for each in every[:limit])
    if texts:
        yield Points(title, texts, len(every) - len(texts))


@dataclass(frozen=True)
class Field:
    """A column of a comparison's table."""

    name: str
    """Title; `{unit}` stands for the unit of megabytes_text()."""
    cell: Callable[[RawRow], str | None]
    right: bool = False

    @property
    def title(self) -> str:
        """Returns the title with the unit that figures have now."""
        return self.name.format(unit=megabytes_unit())


@dataclass(frozen=True)
class Form:
    """Table form of one kind of comparison."""

    heading: str
    fields: tuple[Field, ...]
    telling: Callable[[tuple[RawRow, ...]], tuple[RawRow, ...]] = lambda rows: rows
    """Selects the rows of a comparison to show without --verbose, where no copy was made."""
    remark: str = ""
    """Meaning of a star in a cell."""
    heat: Callable[[Comparison], Heat] | None = None
    """Map of each comparison, in two dimensions."""
    both: bool = False
    """Whether --verbose shows the map's figures as rows, too: they tell more than it."""
    bar: Callable[[RawRow], float] | None = None
    """Share of the longest bar, for a last column of bars; the knee's is marked."""


def first(count: int) -> Callable[[tuple[RawRow, ...]], tuple[RawRow, ...]]:
    """Returns a function for Form.telling that keeps the first rows."""
    return lambda rows: rows[:count]


def figure(name: str, write: Callable[[float], str], key: str, instead: str = "") -> Field:
    """Returns a column of a row's figure; a dash where unknown. instead: its key in other rows."""
    return Field(name, lambda row: cell_text(write, row[key] or row[instead or key]), right=True)


def word(name: str, key: str, longest: int = 24) -> Field:
    """Returns a column of a row's word."""
    return Field(name, lambda row: cell_text(lambda text: safe(text, longest), row[key] or None))
