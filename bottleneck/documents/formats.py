"""The formats of a report that a run or `explain` writes: a module and a word each.

A format's module has `document(report, diagnosis)`, the whole text; it is loaded where it
is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bottleneck.analysis.finding import Diagnosis
    from bottleneck.report.report import Report


@dataclass(frozen=True)
class Format:
    """A format of reports."""

    name: str
    """Name of its option and for --format."""
    module: str
    """Module in this package; empty: the report itself."""
    help: str
    metavar: str = "FILE"


FORMATS = (
    Format("json", "", "Write the report as JSON to FILE ('-': stdout)."),
    Format("html", "html", "Write the report as one HTML page to FILE."),
    Format(
        "ticket",
        "ticket",
        "Write one page of Markdown for a ticket to FILE; a run writes its report beside it.",
    ),
    Format("junit", "junit", "Write the copies as JUnit XML to FILE."),
    Format("csv", "rows", "Write one row of figures for each test to FILE, as CSV."),
)
KINDS = tuple(each.name for each in FORMATS)
ALL = "all"
_NAMES = "copies time limits evidence disks network smb small-files settings measurements skipped"
SECTIONS = (*_NAMES.split(), ALL)
"""Sections of a diagnosis, in the order in which console.py shows them."""


def text_of(kind: str, report: Report, diagnosis: Diagnosis) -> str:
    """Returns a document of one of KINDS."""
    module = next(each.module for each in FORMATS if each.name == kind)
    text: str = import_module(f"bottleneck.documents.{module}").document(report, diagnosis)
    return text
