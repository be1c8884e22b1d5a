"""A judgement for GitHub Actions: annotations in the log, a table in the step's summary."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.documents.markdown import at_start
from bottleneck.gate.expectation import age_text
from bottleneck.gate.judged import LONGEST_TEXT, Judgement, State, share_of, value_text, worst_first
from bottleneck.text.safe import safe
from bottleneck.text.units import rate_text

MOST_ANNOTATIONS = 10
"""Annotations of one kind and step that GitHub shows."""
MOST_ROWS = 200
"""Rows of a table: the summary of a step may have 1 MiB."""
_LEVELS: dict[State, str] = {
    "critical": "error",
    "unknown": "error",
    "warning": "warning",
    "ok": "notice",
}


def github_text(judgement: Judgement) -> str:
    """Returns workflow commands, a line each: unmet expectations, the worst first; at most ten.

    Where all holds, one notice. No foreign text can begin a line or end a property.

    Source: GitHub's workflow commands, `::error title=...::message`; the escapes are those of
    the toolkit's command.ts.
    """
    alarms = [each for each in worst_first(judgement) if each.state != "ok"]
    if not alarms:
        return _annotation(judgement.state, "bottleneck", judgement.sentence)
    worst = alarms if len(alarms) <= MOST_ANNOTATIONS else alarms[: MOST_ANNOTATIONS - 1]
    lines = [_annotation(each.state, f"bottleneck: {each.name}", each.message) for each in worst]
    if len(alarms) > len(worst):
        note = f"{len(alarms) - len(worst)} more expectations are not met"
        lines.append(_annotation(alarms[len(worst)].state, "bottleneck", note))
    return "".join(lines)


def github_summary(judgement: Judgement) -> str:
    """Returns Markdown for $GITHUB_STEP_SUMMARY: the verdict, the expectations, the copies."""
    lines = [f"### bottleneck: {judgement.state.upper()}", "", _safe_text(judgement.sentence, 2000)]
    expected = worst_first(judgement)
    if expected:
        lines += ["", "| | expected | found | |", "|---|---|---:|---|"]
        for each in expected[:MOST_ROWS]:
            lines.append(_row((each.state.upper(), each.name, value_text(each), each.message)))
        if len(expected) > MOST_ROWS:
            lines += ["", f"and {len(expected) - MOST_ROWS} more"]
    copies = judgement.diagnosis.copies if judgement.diagnosis else ()
    if copies:
        lines += ["", "| copy | dialect | rate | limited by | confidence |"]
        lines += ["|---|---|---:|---|---:|"]
        for copy in copies[:MOST_ROWS]:
            verdict = copy.verdict
            rate = copy.bytes_per_second
            sure = "" if verdict.component == "unknown" else f"{verdict.confidence:.2f}"
            cell = "not measured" if rate is None else rate_text(rate)
            lines.append(_row((copy.copy, copy.dialect, cell, verdict.words, sure)))
    origin = list(_origin(judgement))
    if origin:
        lines += ["", ", ".join(origin)]
    return "\n".join(lines) + "\n"


def _origin(judgement: Judgement) -> Iterator[str]:
    report = judgement.report
    if report is None:
        return
    if share_of(judgement):
        yield _safe_text(share_of(judgement), LONGEST_TEXT)
    age = judgement.age_seconds
    ago = "" if age is None else f" ({age_text(age)} ago)"
    yield f"measured {_safe_text(report.started, 40)}{ago}"
    yield f"the run is {report.status}"
    version = report.tool.get("version")
    if isinstance(version, str):
        yield f"bottleneck {_safe_text(version, 40)}"


def _annotation(state: State, title: str, message: str) -> str:
    label = _data(safe(title, LONGEST_TEXT)).replace(":", "%3A").replace(",", "%2C")
    return f"::{_LEVELS[state]} title={label}::{_data(safe(message, 1000))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(_safe_text(each, LONGEST_TEXT) for each in cells)} |"


def _safe_text(text: str, longest: int) -> str:
    """Returns text that Markdown shows as it is, at a line's start too; no bar ends a cell."""
    return at_start(safe(text, longest))
