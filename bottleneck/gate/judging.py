"""Compares a report with expectations; pure.

States for a monitoring system: a limit that alarms has the state of its option (--warn, --crit). An
unexpected cap is critical if it is sure, else unknown. A metric slower than its baseline is a
warning, and critical from a third on. A missing measurement is unknown, never OK. Bytes altered on
the way are always critical.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bottleneck.analysis.doubts import is_clear
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.analysis.phrases import cap_text, stage_text
from bottleneck.analysis.unknown import ALTERED
from bottleneck.gate import baseline, metrics
from bottleneck.gate.expectation import Cap, Expectation, Limit, age_text
from bottleneck.gate.judged import ORDER, Judgement, Ruling, State, quantity_text
from bottleneck.gate.metrics import Reading
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text
from probes.core.records import Failed, Skipped

AHEAD_SECONDS = 300.0
"""Tolerated difference of two hosts' clocks; a report from later comes from a wrong clock."""
COPY_STAGES = ("smb-copy", "native-copy", "running-copy")
"""Stages that are copies, and are reported as copies."""


def judge(
    report: Report,
    diagnosis: Diagnosis,
    expectations: Sequence[Expectation] = (),
    baselines: Sequence[Report] = (),
    *,
    tolerance: float = baseline.USUAL_TOLERANCE,
    age_seconds: float | None = None,
    max_age_seconds: float | None = None,
    verified: bool = False,
) -> Judgement:
    """Returns the judgement of a report, its lines in the order of the expectations.

    Without expectations and baselines: a line for each copy, and one for each stage that failed or
    was skipped; OK if the run is complete and the headline's cap is known.

    baselines: earlier reports of the same path. tolerance: tolerated loss, a ratio. age_seconds:
    time since the report's start; beyond max_age_seconds the only line says so. verified: a copy
    whose source was not proven to be in, or out of, the sender's cache counts as not measured.
    """
    stale = _stale(age_seconds, max_age_seconds)
    if stale is not None:
        return _judgement([stale], report, diagnosis, age_seconds)
    judged = [*_run_lines(report, diagnosis)]
    if not expectations and not baselines:
        judged += [] if judged and not report.entries else [*_all(report, diagnosis)]
    else:
        readings = metrics.readings(report, diagnosis, verified)
        caps = [each for each in expectations if isinstance(each, Cap)]
        judged += _limits(expectations, readings)
        judged += [_cap(each, metrics.metric_reading(readings, each.copy)) for each in caps]
    if baselines:
        earlier = baseline.together(baselines, report)
        judged += baseline.judged_by(report, diagnosis, earlier, tolerance)
        judged += baseline.drift_lines(baselines, report, tolerance)
    return _judgement(judged, report, diagnosis, age_seconds, bool(expectations or baselines))


def nothing_to_judge(sentence: str, report: Report | None = None) -> Judgement:
    """Returns the judgement without a report: "unknown", with the reason."""
    return Judgement("unknown", sentence, (), report, None)


def _judgement(
    judged: list[Ruling],
    report: Report,
    diagnosis: Diagnosis,
    age_seconds: float | None,
    has_terms: bool = True,
) -> Judgement:
    states = {each.state for each in judged} or {"unknown"}
    worst = min(states, key=ORDER.index)
    sentence = diagnosis.summary
    if judged and (has_terms or worst != "ok"):
        # The worst line, and the number of other lines that alarm, or that hold as well.
        first = next(each for each in judged if each.state == worst)
        sentence = first.message
        if first.metric.partition("@")[0] in metrics.UNITS and first.metric not in sentence:
            sentence = f"{first.metric}: {sentence}"
        others = sum(worst == "ok" or each.state != "ok" for each in judged) - 1
        sentence = f"{sentence}; and {others} more" if others else sentence
    return Judgement(worst, sentence, tuple(judged), report, diagnosis, age_seconds)


def _stale(age: float | None, limit: float | None) -> Ruling | None:
    if age is None:
        return None
    name = "the report is current" if limit is None else f"at most {age_text(limit)} old"
    if age < -AHEAD_SECONDS:
        message = f"the report is dated {age_text(-age)} in the future: check the clocks"
        return Ruling(name, "age", "unknown", message, None, "seconds")
    if limit is None or age <= limit:
        return None
    message = f"the report is {age_text(age)} old, at most {age_text(limit)} is allowed"
    return Ruling(name, "age", "unknown", message, age, "seconds", f"~:{limit:.0f}")


def _run_lines(report: Report, diagnosis: Diagnosis) -> Iterator[Ruling]:
    """Yields lines on altered bytes and on a run that did not end, whatever was expected."""
    if diagnosis.altered:
        where = ", ".join(diagnosis.altered)
        message = f"{ALTERED} ({where})"
        yield Ruling("received bytes equal sent bytes", "bytes", "critical", message)
    if report.status in ("interrupted", "failed"):
        why = report.notes[-1] if report.notes else "no reason given"
        how = "failed" if report.status == "failed" else "was interrupted"
        message = f"the run {how}: {why}"
        yield Ruling("the run was completed", "run", "unknown", message)


def _all(report: Report, diagnosis: Diagnosis) -> Iterator[Ruling]:
    """Yields the lines without expectations: each copy, each missing stage, and incompleteness.

    A missing measurement is unknown, and its line has no value.
    """
    if report.status == "partial":
        reason = "partial results: some tests failed or were not run"
        yield Ruling("every test was run", "run", "unknown", reason)
    counts: dict[str, int] = {}
    for copy in diagnosis.copies:
        counts[copy.copy] = counts.get(copy.copy, 0) + 1
        metric = copy.copy if counts[copy.copy] == 1 else f"{copy.copy}@{copy.dialect}"
        yield _copy(copy, _ascii(metric), copy is diagnosis.main_copy)
    for index, (step, outcome) in enumerate(report.entries):
        if isinstance(outcome, (Skipped, Failed)) and step.stage not in COPY_STAGES:
            metric = _ascii(metrics.stage_metric(step) or f"{step.stage}.{index}")
            message = f"failed: {outcome.error}" if isinstance(outcome, Failed) else ""
            message = message or f"not measured: {getattr(outcome, 'reason', '')}"
            yield Ruling(stage_text(step), metric, "unknown", message, None, "bytes_per_second")
    if not diagnosis.copies:
        yield Ruling("a copy was made", "headline", "unknown", diagnosis.summary)


def _copy(copy: CopyDiagnosis, metric: str, is_headline: bool) -> Ruling:
    rate = copy.bytes_per_second
    is_known = copy.verdict.component != "unknown"
    state: State = "unknown" if rate is None or is_headline and not is_known else "ok"
    message = copy.verdict.sentence
    if is_known and rate is not None:
        message = f"{rate_text(rate)}, limited by {cap_text(copy.verdict)}"
    return Ruling(f"{copy.copy} ({copy.dialect})", metric, state, message, rate, "bytes_per_second")


def _ascii(metric: str) -> str:
    return "".join(each if "!" <= each <= "~" else "_" for each in metric[:80])


def _limits(expectations: Iterable[Expectation], readings: dict[str, Reading]) -> Iterator[Ruling]:
    """Yields a line for each metric with a limit; several limits of a severity have one each."""
    lines: list[tuple[str, dict[str, Limit]]] = []
    for each in expectations:
        if isinstance(each, Limit):
            same = (e for metric, e in lines if metric == each.metric)
            line = next((e for e in same if each.severity not in e), None)
            if line is None:
                line = {}
                lines.append((each.metric, line))
            line[each.severity] = each
    yield from (_limit(line, metrics.metric_reading(readings, metric)) for metric, line in lines)


def _limit(line: dict[str, Limit], reading: Reading) -> Ruling:
    limits = [line[severity] for severity in ("warning", "critical") if severity in line]
    conditions = " and ".join(
        f"{each.words}{' (critical)' if len(line) > 1 and each.severity == 'critical' else ''}"
        for each in limits
    )
    ranges = {each.severity: each.range for each in limits}
    state: State = "ok"
    message = f"not measured: {reading.reason}"
    if reading.value is None:
        state = "unknown"
    else:
        message = f"{reading.metric} is {quantity_text(reading.value, reading.unit)}"
        alarm = next((each for each in reversed(limits) if each.alarms(reading.value)), None)
        if alarm is not None:
            state, message = alarm.severity, f"{message}, {alarm.broken}"
        message += _behind(reading)
    name = f"{reading.metric} {conditions}"
    return Ruling(name, reading.metric, state, message, reading.value, reading.unit, **ranges)


def _behind(reading: Reading) -> str:
    """Returns the limit of the copy behind a rate, as the end of a sentence."""
    if reading.copy is None or reading.unit != "bytes_per_second":
        return ""
    which = f" ({reading.copy.copy})" if reading.metric == metrics.HEADLINE else ""
    if reading.copy.verdict.component == "unknown":
        return f"{which}; bottleneck not identified"
    return f"{which}; limited by {cap_text(reading.copy.verdict)}"


def _cap(expected: Cap, reading: Reading) -> Ruling:
    plain = expected.copy == metrics.HEADLINE
    which = reading.copy.copy if reading.copy else expected.copy
    name = f"{'the copy' if plain else expected.copy} is limited by {expected.words}"
    metric = "cap" if plain else f"cap.{expected.copy}"
    verdict = None if reading.copy is None else reading.copy.verdict
    if verdict is None or verdict.component == "unknown":
        why = reading.reason if verdict is None else verdict.sentence
        return Ruling(name, metric, "unknown", f"bottleneck of {which} not identified. {why}")
    finding = f"{which} is limited by {verdict.words}"
    pairs = zip((expected.component, expected.side, expected.cause), verdict.key, strict=True)
    if all(want in (None, got) for want, got in pairs):
        return Ruling(name, metric, "ok", finding)
    if reading.copy is not None and not is_clear(reading.copy):
        sure = f"(confidence {verdict.confidence:.2f})"
        finding = f"{which} may be limited by {verdict.words} {sure}"
        return Ruling(name, metric, "unknown", f"{finding}, expected: {expected.words}")
    rate = "" if reading.value is None else f" at {rate_text(reading.value)}"
    return Ruling(name, metric, "critical", f"{finding}{rate}, expected: {expected.words}")
