"""Compares two reports of the same path: the changes, and whether they were predicted.

Each copy, its removed cap, and the prediction for it; in bytes, seconds and ratios.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal

from bottleneck.analysis import diagnosis, noise, sentences, steps
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis, TimeShare, Verdict, Words
from bottleneck.analysis.model import Band
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import range_text, rate_text, times_text
from probes.core.records import SIDES, HostFacts, Spread

RAISED_RATIO = 1.1
"""Least later / earlier ceiling at which the ceiling has risen."""
CLOSE_RATIO = 0.05
"""Most error of a prediction that counts as right, however narrow its range."""
_TELLING = (
    "verb streams side cache pattern over security dialect copy end engine file_bytes"
).split()
"""Settings that identify a step; its duration and its bytes do not."""
_HOST = (
    "name system distribution cores quota_cores memory_total_bytes virtual congestion_control"
).split()
_INTERFACE = (
    "name rate_bits_per_second duplex mtu_bytes driver qdisc qdisc_rate_bytes_per_second"
).split()
_FOLDER = ("filesystem", "mount_options", "device", "rotational")

Judged = Literal["right", "more", "less"]
"""Whether the copy then ran within the prediction, above it, or below it."""


@dataclass(frozen=True)
class FactChange:
    """A changed fact of a host or of the target."""

    fact: str
    """Its path: `client.interface.rate_bits_per_second`, `target.dialect`."""
    before: Any
    after: Any
    """None: unknown."""


@dataclass(frozen=True)
class RateChange:
    """A stage that both reports measured."""

    stage: str
    setting: dict[str, Any]
    """Setting of the later step."""
    initiator: str
    before_bytes_per_second: Spread
    after_bytes_per_second: Spread
    ratio: float
    """After over before."""
    significant: bool
    """Whether the difference is beyond the noise of both."""


@dataclass(frozen=True)
class Lift(Words):
    """A cap that is gone, or whose ceiling rose, with the predicted gain."""

    from_bytes_per_second: float
    to_bytes_per_second: float | None
    """Its ceiling now; None: it no longer limits the copy."""
    predicted_bytes_per_second: Band | None
    """Prediction of the earlier report; None: it made none."""
    judged: Judged | None
    """None: nothing was predicted."""


@dataclass(frozen=True)
class CopyChange:
    """A copy that both reports have."""

    copy: str
    initiator: str
    before_dialect: str
    after_dialect: str
    before_bytes_per_second: Spread | None
    after_bytes_per_second: Spread | None
    """None: it could not be made."""
    ratio: float | None
    significant: bool
    before_verdict: Verdict
    after_verdict: Verdict
    lift: Lift | None
    """None: the cap is the same, or one of both is not known."""
    before_time: tuple[TimeShare, ...]
    after_time: tuple[TimeShare, ...]
    """Empty: nothing watched it."""
    sentence: str


@dataclass(frozen=True)
class Change:
    """All that is different between two reports."""

    summary: str
    """The result in one sentence, without a full stop."""
    copies: tuple[CopyChange, ...]
    stages: tuple[RateChange, ...]
    facts: tuple[FactChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    """Copies that one report alone has."""


def compare(earlier: Report, later: Report) -> Change:
    """Returns the changes from one report to a later one, with the diagnoses made anew."""
    first, second = diagnosis.diagnose(earlier), diagnosis.diagnose(later)
    pairs = list(_pairs(first, second))
    steps_by_copy = steps.made_copies(earlier), steps.made_copies(later)
    copies = tuple(_change(old, new, *steps_by_copy) for old, new in pairs)
    paired = {id(each) for pair in pairs for each in pair}
    unpaired = (
        dict.fromkeys(f"{e.copy} ({e.dialect})" for e in diagnosed.copies if id(e) not in paired)
        for diagnosed in (first, second)
    )
    return Change(
        _summary(copies, first.headline),
        copies,
        tuple(_stages(earlier, later)),
        tuple(_changed_facts(earlier, later)),
        *map(tuple, unpaired),
    )


def _summary(copies: tuple[CopyChange, ...], headline: str | None) -> str:
    """Summarizes the headline's copy if it changed, else one that did, else those that did not."""
    if not copies:
        return "Not comparable: the reports share no copy"
    changed = [each for each in copies if each.significant]
    candidates = changed or [each for each in copies if each.ratio is not None] or copies
    change = max(candidates, key=lambda each: each.copy == headline)
    if changed or change.ratio is None:
        return _result(change)
    return f"No significant change{_prediction_text(change.lift)}"


def _pairs(first: Diagnosis, second: Diagnosis) -> Iterator[tuple[CopyDiagnosis, CopyDiagnosis]]:
    """Yields the copies of both by name, in the same dialect if both have it."""
    old_copies, new_copies = list(first.copies), list(second.copies)
    for names in (("copy", "initiator", "dialect"), ("copy", "initiator")):
        key = attrgetter(*names)
        for old in tuple(old_copies):
            new = next((each for each in new_copies if key(each) == key(old)), None)
            if new is not None:
                old_copies.remove(old)
                new_copies.remove(new)
                yield old, new


ByCopy = dict[tuple[str, str, str, float], MeasuredStep]


def _change(old: CopyDiagnosis, new: CopyDiagnosis, first: ByCopy, second: ByCopy) -> CopyChange:
    was, now = (
        None
        if each.bytes_per_second is None
        else copy_steps[each.copy, each.dialect, each.initiator, each.bytes_per_second].rate
        for each, copy_steps in ((old, first), (new, second))
    )
    lift = ratio = None
    if was is not None and now is not None:
        lift, ratio = _lift(old, new, was, now), now.median / was.median
    change = CopyChange(
        copy=old.copy,
        initiator=old.initiator,
        before_dialect=old.dialect,
        after_dialect=new.dialect,
        before_bytes_per_second=was,
        after_bytes_per_second=now,
        ratio=ratio,
        significant=was is not None and now is not None and noise.differ(was, now),
        before_verdict=old.verdict,
        after_verdict=new.verdict,
        lift=lift,
        before_time=old.time,
        after_time=new.time,
        sentence="",
    )
    return replace(change, sentence=_sentence(change))


def _lift(old: CopyDiagnosis, new: CopyDiagnosis, was: Spread, now: Spread) -> Lift | None:
    """Returns the earlier cap, if it is no longer the cap or its ceiling rose; else None."""
    cap = old.verdict
    level, to = cap.ceiling_bytes_per_second, new.verdict.ceiling_bytes_per_second
    if level is None or to is None:
        return None
    predicted = old.predicted_bytes_per_second
    if cap.key == new.verdict.key:
        if to < RAISED_RATIO * level:
            return None
        if predicted is not None:
            # If only the cap rose, the rate cannot rise by a larger factor.
            predicted = Band.combine(min, predicted, Band.from_rate(was, to / level))
    else:
        to = None
        for each in new.ceilings:
            still = each.bytes_per_second < RAISED_RATIO * level
            if still and each.key == cap.key and each.standing in ("measured", "inferred"):
                # It is as low as before: another, lower limit caps the copy now.
                return None
    judged = None if predicted is None else _judge_prediction(predicted, now)
    return Lift(*cap.key, level, to, predicted, judged)


def _judge_prediction(predicted: Band, now: Spread) -> Judged:
    off = now.median / predicted.median - 1
    if predicted.low <= now.median <= predicted.high or abs(off) <= CLOSE_RATIO:
        return "right"
    return "more" if off > 0 else "less"


def _result(change: CopyChange) -> str:
    """Returns a copy's result without a full stop: `pull.uncached is 4.7x faster: ...`."""
    was, now = change.before_bytes_per_second, change.after_bytes_per_second
    if was is None or now is None:
        missing = [when for when, rate in (("before", was), ("after", now)) if rate is None]
        return f"Not comparable: {change.copy} was not measured {' and '.join(missing)}"
    foreseen = _prediction_text(change.lift)
    if not change.significant:
        return f"{change.copy}: no significant change, {_rates(was, now)}{foreseen}"
    ratio = times_text(noise.factor(was.median, now.median))
    if now.median > was.median:
        return f"{change.copy} is {ratio} faster: {_rates(was, now)}{foreseen}"
    return f"Slower: {change.copy}, {_rates(was, now)} ({ratio}){foreseen}"


def _rates(was: Spread, now: Spread) -> str:
    """Returns `24.2 -> 113 MB/s`: a common unit is written once."""
    first, last = rate_text(was.median), rate_text(now.median)
    return f"{first.removesuffix(last[last.index(' ') :])} -> {last}"


def _prediction_text(lift: Lift | None) -> str:
    """Returns words on whether the gain was predicted; empty: nothing was predicted."""
    if lift is None or lift.predicted_bytes_per_second is None or lift.judged is None:
        return ""
    band = lift.predicted_bytes_per_second
    how = {"right": "as", "more": "more than", "less": "less than"}[lift.judged]
    return f", {how} predicted ({range_text(band.low, band.high)})"


def _sentence(change: CopyChange) -> str:
    """Returns a copy's result, the change of its limit, and its limit now."""
    result, rate = f"{_result(change)}.", change.after_bytes_per_second
    if change.ratio is None or rate is None:
        verdict = change.before_verdict if rate is not None else change.after_verdict
        return f"{result} Reason: {verdict.sentence}"
    lift = change.lift
    if lift is not None:
        level, name = rate_text(lift.from_bytes_per_second), _part(lift)
        if lift.to_bytes_per_second is not None:
            rose = f"{level} -> {rate_text(lift.to_bytes_per_second)}"
            return f"{result} The limit is still {name}, but it rose: {rose}."
        result += f" {name[0].upper()}{name[1:]}, {level}, is no longer the limit."
    elif not change.significant:
        return result
    now = change.after_verdict
    if now.ceiling_bytes_per_second is None:
        return f"{result} The bottleneck is now not identified."
    return f"{result} The limit is now {_part(now)}, {rate_text(now.ceiling_bytes_per_second)}."


def _part(cap: Words) -> str:
    return f"{sentences.part_name(cap.part)} ({BY_WORDS[cap.component, cap.cause].label})"


# -- stages that both measured -----------------------------------------------------------------


def _stages(earlier: Report, later: Report) -> Iterator[RateChange]:
    """Yields each stage of both, in the later one's order, without copies to and from folders."""
    first = _steps_by_key(earlier)
    for key, new in _steps_by_key(later).items():
        old = first.get(key)
        if old is not None:
            yield RateChange(
                stage=new.plan.stage,
                setting=new.plan.setting,
                initiator=new.plan.initiator,
                before_bytes_per_second=old.rate,
                after_bytes_per_second=new.rate,
                ratio=new.rate.median / old.rate.median,
                significant=noise.differ(old.rate, new.rate),
            )


def _steps_by_key(report: Report) -> dict[tuple[str, ...], MeasuredStep]:
    by_key: dict[tuple[str, ...], MeasuredStep] = {}
    for index, (step, _) in enumerate(report.entries):
        result = steps.found_at(report, index)
        memory = step.setting.get("end") == "memory"
        if (
            result is not None
            and result.is_intact
            and (step.stage not in ("smb-copy", "native-copy") or memory)
        ):
            by_key.setdefault(stage_key(result), result)
    return by_key


def stage_key(step: MeasuredStep) -> tuple[str, ...]:
    """Returns the key that steps with the same measurement have in common."""
    settings = (str(step.plan.setting.get(name)) for name in _TELLING)
    return step.plan.stage, step.plan.initiator, *settings


# -- facts of both hosts, of the share, of this tool -------------------------------------------


def _changed_facts(earlier: Report, later: Report) -> Iterator[FactChange]:
    """Yields the facts that differ between two reports, or that only one has.

    Of a host that only one report has, its name stands for all of its facts.
    """
    both = {side for side in SIDES if getattr(earlier, side) and getattr(later, side)}
    first, second = dict(_facts(earlier, both)), dict(_facts(later, both))
    for fact in dict.fromkeys((*first, *second)):
        old, new = first.get(fact), second.get(fact)
        if old != new:
            yield FactChange(fact, old, new)


def _facts(report: Report, sides: set[str]) -> Iterator[tuple[str, Any]]:
    for name in ("share", "dialect", "signing", "encryption"):
        yield f"target.{name}", steps.word(report.target, name)
    for side in SIDES:
        host = getattr(report, side)
        if host is not None:
            host_facts = _host_facts(side, host)
            yield from host_facts if side in sides else [next(host_facts)]
    for name in ("version", "fio"):
        yield f"tool.{name}", steps.word(report.tool, name)


def _host_facts(side: str, host: HostFacts) -> Iterator[tuple[str, Any]]:
    for name in _HOST:
        yield f"{side}.{name}", getattr(host, name)
    for part, names in (("interface", _INTERFACE), ("folder", _FOLDER)):
        facts = getattr(host, part)
        for name in names if facts is not None else ():
            yield f"{side}.{part}.{name}", getattr(facts, name)
    for name, value in sorted(host.socket_buffers.items()):
        yield f"{side}.socket_buffers.{name}", value
    for each in (*host.tcp_settings, *host.disk_settings, *host.smb_settings):
        yield f"{side}.settings.{each.option}", each.value
