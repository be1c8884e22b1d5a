"""What a gate found: each expectation, whether it holds, and the worst of them; pure.

As text and as JSON here; the forms of monitoring systems are in reports/.
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
"""Characters of a name or a message: a monitoring system shows a line of it."""
State = Literal["ok", "warning", "critical", "unknown"]
EXIT_CODES: dict[State, int] = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
"""Of Nagios' plugins."""
ORDER: tuple[State, ...] = ("critical", "unknown", "warning", "ok")
"""The worst first."""


@dataclass(frozen=True)
class Judged:
    """One expectation of a report, held against it."""

    name: str
    """As it was asked for: `pull.uncached >= 80 MB/s`."""
    metric: str
    """What it speaks of, in ASCII without blanks: `pull.uncached`, `tcp.push`, `cap`."""
    state: State
    message: str
    """One sentence: what was found, which component is behind it, or why nothing is known."""
    value: float | None = None
    """What was found, in the unit's base; None: not measured, or no number."""
    unit: Literal["bytes_per_second", "seconds", "ratio", ""] = ""
    warning: str = ""
    """The range that is no warning, as Nagios writes it; empty: none."""
    critical: str = ""

    @property
    def is_skipped(self) -> bool:
        """Whether it is of a test that was not made, and of which nothing was expected."""
        nothing = self.value is None and not (self.warning or self.critical)
        return nothing and bool(self.unit) and "failed: " not in self.message


@dataclass(frozen=True)
class Judgement:
    """A report judged: what `check` says, in whichever format."""

    state: State
    """The worst of all; "unknown" ranks below "critical" and above "warning"."""
    sentence: str
    """One line for a person: the worst expectation, or what all of them found."""
    judged: tuple[Judged, ...]
    report: Report | None
    """None: there is none to be judged; the sentence says why."""
    diagnosis: Diagnosis | None
    age_seconds: float | None = None
    """Since the report's start; None: there is no report."""


def text(judgement: Judgement) -> str:
    """The state with its sentence, then a line for each expectation; foreign text is made safe."""
    lines = [f"BOTTLENECK {judgement.state.upper()} - {safe(judgement.sentence, LONGEST_SENTENCE)}"]
    for each in judgement.judged:
        if each.metric == "run" and each.message == judgement.sentence:
            continue
        name, message = (safe(text, LONGEST_MESSAGE) for text in (each.name, each.message))
        lines.append(f"{each.state.upper():8}  {name.rstrip(':')}: {message}")
    return "\n".join(lines) + "\n"


def to_json(judgement: Judgement) -> str:
    """The document `copy-bottleneck/check/1`: bytes, seconds, ratios; ASCII alone.

    A figure that was not measured is absent.
    """
    report, diagnosis = judgement.report, judgement.diagnosis
    found: dict[str, Any] = {
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
        found["age_seconds"] = judgement.age_seconds
    if report is not None:
        told = {"started": report.started, "status": report.status}
        found["report"] = {**told, "share": report.target.get("share")}
    if diagnosis is not None and diagnosis.chosen is not None:
        chosen = diagnosis.chosen
        found["headline"] = {
            "copy": chosen.copy,
            "dialect": chosen.dialect,
            "cap": chosen.verdict.words,
            "confidence": chosen.verdict.confidence,
            "sentence": chosen.verdict.sentence,
        }
        if chosen.bytes_per_second is not None:
            found["headline"]["bytes_per_second"] = chosen.bytes_per_second
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


# -- what every form of it says alike ------------------------------------------------------------


def quantity_text(value: float, unit: str) -> str:
    """A metric's figure for a person."""
    texts: dict[str, Callable[[float], str]] = {
        "bytes_per_second": rate_text,
        "seconds": seconds_text,
    }
    return texts.get(unit, share_text)(value)


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


def share_of(judgement: Judgement) -> str:
    """The share or folder that was measured; empty: nobody knows."""
    told = judgement.report.target.get("share") if judgement.report else None
    return safe(told, LONGEST_TEXT) if isinstance(told, str) else ""
