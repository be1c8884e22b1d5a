"""A report against an earlier one of the same path: what became slower by more than noise; pure.

Why 20 unchanged runs give no alarm, and a disk that is 15 % slower does
------------------------------------------------------------------------
A check compares four copies and some stages, night after night, with one baseline; so a test that
is wrong once in twenty times, each, would alarm every third night. Hence three hurdles, all of
them to be taken by one and the same metric:

1. The runs do not meet: the fastest of now is slower than the slowest of the baseline. Of three
   runs each from one and the same distribution that happens by chance in 1 of 20 cases.
2. The medians are apart by noise.REPEATED_RATIO (9 % less). The median of three runs has about 0.7
   of their deviation, so that with runs that deviate by 2 % of their mean this is more than four
   deviations of the difference; a disk that is 15 % slower passes it by three. Where a
   side was measured once, nothing tells how far that one run is off, and noise.SINGLE_RATIO (20 %
   less) is asked for: the first hurdle means little then.
3. What alarms is measured again before it is told: `check TARGET` repeats the run while anything
   looks slower than the baseline by SUSPECT_RATIO, so that what came and went with another load
   is outvoted; an unchanged path is mostly left after one run.

Simulated with seven metrics and normal noise: with runs that deviate by 2 %, 20 checks of an
unchanged path gave no alarm in every trial of 200, and 99.9 % of the checks of one that lost 15 %
alarmed (baseline of three runs, no more than three now); with 3 % noise no alarm in 96 % of the
trials, and 98 % of the losses seen; from 4 % on, take a baseline of five runs and a --tolerance.

Fewer comparisons are fewer false alarms: a stage counts where it is within REACH_RATIO of the
copies that pass it (what is far above them caps no copy, and nobody feels it). What a run makes
only where there is time or doubt is compared where both have it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import changes, noise, sentences, steps
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Diagnosis
from bottleneck.gate import metrics
from bottleneck.gate.judged import Judged, State
from bottleneck.gate.metrics import Reading
from bottleneck.gate.pooled import pooled
from bottleneck.records.trend import LEAST_REPORTS, another_path, began, trends
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, range_text, rate_text
from probes.core.records import OWN_COPIES, SIDES, Spread

USUAL_TOLERANCE = 0.05
"""The noise rule alone asks for more; a greater one is the user's."""
SUSPECT_RATIO = 0.05
"""Of the baseline's rate: what looks as much slower is measured again."""
CRITICAL_RATIO = 1 / 3
"""A loss from which on it is critical: copies take half as long again."""
REACH_RATIO = 1.5
"""A stage that is further above the fastest of its copies caps none of them."""
ALIKE_TIMES = 2.0
"""Files up to so many times as large, or as long under way, make the same copy."""
ENOUGH_RUNS = 3
NO_SUCH_COPY = "this report has no such copy"
_ALWAYS = (
    *(f"tcp.{verb}" for verb in steps.VERBS),
    *(f"disk.{side}.{verb}" for side in SIDES for verb in ("read", "write")),
)
"""Stages that every run makes, so that one that is missing is a hole."""


@dataclass(frozen=True)
class Compared:
    """One metric of both reports."""

    metric: str
    before: Spread
    after: Spread | None
    """None: not measured now."""
    reason: str = ""
    """Why it was not, or why the two are not the same."""
    copies: tuple[Reading, Reading] | None = None
    """Of a copy, then and now."""

    @property
    def lost(self) -> float:
        """Share of the baseline's rate that is gone; below 0: it is faster now."""
        return 0.0 if self.after is None else 1 - self.after.median / self.before.median

    @property
    def differs(self) -> bool:
        """Whether the noise of both does not explain the difference."""
        return self.after is not None and noise.differ(self.before, self.after)

    @property
    def single(self) -> bool:
        """Whether one of both was measured once alone."""
        return min(self.before.runs, self.after.runs if self.after else 0) < 2

    def least_lost(self, tolerance: float) -> float:
        """What has to be lost for an alarm, as a share."""
        least = noise.SINGLE_RATIO if self.single else noise.REPEATED_RATIO
        return max(tolerance, 1 - 1 / least)

    def slower(self, tolerance: float) -> bool:
        """Whether it lost more than the noise, and more than is tolerated."""
        return self.differs and self.lost > tolerance


def together(baselines: Sequence[Report], report: Report) -> Report:
    """Several baselines as one, with the noise of them all.

    Of several those that began before the report, and are of its path, count; where none is, the
    one that is left has nothing to compare with.
    """
    if len(baselines) == 1 and baselines[0] != report:
        return baselines[0]
    same = _earlier(baselines, report)
    return pooled(sorted(same, key=began)) if same else replace(baselines[0], entries=())


def _earlier(baselines: Sequence[Report], report: Report) -> list[Report]:
    """Returns the baselines of the same path that began before the report."""
    earlier = (each for each in baselines if began(each) < began(report))
    return [each for each in earlier if another_path(each, report) is None]


def drifting(
    baselines: Sequence[Report], report: Report, tolerance: float = USUAL_TOLERANCE
) -> Iterator[Judged]:
    """Yields a line for each copy that fell from report to report by more than is tolerated."""
    earlier = _earlier(baselines, report)
    if len(earlier) + 1 < LEAST_REPORTS:
        return
    for each in trends([*earlier, report]).copies:
        if each.drift is not None and each.drift.lost > tolerance:
            yield Judged(
                name=f"{each.copy} over {len(each.points)} reports",
                metric=each.copy,
                state="critical" if each.drift.lost > CRITICAL_RATIO else "warning",
                message=f"{each.copy} moves {each.drift.words} ({each.drift.rates})",
                value=each.points[-1].bytes_per_second,
                unit="bytes_per_second",
            )


def judged_by(
    report: Report, diagnosis: Diagnosis, baseline: Report, tolerance: float = USUAL_TOLERANCE
) -> Iterator[Judged]:
    """Each copy and each stage that counts, held against the baseline; see the module.

    A baseline of another path is one line with the reason, and its state is "unknown".
    """
    other = another_path(baseline, report)
    if other is not None:
        what, before, now = other
        why = f"the baseline has another {what}: {before}, this report has {now}"
        yield Judged("the same path as in the baseline", "baseline", "unknown", why)
        return
    found = tuple(compared(report, diagnosis, baseline))
    if not found:
        reason = "the baseline has no earlier copy and no test to compare with"
        yield Judged("as in the baseline", "baseline", "unknown", reason)
    slower = [each for each in found if each.slower(tolerance)]
    for each in found:
        least = each.least_lost(tolerance)
        yield Judged(
            name=f"{each.metric} as in the baseline",
            metric=each.metric,
            state=_state(each, tolerance),
            message=_message(each, slower, tolerance),
            value=None if each.after is None else each.after.median,
            unit="bytes_per_second",
            warning=f"{each.before.median * (1 - least):.0f}:",
            critical=f"{each.before.median * (1 - max(CRITICAL_RATIO, least)):.0f}:",
        )


def suspects(report: Report, diagnosis: Diagnosis, baseline: Report) -> tuple[str, ...]:
    """Metrics that look slower than the baseline and have few runs: to be measured again."""
    if another_path(baseline, report) is not None:
        return ()
    return tuple(
        each.metric
        for each in compared(report, diagnosis, baseline)
        if each.after is not None
        and not each.reason
        and each.lost > SUSPECT_RATIO
        and each.after.runs < ENOUGH_RUNS
    )


def compared(report: Report, diagnosis: Diagnosis, baseline: Report) -> Iterator[Compared]:
    """Each metric that the baseline has and that counts, the copies first."""
    first = diagnose(baseline)
    then, now = metrics.readings(baseline, first), metrics.readings(report, diagnosis)
    yield from _copies(first, then, now)
    yield from _stages(then, now)


Readings = Mapping[str, Reading]


def _copies(first: Diagnosis, then: Readings, now: Readings) -> Iterator[Compared]:
    usual = None if first.chosen is None else first.chosen.dialect
    missing = []
    for full in dict.fromkeys(f"{each.copy}@{each.dialect}" for each in first.copies):
        name, _, dialect = full.partition("@")
        metric = name if dialect == usual else full
        before, after = then.get(full), now.get(full)
        if before is None or before.spread is None or metric not in then:
            continue
        if after is not None and after.spread is not None:
            why = _other_size(before, after)
            yield Compared(metric, before.spread, after.spread, why, (before, after))
        elif after is not None and name in OWN_COPIES and dialect == usual:
            yield Compared(metric, before.spread, None, after.reason)
        elif name in OWN_COPIES and dialect == usual:
            other, why = now.get(name), NO_SUCH_COPY
            if other and other.copy and f"{name}@{other.copy.dialect}" not in then:
                why = f"SMB {other.copy.dialect} now, {dialect} in the baseline"
            missing.append(Compared(metric, before.spread, None, why))
    # What nobody made any more comes last, in the usual order.
    places = {each: at for at, each in enumerate(OWN_COPIES)}
    yield from sorted(missing, key=lambda e: places[e.metric] if e.reason == NO_SUCH_COPY else -1)


def _other_size(before: Reading, after: Reading) -> str:
    """Why two copies are not the same by their files; empty: they are.

    A run sizes its file by the path's rate, so that it lasts as long on a slow one: a smaller file
    that took as long is the same copy.
    """
    old, new = _size(before), _size(after)
    alike = any(noise.factor(*pair) <= ALIKE_TIMES for pair in zip(old, new, strict=False))
    if not old or not new or alike:
        return ""
    times = noise.factor(old[0], new[0])
    which = "larger" if new[0] > old[0] else "smaller"
    return f"its file is {times:.0f} times {which} than in the baseline; use the same --size"


def _size(told: Reading) -> tuple[float, ...]:
    """Bytes and seconds of a copy's usual run; empty: not known."""
    runs = () if told.made is None else told.made.outcome.runs
    if not runs:
        return ()
    moved = statistics.median(run[-1].moved_bytes - run[0].moved_bytes for run in runs)
    took = statistics.median(run[-1].elapsed_seconds - run[0].elapsed_seconds for run in runs)
    return (moved, took) if moved > 0 and took > 0 else ()


def _stages(then: Readings, now: Readings) -> Iterator[Compared]:
    for metric, told in then.items():
        before = told.spread
        if before is None or told.copy is not None or metric.startswith("loopback"):
            continue
        # The highest rate that the baseline's copies had over it.
        copies = (then[name].value for name in OWN_COPIES if name in then and passes(name, metric))
        most = REACH_RATIO * max((rate for rate in copies if rate is not None), default=0.0)
        after = metrics.reading(now, metric)
        alike = {None if e.made is None else changes.stage_key(e.made) for e in (told, after)}
        if after.spread is not None and len(alike) == 1:
            if min(before.median, after.spread.median) <= most:
                yield Compared(metric, before, after.spread)
        elif metric in _ALWAYS and before.median <= most:
            why = after.reason or "measured with other settings in the baseline"
            yield Compared(metric, before, None, why)


def passes(copy: str, stage: str) -> bool:
    """Whether the bytes of one of the client's own copies pass a stage, both by metric."""
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


def _state(each: Compared, tolerance: float) -> State:
    if each.after is None or each.reason:
        return "unknown"
    if not each.slower(tolerance):
        return "ok"
    return "critical" if each.lost > CRITICAL_RATIO else "warning"


def _message(each: Compared, slower: list[Compared], tolerance: float) -> str:
    was = rate_text(each.before.median)
    if each.after is None:
        return f"{was} in the baseline, not measured now: {each.reason}"
    now = f"{rate_text(each.after.median)}, {was} in the baseline"
    if each.reason:
        return f"{now}, but {each.reason}"
    if each.slower(tolerance):
        # The reason first: a status line is cut at its end.
        why, (less, rates) = _why(each, slower), _lost(each)
        return f"{less}: {why}; {rates}" if why else f"{less} ({rates})"
    if each.differs and each.lost < 0:
        return f"{now}: significantly faster; record a new baseline"
    if each.lost > max(tolerance, SUSPECT_RATIO):
        least = percent_text(each.least_lost(tolerance))
        once = " for a single run" if each.single else ""
        told = f"{percent_text(each.lost)} less, not significant{once}"
        return f"{now}: {told} (alarm at {least} less without overlap of the runs)"
    return now


def _lost(each: Compared) -> tuple[str, str]:
    """What a metric lost: "the server's disk reads 15 % less", and its rates then and now."""
    assert each.after is not None
    match each.metric.split("."):
        case ["disk", side, verb]:
            does = f"the {side}'s disk {'reads' if verb == 'read' else 'writes'}"
        case ["tcp", verb, *_]:
            does = f"TCP {verb} moves"
        case [verb, "memory"]:
            does = f"a {verb} without the client's disk moves"
        case _:
            does = f"{each.metric} moves"
    runs = "" if each.after.runs < 2 else f" in {each.after.runs} runs"
    now = f"{range_text(each.after.low, each.after.high)}{runs} now"
    rates = f"{rate_text(each.before.median)} in the baseline, {now}"
    return f"{does} {percent_text(each.lost)} less", rates


def _why(each: Compared, slower: list[Compared]) -> str:
    """The stage of a copy's way that lost too, else what limits it; empty: it is one itself."""
    if each.copies is None:
        return ""
    name = each.metric.partition("@")[0]
    behind = [stage for stage in slower if stage.copies is None and passes(name, stage.metric)]
    then, now = map(_cap, each.copies)
    if behind:
        less, rates = _lost(max(behind, key=lambda stage: stage.lost))
        other = f"now limited by {now}; " if now and now != then else ""
        return f"{other}{less} ({rates})"
    if not now:
        return "bottleneck not identified now"
    return f"{'still' if now == then else 'now'} limited by {now}"


def _cap(told: Reading) -> str:
    """What limits a copy, in words; empty: it was not found."""
    if told.copy is None or told.copy.verdict.component == "unknown":
        return ""
    verdict = told.copy.verdict
    return f"{sentences.part_name(verdict.part)} ({verdict.cause})"
