"""The comparisons: for each kind a table, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.reports import copy_tables, disks, tcp_tables
from bottleneck.reports.document import (
    POINTER,
    WIDE,
    Bar,
    Block,
    Cell,
    Column,
    Form,
    Found,
    Points,
    Table,
    Text,
)
from bottleneck.reports.safe import safe

SENTENCE_CHARACTERS = 1000
OF_TCP_ALONE = frozenset(tcp_tables.TABLES)
BAR_CELLS, WIDE_BAR_CELLS = 8, 30
TABLES = {**copy_tables.TABLES, **disks.TABLES, **tcp_tables.TABLES}
"""How each kind of comparison is shown."""


def comparisons(diagnosis: Diagnosis, verbose: bool = False) -> Iterator[Block]:
    """Each kind of comparison that the diagnosis has; verbose: with all of its rows.

    Beside copies the tables of TCP alone would bury the verdict: their sentences are enough.
    """
    brief = [
        each
        for each in diagnosis.comparisons
        if each.about in OF_TCP_ALONE and diagnosis.copies and not verbose
    ]
    for about, group in groupby(diagnosis.comparisons, key=lambda each: each.about):
        found = [each for each in group if each not in brief]
        if found:
            yield from _kind(TABLES[about], found, verbose)
    if brief:
        yield Points("TCP alone (its tables with --verbose)", ())
    for each in brief:
        yield _sentence(each)
        draw = TABLES[each.about].sparks
        yield from draw(each) if draw is not None else ()


def figures(about: str, found: Sequence[Comparison]) -> tuple[list[str], Table]:
    """Of one kind the sentences, and all the figures behind them."""
    rows = [row for each in found for row in each.rows]
    return [_sentence(each).text for each in found], _table(TABLES[about], rows, 0)


def _kind(form: Form, found: Sequence[Comparison], verbose: bool) -> Iterator[Block]:
    shown: list[Found] = []
    left_out = 0
    in_rows = form.heat is None or form.both
    for each in found:
        rows = each.rows if verbose and in_rows else form.telling(each.rows)
        left_out += len(each.rows) - len(rows) if in_rows else 0
        shown += rows
    yield _table(form, shown, left_out)
    for each in found:
        if form.heat is not None:
            yield form.heat(each)
        yield _sentence(each)


def _sentence(found: Comparison) -> Text:
    return Text(safe(found.sentence, SENTENCE_CHARACTERS), hanging="- ")


def _table(form: Form, rows: Sequence[Found], left_out: int) -> Table:
    columns = [Column(each.title, each.right) for each in form.fields]
    if form.bar is not None:
        columns.append(Column(f"{POINTER} knee", bar=_bar_cells))
    table = Table(form.heading, tuple(columns), left_out=left_out)
    starred = False
    for row in rows:
        cells: list[Cell] = [each.cell(row) for each in form.fields]
        starred = starred or any("*" in each for each in cells if isinstance(each, str))
        if form.bar is not None:
            cells.append(Bar(form.bar(row), 1.0, POINTER if row["standing"] == "knee" else ""))
        table.add(*cells)
    table.note = form.remark if starred else ""
    return table


def _bar_cells(width: int) -> int:
    return BAR_CELLS if width < WIDE else WIDE_BAR_CELLS
