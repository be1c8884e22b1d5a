"""A judgement for a person and as JSON; the forms of monitoring systems are in reports/."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from bottleneck.gate.judged import EXIT_CODES, Judgement
from bottleneck.gate.judging import cap_words
from bottleneck.reports.safe import safe

SCHEMA = "copy-bottleneck/check/1"
LONGEST_SENTENCE, LONGEST_MESSAGE = 2000, 600


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
            "cap": cap_words(chosen.verdict),
            "confidence": chosen.verdict.confidence,
            "sentence": chosen.verdict.sentence,
        }
        if chosen.bytes_per_second is not None:
            found["headline"]["bytes_per_second"] = chosen.bytes_per_second
    return json.dumps(found, indent=1, allow_nan=False) + "\n"
