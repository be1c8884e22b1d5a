"""What `check` answers: one document on stdout in every ending, and an exit code from 0 to 3."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bottleneck.cli import documents, exits, pending
from bottleneck.cli.check_runs import Terms
from bottleneck.cli.documents import Output
from bottleneck.gate import judged, nothing_to_judge
from bottleneck.gate.judged import EXIT_CODES, Judgement
from bottleneck.report import Report
from bottleneck.reports import units
from probes.stage import Refused

FORMATS = ("text", "nagios", "junit", "openmetrics", "github", "json")
FILED = ("junit", "openmetrics", "json")
"""Formats whose files are told from a user's own by how they begin: they may be written anew."""
FIGURES = ("openmetrics", "json")
"""Formats for programs: their figures have one style."""
UNKNOWN = EXIT_CODES["unknown"]
SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class Answer:
    """In which form, and where to."""

    format: str
    file: str | None
    """None: stdout."""
    output: Output


def check_file(name: str, file: str | None) -> None:
    """Errors: Refused, "usage", where a format is none for a file."""
    if file is not None and name not in FILED:
        told = f"--output is for the formats {', '.join(FILED)}"
        raise Refused("usage", f"{told}: {name} goes to stdout, which a shell may redirect")


def give(answer: Answer, report: Report, terms: Terms, age_seconds: float) -> int:
    """Judges a report, writes all that was asked for; the exit code.

    What cannot be written is complained of, and nothing is OK then.
    """
    style: units.Style = "si" if answer.format in FIGURES else answer.output.units
    with units.shown_as(style):
        diagnosis, trouble = documents.diagnosed(report)
        judgement = terms.judge(report, diagnosis, age_seconds)
        if trouble:
            exits.complain(trouble)
            judgement = nothing_to_judge(trouble, report)
        texts = {"": rendered(judgement, answer.format)}
        done = answer.format != "github" or _summary(judgement)
        if answer.file is not None:
            done = documents.saved("--output", answer.file, lambda: texts[""]) and done
            texts[""] = judged.text(judgement)
    if "junit" in dict(answer.output.asked):
        texts["junit"] = rendered(judgement, "junit")
    diagnosis = documents.diagnosed(report)[0]
    done = documents.written(report, diagnosis, answer.output, texts) and done
    code = EXIT_CODES[judgement.state]
    code = code if done or code >= EXIT_CODES["critical"] else UNKNOWN
    pending.now().answered = code
    return code


def rendered(judgement: Judgement, name: str, share: str = "") -> str:
    """A judgement in a format; share: what was asked for, where no report tells it."""
    match name:
        case "nagios":
            from bottleneck.reports.nagios import nagios_text

            return nagios_text(judgement)
        case "junit":
            from bottleneck.reports.junit import junit_text

            return junit_text(judgement)
        case "openmetrics":
            from bottleneck.reports.openmetrics import openmetrics_text

            return openmetrics_text(judgement, share)
        case "github":
            from bottleneck.reports.github import github_text

            return github_text(judgement)
        case "json":
            return judged.to_json(judgement)
        case _:
            return judged.text(judgement)


def _summary(judgement: Judgement) -> bool:
    """The step's summary, where a GitHub runner names its file."""
    path = os.environ.get(SUMMARY)
    if not path:
        return True
    from bottleneck.reports.github import github_summary

    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(github_summary(judgement))
    except OSError as error:
        exits.complain(f"{SUMMARY} {path}: {error.strerror}; the summary is not there")
        return False
    return True


def ended(code: int, sentence: str) -> int:
    """The exit code of a `check` that came to an end in whichever way, and its answer.

    sentence: what broke it; empty: nothing did.
    """
    asked = pending.now()
    if asked.answered is not None:
        return asked.answered if code in (asked.answered, exits.DONE) else UNKNOWN
    if code == exits.DONE and not sentence:
        # --help was asked for
        return code
    why = sentence or (exits.said[-1] if exits.said else "it ended without a word")
    name, file, share = asked.option("format", "text"), asked.option("output"), asked.line.share
    if asked.redaction is not None:
        why, share = asked.redaction.text(why), asked.redaction.text(share or "")
    judgement = nothing_to_judge(why)
    try:
        text = rendered(judgement, name, share or "")
    except Exception as error:
        exits.complain(exits.of_error(error)[1])
        text = judged.text(judgement)
    if file and name in FILED and documents.saved("--output", file, lambda: text):
        text = judged.text(judgement)
    if pending.STDOUT not in asked.line.documents.values():
        documents.shown(lambda: documents.to_stdout(text))
    return UNKNOWN
