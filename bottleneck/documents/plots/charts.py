"""Drawings of a page: from figures to coordinates, the axes around them, and their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.analysis.steps import Copy
from bottleneck.documents.document import Column, Row, Table
from bottleneck.documents.plots import shapes
from bottleneck.documents.plots.shapes import FONT, LINE, WIDTH, label, text_width
from bottleneck.report.report import Report
from bottleneck.text.units import UnitError, parse_rate, rate_text

LEAST, MOST = 1e-12, 1e24
"""Bounds of a figure; one beyond is drawn at the edge."""
MOST_DECADES = 8
Mark = Callable[[float, float], str]
"""Draws a mark around a place."""
Dot = Callable[[float, float, float, str, str], str]
"""Draws a dot: its middle, its radius, its class, and what it says when pointed at."""
Drawing = tuple[float, list[str]]
"""A drawing's height and its shapes."""
SIDE = 19
"""Width of a mark with the room behind it."""
_GAP = 14
_STEPS = ((1, 1.5), (2, 3.5), (5, 7.5), (10, math.inf))
"""Factors of a power of ten, and up to where each is the nearest."""
T = TypeVar("T")


@dataclass(frozen=True)
class Plot:
    """A drawing with its words and its table, for a reader who cannot see the drawing."""

    name: str
    """Name in the page: `timeline`, `zones-1`; unique, letters, digits and hyphens."""
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


def numbered_items(items: Sequence[T], limit: int) -> Iterator[tuple[int, T, str]]:
    """Yields the first items with their numbers from 1, the last with how many are not drawn."""
    rest = len(items) - limit
    for number, each in enumerate(items[:limit], 1):
        last = number == limit and rest > 0
        yield number, each, f" {rest} more are not drawn." if last else ""


def comparisons_of(
    diagnosis: Diagnosis, kind: str, limit: int
) -> Iterator[tuple[str, Comparison, str]]:
    """Yields comparisons of a kind: the end of a plot's name, the comparison, its sentence."""
    comparisons = [each for each in diagnosis.comparisons if each.about == kind]
    for number, each, rest in numbered_items(comparisons, limit):
        yield f"-{number}", each, shapes.opening(each.sentence) + rest


def drawn_note(part: Sequence[object], total: Sequence[object], noun: str) -> str:
    """Returns how many of all are drawn; empty where all are."""
    count, whole_count = len(part), len(total)
    return f" {count} of {whole_count} {noun} are drawn." if count < whole_count else ""


def headline(report: Report, diagnosis: Diagnosis) -> Copy | None:
    """Returns the copy that the diagnosis' summary is about; None: there is none."""
    main_copy = diagnosis.main_copy
    if main_copy is None:
        return None
    identity = (main_copy.copy, main_copy.dialect, main_copy.initiator)
    matches = (e for e in steps.copies(report) if (e.name, e.dialect, e.initiator) == identity)
    return next(matches, None)


@dataclass(frozen=True)
class Scale:
    """A map from figures to coordinates; figures beyond its ends are drawn at them."""

    low: float
    high: float
    start: float
    """The coordinate of low; may be the greater one."""
    end: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Returns the coordinate of a figure."""
        low, high, value = (self._position(each) for each in (self.low, self.high, value))
        share = 0.0 if high <= low else (value - low) / (high - low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))

    def _position(self, value: float) -> float:
        bounded = min(MOST, max(LEAST if self.logarithmic else 0.0, value))
        return math.log(bounded) if self.logarithmic else bounded


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

    @property
    def middle(self) -> float:
        """Returns the coordinate between both ends of the level axis."""
        return (self.x.start + self.x.end) / 2

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
        self.add(label(self.middle, bottom + 34, title, "muted", "middle"))

    def curve(self, points: Iterable[tuple[float, float]], name: str, tip: str = "") -> None:
        """Adds lines from figure to figure."""
        places = [(self.x.place(across), self.y.place(up)) for across, up in points]
        self.add(shapes.polyline(places, f"stroke {name}", tip))

    def dot(self, across: float, up: float, name: str, tip: str, draw: Dot = shapes.circle) -> None:
        """Adds a mark at two figures."""
        self.add(draw(self.x.place(across), self.y.place(up), 3, name, tip))

    def whisker(self, across: float, low: float, high: float, half: float = 3.0) -> None:
        """Adds a range of the upright figure; nothing where both ends are one."""
        ends = self.y.place(low), self.y.place(high)
        if ends[1] < ends[0]:
            self.add(shapes.upright_whisker(self.x.place(across), *ends, half))


def chart(
    title: str,
    ticks: tuple[Tick, ...],
    across: tuple[float, float],
    up: tuple[float, float],
    box: tuple[float, float, float],
    inset: float = 0.0,
    start: float | None = None,
    above: float | None = None,
    logarithmic: str = "",
) -> Chart:
    """Returns an empty chart with its upright axis.

    Args:
        across, up: the figures at the ends of both axes.
        box: top, right side and bottom of the area.
        inset: room in it beside the figures at both ends.
        start: side of the area; None: as the ticks' labels need it.
        above: room between the title and the area; None: the title is the drawing's first line.
        logarithmic: which axes are: "x", "xy" or none.
    """
    top, right, bottom = box
    start = margin(ticks) if start is None else start
    x = Scale(*across, start + inset, right - inset, logarithmic="x" in logarithmic)
    y = Scale(*up, bottom, top, logarithmic="y" in logarithmic)
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


def log_figures(low: float, high: float) -> tuple[float, ...]:
    """Returns round figures for a logarithmic axis, the first and the last around two figures.

    1, 2 and 5 times powers of ten; powers of ten alone from two decades on.
    """
    low, high = (math.log10(min(MOST, max(LEAST, each))) for each in (low, high))
    first, last = math.floor(low + 1e-9), math.ceil(high - 1e-9)
    if high - low > 2:
        step = max(1, math.ceil((last - first) / MOST_DECADES))
        count = math.ceil((last - first) / step)
        return tuple(10.0 ** (first + i * step) for i in range(count + 1))
    figures = [f * 10.0**p for p in range(first, max(first, last) + 2) for f in (1, 2, 5)]
    begin = max(i for i, each in enumerate(figures) if math.log10(each) <= low + 1e-9)
    end = next(i for i, each in enumerate(figures) if math.log10(each) >= high - 1e-9)
    return tuple(figures[begin : max(end, begin + 1) + 1])


def power_ticks(
    low: float, high: float, base: int, text: Callable[[float], str], limit: int = 6
) -> tuple[Tick, ...]:
    """Returns whole powers of a base between two figures, thinned evenly to `limit`."""
    low, high = (min(MOST, max(LEAST, each)) for each in (low, high))
    first = math.ceil(math.log(low, base) - 1e-9)
    last = math.floor(math.log(high, base) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / limit))
    return ticks_at([float(base) ** each for each in range(first, last + 1, step)], text)


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


def margin(ticks: tuple[Tick, ...]) -> float:
    """Returns the width of an upright axis' labels, a quarter of the drawing at most."""
    return min(WIDTH / 4, max([text_width(each.text) for each in ticks], default=0.0) + 7)


def ticks_at(values: Iterable[float], text: Callable[[float], str]) -> tuple[Tick, ...]:
    """Returns ticks at the given figures."""
    return tuple(Tick(each, text(each)) for each in values)


def dot_mark(draw: Dot, name: str, radius: float = 3) -> Mark:
    """Returns a dot as a mark of a key."""
    return lambda x, y: draw(x, y, radius, name, "")


def stroke(name: str) -> Mark:
    """Returns a piece of a line as a mark of a key."""
    return lambda x, y: shapes.line(x - 6, y, x + 6, y, f"stroke {name}")


def dashes(name: str, right: float) -> Mark:
    """Returns a piece of a dashed line as a mark of a key."""
    return lambda x, y: shapes.line(x - 6, y, x + right, y, f"stroke dashed {name}")


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
