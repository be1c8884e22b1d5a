"""Lists and sections of the page: points, terms with their figures, headings, folded parts."""

from __future__ import annotations

from collections.abc import Iterable

from bottleneck.reports.html.markup import Child, Markup, tag, together
from bottleneck.reports.safe import safe

POINT_CHARACTERS = 1000
MOST_POINTS = 200


def points(lines: Iterable[str]) -> Markup | None:
    """A list; None: it has no lines. A longer one ends in how many more there are."""
    found = [safe(each, POINT_CHARACTERS) for each in lines]
    if len(found) > MOST_POINTS:
        found[MOST_POINTS:] = [f"and {len(found) - MOST_POINTS} more"]
    return tag("ul", *(tag("li", each) for each in found)) if found else None


def pairs(told: Iterable[tuple[str, Child]], name: str = "pairs") -> Markup | None:
    """Terms and what is known of them; None: nothing is."""
    items = [tag("div", tag("dt", term), tag("dd", words)) for term, words in told]
    return tag("dl", *items, class_=name) if items else None


def block(title: str, *children: Child) -> Markup | None:
    """A part of a section under its own heading; None: there is nothing in it."""
    inside = together(children)
    return tag("section", tag("h3", title), inside) if inside else None


def folded(title: str, *children: Child, opened: bool = False) -> Markup | None:
    """What opens at a click or a key, without a script; None: there is nothing in it."""
    inside = together(children)
    if not inside:
        return None
    return tag("details", tag("summary", title), inside, open="" if opened else None)
