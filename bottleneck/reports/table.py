"""How one kind of comparison is shown: its columns, each with what it tells of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bottleneck.analysis.finding import Comparison
from bottleneck.reports.document import Heat, Sparks
from bottleneck.reports.safe import safe
from bottleneck.reports.units import megabytes_unit
from bottleneck.reports.words import known

Row = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """A column of a comparison's table."""

    name: str
    """Its title; `{unit}` stands for that of megabytes_text()."""
    cell: Callable[[Row], str | None]
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
    telling: Callable[[tuple[Row, ...]], tuple[Row, ...]]
    """The rows of each comparison that are shown without --verbose."""
    remark: str = ""
    """What a star in a cell means."""
    heat: Callable[[Comparison], Heat] | None = None
    """Of each comparison a map of its own, in two dimensions."""
    both: bool = False
    """Whether --verbose shows the map's figures as rows, too: they tell more than it."""
    bar: Callable[[Row], float] | None = None
    """Share of the longest bar, for a last column of bars; the knee's is marked."""
    sparks: Callable[[Comparison], tuple[Sparks, ...]] | None = None
    """Lines that draw a comparison in short, where its rows are for --verbose."""


def first(most: int) -> Callable[[tuple[Row, ...]], tuple[Row, ...]]:
    """The first so many rows of a comparison, for Form.telling."""
    return lambda rows: rows[:most]


def figure(name: str, write: Callable[[float], str], key: str) -> Field:
    """A column of a row's figure; a dash where it is not known."""
    return Field(name, lambda row: known(write, row[key]), right=True)


def word(name: str, key: str, longest: int = 24) -> Field:
    """A column of a row's own word."""
    return Field(name, lambda row: known(lambda told: safe(told, longest), row[key] or None))
