"""One drawing of a page: SVG without script or address outside, and the same figures as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.steps import Copy
from bottleneck.report import Report
from bottleneck.reports.document import Column, Row, Table
from bottleneck.reports.plots.shapes import drawing

T = TypeVar("T")


@dataclass(frozen=True)
class Plot:
    """A drawing and what it says in words and in a table, for whoever cannot see it."""

    name: str
    """Of its place in the page: `timeline`, `zones-1`; unique, letters, digits and hyphens."""
    title: str
    sentence: str
    """What the drawing shows, in one or two sentences; plain text, safe."""
    svg: str
    """An <svg> element, ASCII, ready to stand in the page; colours by the page's CSS variables."""
    columns: tuple[str, ...]
    """Titles of the table behind it; plain text."""
    rows: tuple[tuple[str, ...], ...]
    """Its cells; plain text, safe, not escaped."""

    @property
    def table(self) -> Table:
        """The figures; columns whose every cell begins with a digit or is empty are set right."""
        cells = [[row[at] for row in self.rows] for at in range(len(self.columns))]
        titles = (
            Column(title, bool(at) and any(column) and all(map(_is_figure, column)))
            for at, (title, column) in enumerate(zip(self.columns, cells, strict=True))
        )
        return Table(self.title, tuple(titles), [Row(row) for row in self.rows])


def _is_figure(cell: str) -> bool:
    return cell[:1].isdigit() or not cell


def plot(
    name: str,
    title: str,
    sentence: str,
    drawn: tuple[float, Iterable[str]],
    columns: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
) -> Plot:
    """A drawing of its height and shapes."""
    height, shapes = drawn
    svg = drawing(name, title, sentence, height, shapes)
    return Plot(name, title, sentence, svg, columns, tuple(rows))


def numbered(found: Sequence[T], most: int) -> Iterator[tuple[int, T, str]]:
    """The first so many with their numbers from 1, and what the last one has to say of the rest."""
    left = len(found) - most
    for at, each in enumerate(found[:most], 1):
        last = at == most and left > 0
        yield at, each, f" {left} more of this kind are not drawn." if last else ""


def headline(report: Report, diagnosis: Diagnosis) -> Copy | None:
    """The copy that the diagnosis' summary speaks of; None: there is none."""
    chosen = diagnosis.chosen
    if chosen is None:
        return None
    named = (chosen.copy, chosen.dialect, chosen.initiator)
    found = (e for e in steps.copies(report) if (e.name, e.dialect, e.initiator) == named)
    return next(found, None)
