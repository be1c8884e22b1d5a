"""What a comparison's table on a terminal is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bottleneck.analysis.finding import Comparison
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.units import megabytes_unit

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """How one kind of comparison is shown."""

    heading: str
    columns: tuple[str, ...]
    """Their titles; `{unit}` stands for that of megabytes_text()."""
    cells: Callable[[Row], tuple[str | None, ...]]
    right: frozenset[int]
    telling: Callable[[tuple[Row, ...]], tuple[Row, ...]]
    """The rows of each comparison that are shown without --verbose."""
    remark: str = ""
    """What a star in a cell means."""
    grid: Callable[[Comparison, Signs, int], Columns] | None = None
    """Of each comparison a table of its own, in two dimensions, within a width."""
    both: bool = False
    """Whether --verbose shows the grid's figures as rows, too: they tell more than it."""
    bar: Callable[[Row], float] | None = None
    """Share of the longest bar, for a last column of bars; the knee's is marked."""
    sparks: Callable[[Comparison, Signs], Iterator[str]] | None = None
    """Lines that draw a comparison in short, where its rows are for --verbose."""

    @property
    def titles(self) -> tuple[str, ...]:
        """Of the columns, with the unit that figures have now."""
        return tuple(each.format(unit=megabytes_unit()) for each in self.columns)


def first(most: int) -> Callable[[tuple[Row, ...]], tuple[Row, ...]]:
    """The first so many rows of a comparison, for Table.telling."""
    return lambda rows: rows[:most]


def written(write: Callable[[float], str], value: float | None) -> str | None:
    """A cell's text; None: the figure is not known."""
    return None if value is None else write(value)
