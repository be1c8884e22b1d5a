"""What `check` is told to expect, how often it measures, and what it answers in every ending."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import ParamSpec, TypeVar

from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli import command_line, documents, exits, loading, running
from bottleneck.cli.documents import Output
from bottleneck.cli.options import Expected, Time
from bottleneck.gate import expectation, judged
from bottleneck.gate.baseline import ENOUGH_RUNS, suspects, together
from bottleneck.gate.expectation import Expectation
from bottleneck.gate.judged import EXIT_CODES, Judgement
from bottleneck.gate.judging import judge, nothing_to_judge
from bottleneck.gate.metrics import ExpectationError
from bottleneck.gate.pooled import pooled
from bottleneck.report.report import Report
from bottleneck.run import plan as plans
from bottleneck.text import units
from probes.core.records import Access
from probes.core.stage import Refused
from probes.system.platform import os

T = TypeVar("T")
P = ParamSpec("P")
EACH_SECONDS = 20.0
"""Of one run, --quick's: with less not all four copies are reached on a usual path."""
MOST_REPEATED = 20
SLACK = 1.1
"""A further run may take so much longer than the one before."""
GOOD_CODES = (exits.DONE, exits.INCOMPLETE)


@dataclass(frozen=True)
class Terms:
    """What a report is judged by: those arguments of judge() that the options set."""

    expectations: tuple[Expectation, ...]
    baselines: tuple[Report, ...]
    tolerance: float
    max_age_seconds: float | None
    verified: bool = False
    """Whether only copies with a verified source count."""

    @property
    def asked(self) -> bool:
        """Whether anything is expected at all."""
        return bool(self.expectations or self.baselines)

    def shown_by(self, output: Output) -> Terms:
        """The same with the names in the baselines as the report's own are shown."""
        return replace(self, baselines=tuple(map(output.showable, self.baselines)))

    def judge(self, report: Report, diagnosis: Diagnosis, age_seconds: float) -> Judgement:
        """A report judged by them."""
        return judge(report, diagnosis, age_seconds=age_seconds, **vars(self))


def terms(expected: Expected) -> Terms:
    """The options, read.

    Errors: Refused, "usage": one is not what it has to be, or the baseline is no report.
    """
    found: list[Expectation] = []
    found += [_read("--warn", expectation.limit, e, "warning") for e in expected.warn or ()]
    found += [_read("--crit", expectation.limit, e, "critical") for e in expected.crit or ()]
    found += [_read("--expect-cap", expectation.cap, e) for e in expected.expect_cap or ()]
    baseline, age = expected.baseline, expected.max_age
    return Terms(
        tuple(found),
        () if baseline is None else tuple(loading.each_of(baseline)),
        _read("--tolerance", expectation.share, expected.tolerance),
        None if age is None else _read("--max-age", expectation.age, age),
        expected.verified,
    )


def _read(option: str, read: Callable[P, T], *told: P.args, **more: P.kwargs) -> T:
    try:
        return read(*told, **more)
    except ExpectationError as error:
        raise Refused("usage", f"{option}: {error}") from None


@dataclass(frozen=True)
class Plan:
    """The runs of one check."""

    total_seconds: float
    each_seconds: float
    least: int
    most: int


def plan(wanted: Time, repeat: int, terms: Terms) -> Plan:
    """How many runs, and how long each may take.

    Errors: Refused, "usage": options that exclude each other, or numbers that cannot be.
    """
    if not 1 <= repeat <= MOST_REPEATED:
        raise Refused("usage", f"--repeat: must be from 1 to {MOST_REPEATED}")
    usual = ENOUGH_RUNS if terms.baselines else 1
    default = EACH_SECONDS * max(repeat, usual)
    total = running.budget_seconds(wanted, default)
    most = max(repeat, ENOUGH_RUNS if terms.asked else 1)
    # Who asks for a thorough run wants one, not several shorter ones.
    each = total if wanted.thorough else min(total, max(EACH_SECONDS, total / most))
    return Plan(total, each, repeat, most)


def measured(
    chosen: plans.Options, access: Access, output: Output, planned: Plan, terms: Terms
) -> Report:
    """The report of all runs together; interrupts must be held.

    A first run that breaks is told in the report's notes and by its status. A later one that does
    leaves what was known before it.
    """
    began = time.monotonic()
    # The documents are of all runs, and come at the end.
    quietly = replace(output, asked=())
    reports: list[Report] = []
    while True:
        start = time.monotonic()
        known, _, code = running.measured(chosen, access, quietly)
        if code not in GOOD_CODES:
            reports += [] if reports and code != exits.INTERRUPTED else [known]
            break
        reports.append(known)
        now = time.monotonic()
        left = planned.total_seconds - (now - began)
        if not _again(reports, planned, terms) or left < SLACK * (now - start):
            break
    return pooled(reports)


def _again(reports: list[Report], planned: Plan, terms: Terms) -> bool:
    """Whether one more run is to be made, if there is time."""
    if len(reports) < planned.least:
        return True
    if len(reports) >= planned.most or not terms.asked:
        return False
    known = pooled(reports)
    diagnosis = documents.diagnosed(known)[0]
    judgement = terms.judge(known, diagnosis, 0.0)
    if any(each.state in ("warning", "critical") for each in judgement.judged):
        return True
    return bool(terms.baselines) and bool(
        suspects(known, diagnosis, together(terms.baselines, known))
    )


DOCUMENTS = ("nagios", "junit", "openmetrics", "github")
"""Formats that are a module each, loaded where they are asked for."""
FILED = ("junit", "openmetrics", "json")
"""Formats whose files are told from a user's own by how they begin: they may be written anew."""
FIGURES = ("openmetrics", "json")
"""Formats for programs: their figures have one style."""
UNKNOWN = EXIT_CODES["unknown"]
SUMMARY = "GITHUB_STEP_SUMMARY"


def check_file(name: str, file: str | None) -> None:
    """Errors: Refused, "usage", where a format is none for a file."""
    if file is not None and name not in FILED:
        told = f"--format must be one of {', '.join(FILED)}; redirect stdout instead"
        raise Refused("usage", f"--output: {told}")


def give(report: Report, terms: Terms, form: str, file: str | None, output: Output) -> int:
    """Judges a report, writes all that was asked for, into a file or on stdout; the exit code.

    What cannot be written is complained of, and nothing is OK then.
    """
    style: units.Style = "si" if form in FIGURES else output.units
    with units.shown_as(style):
        diagnosis, trouble = documents.diagnosed(report)
        judgement = terms.judge(report, diagnosis, loading.age_seconds(report))
        if trouble:
            exits.complain(trouble)
            judgement = nothing_to_judge(trouble, report)
        texts = {"": rendered(judgement, form)}
        done = form != "github" or _summary(judgement)
        if file is not None:
            done = documents.saved("--output", file, lambda: texts[""]) and done
            texts[""] = judged.text(judgement)
    if "junit" in dict(output.asked):
        texts["junit"] = rendered(judgement, "junit")
    diagnosis = documents.diagnosed(report)[0]
    done = documents.written(report, diagnosis, output, texts) and done
    code = EXIT_CODES[judgement.state]
    code = code if done or code >= EXIT_CODES["critical"] else UNKNOWN
    command_line.now().exit_code = code
    return code


def rendered(judgement: Judgement, name: str, share: str = "") -> str:
    """A judgement in a format; share: what was asked for, where no report tells it."""
    if name not in DOCUMENTS:
        return judged.to_json(judgement) if name == "json" else judged.text(judgement)
    write = getattr(import_module(f"bottleneck.documents.{name}"), f"{name}_text")
    # Of a check that found no report this format alone needs to know what was asked for.
    text: str = write(judgement, share) if name == "openmetrics" else write(judgement)
    return text


def _summary(judgement: Judgement) -> bool:
    """The step's summary, where a GitHub runner names its file."""
    path = os.environ.get(SUMMARY)
    if not path:
        return True
    from bottleneck.documents.github import github_summary

    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o666), "a", encoding="utf-8") as file:
            file.write(github_summary(judgement))
    except OSError as error:
        exits.complain(f"{SUMMARY} {path}: {error.strerror}; the summary was not written")
        return False
    return True


def ended(code: int, sentence: str) -> int:
    """The exit code of a `check` that came to an end in whichever way, and its answer.

    sentence: what broke it; empty: nothing did.
    """
    asked = command_line.now()
    if asked.exit_code is not None:
        return asked.exit_code if code in (asked.exit_code, exits.DONE) else UNKNOWN
    if code == exits.DONE and not sentence:
        # --help was asked for
        return code
    why = sentence or (exits.said[-1] if exits.said else "the run ended without a message")
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
    if command_line.STDOUT not in asked.line.documents.values():
        documents.shown(lambda: documents.to_stdout(text))
    return UNKNOWN
