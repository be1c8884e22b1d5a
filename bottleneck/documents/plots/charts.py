"""Drawings of a page: from figures to coordinates, the axes around them, and their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bottleneck.documents.document import Column, Row, Table
from bottleneck.documents.plots import shapes
from bottleneck.documents.plots.shapes import FONT, LINE, WIDTH, label, text_width
from bottleneck.text.units import UnitError, parse_rate, rate_text

LEAST, MOST = 1e-12, 1e24
"""Bounds of a figure; one beyond is drawn at the edge."""
Mark = Callable[[float, float], str]
"""Draws a mark around a place."""
Drawing = tuple[float, list[str]]
"""A drawing's height and its shapes."""
SIDE = 19
"""Width of a mark with the room behind it."""
_GAP = 14
_STEPS = ((1, 1.5), (2, 3.5), (5, 7.5), (10, math.inf))
"""Factors of a power of ten, and up to where each is the nearest."""


@dataclass(frozen=True)
class Plot:
    """A drawing with its words and its table, for a reader who cannot see the drawing."""

    name: str
    """Name in the page: `time-1`, `zones-1`; unique, letters, digits and hyphens."""
    title: str
    sentence: str
    """Content of the drawing in one or two sentences; plain text, safe."""
    svg: str
    """An <svg> element, ASCII, ready to stand in the page; colours by the page's CSS variables."""
    columns: tuple[str, ...]
    """Titles of the table behind it; plain text."""
    rows: tuple[tuple[str, ...], ...]
    """Its cells; plain text, safe, not escaped."""

    @property
    def table(self) -> Table:
        """Returns the figures; set right: columns whose cells begin with a digit or are empty."""
        cells = [[row[index] for row in self.rows] for index in range(len(self.columns))]
        titles = (
            Column(title, bool(index) and any(column) and all(map(_is_figure, column)))
            for index, (title, column) in enumerate(zip(self.columns, cells, strict=True))
        )
        return Table(self.title, tuple(titles), [Row(row) for row in self.rows])


def _is_figure(cell: str) -> bool:
    return cell[:1].isdigit() or not cell


def plot(
    name: str,
    title: str,
    sentence: str,
    drawing: Drawing,
    columns: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
) -> Plot:
    """Returns a drawing of its height and shapes."""
    svg = shapes.drawing(name, title, sentence, *drawing)
    return Plot(name, title, sentence, svg, columns, tuple(rows))


@dataclass(frozen=True)
class Scale:
    """A map from figures from 0 on to coordinates; those beyond its ends are drawn at them."""

    high: float
    start: float
    """The coordinate of 0; may be the greater one."""
    end: float

    def place(self, value: float) -> float:
        """Returns the coordinate of a figure."""
        high = min(MOST, self.high)
        share = min(MOST, value) / high if high > 0 else 0.0
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))


@dataclass(frozen=True)
class Tick:
    """A round figure of an axis and how it is written."""

    value: float
    text: str


@dataclass(frozen=True)
class Chart:
    """An area with a level and an upright axis, and the shapes in it, in figures."""

    x: Scale
    y: Scale
    parts: list[str]

    def add(self, *shapes: str) -> None:
        """Adds shapes, in coordinates."""
        self.parts.extend(shapes)

    def level_axis(self, ticks: tuple[Tick, ...], title: str) -> None:
        """Adds ticks below the area with those labels that have room, and a title."""
        free, bottom = 0.0, self.y.start
        for each in ticks:
            x, half = self.x.place(each.value), text_width(each.text) / 2
            middle = min(WIDTH - half, max(half, x))
            if middle - half >= free and abs(middle - x) <= half:
                self.add(shapes.line(x, bottom, x, bottom + 4, "axis"))
                self.add(label(middle, bottom + 4 + FONT, each.text, "muted", "middle"))
                free = middle + half + 4
        middle = (self.x.start + self.x.end) / 2
        self.add(label(middle, bottom + 34, title, "muted", "middle"))

    def curve(self, points: Iterable[tuple[float, float]], name: str, tip: str = "") -> None:
        """Adds lines from figure to figure."""
        places = [(self.x.place(across), self.y.place(up)) for across, up in points]
        self.add(shapes.polyline(places, f"stroke {name}", tip))

    def whisker(self, across: float, low: float, high: float) -> None:
        """Adds a range of the upright figure; nothing where both ends are one."""
        ends = self.y.place(low), self.y.place(high)
        if ends[1] < ends[0]:
            self.add(shapes.upright_whisker(self.x.place(across), *ends))


def chart(
    title: str,
    ticks: tuple[Tick, ...],
    across: float,
    up: float,
    box: tuple[float, float, float],
    start: float | None = None,
    above: float | None = None,
) -> Chart:
    """Returns an empty chart with its upright axis.

    Args:
        across, up: the figures at the ends of both axes, which begin at 0.
        box: top, right side and bottom of the area.
        start: side of the area; None: as the ticks' labels need it, a quarter of WIDTH at most.
        above: room between the title and the area; None: the title is the drawing's first line.
    """
    top, right, bottom = box
    if start is None:
        start = min(WIDTH / 4, max(text_width(each.text) for each in ticks) + 7)
    x, y = Scale(across, start, right), Scale(up, bottom, top)
    panel = Chart(x, y, [label(0, 12 if above is None else top - above, title, "muted")])
    for each in ticks:
        level = y.place(each.value)
        panel.add(shapes.line(start, level, right, level, "axis" if each is ticks[0] else "grid"))
        panel.add(label(start - 5, level + FONT / 3, each.text, "muted", "end", start - 5))
    return panel


def round_ticks(highest: float, count: int = 4) -> tuple[float, ...]:
    """Returns round figures from 0 to at most `highest`, in steps of 1, 2 or 5 times powers of ten.

    The step is the one that is nearest to `highest` over `count`.
    """
    if not LEAST <= highest <= MOST:
        return (0.0,)
    step = highest / max(1, count)
    power = 10.0 ** math.floor(math.log10(step))
    factor = next(each for each, below in _STEPS if step < below * power)
    return tuple(i * factor * power for i in range(int(highest / (factor * power) + 1e-9) + 1))


def rate_unit(highest: float) -> tuple[str, float]:
    """Returns the unit of rates up to `highest` in the present style, and its bytes per second."""
    unit = rate_text(highest).rpartition(" ")[2]
    try:
        return unit, parse_rate(f"1 {unit}")
    except UnitError:
        return "B/s", 1.0


def rate_ticks(highest: float) -> tuple[str, tuple[Tick, ...]]:
    """Returns the unit of an axis of rates up to `highest`, and ticks that are round in it."""
    unit, scale = rate_unit(highest)
    figures = round_ticks(highest / scale)
    return unit, tuple(Tick(each * scale, figure_text(each, figures)) for each in figures)


def figure_text(value: float, figures: tuple[float, ...]) -> str:
    """Returns a tick's figure, with as many places as the step between them needs."""
    step = figures[1] - figures[0] if len(figures) > 1 else 1.0
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{places}f}"


def ticks_at(values: Iterable[float], text: Callable[[float], str]) -> tuple[Tick, ...]:
    """Returns ticks at the given figures."""
    return tuple(Tick(each, text(each)) for each in values)


def swatch(name: str, wide: float = 10.0, tall: float = 10.0) -> Mark:
    """Returns a filled rectangle as a mark of a key."""
    return lambda x, y: shapes.rect(x - wide / 2, y - tall / 2, wide, tall, name)


def stroke(name: str, right: float = 6.0) -> Mark:
    """Returns a piece of a line as a mark of a key."""
    return lambda x, y: shapes.line(x - 6, y, x + right, y, f"stroke {name}")


def key(entries: Sequence[tuple[Mark, str]], top: float) -> tuple[str, float]:
    """Returns the entries as shapes, and where the next thing may stand below them."""
    parts: list[str] = []
    x, y = 0.0, top
    for mark, text in entries:
        wide = SIDE + text_width(text)
        if x > 0 and x + wide > WIDTH:
            x, y = 0.0, y + LINE
        parts.append(mark(x + 6, y + LINE / 2))
        parts.append(
            label(x + SIDE, y + LINE / 2 + FONT / 3, text, "muted", width=WIDTH - x - SIDE)
        )
        x += wide + _GAP
    return "".join(parts), (y + LINE if entries else top)
