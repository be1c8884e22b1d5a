"""Result of a gate: whether each expectation holds, and the worst state; pure.

Formats it as text and JSON; the formats of monitoring systems are in documents/.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bottleneck.analysis.finding import Diagnosis, Verdict
from bottleneck.report.report import Report
from bottleneck.text.safe import safe
from bottleneck.text.units import rate_text, seconds_text, share_text

SCHEMA = "copy-bottleneck/check/1"
LONGEST_SENTENCE, LONGEST_MESSAGE = 2000, 600
LONGEST_TEXT = 300
"""Characters of a name or a message: a monitoring system shows one line."""
State = Literal["ok", "warning", "critical", "unknown"]
EXIT_CODES: dict[State, int] = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
"""Exit codes of Nagios' plugins."""
ORDER: tuple[State, ...] = ("critical", "unknown", "warning", "ok")
"""States, the worst first."""


@dataclass(frozen=True)
class Ruling:
    """One expectation, compared with a report."""

    name: str
    """Expectation in words: `pull.uncached >= 80 MB/s`."""
    metric: str
    """Its metric, in ASCII without blanks: `pull.uncached`, `tcp.push`, `cap`."""
    state: State
    message: str
    """One sentence: the finding, the component behind it, or why nothing is known."""
    value: float | None = None
    """Measured figure in the unit's base; None: not measured, or no number."""
    unit: Literal["bytes_per_second", "seconds", "ratio", ""] = ""
    warning: str = ""
    """Range without a warning, in Nagios' form; empty: none."""
    critical: str = ""

    @property
    def is_skipped(self) -> bool:
        """Whether the test was not made, and nothing was expected of it."""
        nothing = self.value is None and not (self.warning or self.critical)
        return nothing and bool(self.unit) and "failed: " not in self.message


@dataclass(frozen=True)
class Judgement:
    """Answer of `check`."""

    state: State
    """Worst state; "unknown" ranks below "critical" and above "warning"."""
    sentence: str
    """One line for a person: the worst expectation, or a summary of all."""
    judged: tuple[Ruling, ...]
    report: Report | None
    """None: there is no report; the sentence says why."""
    diagnosis: Diagnosis | None
    age_seconds: float | None = None
    """Time since the report's start; None: there is no report."""


def text(judgement: Judgement) -> str:
    """Formats the state with its sentence, then a line for each expectation, made safe."""
    lines = [f"BOTTLENECK {judgement.state.upper()} - {safe(judgement.sentence, LONGEST_SENTENCE)}"]
    for each in judgement.judged:
        if each.metric == "run" and each.message == judgement.sentence:
            continue
        name, message = (safe(text, LONGEST_MESSAGE) for text in (each.name, each.message))
        lines.append(f"{each.state.upper():8}  {name.rstrip(':')}: {message}")
    return "\n".join(lines) + "\n"


def to_json(judgement: Judgement) -> str:
    """Formats the document `copy-bottleneck/check/1`: bytes, seconds, ratios; ASCII only.

    A figure that was not measured is absent.
    """
    report, diagnosis = judgement.report, judgement.diagnosis
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "state": judgement.state,
        "exit_code": EXIT_CODES[judgement.state],
        "sentence": judgement.sentence,
        "judged": [
            {name: value for name, value in asdict(each).items() if value not in (None, "")}
            for each in judgement.judged
        ],
    }
    if judgement.age_seconds is not None:
        document["age_seconds"] = judgement.age_seconds
    if report is not None:
        run = {"started": report.started, "status": report.status}
        document["report"] = {**run, "share": report.target.get("share")}
    if diagnosis is not None and diagnosis.main_copy is not None:
        headline = diagnosis.main_copy
        document["headline"] = {
            "copy": headline.copy,
            "dialect": headline.dialect,
            "cap": headline.verdict.words,
            "confidence": headline.verdict.confidence,
            "sentence": headline.verdict.sentence,
        }
        if headline.bytes_per_second is not None:
            document["headline"]["bytes_per_second"] = headline.bytes_per_second
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


# -- shared by all formats -----------------------------------------------------------------------


def quantity_text(value: float, unit: str) -> str:
    """Formats a metric's figure for a person."""
    texts: dict[str, Callable[[float], str]] = {
        "bytes_per_second": rate_text,
        "seconds": seconds_text,
    }
    return texts.get(unit, share_text)(value)


def worst_first(judgement: Judgement) -> list[Ruling]:
    """Returns the expectations, the worst first, else in their given order."""
    return sorted(judgement.judged, key=lambda each: ORDER.index(each.state))


def value_text(judged: Ruling) -> str:
    """Formats the measured figure: `70 MB/s`, `12 ms`, `3 %`; empty: no number."""
    if judged.value is None:
        return ""
    return quantity_text(judged.value, judged.unit) if judged.unit else f"{judged.value:g}"


def verdict_of(judgement: Judgement, judged: Ruling) -> Verdict | None:
    """Returns the verdict on the copy of an expectation; None: it is about no copy."""
    if judgement.diagnosis is None:
        return None
    headline = judgement.diagnosis.main_copy
    copies = [] if headline is None else [headline]
    copies += judgement.diagnosis.copies
    name, _, dialect = judged.metric.removeprefix("cap.").partition("@")
    for copy in copies:
        if name in ("headline", "cap") or copy.copy == name and dialect in ("", copy.dialect):
            return copy.verdict
    return None


def share_of(judgement: Judgement) -> str:
    """Returns the measured share or folder; empty: unknown."""
    share = judgement.report.target.get("share") if judgement.report else None
    return safe(share, LONGEST_TEXT) if isinstance(share, str) else ""
