"""The expectations of `check`, the number of its runs, and its answer in every ending."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import ParamSpec, TypeVar

from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli import command_line, documents, exits, loading, measuring
from bottleneck.cli.documents import Output
from bottleneck.cli.options import Expectations, Time
from bottleneck.gate import expectation, judged
from bottleneck.gate.baseline import ENOUGH_RUNS, suspects, together
from bottleneck.gate.expectation import Expectation
from bottleneck.gate.judged import EXIT_CODES, Judgement
from bottleneck.gate.judging import judge, nothing_to_judge
from bottleneck.gate.metrics import ExpectationError
from bottleneck.gate.pooled import pooled_report
from bottleneck.report.report import Report
from bottleneck.run import plan as plans
from bottleneck.text import units
from probes.core.records import Access
from probes.core.stage import Refused
from probes.system.platform import os

T = TypeVar("T")
P = ParamSpec("P")
EACH_SECONDS = 20.0
"""Seconds of one run, as --quick: with less not all four copies are reached on a usual path."""
MOST_REPEATED = 20
SLACK = 1.1
"""Duration of a further run over that of the one before, at most."""


@dataclass(frozen=True)
class Terms:
    """Arguments of judge() that the options set."""

    expectations: tuple[Expectation, ...]
    baselines: tuple[Report, ...]
    tolerance: float
    max_age_seconds: float | None
    verified: bool = False
    """Whether only copies with a verified source count."""

    @property
    def has_expectations(self) -> bool:
        """Whether anything is expected at all."""
        return bool(self.expectations or self.baselines)

    def shown_by(self, output: Output) -> Terms:
        """Returns the terms with the names in the baselines shown or hidden as the report's own."""
        return replace(self, baselines=tuple(map(output.showable, self.baselines)))

    def judge(self, report: Report, diagnosis: Diagnosis, age_seconds: float) -> Judgement:
        return judge(report, diagnosis, age_seconds=age_seconds, **vars(self))


def terms(expected: Expectations) -> Terms:
    """Returns the terms that the options set.

    Errors: Refused, "usage": one is not what it has to be, or the baseline is no report.
    """
    expectations: list[Expectation] = []
    expectations += [_read("--warn", expectation.limit, e, "warning") for e in expected.warn or ()]
    expectations += [_read("--crit", expectation.limit, e, "critical") for e in expected.crit or ()]
    expectations += [_read("--expect-cap", expectation.cap, e) for e in expected.expect_cap or ()]
    baseline, age = expected.baseline, expected.max_age
    return Terms(
        tuple(expectations),
        () if baseline is None else tuple(loading.each_of(baseline)),
        _read("--tolerance", expectation.share, expected.tolerance),
        None if age is None else _read("--max-age", expectation.age, age),
        expected.verified,
    )


def _read(option: str, read: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    try:
        return read(*arguments, **keywords)
    except ExpectationError as error:
        raise Refused("usage", f"{option}: {error}") from None


@dataclass(frozen=True)
class Plan:
    """The runs of one check."""

    total_seconds: float
    each_seconds: float
    least_runs: int
    most_runs: int


def plan(times: Time, repeat: int, terms: Terms) -> Plan:
    """Returns how many runs to make, and how long each may take.

    Errors: Refused, "usage": options that exclude each other, or numbers that cannot be.
    """
    if not 1 <= repeat <= MOST_REPEATED:
        raise Refused("usage", f"--repeat: must be from 1 to {MOST_REPEATED}")
    default = EACH_SECONDS * max(repeat, ENOUGH_RUNS if terms.baselines else 1)
    total = measuring.budget_seconds(times, default)
    most_runs = max(repeat, ENOUGH_RUNS if terms.has_expectations else 1)
    # Who asks for a thorough run wants one, not several shorter ones.
    each = total if times.thorough else min(total, max(EACH_SECONDS, total / most_runs))
    return Plan(total, each, repeat, most_runs)


def measure_all(
    setup: plans.Options, access: Access, output: Output, plan: Plan, terms: Terms
) -> Report:
    """Returns the report of all runs together; interrupts must be deferred.

    A first run that breaks is told in the report's notes and by its status; after a later one the
    reports of those before it are used.
    """
    began = time.monotonic()
    # The documents are of all runs, and come at the end.
    quietly = replace(output, files=())
    reports: list[Report] = []
    while True:
        start = time.monotonic()
        report, _, code = measuring.measure(setup, access, quietly)
        if code not in (exits.DONE, exits.INCOMPLETE):
            reports += [] if reports and code != exits.INTERRUPTED else [report]
            break
        reports.append(report)
        now = time.monotonic()
        rest = plan.total_seconds - (now - began)
        if not _needs_more(reports, plan, terms) or rest < SLACK * (now - start):
            break
    return pooled_report(reports)


def _needs_more(reports: list[Report], plan: Plan, terms: Terms) -> bool:
    """Whether one more run is to be made, if there is time."""
    if len(reports) < plan.least_runs:
        return True
    if len(reports) >= plan.most_runs or not terms.has_expectations:
        return False
    report = pooled_report(reports)
    diagnosis = documents.safe_diagnosis(report)[0]
    judgement = terms.judge(report, diagnosis, 0.0)
    if any(each.state in ("warning", "critical") for each in judgement.judged):
        return True
    return bool(terms.baselines) and bool(
        suspects(report, diagnosis, together(terms.baselines, report))
    )


DOCUMENTS = ("nagios", "junit", "openmetrics", "github")
"""Formats that are a module each, loaded where they are asked for."""
FILED = ("junit", "openmetrics", "json")
"""Formats whose files are recognised by their first bytes: they may be overwritten."""
FIGURES = ("openmetrics", "json")
"""Formats for programs: their figures have one style."""
UNKNOWN = EXIT_CODES["unknown"]
SUMMARY = "GITHUB_STEP_SUMMARY"


def check_file(name: str, file: str | None) -> None:
    """Raises Refused, "usage", where a format cannot go to a file."""
    if file is not None and name not in FILED:
        text = f"--format must be one of {', '.join(FILED)}; redirect stdout instead"
        raise Refused("usage", f"--output: {text}")


def give(report: Report, terms: Terms, form: str, file: str | None, output: Output) -> int:
    """Judges a report, writes all that was asked for, and returns the exit code.

    What cannot be written is complained of, and the result is then not OK.
    """
    style: units.Style = "si" if form in FIGURES else output.units
    with units.shown_as(style):
        diagnosis, trouble = documents.safe_diagnosis(report)
        judgement = terms.judge(report, diagnosis, loading.age_seconds(report))
        if trouble:
            exits.complain(trouble)
            judgement = nothing_to_judge(trouble, report)
        texts = {"": judgement_text(judgement, form)}
        done = form != "github" or _summary(judgement)
        if file is not None:
            done = documents.save("--output", file, lambda: texts[""]) and done
            texts[""] = judged.text(judgement)
    if "junit" in dict(output.files):
        texts["junit"] = judgement_text(judgement, "junit")
    diagnosis = documents.safe_diagnosis(report)[0]
    done = documents.write_all(report, diagnosis, output, texts) and done
    code = EXIT_CODES[judgement.state]
    code = code if done or code >= EXIT_CODES["critical"] else UNKNOWN
    command_line.current().exit_code = code
    return code


def judgement_text(judgement: Judgement, name: str, share: str = "") -> str:
    """Returns a judgement in a format; share: the one asked for, where no report tells it."""
    if name not in DOCUMENTS:
        return judged.to_json(judgement) if name == "json" else judged.text(judgement)
    write = getattr(import_module(f"bottleneck.documents.{name}"), f"{name}_text")
    # Without a report this format alone needs the share's name.
    text: str = write(judgement, share) if name == "openmetrics" else write(judgement)
    return text


def _summary(judgement: Judgement) -> bool:
    """Writes the step's summary, where a GitHub runner names its file; False: it could not."""
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


def answer_end(code: int, sentence: str) -> int:
    """Answers a `check` that came to an end in any way, and returns its exit code.

    sentence: what broke it; empty: nothing did.
    """
    state = command_line.current()
    if state.exit_code is not None:
        return state.exit_code if code in (state.exit_code, exits.DONE) else UNKNOWN
    if code == exits.DONE and not sentence:
        # --help was asked for
        return code
    cause = sentence or next(reversed(exits.complaints), "the run ended without a message")
    name, file, share = state.option("format", "text"), state.option("output"), state.line.share
    if state.redaction is not None:
        cause, share = state.redaction.text(cause), state.redaction.text(share or "")
    judgement = nothing_to_judge(cause)
    try:
        text = judgement_text(judgement, name, share or "")
    except Exception as error:
        exits.complain(exits.exit_of_error(error)[1])
        text = judged.text(judgement)
    if file and name in FILED and documents.save("--output", file, lambda: text):
        text = judged.text(judgement)
    if command_line.STDOUT not in state.line.documents.values():
        documents.show(lambda: documents.to_stdout(text))
    return UNKNOWN
