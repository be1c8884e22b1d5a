"""Compares a report with an earlier one of the same path: slower by more than noise? Pure.

Why 20 unchanged runs give no alarm, and a disk that is 15 % slower does
------------------------------------------------------------------------
A check compares four copies and some stages, night after night, with one baseline; so a test that
is wrong once in twenty times, each, would alarm every third night. Hence three conditions, all of
which one and the same metric must meet:

1. The runs do not overlap: the fastest of now is slower than the slowest of the baseline. With
   three runs each from one distribution that happens by chance in 1 of 20 cases.
2. The medians are apart by noise.REPEATED_RATIO (9 % less). The median of three runs has about 0.7
   of their deviation, so that with runs that deviate by 2 % of their mean this is more than four
   deviations of the difference; a disk that is 15 % slower passes it by three. Where a
   side was measured once, the error of that run is unknown, and noise.SINGLE_RATIO (20 % less) is
   required: the first condition means little then.
3. An alarm is measured again before it is reported: `check TARGET` repeats the run while anything
   looks slower than the baseline by SUSPECT_RATIO, so that a passing load is outvoted; an unchanged
   path mostly needs one run.

Simulated with seven metrics and normal noise: with runs that deviate by 2 %, 20 checks of an
unchanged path gave no alarm in every trial of 200, and 99.9 % of the checks of one that lost 15 %
alarmed (baseline of three runs, no more than three now); with 3 % noise no alarm in 96 % of the
trials, and 98 % of the losses seen; from 4 % on, take a baseline of five runs and a --tolerance.

Fewer comparisons mean fewer false alarms: a stage counts if it is within REACH_RATIO of the copies
that pass it (a stage far above them caps no copy). A stage that a run makes only if there is time
or doubt is compared if both reports have it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import changes, noise, sentences, steps
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Diagnosis
from bottleneck.gate import metrics
from bottleneck.gate.judged import Ruling, State
from bottleneck.gate.metrics import Reading
from bottleneck.gate.pooled import pooled_report
from bottleneck.records.trend import LEAST_REPORTS, another_path, began, trends
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, range_text, rate_text
from probes.core.records import OWN_COPIES, SIDES, Spread

USUAL_TOLERANCE = 0.05
"""Tolerated loss, a ratio; the noise rule demands more, and a user may set a larger one."""
SUSPECT_RATIO = 0.05
"""Least loss of the baseline's rate at which a metric is measured again."""
CRITICAL_RATIO = 1 / 3
"""Least loss that is critical: copies take half as long again."""
REACH_RATIO = 1.5
"""Least stage's rate / fastest copy's at which the stage caps no copy."""
ALIKE_TIMES = 2.0
"""Most ratio of sizes or durations at which two copies are the same copy."""
ENOUGH_RUNS = 3
NO_SUCH_COPY = "this report has no such copy"
_ALWAYS = (
    *(f"tcp.{verb}" for verb in steps.VERBS),
    *(f"disk.{side}.{verb}" for side in SIDES for verb in ("read", "write")),
)
"""Stages that every run makes, so that a missing one is reported."""


@dataclass(frozen=True)
class MetricChange:
    """One metric of both reports."""

    metric: str
    baseline: Spread
    current: Spread | None
    """None: not measured now."""
    reason: str = ""
    """Reason why it was not measured, or is not comparable."""
    copies: tuple[Reading, Reading] | None = None
    """The copy in the baseline and now; None: the metric is no copy."""

    @property
    def loss(self) -> float:
        """Lost share of the baseline's rate; below 0: it is faster now."""
        return 0.0 if self.current is None else 1 - self.current.median / self.baseline.median

    @property
    def differs(self) -> bool:
        """Whether the difference exceeds the noise of both."""
        return self.current is not None and noise.differ(self.baseline, self.current)

    @property
    def is_single(self) -> bool:
        """Whether one of both was measured only once."""
        return min(self.baseline.runs, self.current.runs if self.current else 0) < 2

    def least_lost(self, tolerance: float) -> float:
        """Returns the least loss that alarms, a ratio."""
        ratio = noise.SINGLE_RATIO if self.is_single else noise.REPEATED_RATIO
        return max(tolerance, 1 - 1 / ratio)

    def is_slower(self, tolerance: float) -> bool:
        """Whether the loss exceeds the noise and the tolerance."""
        return self.differs and self.loss > tolerance


def together(baselines: Sequence[Report], report: Report) -> Report:
    """Pools several baselines into one, with the noise of them all.

    Only baselines of the same path that began before the report count; without one the result has
    no entries.
    """
    if len(baselines) == 1 and baselines[0] != report:
        return baselines[0]
    same = _earlier(baselines, report)
    return pooled_report(sorted(same, key=began)) if same else replace(baselines[0], entries=())


def _earlier(baselines: Sequence[Report], report: Report) -> list[Report]:
    """Returns the baselines of the same path that began before the report."""
    earlier = (each for each in baselines if began(each) < began(report))
    return [each for each in earlier if another_path(each, report) is None]


def drift_lines(
    baselines: Sequence[Report], report: Report, tolerance: float = USUAL_TOLERANCE
) -> Iterator[Ruling]:
    """Yields a line for each copy whose rate fell from report to report beyond the tolerance."""
    earlier = _earlier(baselines, report)
    if len(earlier) + 1 < LEAST_REPORTS:
        return
    for each in trends([*earlier, report]).copies:
        if each.drift is not None and each.drift.loss > tolerance:
            yield Ruling(
                name=f"{each.copy} over {len(each.points)} reports",
                metric=each.copy,
                state="critical" if each.drift.loss > CRITICAL_RATIO else "warning",
                message=f"{each.copy} moves {each.drift.words} ({each.drift.rates})",
                value=each.points[-1].bytes_per_second,
                unit="bytes_per_second",
            )


def judged_by(
    report: Report, diagnosis: Diagnosis, baseline: Report, tolerance: float = USUAL_TOLERANCE
) -> Iterator[Ruling]:
    """Yields a line for each copy and stage that counts, compared with the baseline.

    A baseline of another path gives one line with the reason and the state "unknown".
    """
    other = another_path(baseline, report)
    if other is not None:
        what, was, now = other
        why = f"the baseline has another {what}: {was}, this report has {now}"
        yield Ruling("the same path as in the baseline", "baseline", "unknown", why)
        return
    comparisons = tuple(list_changes(report, diagnosis, baseline))
    if not comparisons:
        reason = "the baseline has no earlier copy and no test to compare with"
        yield Ruling("as in the baseline", "baseline", "unknown", reason)
    slower = [each for each in comparisons if each.is_slower(tolerance)]
    for each in comparisons:
        threshold = each.least_lost(tolerance)
        yield Ruling(
            name=f"{each.metric} as in the baseline",
            metric=each.metric,
            state=_state(each, tolerance),
            message=_message(each, slower, tolerance),
            value=None if each.current is None else each.current.median,
            unit="bytes_per_second",
            warning=f"{each.baseline.median * (1 - threshold):.0f}:",
            critical=f"{each.baseline.median * (1 - max(CRITICAL_RATIO, threshold)):.0f}:",
        )


def suspects(report: Report, diagnosis: Diagnosis, baseline: Report) -> tuple[str, ...]:
    """Returns metrics to measure again: slower than the baseline, with few runs."""
    if another_path(baseline, report) is not None:
        return ()
    return tuple(
        each.metric
        for each in list_changes(report, diagnosis, baseline)
        if each.current is not None
        and not each.reason
        and each.loss > SUSPECT_RATIO
        and each.current.runs < ENOUGH_RUNS
    )


def list_changes(report: Report, diagnosis: Diagnosis, baseline: Report) -> Iterator[MetricChange]:
    """Yields each metric of the baseline that counts, the copies first."""
    first = diagnose(baseline)
    then, now = metrics.readings(baseline, first), metrics.readings(report, diagnosis)
    yield from _copies(first, then, now)
    yield from _stages(then, now)


Readings = Mapping[str, Reading]


def _copies(first: Diagnosis, then: Readings, now: Readings) -> Iterator[MetricChange]:
    usual = None if first.main_copy is None else first.main_copy.dialect
    missing = []
    for full in dict.fromkeys(f"{each.copy}@{each.dialect}" for each in first.copies):
        name, _, dialect = full.partition("@")
        metric = name if dialect == usual else full
        old, new = then.get(full), now.get(full)
        if old is None or old.spread is None or metric not in then:
            continue
        if new is not None and new.spread is not None:
            why = _other_size(old, new)
            yield MetricChange(metric, old.spread, new.spread, why, (old, new))
        elif new is not None and name in OWN_COPIES and dialect == usual:
            yield MetricChange(metric, old.spread, None, new.reason)
        elif name in OWN_COPIES and dialect == usual:
            other, why = now.get(name), NO_SUCH_COPY
            if other and other.copy and f"{name}@{other.copy.dialect}" not in then:
                why = f"SMB {other.copy.dialect} now, {dialect} in the baseline"
            missing.append(MetricChange(metric, old.spread, None, why))
    # Copies that this report lacks come last, in the usual order.
    places = {each: index for index, each in enumerate(OWN_COPIES)}
    yield from sorted(missing, key=lambda e: places[e.metric] if e.reason == NO_SUCH_COPY else -1)


def _other_size(old_reading: Reading, new_reading: Reading) -> str:
    """Returns why the files of two copies are not comparable; empty: they are.

    A run sizes its file by the path's rate, so that a copy takes as long on a slow path: a smaller
    file that took as long is the same copy.
    """
    old, new = _size(old_reading), _size(new_reading)
    is_same = any(noise.factor(*pair) <= ALIKE_TIMES for pair in zip(old, new, strict=False))
    if not old or not new or is_same:
        return ""
    times = noise.factor(old[0], new[0])
    which = "larger" if new[0] > old[0] else "smaller"
    return f"its file is {times:.0f} times {which} than in the baseline; use the same --size"


def _size(reading: Reading) -> tuple[float, ...]:
    """Returns bytes and seconds of a copy's median run; empty: unknown."""
    runs = () if reading.step is None else reading.step.outcome.runs
    if not runs:
        return ()
    size_bytes = statistics.median(run[-1].moved_bytes - run[0].moved_bytes for run in runs)
    seconds = statistics.median(run[-1].elapsed_seconds - run[0].elapsed_seconds for run in runs)
    return (size_bytes, seconds) if size_bytes > 0 and seconds > 0 else ()


def _stages(then: Readings, now: Readings) -> Iterator[MetricChange]:
    for metric, reading in then.items():
        old = reading.spread
        if old is None or reading.copy is not None or metric.startswith("loopback"):
            continue
        # The highest rate of the baseline's copies that pass this stage.
        copies = (then[name].value for name in OWN_COPIES if name in then and passes(name, metric))
        limit = REACH_RATIO * max((rate for rate in copies if rate is not None), default=0.0)
        new = metrics.metric_reading(now, metric)
        keys = {None if e.step is None else changes.stage_key(e.step) for e in (reading, new)}
        if new.spread is not None and len(keys) == 1:
            if min(old.median, new.spread.median) <= limit:
                yield MetricChange(metric, old, new.spread)
        elif metric in _ALWAYS and old.median <= limit:
            why = new.reason or "measured with other settings in the baseline"
            yield MetricChange(metric, old, None, why)


def passes(copy: str, stage: str) -> bool:
    """Whether the bytes of one of the client's copies pass a stage; both are metrics' names."""
    verb, _, cache = copy.partition(".")
    sender = steps.sender(verb, "client")
    match stage.split("."):
        case ["tcp", over, *_] | [over, "memory"]:
            return over == verb
        case ["disk", side, "read"]:
            return side == sender and cache == "uncached"
        case ["disk", side, _]:
            return side == steps.other(sender)
        case _:
            return False


def _state(each: MetricChange, tolerance: float) -> State:
    if each.current is None or each.reason:
        return "unknown"
    if not each.is_slower(tolerance):
        return "ok"
    return "critical" if each.loss > CRITICAL_RATIO else "warning"


def _message(each: MetricChange, slower: list[MetricChange], tolerance: float) -> str:
    was = rate_text(each.baseline.median)
    if each.current is None:
        return f"{was} in the baseline, not measured now: {each.reason}"
    now = f"{rate_text(each.current.median)}, {was} in the baseline"
    if each.reason:
        return f"{now}, but {each.reason}"
    if each.is_slower(tolerance):
        # The reason comes first, because a status line is cut at its end.
        why, (less, rates) = _why(each, slower), _loss_texts(each)
        return f"{less}: {why}; {rates}" if why else f"{less} ({rates})"
    if each.differs and each.loss < 0:
        return f"{now}: significantly faster; record a new baseline"
    if each.loss > max(tolerance, SUSPECT_RATIO):
        threshold = percent_text(each.least_lost(tolerance))
        once = " for a single run" if each.is_single else ""
        change = f"{percent_text(each.loss)} less, not significant{once}"
        return f"{now}: {change} (alarm at {threshold} less without overlap of the runs)"
    return now


def _loss_texts(each: MetricChange) -> tuple[str, str]:
    """Returns "the server's disk reads 15 % less", and the rates before and now."""
    assert each.current is not None
    match each.metric.split("."):
        case ["disk", side, verb]:
            does = f"the {side}'s disk {'reads' if verb == 'read' else 'writes'}"
        case ["tcp", verb, *_]:
            does = f"TCP {verb} moves"
        case [verb, "memory"]:
            does = f"a {verb} without the client's disk moves"
        case _:
            does = f"{each.metric} moves"
    runs = "" if each.current.runs < 2 else f" in {each.current.runs} runs"
    now = f"{range_text(each.current.low, each.current.high)}{runs} now"
    rates = f"{rate_text(each.baseline.median)} in the baseline, {now}"
    return f"{does} {percent_text(each.loss)} less", rates


def _why(each: MetricChange, slower: list[MetricChange]) -> str:
    """Returns the slower stage behind a copy, else its limit; empty: the metric is a stage."""
    if each.copies is None:
        return ""
    name = each.metric.partition("@")[0]
    behind = [stage for stage in slower if stage.copies is None and passes(name, stage.metric)]
    then, now = map(_cap, each.copies)
    if behind:
        less, rates = _loss_texts(max(behind, key=lambda stage: stage.loss))
        other = f"now limited by {now}; " if now and now != then else ""
        return f"{other}{less} ({rates})"
    if not now:
        return "bottleneck not identified now"
    return f"{'still' if now == then else 'now'} limited by {now}"


def _cap(reading: Reading) -> str:
    """Returns the limit of a copy in words; empty: unknown."""
    if reading.copy is None or reading.copy.verdict.component == "unknown":
        return ""
    verdict = reading.copy.verdict
    return f"{sentences.part_name(verdict.part)} ({verdict.cause})"
