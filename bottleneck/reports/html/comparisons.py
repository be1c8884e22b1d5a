"""What was compared: the sentences, and behind each kind the figures that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.reports.comparisons import TABLES
from bottleneck.reports.html.lists import block, folded, points
from bottleneck.reports.html.markup import Markup, tag, together
from bottleneck.reports.html.tables import Line, table
from bottleneck.reports.table import Table


def comparisons(diagnosis: Diagnosis) -> Markup | None:
    """A block for each kind of comparison; None: there is none."""
    blocks = [
        _block(about, list(found))
        for about, found in groupby(diagnosis.comparisons, key=lambda each: each.about)
    ]
    return tag("div", *blocks, class_="columns") if any(blocks) else None


def _block(about: str, found: Sequence[Comparison]) -> Markup | None:
    shown = TABLES[about]
    sentences = points(each.sentence for each in found)
    return block(shown.heading, sentences, folded("The figures", _figures(shown, found)))


def _figures(shown: Table, found: Sequence[Comparison]) -> Markup | None:
    rows = [row for each in found for row in each.rows]
    lines = list(_lines(shown, rows))
    starred = any("*" in (cell or "") for line in lines for cell in line.cells)
    remark = shown.remark if starred else ""
    whole = table(shown.heading, shown.titles, lines, shown.right)
    return together((whole, tag("p", remark, class_="note small") if remark else None))


def _lines(shown: Table, rows: Sequence[dict[str, object]]) -> Iterator[Line]:
    for row in rows:
        yield Line(tuple(text or None for text in shown.cells(row)))
