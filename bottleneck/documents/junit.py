"""A judgement as JUnit XML, which Jenkins, GitLab and most other CI systems show."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from bottleneck.analysis.finding import Diagnosis
from bottleneck.gate.judged import LONGEST_TEXT, Judgement, Ruling, share_of, value_text, verdict_of
from bottleneck.gate.judging import judge
from bottleneck.report.report import Report, started_utc
from bottleneck.text.safe import safe

LONGEST_PROPERTY = 200


def document(report: Report, diagnosis: Diagnosis) -> str:
    """Returns a report as JUnit XML, a case for each copy; without expectations none fails."""
    return junit_text(judge(report, diagnosis))


def junit_text(judgement: Judgement) -> str:
    """Returns the whole XML document: one suite, one case an expectation.

    A case fails where its expectation does not hold (type `warning` or `critical`), errs where
    that is unknown, and is skipped where nothing was asked and nothing measured. Times: the suite
    lasts as long as its run did; cases have none, no stage was measured for one alone.

    What XML 1.0 forbids (section 2.2) `safe` has escaped: controls, surrogates, noncharacters.

    Source: junit-10.xsd of Jenkins' xunit plugin.
    """
    suite: Any = TestSuite(f"bottleneck {share_of(judgement)}".rstrip())
    for name, value in _properties(judgement):
        suite.add_property(name, value)
    classname = re.sub(r"\W+", "_", share_of(judgement)).strip("_") or "check"
    # A judgement of nothing is a case too: an empty suite looks like a pass.
    overall = Ruling("check", "check", judgement.state, judgement.sentence)
    for ruling in judgement.judged or (overall,):
        suite.append(_case(judgement, ruling, f"bottleneck.{classname}"))
    document: Any = JUnitXml("bottleneck")
    document.append(suite)
    document.update_statistics()
    for each in (suite, document):
        # The sum of the cases' times, and they have none.
        each._elem.attrib.pop("time", None)
        if judgement.report is not None:
            each._elem.set("time", f"{judgement.report.elapsed_seconds:.3f}")
    if judgement.report is not None:
        started = started_utc(judgement.report)
        if started is not None:
            suite.timestamp = started.replace(tzinfo=None).isoformat(timespec="seconds")
        if judgement.report.client is not None:
            suite.hostname = safe(judgement.report.client.name, LONGEST_PROPERTY)
    # The schema's root has no such count.
    document._elem.attrib.pop("skipped", None)
    written = io.BytesIO()
    document.write(written, pretty=True)
    return written.getvalue().decode("utf-8").rstrip() + "\n"


def _case(judgement: Judgement, ruling: Ruling, classname: str) -> TestCase:
    case = TestCase(safe(ruling.name, LONGEST_TEXT), classname)
    message = safe(ruling.message, LONGEST_TEXT)
    match ruling.state:
        case "ok":
            verdict = verdict_of(judgement, ruling)
            reasons = [] if verdict is None else [safe(verdict.sentence, LONGEST_TEXT)]
            case.system_out = "\n".join([message, *reasons])
        case "unknown" if ruling.is_skipped:
            case.result = [Skipped(message)]
        case "unknown":
            case.result = [Error(message, "unknown")]
        case state:
            failure = Failure(message, state)
            failure.text = "\n".join(_failure_lines(judgement, ruling))
            case.result = [failure]
    return case


def _failure_lines(judgement: Judgement, ruling: Ruling) -> Iterator[str]:
    """Yields the details of a case: the figure, the expectation, and the component behind it."""
    yield safe(ruling.message, LONGEST_TEXT)
    yield f"expected: {safe(ruling.name, LONGEST_TEXT)}"
    if ruling.value is not None:
        yield f"found: {value_text(ruling)}"
    verdict = verdict_of(judgement, ruling)
    if verdict is not None:
        yield f"limited by: {verdict.words}, confidence {verdict.confidence:.2f}"
        yield safe(verdict.sentence, LONGEST_TEXT)


def _properties(judgement: Judgement) -> Iterator[tuple[str, str]]:
    yield "state", judgement.state
    yield "sentence", safe(judgement.sentence, LONGEST_TEXT)
    report = judgement.report
    if report is None:
        return
    yield "share", share_of(judgement)
    yield "started", safe(report.started, 40)
    yield "status", report.status
    for name, version in report.tool.items():
        if isinstance(version, str):
            yield f"tool.{safe(name, 40)}", safe(version, LONGEST_PROPERTY)
    if judgement.diagnosis is not None:
        yield "summary", safe(judgement.diagnosis.summary, 2000)
