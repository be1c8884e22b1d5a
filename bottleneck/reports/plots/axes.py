"""Scales and round ticks: from figures to places on a drawing, and labels that people read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bottleneck.reports.plots.shapes import FONT, LINE, WIDTH, label, line, text_width
from bottleneck.reports.units import UnitError, parse_rate, rate_text

LEAST, MOST = 1e-12, 1e24
"""What lies beyond is drawn at the edge."""
MOST_DECADES = 8
Mark = Callable[[float, float], str]
"""Draws a mark around a place."""
SIDE = 19
"""Width of a mark with the room behind it."""
_GAP = 14
_STEPS = ((1, 1.5), (2, 3.5), (5, 7.5), (10, math.inf))
"""Factors of a power of ten, and up to where each is the nearest."""


@dataclass(frozen=True)
class Scale:
    """From a figure to a coordinate; figures beyond its ends are drawn at them."""

    low: float
    high: float
    start: float
    """The coordinate of low; may be the greater one."""
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The coordinate of a figure."""
        low, high, value = (self._placed(each) for each in (self.low, self.high, value))
        share = 0.0 if high <= low else (value - low) / (high - low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))

    def _placed(self, value: float) -> float:
        bounded = min(MOST, max(LEAST if self.logarithmic else 0.0, value))
        return math.log(bounded) if self.logarithmic else bounded


@dataclass(frozen=True)
class Tick:
    """A round figure of an axis and how it is written."""

    value: float
    text: str


def round_ticks(most: float, about: int = 4) -> tuple[float, ...]:
    """Round figures from 0 to at most `most`, in steps of 1, 2 or 5 times a power of ten.

    The step is the one that is nearest to `most` over `about`.
    """
    if not LEAST <= most <= MOST:
        return (0.0,)
    step = most / max(1, about)
    power = 10.0 ** math.floor(math.log10(step))
    factor = next(each for each, below in _STEPS if step < below * power)
    return tuple(at * factor * power for at in range(int(most / (factor * power) + 1e-9) + 1))


def around(low: float, high: float) -> tuple[float, ...]:
    """Round figures for a logarithmic axis, the first and the last around two figures.

    1, 2 and 5 times powers of ten; powers of ten alone from two decades on.
    """
    low, high = (math.log10(min(MOST, max(LEAST, each))) for each in (low, high))
    first, last = math.floor(low + 1e-9), math.ceil(high - 1e-9)
    if high - low > 2:
        step = max(1, math.ceil((last - first) / MOST_DECADES))
        count = math.ceil((last - first) / step)
        return tuple(10.0 ** (first + at * step) for at in range(count + 1))
    figures = [f * 10.0**p for p in range(first, max(first, last) + 2) for f in (1, 2, 5)]
    begin = max(at for at, each in enumerate(figures) if math.log10(each) <= low + 1e-9)
    end = next(at for at, each in enumerate(figures) if math.log10(each) >= high - 1e-9)
    return tuple(figures[begin : max(end, begin + 1) + 1])


def power_ticks(low: float, high: float, base: int, most: int = 6) -> tuple[float, ...]:
    """Whole powers of a base between two figures, thinned evenly to so many."""
    low, high = (min(MOST, max(LEAST, each)) for each in (low, high))
    first = math.ceil(math.log(low, base) - 1e-9)
    last = math.floor(math.log(high, base) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    return tuple(float(base) ** each for each in range(first, last + 1, step))


def rate_unit(most: float) -> tuple[str, float]:
    """The unit that rates up to `most` are told in, in whatever style, and its bytes per second."""
    unit = rate_text(most).rpartition(" ")[2]
    try:
        return unit, parse_rate(f"1 {unit}")
    except UnitError:
        return "B/s", 1.0


def rate_ticks(most: float, about: int = 4) -> tuple[str, tuple[Tick, ...]]:
    """The unit of an axis of rates up to `most`, and ticks whose figures are round in it."""
    unit, scale = rate_unit(most)
    figures = round_ticks(most / scale, about)
    return unit, tuple(Tick(each * scale, figure_text(each, figures)) for each in figures)


def figure_text(value: float, figures: tuple[float, ...]) -> str:
    """A tick's figure, with as many places as the step between them needs."""
    step = figures[1] - figures[0] if len(figures) > 1 else 1.0
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{places}f}"


def margin(ticks: tuple[Tick, ...]) -> float:
    """What the labels of an upright axis take on its left, a quarter of the drawing at most."""
    return min(WIDTH / 4, max([text_width(each.text) for each in ticks], default=0.0) + 7)


def rules(ticks: tuple[Tick, ...], y: Scale, left: float, right: float) -> Iterator[str]:
    """Horizontal lines at the ticks of an upright axis, labelled on their left."""
    for each in ticks:
        at = y.at(each.value)
        yield line(left, at, right, at, "axis" if each.value == ticks[0].value else "grid")
        yield label(left - 5, at + FONT / 3, each.text, "muted", "end", left - 5)


def marks_below(ticks: tuple[Tick, ...], x: Scale, bottom: float, right: float) -> Iterator[str]:
    """Ticks below a level axis with their labels, but for those that have no room."""
    free = 0.0
    for each in ticks:
        at, half = x.at(each.value), text_width(each.text) / 2
        middle = min(right - half, max(half, at))
        if middle - half >= free and abs(middle - at) <= half:
            yield line(at, bottom, at, bottom + 4, "axis")
            yield label(middle, bottom + 4 + FONT, each.text, "muted", "middle")
            free = middle + half + 4


def told_ticks(values: tuple[float, ...], text: Callable[[float], str]) -> tuple[Tick, ...]:
    """Ticks at figures that are given."""
    return tuple(Tick(each, text(each)) for each in values)


def key(entries: Sequence[tuple[Mark, str]], top: float, left: float = 0.0) -> tuple[str, float]:
    """The entries as shapes, and where the next thing may stand below them."""
    parts: list[str] = []
    x, y = left, top
    for mark, text in entries:
        wide = SIDE + text_width(text)
        if x > left and x + wide > WIDTH:
            x, y = left, y + LINE
        parts.append(mark(x + 6, y + LINE / 2))
        parts.append(
            label(x + SIDE, y + LINE / 2 + FONT / 3, text, "muted", width=WIDTH - x - SIDE)
        )
        x += wide + _GAP
    return "".join(parts), (y + LINE if entries else top)
