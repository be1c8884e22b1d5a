"""The top of the page: what was found, how sure it is, and what to do first."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.report import Report
from bottleneck.reports.html.lists import pairs, points
from bottleneck.reports.html.markup import Markup, tag
from bottleneck.reports.html.wording import between, copy_text
from bottleneck.reports.safe import safe
from bottleneck.reports.units import rate_text
from bottleneck.reports.words import cap_text, confidence_text

SUMMARY_CHARACTERS = 2000
SHORTEST_HEADLINE = 24
"""Characters; a first sentence below it is part of a figure or a name."""


def verdict(report: Report, diagnosis: Diagnosis) -> Markup:
    """The sentence, the figures that it speaks of, and the first step to take."""
    chosen = diagnosis.chosen
    named = chosen is not None and chosen.verdict.component != "unknown"
    headline, rest = _sentences(safe(diagnosis.summary, SUMMARY_CHARACTERS))
    return tag(
        "section",
        tag(
            "div",
            tag("h1", headline, id="what-was-found"),
            tag("p", rest) if rest else None,
            pairs(_figures(chosen), "facts") if chosen is not None else None,
            class_="verdict" if named else "verdict open",
        ),
        _ending(report),
        None if chosen is None else _first(chosen),
        aria_labelledby="what-was-found",
        id="verdict",
    )


def _sentences(summary: str) -> tuple[str, str]:
    """The first sentence as the headline, and the others."""
    at = summary.find(". ", SHORTEST_HEADLINE)
    return (summary, "") if at < 0 else (summary[: at + 1], summary[at + 2 :])


def _figures(chosen: CopyDiagnosis) -> Iterator[tuple[str, str]]:
    yield "Copy", copy_text(chosen)
    rate = chosen.bytes_per_second
    yield "It runs at", "not made" if rate is None else rate_text(rate)
    if chosen.verdict.component == "unknown":
        yield "Cap", f"not named ({cap_text(chosen.verdict)})"
        return
    yield "Cap", cap_text(chosen.verdict)
    yield "Confidence", confidence_text(chosen.verdict)
    after = chosen.predicted_bytes_per_second
    if after is not None:
        yield "With that lifted", between(after.low, after.high)


def _ending(report: Report) -> Markup | None:
    if report.status == "complete":
        return None
    return tag("p", f"The run is {report.status}: this is what it came to.", class_="warning")


def _first(chosen: CopyDiagnosis) -> Markup | None:
    if not chosen.advice:
        return None
    first, *others = chosen.advice
    return tag(
        "div",
        tag("h2", "What to do first"),
        tag("p", first),
        points(others),
        class_="first",
    )
