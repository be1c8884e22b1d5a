"""What every form of a judgement says alike: its order, a figure in words, the cap behind it."""

from __future__ import annotations

from datetime import UTC, datetime

from bottleneck.analysis.finding import Verdict
from bottleneck.gate.judged import Judged, Judgement
from bottleneck.gate.judging import ORDER, quantity_text
from bottleneck.report import Report
from bottleneck.safe import safe

LONGEST_TEXT = 300
"""Characters of a name or a message: a monitoring system shows a line of it."""


def worst_first(judgement: Judgement) -> list[Judged]:
    """The expectations, the worst first; in the order that they were asked for otherwise."""
    return sorted(judgement.judged, key=lambda each: ORDER.index(each.state))


def value_text(judged: Judged) -> str:
    """What was found, for a person: `70 MB/s`, `12 ms`, `3 %`; empty: no number."""
    if judged.value is None:
        return ""
    return quantity_text(judged.value, judged.unit) if judged.unit else f"{judged.value:g}"


def verdict_of(judgement: Judgement, judged: Judged) -> Verdict | None:
    """The verdict on the copy that an expectation speaks of; None: it speaks of no copy."""
    if judgement.diagnosis is None:
        return None
    chosen = judgement.diagnosis.chosen
    copies = [] if chosen is None else [chosen]
    copies += judgement.diagnosis.copies
    name, _, dialect = judged.metric.removeprefix("cap.").partition("@")
    for copy in copies:
        if name in ("headline", "cap") or copy.copy == name and dialect in ("", copy.dialect):
            return copy.verdict
    return None


def started_utc(report: Report) -> datetime | None:
    """When a run began; None: its time has no offset, or lies beyond the calendar."""
    try:
        told = datetime.fromisoformat(report.started)
        return told.astimezone(UTC) if told.tzinfo else None
    except (OverflowError, ValueError):
        return None


def share_of(judgement: Judgement) -> str:
    """The share or folder that was measured; empty: nobody knows."""
    told = judgement.report.target.get("share") if judgement.report else None
    return safe(told, LONGEST_TEXT) if isinstance(told, str) else ""
