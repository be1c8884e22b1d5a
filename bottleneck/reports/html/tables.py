"""Tables of the page: a caption, heads with a scope, and a region of their own to scroll in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck.reports.html.markup import Child, Markup, tag, together
from bottleneck.reports.units import count_text

NONE = "\u2013"
MOST_ROWS = 200
"""A run has tens of stages and copies; a stranger's report may have thousands."""


@dataclass(frozen=True)
class Line:
    """One row: its first cell names it."""

    cells: tuple[Child, ...]
    """None: the figure is not known."""
    mark: str = ""
    """A class of the style sheet: chosen, cap, soft."""


def table(
    caption: str,
    titles: Sequence[str],
    lines: Sequence[Line],
    right: frozenset[int] = frozenset(),
) -> Markup | None:
    """A table that scrolls by itself where the page is narrow; None: it has no rows.

    right: columns whose figures are aligned to the right. A long one ends in how many rows more
    the report has.
    """
    if not lines:
        return None
    head = tag("tr", *(_head(title, at in right) for at, title in enumerate(titles)))
    body = together(_row(line, right) for line in lines[:MOST_ROWS])
    whole = tag(
        "table", tag("caption", tag("span", caption)), tag("thead", head), tag("tbody", body)
    )
    # A region of its own, so that the keyboard reaches what lies beyond its edge.
    region = tag("div", whole, class_="scroll", role="region", aria_label=caption, tabindex="0")
    return together((region, more(len(lines) - MOST_ROWS)))


def more(count: int) -> Markup | None:
    """A line that says how much the page leaves out; None: nothing."""
    told = f"and {count_text(count)} more in the report"
    return tag("p", told, class_="note small") if count > 0 else None


def _head(title: str, right: bool) -> Markup:
    side = "right" if right else None
    # A head without a word names nothing to whoever hears the table.
    return tag("th", title, scope="col", class_=side) if title else tag("td", class_=side)


def _row(line: Line, right: frozenset[int]) -> Markup:
    first, *rest = line.cells
    cells = [tag("th", NONE if first is None else first, scope="row")]
    for at, cell in enumerate(rest, 1):
        classes = " ".join(
            word for word, fits in (("right", at in right), ("none", cell is None)) if fits
        )
        cells.append(tag("td", NONE if cell is None else cell, class_=classes or None))
    return tag("tr", *cells, class_=line.mark or None)


def with_below(words: str, below: str | None) -> Child:
    """A cell with a second, smaller line; the words alone where there is none."""
    return together((words, tag("span", below, class_="below"))) if below else words


def bar(value: float, most: float) -> Markup:
    """A bar without words, the figure stands beside it; one beyond the scale ends in an arrow."""
    beyond = value > most
    width = 93.0 if beyond else max(0.6, 100 * max(0.0, value) / most)
    arrow = tag("path", class_="fill", d="M95,0 L100,5 L95,10 Z") if beyond else None
    return tag(
        "svg",
        None if beyond else tag("rect", class_="track", width="100", height="10"),
        tag("rect", class_="fill", width=width, height="10"),
        arrow,
        class_="bar",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
