"""Computes each component's probability of capping a copy, by Bayes' rule over its facts.

    P(k caps) ~ prior(k) * time(k) * fit(k) * outdone(k) * support(k)

time: how busy; fit: of the rate to its limits; outdone: was faster elsewhere; support: by causes.
"Something that was not observed" is weighed alike. All constants of the decision are here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

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
"""Copy's rates: below the first a disk is a rarer cap; at the second a CPU's prior doubles."""
NEAR_SECONDS, NEAR_PRIOR = 2e-3, 0.05
"""RTT below which windows and requests in flight hardly matter, and their prior there."""
NO_RTT_PRIOR = 0.15
TEMPERATURE = 0.15
"""Difference in share of time that makes a component e times as likely."""
MISREAD: Mapping[View, float] = {
    **{"both": 0.1, "hidden": 0.15, "alone": 0.2, "capture": 0.15, "counters": 0.3, "": 0.3}
}
"""Probability that the shares of the time mislead, by view."""
RANGE = 5.0
"""Width in ln(rate) over which a copy's rate spreads if a component does not cap it."""
LEVEL_FLOOR = 0.15
"""Likelihood ratio where the copy runs far below every limit of a component."""
LIMIT_DEVIATION = 0.10
"""Standard deviation of ln(copy's rate over a limit) beyond the limit's own spread."""
LEAST_FIT_RATIO, MOST_FIT_RATIO = 0.90, 1.04
"""Copy's rate over its cap's rate by itself: least and greatest."""
EXCEEDED = 1.1
"""Least copy's rate / limit at which the copy refutes the limit."""
SHOWN_SLACK, SHOWN_POWER, SHOWN_FLOOR = 1.06, 4.0, 0.06
"""Slack, power and floor of the factor for a component that carried more at another time."""
SIGNS: Mapping[Support, float] = {
    **{"reached": 4.0, "passing": 4.0, "speaks": 4.0, "alike": 2.0, "": 1.0}
}
"""Factor for a component by the support of a cause observed in this very copy."""
IDLE, UNCOUNTED = 0.4, 0.35
"""Utilization below which no sign counts; utilization of components without a counter."""


def weigh(copy: CopyFacts) -> dict[Part, float]:
    """Returns each component's probability of capping the copy, which has a rate; sums to 1."""
    assert copy.rate is not None
    time_weights = _time_weights(copy)
    products: dict[Part, float] = {}
    for part in copy.chain:
        worked = _had_work(copy, part)
        support = support_of(copy, part) if worked else ""
        fit = _limits_fit(copy, part, copy.rate)
        if part[0] == "disk" and not worked and copy.is_watched:
            # The watched disk was idle: that its own rate is the copy's is coincidence.
            fit = min(1.0, fit)
        facts = copy.facts_of(part, SHOWN)
        outdone = min((_outdone_factor(each, copy.rate) for each in facts), default=1.0)
        if support not in ("", "speaks"):
            # A cause observed in this copy explains why it is slower than at other moments.
            fit, outdone = max(1.0, fit), 1.0
        prior = _prior(copy, part, copy.rate.median, support != "")
        products[part] = prior * time_weights[part] * fit * outdone * SIGNS[support]
    twins = [each for each in copy.facts if each.kind == SHOWN and each.is_of_twin]
    twin_factors = (_outdone_factor(each, copy.rate) for each in twins)
    products[UNKNOWN] = PRIORS["unknown"] * time_weights[UNKNOWN] * min(twin_factors, default=1.0)
    total = sum(products.values())
    return {part: value / total for part, value in products.items()}


def _prior(copy: CopyFacts, part: Part, rate: float, has_sign: bool) -> float:
    component = part[0]
    prior = RECEIVER_PRIOR if part == ("tcp", copy.receiver) else PRIORS[component]
    if component == "disk":
        return prior * min(1.0, math.sqrt(rate / USUAL_DISK))
    if component == "cpu":
        return prior * (1 + rate / USUAL_CORE)
    if component == "tcp" and copy.rtt_seconds is None:
        return NO_RTT_PRIOR
    is_near = copy.rtt_seconds is not None and copy.rtt_seconds < NEAR_SECONDS
    if component not in ("tcp", "smb") or not is_near:
        return prior
    return prior if has_sign else NEAR_PRIOR


def _had_work(copy: CopyFacts, part: Part) -> bool:
    """Whether a component was not observed to be nearly idle."""
    use = copy.busy(part)
    return use is None or use > IDLE or part in copy.unseen


def _time_weights(copy: CopyFacts) -> dict[Part, float]:
    """Returns weights by the copy's time: a busier component is a likelier cap."""
    uses = {part: copy.busy(part) for part in (*copy.chain, UNKNOWN)}
    hidden = copy.busy(UNKNOWN) or 0.0
    if all(use is None for use in uses.values()):
        return dict.fromkeys(uses, 1.0)
    uncounted_use = 0.0 if copy.is_watched else UNCOUNTED
    uses_by_part = {part: uncounted_use if use is None else use for part, use in uses.items()}
    for part in copy.unseen & uses_by_part.keys():
        # Work that the view cannot observe is a part of its unknown time.
        uses_by_part[part] = min(1.0, uses_by_part[part] + hidden)
    uses_by_part = _with_stalls(copy, uses_by_part)
    errors = [each.level.high - each.level.median for each in copy.facts if each.kind == BUSY]
    scale = math.hypot(TEMPERATURE, max(errors, default=0.0))
    weights = {part: math.exp(use / scale) for part, use in uses_by_part.items()}
    total, misread = sum(weights.values()), MISREAD[copy.view]
    even = misread / len(weights)
    return {part: (1 - misread) * each / total + even for part, each in weights.items()}


def _with_stalls(copy: CopyFacts, uses: dict[Part, float]) -> dict[Part, float]:
    """Counts the time in which the server stood still as its own, not the path's.

    Meanwhile the path's queues are full, as on a full path, and no component is at work.
    """
    sign = copy.sign("stalls")
    part: Part = ("smb", sign.side if sign is not None else None)
    if sign is None or part not in uses or not copy.is_watched:
        return uses
    if not stands_still(copy, part):
        return uses
    reduced = {each: max(0.0, uses[each] - sign.value) for each in (NETWORK, UNKNOWN)}
    return {**uses, **reduced, part: max(uses[part], sign.value)}


def _limits_fit(copy: CopyFacts, part: Part, rate: Level) -> float:
    """Returns the likelihood ratio of the copy's rate by a component's limits; 1: none is known.

    A copy at one of the limits makes the component likely, a copy at none unlikely.
    """
    by_tests, by_settings = (
        max((f for f in (_fit(each, rate) for each in copy.facts_of(part, kind)) if f), default=1.0)
        for kind in (ALONE, ALLOWS)
    )
    better, worse = max(by_tests, by_settings), min(by_tests, by_settings)
    # The second kind of limit counts less: the two are never quite independent.
    return better * math.sqrt(max(1.0, worse)) if better > 1 else worse


def _fit(limit: Fact, rate: Level) -> float | None:
    """Returns the likelihood ratio of a rate by one limit; None: the copy refutes that limit."""
    low, high = LEAST_FIT_RATIO * limit.level.low, MOST_FIT_RATIO * limit.level.high
    if rate.low > EXCEEDED * high:
        return None
    off = max(0.0, math.log(low / rate.high), math.log(rate.low / high))
    peak = RANGE / (math.log(high / low) + math.sqrt(math.tau) * LIMIT_DEVIATION)
    return max(LEVEL_FLOOR, peak * math.exp(-0.5 * (off / LIMIT_DEVIATION) ** 2))


def _outdone_factor(fact: Fact, rate: Level) -> float:
    """Returns the factor for a component through which another transfer was faster."""
    ratio = SHOWN_SLACK * rate.median / fact.level.median
    return max(SHOWN_FLOOR, min(1.0, float(ratio**SHOWN_POWER)))
