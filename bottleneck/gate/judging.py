"""A report held against what is expected of it; pure.

States, as a monitoring system wants them: a limit that alarms has the state that it was given for
(--warn, --crit). Another cap than the expected one is critical where it is sure, and unknown where
it is not. What was slower than a baseline is a warning, and critical from a third on. What was not
measured is unknown, never OK. Bytes that were altered on the way are critical, whatever was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bottleneck.analysis.doubts import is_clear
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.analysis.phrases import cap_text, stage_text
from bottleneck.analysis.unknown import ALTERED
from bottleneck.gate import baseline, metrics
from bottleneck.gate.expectation import Cap, Expectation, Limit, age_text
from bottleneck.gate.judged import ORDER, Judged, Judgement, State, quantity_text
from bottleneck.gate.metrics import Reading
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text
from probes.core.records import Failed, Skipped

AHEAD_SECONDS = 300.0
"""What clocks of two hosts may differ by: a report from later than that is of a wrong clock."""
NOT_ENDED = ("interrupted", "failed")
COPY_STAGES = ("smb-copy", "native-copy", "running-copy")
"""Stages that are copies themselves, and told as such."""


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
    """What a gate says of a report, the lines in the order in which they were asked for.

    Without expectations and baselines: a line for each copy, and one for each stage that failed or
    was skipped; OK where the run is complete and the headline's cap is known.

    baselines: earlier reports of the same path. tolerance: what may be lost against it, as a
    share. age_seconds: since the report's start; older than max_age_seconds it says nothing of
    now, and the judgement has that one line. verified: a copy whose source was not shown to be in
    the sender's cache, or out of it, counts as not measured.
    """
    stale = _stale(age_seconds, max_age_seconds)
    if stale is not None:
        return _judgement([stale], report, diagnosis, age_seconds)
    judged = [*_run(report, diagnosis)]
    if not expectations and not baselines:
        judged += [] if judged and not report.entries else [*_all(report, diagnosis)]
    else:
        found = metrics.readings(report, diagnosis, verified)
        caps = [each for each in expectations if isinstance(each, Cap)]
        judged += _limits(expectations, found)
        judged += [_cap(each, metrics.reading(found, each.copy)) for each in caps]
    if baselines:
        before = baseline.together(baselines, report)
        judged += baseline.judged_by(report, diagnosis, before, tolerance)
        judged += baseline.drifting(baselines, report, tolerance)
    asked = bool(expectations or baselines)
    return _judgement(judged, report, diagnosis, age_seconds, asked)


def nothing_to_judge(sentence: str, report: Report | None = None) -> Judgement:
    """The judgement where there is no report, or none that could be made: unknown, and why."""
    return Judgement("unknown", sentence, (), report, None)


def _judgement(
    judged: list[Judged],
    report: Report,
    diagnosis: Diagnosis,
    age_seconds: float | None,
    asked: bool = True,
) -> Judgement:
    states = {each.state for each in judged} or {"unknown"}
    worst = min(states, key=ORDER.index)
    sentence = diagnosis.summary
    if judged and (asked or worst != "ok"):
        # The worst line, and how many more alarm, or hold as well.
        first = next(each for each in judged if each.state == worst)
        sentence = first.message
        if first.metric.partition("@")[0] in metrics.UNITS and first.metric not in sentence:
            sentence = f"{first.metric}: {sentence}"
        more = sum(worst == "ok" or each.state != "ok" for each in judged) - 1
        sentence = f"{sentence}; and {more} more" if more else sentence
    return Judgement(worst, sentence, tuple(judged), report, diagnosis, age_seconds)


def _stale(age: float | None, most: float | None) -> Judged | None:
    if age is None:
        return None
    name = "the report is current" if most is None else f"at most {age_text(most)} old"
    if age < -AHEAD_SECONDS:
        told = f"the report is dated {age_text(-age)} in the future: check the clocks"
        return Judged(name, "age", "unknown", told, None, "seconds")
    if most is None or age <= most:
        return None
    told = f"the report is {age_text(age)} old, at most {age_text(most)} is allowed"
    return Judged(name, "age", "unknown", told, age, "seconds", f"~:{most:.0f}")


def _run(report: Report, diagnosis: Diagnosis) -> Iterator[Judged]:
    """What is said whatever was asked: altered bytes, and a run that did not come to its end."""
    if diagnosis.altered:
        where = ", ".join(diagnosis.altered)
        told = f"{ALTERED} ({where})"
        yield Judged("received bytes equal sent bytes", "bytes", "critical", told)
    if report.status in NOT_ENDED:
        why = report.notes[-1] if report.notes else "no reason given"
        how = "failed" if report.status == "failed" else "was interrupted"
        told = f"the run {how}: {why}"
        yield Judged("the run was completed", "run", "unknown", told)


def _all(report: Report, diagnosis: Diagnosis) -> Iterator[Judged]:
    """Where nothing was asked: every copy, every stage that is missing, and whether all is there.

    What was not measured is unknown, and its line has no value.
    """
    if report.status == "partial":
        reason = "partial results: some tests failed or were not run"
        yield Judged("every test was run", "run", "unknown", reason)
    seen: dict[str, int] = {}
    for copy in diagnosis.copies:
        seen[copy.copy] = seen.get(copy.copy, 0) + 1
        metric = copy.copy if seen[copy.copy] == 1 else f"{copy.copy}@{copy.dialect}"
        yield _copy(copy, _ascii(metric), copy is diagnosis.chosen)
    for index, (step, outcome) in enumerate(report.entries):
        if isinstance(outcome, (Skipped, Failed)) and step.stage not in COPY_STAGES:
            metric = _ascii(metrics.stage_metric(step) or f"{step.stage}.{index}")
            told = f"failed: {outcome.error}" if isinstance(outcome, Failed) else ""
            told = told or f"not measured: {getattr(outcome, 'reason', '')}"
            yield Judged(stage_text(step), metric, "unknown", told, None, "bytes_per_second")
    if not diagnosis.copies:
        yield Judged("a copy was made", "headline", "unknown", diagnosis.summary)


def _copy(copy: CopyDiagnosis, metric: str, chosen: bool) -> Judged:
    rate = copy.bytes_per_second
    known = copy.verdict.component != "unknown"
    state: State = "unknown" if rate is None or chosen and not known else "ok"
    told = copy.verdict.sentence
    if known and rate is not None:
        told = f"{rate_text(rate)}, limited by {cap_text(copy.verdict)}"
    return Judged(f"{copy.copy} ({copy.dialect})", metric, state, told, rate, "bytes_per_second")


def _ascii(metric: str) -> str:
    return "".join(each if "!" <= each <= "~" else "_" for each in metric[:80])


def _limits(expectations: Iterable[Expectation], found: dict[str, Reading]) -> Iterator[Judged]:
    """A line for each metric with a limit; of several limits of one severity a line for each."""
    lines: list[tuple[str, dict[str, Limit]]] = []
    for each in expectations:
        if isinstance(each, Limit):
            known = (e for metric, e in lines if metric == each.metric and each.severity not in e)
            line = next(known, None)
            if line is None:
                line = {}
                lines.append((each.metric, line))
            line[each.severity] = each
    for metric, line in lines:
        yield _limit(line, metrics.reading(found, metric))


def _limit(line: dict[str, Limit], told: Reading) -> Judged:
    limits = [line[severity] for severity in ("warning", "critical") if severity in line]
    wanted = " and ".join(
        f"{each.words}{' (critical)' if len(line) > 1 and each.severity == 'critical' else ''}"
        for each in limits
    )
    ranges = {each.severity: each.range for each in limits}
    state: State = "ok"
    message = f"not measured: {told.reason}"
    if told.value is None:
        state = "unknown"
    else:
        message = f"{told.metric} is {quantity_text(told.value, told.unit)}"
        alarm = next((each for each in reversed(limits) if each.alarms(told.value)), None)
        if alarm is not None:
            state, message = alarm.severity, f"{message}, {alarm.broken}"
        message += _behind(told)
    name = f"{told.metric} {wanted}"
    return Judged(name, told.metric, state, message, told.value, told.unit, **ranges)


def _behind(told: Reading) -> str:
    """What limits the copy whose rate it is, as a sentence's end."""
    if told.copy is None or told.unit != "bytes_per_second":
        return ""
    which = f" ({told.copy.copy})" if told.metric == metrics.HEADLINE else ""
    if told.copy.verdict.component == "unknown":
        return f"{which}; bottleneck not identified"
    return f"{which}; limited by {cap_text(told.copy.verdict)}"


def _cap(wanted: Cap, told: Reading) -> Judged:
    plain = wanted.copy == metrics.HEADLINE
    which = told.copy.copy if told.copy else wanted.copy
    name = f"{'the copy' if plain else wanted.copy} is limited by {wanted.words}"
    metric = "cap" if plain else f"cap.{wanted.copy}"
    verdict = None if told.copy is None else told.copy.verdict
    if verdict is None or verdict.component == "unknown":
        why = told.reason if verdict is None else verdict.sentence
        return Judged(name, metric, "unknown", f"bottleneck of {which} not identified. {why}")
    found = f"{which} is limited by {verdict.words}"
    asked = zip((wanted.component, wanted.side, wanted.cause), verdict.named, strict=True)
    if all(want in (None, got) for want, got in asked):
        return Judged(name, metric, "ok", found)
    if told.copy is not None and not is_clear(told.copy):
        sure = f"(confidence {verdict.confidence:.2f})"
        found = f"{which} may be limited by {verdict.words} {sure}"
        return Judged(name, metric, "unknown", f"{found}, expected: {wanted.words}")
    rate = "" if told.value is None else f" at {rate_text(told.value)}"
    return Judged(name, metric, "critical", f"{found}{rate}, expected: {wanted.words}")
