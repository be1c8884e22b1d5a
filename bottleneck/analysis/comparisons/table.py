"""Rows of figures, cells that have such rows, and the sentences that are written from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from string import Formatter
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.steps import OWN, MeasuredStep, dialect_name
from bottleneck.report.report import Report
from bottleneck.text import units
from probes.core.records import Spread

DIRECTIONS = {"client": "client to server", "server": "server to client"}
"""Words for a direction, by the sender."""
Row = dict[str, Any]
"""Figures by their names, each of which ends with its unit."""
UNITS: Mapping[str, Callable[[float], str]] = {
    "bytes_per_second": units.rate_text,
    "seconds_per_byte": units.cost_text,
    "seconds": units.seconds_text,
    "seconds_per_file": units.seconds_text,
    "seconds_per_call": units.seconds_text,
    "bytes": units.size_text,
    "ratio": units.percent_text,
    "times": units.times_text,
}
"""Formatters of a figure by the end of its name; any other figure is a count."""


def write(template: str, row: Row) -> str:
    """Returns a template with its figures in their units; empty: one of them is unknown.

    `{best.in_flight_bytes}` is a figure of the row `best` in the row. A bool is a condition: True
    writes nothing, and False is like unknown. Text in [brackets] is left out by itself.
    """
    parts = [_filled_template(each, row) for each in re.split(r"[][]", template)]
    return "" if None in parts[::2] else "".join(filter(None, parts))


def _filled_template(template: str, row: Row) -> str | None:
    parts = []
    for text, path, _, _ in Formatter().parse(template):
        parts.append(text)
        if path is not None:
            value: Any = row
            for name in path.split("."):
                value = value.get(name) if value else None
            if value is None or value is False:
                return None
            parts.append(value if isinstance(value, str) else _figure_text(path, value))
    return "".join(parts)


def _figure_text(name: str, value: float) -> str:
    by_unit = (text for end, text in UNITS.items() if name.endswith(end))
    return "" if value is True else next(by_unit, units.count_text)(value)


def number_text(count: float, noun: str) -> str:
    """Returns a number of things: `1 connection`, `8 connections`."""
    return f"{units.count_text(count)} {noun}{'' if count == 1 else 's'}"


def capital(text: str) -> str:
    """Returns a text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def read(details: Any, columns: str, **others: Any) -> Row | None:
    """Returns a row of the columns, which are names of figures in details, or in others.

    A column that ends with `=` is no figure of details: it is None unless in others.
    None: a column that ends with `!` is missing, or 0, so that it cannot divide.
    """
    row: Row = {}
    for column in columns.split():
        name = column.rstrip("!=")
        figure = None if column.endswith("=") else steps.amount(details, name)
        row[name] = others.get(name, figure)
        if column.endswith("!") and not steps.positive(details, name):
            return None
    return row


def pick(row: Row, columns: str) -> Row:
    """Returns the named figures of a row."""
    return {name: row[name] for name in columns.split()}


ENOUGH_RATIO = 0.95
"""Share of the best rate, or of an intended one, that counts as all of it."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One measured figure: a copy, or a row of what a step reported."""

    result: MeasuredStep
    row: Row
    spread: Spread
    """Bytes per second, or another figure that is compared."""
    source: Any = None
    """The object of the row: a Copy, a disk's Zones."""
    others: tuple[MeasuredStep, ...] = ()
    """Further steps with figures in the row."""

    @property
    def rate(self) -> float:
        return self.spread.median


Cells = Sequence[Cell]


def single(rate: float) -> Spread:
    return Spread(rate, rate, rate, 1)


def rates(result: MeasuredStep) -> Row:
    """Returns the rates of a step's runs as a row."""
    names = ("bytes_per_second", "low_bytes_per_second", "high_bytes_per_second", "runs")
    return dict(zip(names, astuple(result.rate), strict=True))


def cell(result: MeasuredStep, row: Row, source: Any = None, *others: MeasuredStep) -> Cell:
    """Returns the cell of a row that was measured once, with low and high if the row has them."""
    rate = row.get("bytes_per_second") or result.rate.median
    low, high = (row.get(f"{name}_bytes_per_second") or rate for name in ("low", "high"))
    return Cell(result, row, Spread(rate, low, high, 1), source, others)


def list_cells(report: Report, stage: str, name: str, columns: str) -> Iterator[Cell]:
    """Yields the rows that the steps of a stage list by a name in their details."""
    for result in steps.measured_steps(report, stage):
        setting = {"over": result.setting.over, "verb": result.setting.verb or None}
        for each in steps.items(result.outcome.details, name) if result.is_intact else ():
            row = read(each, columns, initiator=result.plan.initiator, **setting)
            if row is not None:
                yield cell(result, row)


def find(cells: Iterable[Cell], **figures: Any) -> Cell | None:
    """Returns the first cell whose row has these figures; None: there is none."""
    return next((each for each in cells if figures.items() <= each.row.items()), None)


def rate_of(cell: Cell) -> float:
    """Returns a cell's rate, by which cells are ordered."""
    return cell.rate


def fastest(cells: Iterable[Cell]) -> Cell:
    return max(cells, key=rate_of)


def enough(cells: Cells, cost: Callable[[Cell], Any]) -> Cell:
    """Returns the cheapest of the cells that are about as fast as the fastest."""
    threshold = ENOUGH_RATIO * fastest(cells).rate
    return min((each for each in cells if each.rate >= threshold), key=cost)


def first_and_last(cells: Cells) -> Cells:
    """Returns the outer cells, or the only one."""
    return (cells[0], cells[-1]) if len(cells) > 1 else cells


def slowest_and_fastest(cells: Cells) -> Cells:
    """Returns the cells with the lowest and the highest rate."""
    return first_and_last(sorted(cells, key=rate_of))


def copies(report: Report) -> Iterator[Cell]:
    """Yields every copy that was made and whose bytes arrived intact."""
    for copy in steps.copies(report):
        result = copy.step
        if result is None or not result.is_intact:
            continue
        fields = "initiator dialect engine verb cache sender receiver is_of_file is_native"
        details = "request_bytes depth in_flight_bytes engine_server flush_seconds"
        details += " acknowledged_bytes_per_second"
        row = {
            "copy": copy.name,
            **{name: getattr(copy, name) for name in fields.split()},
            **rates(result),
            **{name: getattr(result.details, name) for name in details.split()},
            "security": steps.security(result),
            "proven": result.details.cache.proven,
            # Unknown counts as durable.
            "durable": result.details.flushed is not False,
            "starter": "sender" if copy.initiator == copy.sender else "receiver",
            "direction": DIRECTIONS[copy.sender],
            "name": dialect_name(copy.dialect),
            "program": steps.word(result.outcome.details, "program"),
        }
        requests = "request" if row["depth"] == 1 else "requests"
        flight = f"{{depth}} {requests} of {{request_bytes}} ({{in_flight_bytes}})"
        row["flight"] = write(flight, row) or None
        yield Cell(result, row, result.rate, copy)


def program_text(cell: Cell) -> str:
    """Returns the program and dialect of a copy, in words."""
    row, native = cell.row, cell.row["is_native"]
    method = "the operating system's copy" if native else row["name"]
    program = "" if native or row["engine"] == OWN else f" with {row['engine']}"
    return f"{method}{program}{', started by the server' if row['initiator'] == 'server' else ''}"
