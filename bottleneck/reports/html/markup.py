"""Elements of a page that escape what they are given: the only place where text becomes markup.

Whoever writes a page joins Markup; a plain string that is a child or an attribute is made safe and
escaped here, so that it cannot be forgotten. Elements that run or fetch something cannot be made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from bottleneck.reports.safe import safe

LONGEST_TEXT = 4000
"""Characters of one text; names that strangers chose are cut much shorter where they are shown."""
ELEMENTS = frozenset(
    (
        *("html", "head", "meta", "title", "style", "body"),
        *("header", "nav", "main", "section", "footer", "div", "span"),
        *("h1", "h2", "h3", "p", "strong", "code", "pre", "a"),
        *("ul", "ol", "li", "dl", "dt", "dd", "details", "summary", "figure", "figcaption"),
        *("table", "caption", "thead", "tbody", "tr", "th", "td"),
        *("svg", "g", "rect", "path"),
    )
)
_EMPTY = frozenset({"meta", "rect", "path"})
_ATTRIBUTE = re.compile(r"(?!on)[a-zA-Z][a-zA-Z-]*")
_REFUSED = frozenset({"style", "src", "srcset", "action", "formaction"})


class Markup(str):
    """Text that is markup already, every foreign string in it escaped."""

    __slots__ = ()


Child = str | None
Attribute = str | float | None


class MarkupError(ValueError):
    """An element or attribute that this page does not have: a slip of whoever wrote it."""


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element; children that are no Markup are made safe and escaped, None is left out.

    Attributes are named as Python allows: `class_`, `aria_label`; None is left out. An address may
    only be a place in the page itself (`#copies`). Errors: MarkupError.
    """
    if name not in ELEMENTS:
        raise MarkupError(f"no element {name!r}")
    told = "".join(
        f' {_name(each)}="{_value(each, value)}"'
        for each, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY:
        end = ">" if name == "meta" else "/>"
        return Markup(f"<{name}{told}{end}")
    return Markup(f"<{name}{told}>{together(children)}</{name}>")


def together(children: Iterable[Child]) -> Markup:
    """Several parts one after the other, each escaped that is no Markup."""
    return Markup("".join(_escaped(each) for each in children if each is not None))


def _escaped(text: str) -> str:
    return text if isinstance(text, Markup) else escape(safe(text, LONGEST_TEXT))


def _name(python_name: str) -> str:
    name = python_name.rstrip("_").replace("_", "-")
    if not _ATTRIBUTE.fullmatch(name) or name in _REFUSED:
        raise MarkupError(f"no attribute {name!r}")
    return name


def _value(name: str, value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    text = escape(safe(value, LONGEST_TEXT))
    if name in ("href", "xlink:href") and not text.startswith("#"):
        raise MarkupError("an address outside of the page")
    return text
