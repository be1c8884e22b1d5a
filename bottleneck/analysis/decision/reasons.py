"""Words of the facts that decided."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bottleneck.analysis.attribution.attribution import Attribution
from bottleneck.analysis.decision.causes import Row
from bottleneck.analysis.decision.conditions import CARRIED_TIMES, faster_twin, limit_fact
from bottleneck.analysis.decision.verdict import Decision
from bottleneck.analysis.decision.weigh import IDLE
from bottleneck.analysis.facts.record import ALLOWS, ALONE, BUSY, SHOWN, UNKNOWN, CopyFacts, Part
from bottleneck.analysis.sentences import part_name
from bottleneck.text.units import percent_text, rate_text

WEIGHED, LEAST_LIKELY, SUREST = 3, 0.05, 0.99
"""Most lines of suspects, least likelihood of one, and highest likelihood that a line states."""
NOT_MEASURED = "something that was not measured"


def because(copy: CopyFacts, part: Part, row: Row, time: Attribution | None) -> str:
    """Returns the reason why a component caps a copy, as it follows "because": two facts.

    These are its share of the time, as the drawing of that time shows it, and an observation of
    the cause or a limit near the rate.
    """
    name, use, limit = part_name(part), copy.busy(part), limit_fact(copy, part)
    sign = copy.sign(row.sign) if row.sign else None
    observation = sign.words if sign is not None else ""
    bound = "" if limit is None else f"{limit.words} gives {rate_text(limit.level.median)}"
    if use is not None and use > IDLE and copy.is_watched:
        shares = () if time is None else time.shares
        drawn = next((e.ratio for e in shares if (e.component, e.side) == part), use)
        lasted = percent_text(min(use, drawn))
        went = f"it was limited by {name} ({row.label}) for {lasted} of the time"
        # The share of the time already states the wait for a window: its size is the news.
        detail = bound if part[0] == "tcp" and bound else observation or bound
        return "; ".join(filter(None, (went, detail)))
    noted = next((e.words for e in copy.facts_of(part, BUSY) if copy.supplied), "")
    both = "; ".join(filter(None, (noted, bound, observation)))
    return both or f"{name} ({row.label}) is the likeliest limit: {_no_other(copy, part)}"


def _no_other(copy: CopyFacts, part: Part) -> str:
    """Returns the argument that leaves one component: a faster twin without it, else no other."""
    twin = faster_twin(copy, part)
    if twin is None:
        return "no other explains this rate"
    return f"{twin.words}, which does not use it, runs at {rate_text(twin.level.median)}"


def weights(decision: Decision) -> Iterator[str]:
    """Yields a line for each likely component: its likelihood, and the facts for and against it."""
    for part, likely in decision.suspects[:WEIGHED]:
        if likely < LEAST_LIKELY:
            return
        name = NOT_MEASURED if part == UNKNOWN else part_name(part)
        reasons = "; ".join(_reasons(decision.copy, part)).replace(name, "by itself")
        if not reasons and part != UNKNOWN:
            reasons = "not measured by itself"
        yield f"{percent_text(min(likely, SUREST))} likely: {name}{reasons and f' ({reasons})'}."


def _reasons(copy: CopyFacts, part: Part) -> Iterator[str]:
    use, limit = copy.busy(part), limit_fact(copy, part)
    if use and part == UNKNOWN:
        yield f"for {percent_text(use)} of the copy's time nothing was seen at work"
    elif use:
        yield f"at work for {percent_text(use)} of the copy's time"
    if limit is not None:
        yield f"{limit.words}: {rate_text(limit.level.median)}, close to the copy's rate"
    others = (each for each in copy.facts_of(part, ALONE, SHOWN, ALLOWS) if each != limit)
    fastest = max(others, key=lambda each: each.level.median, default=None)
    rate = math.inf if copy.rate is None else copy.rate.median
    if fastest is not None and fastest.level.median >= CARRIED_TIMES * rate:
        yield f"{fastest.words}: {rate_text(fastest.level.median)}, more than the copy's rate"
