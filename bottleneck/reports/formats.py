"""The formats of a report that a run or `explain` writes: a module and a word each.

A format's module has `document(shown)`, the whole text; it is loaded where it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bottleneck.analysis.finding import Diagnosis
    from bottleneck.report import Report
    from bottleneck.trend import Trend


@dataclass(frozen=True)
class Format:
    """One of them."""

    name: str
    """Of its option, and after --format."""
    module: str
    """In this package."""
    help: str


FORMATS = (
    Format("json", "stored", "Also write the report there; - is stdout alone."),
    Format("html", "html", "Also write the report as one page for a browser."),
    Format("ticket", "ticket", "Also write one page of Markdown for a ticket."),
    Format("junit", "junit", "Also write the copies as JUnit XML."),
    Format("csv", "rows", "Also write a row of figures for each step, as CSV."),
)
KINDS = tuple(each.name for each in FORMATS)


@dataclass(frozen=True)
class Shown:
    """What a document shows."""

    report: Report
    diagnosis: Diagnosis
    trends: tuple[Trend, ...] = ()


def text_of(kind: str, shown: Shown) -> str:
    """A document of one of KINDS."""
    module = next(each.module for each in FORMATS if each.name == kind)
    text: str = import_module(f"bottleneck.reports.{module}").document(shown)
    return text
