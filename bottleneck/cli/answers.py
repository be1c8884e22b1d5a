"""What `check` answers: one document on stdout in every ending, and an exit code from 0 to 3."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bottleneck import document_file
from bottleneck.cli import debt, documents, exits
from bottleneck.cli.documents import Output
from bottleneck.cli.expected import Terms
from bottleneck.gate import nothing_to_judge, told
from bottleneck.gate.judged import EXIT_CODES, Judgement
from bottleneck.report import Report
from bottleneck.reports import units
from probes.stage import Refused

if TYPE_CHECKING:
    from bottleneck.trend import Trend

FORMATS = ("text", "nagios", "junit", "openmetrics", "github", "json")
FILED = ("junit", "openmetrics", "json")
"""Formats whose files are told from a user's own by how they begin: they may be written anew."""
FIGURES = ("openmetrics", "json")
"""Formats for programs: their figures have one style."""
UNKNOWN = EXIT_CODES["unknown"]
SUMMARY = "GITHUB_STEP_SUMMARY"

_given: list[int] = []
"""The exit code of the answer that stdout has."""
_remembered: list[tuple[str, str, str]] = []
"""Format, file and share of a command line that was understood, wherever they were set."""


@dataclass(frozen=True)
class Answer:
    """In which form, and where to."""

    format: str
    file: str | None
    """None: stdout."""
    output: Output


def check_format(name: str, file: str | None) -> None:
    """Errors: Refused, "usage", where there is no such format, or none for a file."""
    if name not in FORMATS:
        raise Refused("usage", f"--format {name!r} is none of {', '.join(FORMATS)}")
    if file is not None and name not in FILED:
        told = f"--output is for the formats {', '.join(FILED)}"
        raise Refused("usage", f"{told}: {name} goes to stdout, which a shell may redirect")


def remember(name: str, file: str | None, target: str | None) -> None:
    """Notes how to answer, before anything can break."""
    _remembered[:] = [(name if name in FORMATS else "text", file or "", _share(target or ""))]


def give(answer: Answer, report: Report, terms: Terms, age_seconds: float) -> int:
    """Judges a report, writes all that was asked for; the exit code.

    What cannot be written is complained of, and nothing is OK then.
    """
    debt.owed.paid()
    style: units.Style = "si" if answer.format in FIGURES else answer.output.units
    with units.shown_as(style):
        diagnosis, trouble = documents.diagnosed(report)
        judgement = terms.judge(report, diagnosis, age_seconds)
        if trouble:
            exits.complain(trouble)
            judgement = nothing_to_judge(trouble, report)
        text = rendered(judgement, answer.format)
        beside = told.text(judgement)
    done = _documents(report, judgement, answer.output)
    if answer.format == "github":
        done = _summary(judgement, style) and done
    if answer.file is not None:
        done = _saved(answer.file, text) and done
        text = beside
    if answer.output.on_stdout is None:
        done = documents.shown(lambda: documents.to_stdout(text)) and done
    code = EXIT_CODES[judgement.state]
    _given.append(code if done or code >= EXIT_CODES["critical"] else UNKNOWN)
    return _given[-1]


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
            return told.to_json(judgement)
        case _:
            return told.text(judgement)


def _documents(report: Report, judgement: Judgement, output: Output) -> bool:
    """The report in its documents, and in the history; whether all could be written."""
    diagnosis = documents.diagnosed(report)[0]
    trends: tuple[Trend, ...] = ()
    done = True
    if output.history is not None and report.entries:
        from bottleneck import history

        try:
            trends = history.keep(output.history, report, diagnosis)
        except history.HistoryError as error:
            exits.complain(f"--history {error}; the answer is the same without")
            done = False
    for kind, path in output.asked:
        if kind == "junit":
            text = rendered(judgement, kind)
        else:
            text = documents.text_of(kind, report, diagnosis, output.units, trends)
        if path == documents.STDOUT:
            done = documents.shown(partial(documents.to_stdout, text)) and done
        else:
            done = _saved(path, text, f"--{kind}") and done
    return done


def _saved(path: str, text: str, option: str = "--output") -> bool:
    try:
        document_file.write(path, text)
    except OSError as error:
        exits.complain(f"{option} {path}: {error.strerror}; it is not there")
        return False
    return True


def _summary(judgement: Judgement, style: units.Style) -> bool:
    """The step's summary, where a GitHub runner names its file."""
    path = os.environ.get(SUMMARY)
    if not path:
        return True
    from bottleneck.reports.github import github_summary

    try:
        with units.shown_as(style), Path(path).open("a", encoding="utf-8") as file:
            file.write(github_summary(judgement))
    except OSError as error:
        exits.complain(f"{SUMMARY} {path}: {error.strerror}; the summary is not there")
        return False
    return True


def ended(arguments: list[str], code: int, sentence: str) -> int:
    """The exit code of a `check` that came to an end in whichever way, and its answer.

    sentence: what broke it; empty: nothing did.
    """
    given, remembered = list(_given), list(_remembered)
    _given.clear()
    _remembered.clear()
    if given:
        return given[-1] if code == given[-1] or code == exits.DONE else UNKNOWN
    if code == exits.DONE and not sentence:
        # --help was asked for
        return code
    why = sentence or (exits.said[-1] if exits.said else "it ended without a word")
    name, file, share = remembered[0] if remembered else _asked(arguments)
    redaction = debt.owed.redaction
    if redaction is not None:
        why, share = redaction.text(why), redaction.text(share)
    judgement = nothing_to_judge(why)
    try:
        text = rendered(judgement, name, share)
    except Exception as error:
        exits.complain(exits.of_error(error)[1])
        text = told.text(judgement)
    if file and name in FILED and _saved(file, text):
        text = told.text(judgement)
    if not debt.owed.on_stdout:
        documents.shown(lambda: documents.to_stdout(text))
    return UNKNOWN


def _asked(arguments: list[str]) -> tuple[str, str, str]:
    """Format, file and TARGET of a command line that may be wrong; what it does not tell: usual."""
    found = {"--format": "text", "--output": ""}
    share, option = "", ""
    for argument in arguments[1:]:
        name, equals, value = argument.partition("=")
        name = "--output" if name == "-o" else name
        if option:
            found[option], option = argument, ""
        elif name in found:
            if equals:
                found[name] = value
            else:
                option = name
        elif argument.startswith(("//", "\\\\", "smb:")) and not share:
            # A folder looks like any option's value: which of them it is, the parser alone knows.
            share = _share(argument)
    name = found["--format"] if found["--format"] in FORMATS else "text"
    return name, found["--output"], share


def _share(argument: str) -> str:
    """TARGET as a report names it; empty: it is none, and is not repeated."""
    if not argument:
        return ""
    from bottleneck.target import parse

    try:
        return parse(argument).name
    except Refused:
        return ""
