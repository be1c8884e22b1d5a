"""A copy, a ceiling and a figure in the words of the page."""

from __future__ import annotations

from bottleneck.analysis.finding import Ceiling, CopyDiagnosis
from bottleneck.reports.safe import safe
from bottleneck.reports.units import range_text, rate_text
from bottleneck.reports.words import dialect_text

DOUBTS = {
    "measured": "",
    "at-least": "at least ",
    "estimated": "about ",
    "inferred": "about ",
}
"""Before a ceiling's rate, by its standing."""


def copy_text(copy: CopyDiagnosis) -> str:
    """A copy by its name and dialect: `pull.uncached over SMB 3.1.1`."""
    over = {"native": "by the mount", "none": "without SMB"}.get(copy.dialect)
    return f"{safe(copy.copy, 40)} {over or f'over {dialect_text(copy.dialect)}'}"


def ceiling_text(ceiling: Ceiling) -> str:
    """Its rate with what is to be thought of it: `25.6 MB/s`, `about 1.07 GB/s`."""
    return f"{DOUBTS[ceiling.standing]}{rate_text(ceiling.bytes_per_second)}"


def between(low: float, high: float) -> str:
    """A range with the dash that print has: `24.1\u201325 MB/s`."""
    return range_text(low, high).replace("-", "\u2013")


def spread_text(low: float, high: float) -> str | None:
    """The same; None: both read alike, and there is no spread to tell."""
    told = between(low, high)
    return told if "\u2013" in told else None
