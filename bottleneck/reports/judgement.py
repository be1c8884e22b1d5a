"""What every form of a judgement says alike: its order, a figure in words, the cap behind it."""

from __future__ import annotations

from datetime import UTC, datetime

from bottleneck.analysis.finding import Verdict
from bottleneck.gate.judged import Judged, Judgement
from bottleneck.report import Report
from bottleneck.reports.safe import safe
from bottleneck.reports.units import percent_text, rate_text, seconds_text

LONGEST_TEXT = 300
"""Characters of a name or a message: a monitoring system shows a line of it."""
_ORDER = {"critical": 0, "unknown": 1, "warning": 2, "ok": 3}


def worst_first(judgement: Judgement) -> list[Judged]:
    """The expectations, the worst first; in the order that they were asked for otherwise."""
    return sorted(judgement.judged, key=lambda each: _ORDER[each.state])


def value_text(judged: Judged) -> str:
    """What was found, for a person: `70 MB/s`, `12 ms`, `3 %`; empty: no number."""
    if judged.value is None:
        return ""
    match judged.unit:
        case "bytes_per_second":
            return rate_text(judged.value)
        case "seconds":
            return seconds_text(judged.value)
        case "ratio":
            return percent_text(judged.value)
        case _:
            return f"{judged.value:g}"


def verdict_of(judgement: Judgement, judged: Judged) -> Verdict | None:
    """The verdict on the copy that an expectation speaks of; None: it speaks of no copy."""
    if judgement.diagnosis is None:
        return None
    chosen = judgement.diagnosis.chosen
    copies = [] if chosen is None else [chosen]
    copies += judgement.diagnosis.copies
    name, _, dialect = judged.metric.partition("@")
    for copy in copies:
        if name == "headline" or copy.copy == name and dialect in ("", copy.dialect):
            return copy.verdict
    return None


def cap_words(verdict: Verdict) -> str:
    """Component, side and cause as one word: `disk/server/read`, `unknown/inconclusive`."""
    return "/".join(each for each in (verdict.component, verdict.side, verdict.cause) if each)


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
