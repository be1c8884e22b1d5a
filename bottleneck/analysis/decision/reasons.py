"""The facts that decided, in words."""

from __future__ import annotations

import math

from bottleneck.analysis.decision.causes import Row
from bottleneck.analysis.facts.record import (
    ALLOWS,
    ALONE,
    CopyFacts,
    Fact,
    Part,
)
from bottleneck.analysis.sentences import part_name
from bottleneck.text.units import percent_text, rate_text

NEAR_RATIOS = 0.7, 1.15
"""The copy's rate over a limit that is worth a sentence beside it."""


def limit_fact(copy: CopyFacts, part: Part) -> Fact | None:
    """Returns the limit of a component that the copy runs at; None: at none."""
    if copy.rate is None:
        return None
    rate, (low, high) = copy.rate.median, NEAR_RATIOS
    near = [e for e in copy.of(part, ALONE, ALLOWS) if low <= rate / e.level.median <= high]
    return min(near, key=lambda each: abs(math.log(rate / each.level.median)), default=None)


def because(copy: CopyFacts, part: Part, row: Row) -> str:
    """Returns why a component caps a copy, as what follows "because"."""
    name, use, limit = part_name(part), copy.busy(part), limit_fact(copy, part)
    if copy.view not in ("counters", "") and use is not None:
        return f"it was limited by {name} ({row.label}) for {percent_text(use)} of the time"
    sign = copy.sign(row.sign) if row.sign else None
    if sign is not None and sign.words:
        return sign.words
    if limit is not None:
        return f"{limit.words} gives at most {rate_text(limit.level.median)}"
    return f"{name} ({row.label}) is the likeliest limit: no other explains this rate"
