"""The drawings on the page: each with a sentence in front and its figures as a table behind it."""

from __future__ import annotations

from collections.abc import Iterable

from bottleneck.reports.html.lists import folded
from bottleneck.reports.html.markup import Markup, tag
from bottleneck.reports.html.tables import Line, table
from bottleneck.reports.plots.plot import Plot


def figures(found: Iterable[Plot]) -> Markup | None:
    """All of them, two beside each other where there is room; None: there are none."""
    shown = [figure(plot) for plot in found]
    return tag("div", *shown, class_="plots") if shown else None


def figure(plot: Plot) -> Markup:
    """One drawing; its SVG comes ready for a page from reports.plots."""
    rows = [Line(row) for row in plot.rows]
    name = f"plot-{plot.name}"
    return tag(
        "figure",
        tag("h3", plot.title, id=name),
        tag("figcaption", plot.sentence),
        Markup(plot.svg),
        folded("The figures", table(plot.title, plot.columns, rows, _figures_of(plot))),
        aria_labelledby=name,
    )


def _figures_of(plot: Plot) -> frozenset[int]:
    """Columns whose every cell begins with a digit or is empty."""
    columns = list(zip(*plot.rows, strict=False))
    return frozenset(at for at, cells in enumerate(columns) if at and _all_figures(cells))


def _all_figures(cells: tuple[str, ...]) -> bool:
    return any(cells) and all(cell[:1].isdigit() or not cell for cell in cells)
