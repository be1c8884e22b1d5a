"""Before against after: each copy, the cap that was lifted, and what had been predicted of it."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import diagnosis, noise, sentences, steps
from bottleneck.analysis.changes.facts import changed_facts
from bottleneck.analysis.changes.found import Change, CopyChange, Judged, Lift
from bottleneck.analysis.changes.stages import changed_stages
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis, Predicted, Verdict
from bottleneck.report import Report
from bottleneck.reports.units import range_text, rate_text, times_text
from probes.records import Spread

RAISED_RATIO = 1.1
"""A ceiling this far above the one of before is another one."""
CLOSE_RATIO = 0.05
"""A prediction that is no further off was right, however narrow its range."""


def compare(before: Report, after: Report) -> Change:
    """What changed from one report to a later one; pure, and the diagnoses are made anew."""
    first, second = diagnosis.diagnose(before), diagnosis.diagnose(after)
    pairs = list(_pairs(first, second))
    spreads = _spreads(before), _spreads(after)
    copies = tuple(_change(old, new, *spreads) for old, new in pairs)
    paired = {id(each) for pair in pairs for each in pair}
    # The headline's copy where both have it, else one that both have, else any.
    chosen = max(
        copies,
        key=lambda each: (each.ratio is not None, each.copy == first.headline),
        default=None,
    )
    return Change(
        summary="The two reports share no copy." if chosen is None else chosen.sentence,
        copies=copies,
        stages=tuple(changed_stages(before, after)),
        facts=tuple(changed_facts(before, after)),
        only_before=_alone(first, paired),
        only_after=_alone(second, paired),
    )


def _alone(found: Diagnosis, paired: set[int]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            f"{each.copy} ({each.dialect})" for each in found.copies if id(each) not in paired
        )
    )


def _pairs(first: Diagnosis, second: Diagnosis) -> Iterator[tuple[CopyDiagnosis, CopyDiagnosis]]:
    """The same copies of both; in another dialect where one of them has none in this."""
    rest = list(second.copies)
    left = []
    for old in first.copies:
        new = next((e for e in rest if _key(e) == _key(old) and e.dialect == old.dialect), None)
        if new is None:
            left.append(old)
        else:
            rest.remove(new)
            yield old, new
    for old in left:
        new = next((each for each in rest if _key(each) == _key(old)), None)
        if new is not None:
            rest.remove(new)
            yield old, new


def _key(copy: CopyDiagnosis) -> tuple[str, str]:
    return copy.copy, copy.initiator


Spreads = dict[tuple[str, str, str, float], Spread]


def _spreads(report: Report) -> Spreads:
    return {
        (each.name, each.dialect, each.initiator, each.made.rate.median): each.made.rate
        for each in steps.copies(report)
        if each.made is not None
    }


def _spread(spreads: Spreads, copy: CopyDiagnosis) -> Spread | None:
    if copy.bytes_per_second is None:
        return None
    return spreads[copy.copy, copy.dialect, copy.initiator, copy.bytes_per_second]


def _change(old: CopyDiagnosis, new: CopyDiagnosis, before: Spreads, after: Spreads) -> CopyChange:
    was, now = _spread(before, old), _spread(after, new)
    lift = None if was is None or now is None else _lift(old, new, was, now)
    return CopyChange(
        copy=old.copy,
        initiator=old.initiator,
        before_dialect=old.dialect,
        after_dialect=new.dialect,
        before_bytes_per_second=was,
        after_bytes_per_second=now,
        ratio=None if was is None or now is None else now.median / was.median,
        significant=was is not None and now is not None and noise.differ(was, now),
        before_verdict=old.verdict,
        after_verdict=new.verdict,
        lift=lift,
        sentence=_sentence(old, new, was, now, lift),
    )


def _lift(old: CopyDiagnosis, new: CopyDiagnosis, was: Spread, now: Spread) -> Lift | None:
    """The cap of before, where it is not the cap any more or its ceiling rose; else None."""
    cap = old.verdict
    level = cap.ceiling_bytes_per_second
    if level is None or new.verdict.ceiling_bytes_per_second is None:
        return None
    to = None
    if _named(cap) == _named(new.verdict):
        to = new.verdict.ceiling_bytes_per_second
        if to < RAISED_RATIO * level:
            return None
    elif any(_named(each) == _named(cap) and _still(each, level) for each in new.ceilings):
        # It is as low as before: what caps the copy now came in front of it.
        return None
    predicted = _predicted(old, was, None if to is None else to / level)
    judged = None if predicted is None else _judged(predicted, now)
    return Lift(cap.component, cap.side, cap.cause, level, to, predicted, judged)


def _still(ceiling: Ceiling, level: float) -> bool:
    low = ceiling.standing not in ("at-least", "estimated")
    return low and ceiling.bytes_per_second < RAISED_RATIO * level


def _named(cap: Verdict | Ceiling) -> tuple[str, str | None, str]:
    return cap.component, cap.side, cap.cause


def _predicted(old: CopyDiagnosis, was: Spread, times: float | None) -> Predicted | None:
    """What the earlier report said; no more than so many times the rate where the cap rose alone.

    times: how far it rose; None: it is gone.
    """
    told = old.predicted_bytes_per_second
    if told is None or times is None:
        return told
    return Predicted(
        min(told.low, times * was.low),
        min(told.median, times * was.median),
        min(told.high, times * was.high),
    )


def _judged(predicted: Predicted, now: Spread) -> Judged:
    off = now.median / predicted.median - 1
    if predicted.low <= now.median <= predicted.high or abs(off) <= CLOSE_RATIO:
        return "right"
    return "more" if off > 0 else "less"


def _sentence(
    old: CopyDiagnosis,
    new: CopyDiagnosis,
    was: Spread | None,
    now: Spread | None,
    lift: Lift | None,
) -> str:
    if was is None or now is None:
        which = " before" if was is None else " after"
        which = "" if was is None and now is None else which
        reason = (old if was is None else new).verdict.sentence
        return f"{old.copy} could not be made{which}: {reason}"
    told = f"{old.copy} ran at {rate_text(was.median)}, and at {rate_text(now.median)} now"
    if not noise.differ(was, now):
        return f"{told}: no difference that these runs can tell.{_by(lift, new, now)}"
    if now.median > was.median:
        how = f"{times_text(now.median / was.median)} as fast"
    else:
        how = f"so that it takes {times_text(was.median / now.median)} the time"
    return f"{told}, {how}.{_by(lift, new, now)}"


def _by(lift: Lift | None, new: CopyDiagnosis, now: Spread) -> str:
    """What was lifted and whether the gain is the predicted one; else what holds it now."""
    holds = _holds(new.verdict)
    if lift is None:
        return f" {holds}"
    name = _part(lift)
    how = "is no longer what caps it"
    if lift.to_bytes_per_second is not None:
        how = f"rose to {rate_text(lift.to_bytes_per_second)}"
    was = f" {name[0].upper()}{name[1:]} ({rate_text(lift.from_bytes_per_second)}) {how}"
    told = lift.predicted_bytes_per_second
    if told is None or lift.judged is None:
        return f"{was}; nothing was predicted of it. {holds}"
    ranged = range_text(told.low, told.high)
    got = f"predicted {rate_text(told.median)} ({ranged}), got {rate_text(now.median)}"
    return f"{was}: {got}: {lift.judged}. {holds}"


def _holds(verdict: Verdict) -> str:
    level = verdict.ceiling_bytes_per_second
    if level is None:
        return "What caps it now was not found."
    return f"Its cap is now {_part(verdict)}, {rate_text(level)}."


def _part(cap: Lift | Verdict) -> str:
    return f"{sentences.part_name((cap.component, cap.side))} ({cap.cause})"
