"""The copies of a run as a grid and as a table."""

from __future__ import annotations

from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.analysis.steps import CACHES
from bottleneck.reports.html.markup import Child, Markup, tag, together
from bottleneck.reports.html.tables import Line, table, with_below
from bottleneck.reports.html.wording import between
from bottleneck.reports.safe import safe
from bottleneck.reports.units import rate_text
from bottleneck.reports.words import cap_text, confidence_text, dialect_text

NOT_MADE = "not made"
_TITLES = (
    *("copy", "dialect", "started by", "rate"),
    *("cap", "ceiling", "once lifted", "confidence"),
)
_RIGHT = frozenset({3, 5, 6})


def copies(diagnosis: Diagnosis) -> Markup:
    """Every copy: push and pull beside cached and uncached, then all of them with their caps."""
    lines = [_line(copy, copy is diagnosis.chosen) for copy in diagnosis.copies]
    whole = table("Every copy with what caps it", _TITLES, lines, _RIGHT)
    return together((_grid(diagnosis), whole))


def rate_of(copy: CopyDiagnosis) -> str:
    """Its rate, or that there is none."""
    rate = copy.bytes_per_second
    return NOT_MADE if rate is None else rate_text(rate)


def _grid(diagnosis: Diagnosis) -> Markup | None:
    rows: dict[tuple[str, str], dict[str, CopyDiagnosis]] = {}
    for copy in diagnosis.copies:
        way, _, cache = copy.copy.rpartition(".")
        rows.setdefault((way, copy.dialect), {}).setdefault(cache, copy)
    lines = [
        Line(
            (
                with_below(safe(way, 24), dialect_text(dialect)),
                *(_cell(of_caches.get(cache), diagnosis) for cache in CACHES),
            )
        )
        for (way, dialect), of_caches in sorted(rows.items(), key=lambda row: row[0][0])
    ]
    caption = "Rates and caps by direction, and by whether the sender had the file in RAM"
    return table(caption, ("", *(f"source {cache}" for cache in CACHES)), lines)


def _cell(copy: CopyDiagnosis | None, diagnosis: Diagnosis) -> Child:
    if copy is None:
        return None
    name = "cell chosen" if copy is diagnosis.chosen else "cell"
    cap = None if copy.bytes_per_second is None else cap_text(copy.verdict)
    return tag("div", with_below(rate_of(copy), cap), class_=name)


def _line(copy: CopyDiagnosis, chosen: bool) -> Line:
    after, ceiling = copy.predicted_bytes_per_second, copy.verdict.ceiling_bytes_per_second
    named = copy.verdict.component != "unknown"
    cells = (
        safe(copy.copy, 40),
        dialect_text(copy.dialect),
        copy.initiator,
        rate_of(copy),
        cap_text(copy.verdict),
        None if ceiling is None else rate_text(ceiling),
        None if after is None else between(after.low, after.high),
        confidence_text(copy.verdict) if named else None,
    )
    return Line(cells, "chosen" if chosen else "")
