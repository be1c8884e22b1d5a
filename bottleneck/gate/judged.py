"""What a gate found: each expectation, whether it holds, and the worst of them; pure.

As text and as JSON here; the forms of monitoring systems are in reports/.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bottleneck.analysis.finding import Diagnosis
from bottleneck.report import Report
from bottleneck.safe import safe

SCHEMA = "copy-bottleneck/check/1"
LONGEST_SENTENCE, LONGEST_MESSAGE = 2000, 600
State = Literal["ok", "warning", "critical", "unknown"]
EXIT_CODES: dict[State, int] = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
"""Of Nagios' plugins."""


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
        message = safe(each.message, LONGEST_MESSAGE)
        lines.append(f"{each.state.upper():8}  {safe(each.name, LONGEST_MESSAGE)}: {message}")
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
