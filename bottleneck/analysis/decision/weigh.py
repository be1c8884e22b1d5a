"""Computes each component's likelihood of capping a copy, by Bayes' rule over its facts.

    P(k caps) ~ prior(k) * time(k) * level(k) * carried(k) * signs(k)

and the same for "something that was not observed". All constants of the decision are here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bottleneck.analysis.decision.causes import Support, support_of
from bottleneck.analysis.decision.conditions import stands_still
from bottleneck.analysis.facts.record import (
    ALLOWS,
    ALONE,
    BUSY,
    NETWORK,
    SHOWN,
    UNKNOWN,
    CopyFacts,
    Fact,
    Level,
    Part,
    View,
)

PRIORS = {"disk": 1.0, "network": 1.0, "cpu": 0.6, "smb": 0.5, "tcp": 0.35, "unknown": 0.5}
RECEIVER_PRIOR = 0.4
"""Prior of the receiver's end of TCP, whose window is likelier than the sender's buffer."""
USUAL_DISK, USUAL_CORE = 1e7, 3e8
"""Bytes per second, from which on a slower disk is rarer and a faster core likelier as a cap."""
NEAR_SECONDS, NEAR_PRIOR, NO_TRIP_PRIOR = 2e-3, 0.05, 0.15
"""Round trip below which neither windows nor requests in flight matter; prior below it; prior of
TCP where no round trip is known."""
TEMPERATURE = 0.15
"""Lead in the share of the time that makes a component e times as likely."""
MISREAD: Mapping[View, float] = {
    **{"both": 0.1, "hidden": 0.15, "alone": 0.2, "counters": 0.3, "": 0.3}
}
"""Probability that the shares of the time mislead, by view."""
RANGE = 5.0
"""Width in ln(rate) over which a copy's rate spreads if a component does not cap it."""
LEVEL_FLOOR = 0.15
"""Likelihood ratio where the copy runs far below every limit of a component."""
WIDTH = 0.10
"""Standard deviation of ln(copy over limit) beyond the limit's own spread."""
LESS, MORE = 0.90, 1.04
"""Copy's rate over its component's rate by itself: least and greatest."""
EXCEEDED = 1.1
"""Copy's rate over a limit, above which the copy refutes it."""
SHOWN_SLACK, SHOWN_POWER, SHOWN_FLOOR = 1.06, 4.0, 0.06
"""Constants of the evidence against a component by faster transfers through it at other times: it
has a floor, because a component's rate changes."""
SIGNS: Mapping[Support, float] = {
    **{"reached": 4.0, "passing": 4.0, "speaks": 4.0, "alike": 2.0, "": 1.0}
}
"""Factor for a component by the support of a cause observed in this very copy."""
IDLE, UNCOUNTED = 0.4, 0.35
"""Utilization below which no sign counts; and that of components without a counter."""


@dataclass(frozen=True)
class Likelihoods:
    """Likelihood of each component to cap a copy."""

    likely: Mapping[Part, float]
    """Likelihoods; they sum to 1."""

    @property
    def ranked(self) -> list[tuple[Part, float]]:
        """The components, the likeliest first."""
        return sorted(self.likely.items(), key=lambda each: -each[1])


def weigh(copy: CopyFacts) -> Likelihoods:
    """Weighs all components of a copy that has a rate."""
    assert copy.rate is not None
    time = _time(copy)
    products: dict[Part, float] = {}
    for part in copy.chain:
        worked = _had_work(copy, part)
        signs, level = support_of(copy, part) if worked else "", _level(copy, part, copy.rate)
        if part[0] == "disk" and not worked and copy.is_watched:
            # A rate that happens to be that of a disk at rest is no limit of it.
            level = min(1.0, level)
        carried = min((_carried(each, copy.rate) for each in copy.of(part, SHOWN)), default=1.0)
        if signs not in ("", "speaks"):
            # A cause observed in this copy explains why it is slower than at other moments.
            level, carried = max(1.0, level), 1.0
        prior = _prior(copy, part, copy.rate.median, signs != "")
        products[part] = prior * time[part] * level * carried * SIGNS[signs]
    twins = (_carried(each, copy.rate) for each in copy.facts if each.kind == SHOWN and each.beside)
    products[UNKNOWN] = PRIORS["unknown"] * time[UNKNOWN] * min(twins, default=1.0)
    total = sum(products.values())
    return Likelihoods({part: value / total for part, value in products.items()})


def _prior(copy: CopyFacts, part: Part, rate: float, speaks: bool) -> float:
    component = part[0]
    prior = RECEIVER_PRIOR if part == ("tcp", copy.receiver) else PRIORS[component]
    if component == "disk":
        return prior * min(1.0, math.sqrt(rate / USUAL_DISK))
    if component == "cpu":
        return prior * (1 + rate / USUAL_CORE)
    if component == "tcp" and copy.rtt_seconds is None:
        return NO_TRIP_PRIOR
    is_near = copy.rtt_seconds is not None and copy.rtt_seconds < NEAR_SECONDS
    if component not in ("tcp", "smb") or not is_near:
        return prior
    return prior if speaks else NEAR_PRIOR


def _had_work(copy: CopyFacts, part: Part) -> bool:
    """Whether a sign may speak for a component: not if it was observed to be nearly idle."""
    use = copy.busy(part)
    return use is None or use > IDLE or part in copy.unseen


def _time(copy: CopyFacts) -> dict[Part, float]:
    """Returns the likelihoods by the copy's time: a busier component is a likelier cap."""
    uses = {part: copy.busy(part) for part in (*copy.chain, UNKNOWN)}
    hidden = copy.busy(UNKNOWN) or 0.0
    if all(use is None for use in uses.values()):
        return dict.fromkeys(uses, 1.0)
    unseen_use = 0.0 if copy.is_watched else UNCOUNTED
    levels = {part: unseen_use if use is None else use for part, use in uses.items()}
    for part in copy.unseen & levels.keys():
        # Work that the view cannot observe is a part of its unknown time.
        levels[part] = min(1.0, levels[part] + hidden)
    levels = _standing_still(copy, levels)
    errors = [each.level.high - each.level.median for each in copy.facts if each.kind == BUSY]
    scale = math.hypot(TEMPERATURE, max(errors, default=0.0))
    weights = {part: math.exp(use / scale) for part, use in levels.items()}
    total, misread = sum(weights.values()), MISREAD[copy.view]
    even = misread / len(weights)
    return {part: (1 - misread) * each / total + even for part, each in weights.items()}


def _standing_still(copy: CopyFacts, levels: dict[Part, float]) -> dict[Part, float]:
    """Returns the utilizations, with the silence of a server that stands still as its own time.

    Meanwhile the path's queues are full, as on a full path, and no component is at work.
    """
    sign = copy.sign("stalls")
    part: Part = ("smb", sign.side if sign is not None else None)
    if sign is None or part not in levels or not copy.is_watched:
        return levels
    if not stands_still(copy, part):
        return levels
    rest = {each: max(0.0, levels[each] - sign.value) for each in (NETWORK, UNKNOWN)}
    return {**levels, **rest, part: max(levels[part], sign.value)}


def _level(copy: CopyFacts, part: Part, rate: Level) -> float:
    """Returns the likelihood ratio of the copy's rate by a component's limits; 1: none is known.

    It is the cap if the copy runs at one of its limits; if at none, all of them speak against it.
    """
    by_tests, by_settings = (
        max((f for f in (_fit(each, rate) for each in copy.of(part, kind)) if f), default=1.0)
        for kind in (ALONE, ALLOWS)
    )
    first, second = max(by_tests, by_settings), min(by_tests, by_settings)
    # Two kinds of limits that both fit are two witnesses, and never quite independent.
    return first * math.sqrt(max(1.0, second)) if first > 1 else second


def _fit(limit: Fact, rate: Level) -> float | None:
    """Returns the likelihood ratio of a rate by one limit; None: the copy refutes that limit."""
    low, high = LESS * limit.level.low, MORE * limit.level.high
    if rate.low > EXCEEDED * high:
        return None
    off = max(0.0, math.log(low / rate.high), math.log(rate.low / high))
    peak = RANGE / (math.log(high / low) + math.sqrt(math.tau) * WIDTH)
    return max(LEVEL_FLOOR, peak * math.exp(-0.5 * (off / WIDTH) ** 2))


def _carried(fact: Fact, rate: Level) -> float:
    """Returns the likelihood of a component to cap a copy, given a faster transfer through it."""
    share = SHOWN_SLACK * rate.median / fact.level.median
    return max(SHOWN_FLOOR, min(1.0, float(share**SHOWN_POWER)))
