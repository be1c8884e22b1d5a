"""What a document is made of, whatever it is written in: sentences, points, tables, bars, maps.

A section yields blocks; a renderer (layout for terminals, html for pages) knows blocks and nothing
of what they tell. All texts are plain and safe; a range has a dash (\u2013), None is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from bottleneck.analysis.disk_zones import Zones
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.phrases import known
from bottleneck.text.safe import safe
from bottleneck.text.units import megabytes_unit

COMMON = 100
"""Columns of a terminal that most people have, and of a pipe."""
ON_PAGES = 1 << 30
"""Columns of a terminal that none has: what is shown on a page alone."""
WIDE, VERY_WIDE = 110, 160
"""Columns of a terminal that has room for longer bars, and for more of them."""
LONGEST_POINT = 600
Style = Literal["", "strong", "quiet", "alarm"]
Mark = Literal["", "chosen", "cap", "soft"]
"""chosen: what the document speaks of; cap: what holds it; soft: what may be more."""


@dataclass(frozen=True)
class Text:
    """A paragraph."""

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
    """A figure as a length; one beyond the longest says so."""

    value: float
    most: float
    sign: str = ""
    """What stands at its end."""


Cell = str | Bar | None
Found = dict[str, Any]
"""A row of a comparison as the analysis has it."""
POINTER = "\u25c0"
"""Points at a row: `\u25c0 cap`."""


@dataclass(frozen=True)
class Column:
    """What stands above a table's cells, and how they are set."""

    title: str
    right: bool = False
    bar: Callable[[int], int] | None = None
    """Of a column of bars: their longest on a terminal of so many columns, in its cells."""
    least_columns: int = 0
    """Of a terminal that has room for it."""


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
    about: str = ""
    """What tells it from others of its title in one document."""
    left_out: int = 0
    """Rows that are shown where everything is."""
    inset: bool = False
    """Whether it stands a little to the right, under what it belongs to."""
    narrower: Table | None = None
    """What a terminal shows that has no room for it."""
    least_columns: int = 0
    """Of a terminal that has room for it, if it fits at all."""

    def add(self, *cells: Cell, mark: Mark = "") -> None:
        """One more line."""
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
    """Whether what is framed is a knee: a terminal frames no other."""
    about: str = ""
    """What tells it from others of its settings in one document."""
    line: tuple[float, str] | None = None
    """A row's setting that stands between the others, and what it is."""


@dataclass(frozen=True)
class ZoneCurve:
    """A disk's rate over its addresses, and where files lie on it."""

    title: str
    zones: Zones
    files: tuple[FileMark, ...]
    writes: Zones | None = None
    """What is written there, where the zones were read."""


@dataclass(frozen=True)
class FileMark:
    """A file's place on the disk of a curve."""

    text: str
    spans: tuple[tuple[float, float], ...]
    """From and to, as ratios of the disk."""


Fact = tuple[str, str | tuple[str, ...]]
"""A term, and what is known of it in one line or in several."""


@dataclass(frozen=True)
class Facts:
    """Terms with what is known of them."""

    rows: tuple[Fact, ...]
    name: str = "pairs"
    """How a page sets them."""


@dataclass(frozen=True)
class Verbatim:
    """Lines as they are: a command, figures."""

    lines: tuple[str, ...]
    language: str = ""


Block = Text | Points | Table | Facts | Verbatim | Heat | ZoneCurve


def columns(*titles: str, right: str = "") -> tuple[Column, ...]:
    """Plain columns; right: those of figures, as their numbers from 0 on."""
    to_right = {int(each) for each in right.split()}
    return tuple(Column(title, at in to_right) for at, title in enumerate(titles))


def points(
    title: str, lines: Iterable[str], most: int | None = None, longest: int = LONGEST_POINT
) -> Iterator[Points]:
    """A list of the first so many lines, made safe; nothing where there are none."""
    told = tuple(lines)
    shown = tuple(safe(each, longest) for each in told[:most])
    if shown:
        yield Points(title, shown, len(told) - len(shown))


@dataclass(frozen=True)
class Field:
    """A column of a comparison's table."""

    name: str
    """Its title; `{unit}` stands for that of megabytes_text()."""
    cell: Callable[[Found], str | None]
    right: bool = False

    @property
    def title(self) -> str:
        """With the unit that figures have now."""
        return self.name.format(unit=megabytes_unit())


@dataclass(frozen=True)
class Form:
    """How one kind of comparison is shown."""

    heading: str
    fields: tuple[Field, ...]
    telling: Callable[[tuple[Found, ...]], tuple[Found, ...]] = lambda rows: rows
    """The rows of each comparison that are shown without --verbose, where no copy was made."""
    remark: str = ""
    """What a star in a cell means."""
    heat: Callable[[Comparison], Heat] | None = None
    """Of each comparison a map of its own, in two dimensions."""
    both: bool = False
    """Whether --verbose shows the map's figures as rows, too: they tell more than it."""
    bar: Callable[[Found], float] | None = None
    """Share of the longest bar, for a last column of bars; the knee's is marked."""


def first(most: int) -> Callable[[tuple[Found, ...]], tuple[Found, ...]]:
    """The first so many rows of a comparison, for Form.telling."""
    return lambda rows: rows[:most]


def figure(name: str, write: Callable[[float], str], key: str, instead: str = "") -> Field:
    """A column of a row's figure; a dash where it is not known. instead: its key in other rows."""
    return Field(name, lambda row: known(write, row[key] or row[instead or key]), right=True)


def word(name: str, key: str, longest: int = 24) -> Field:
    """A column of a row's own word."""
    return Field(name, lambda row: known(lambda told: safe(told, longest), row[key] or None))
