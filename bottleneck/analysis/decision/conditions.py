"""Conditions under which a cause is present, by the facts, signs and claims of a copy."""

from __future__ import annotations

import math
from collections.abc import Callable

from bottleneck.analysis.facts import record
from bottleneck.analysis.facts.record import ALLOWS, ALONE, NETWORK, SHOWN, CopyFacts, Fact, Part
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import BY_CGROUP
from bottleneck.analysis.rules.network.loss import bracket

SEGMENT_BYTES = 1448
"""Payload of a usual packet."""
FULL_RATIO = 0.9
"""Least copy's rate / several connections' at which the copy fills the path despite losses."""
MOSTLY_ALONE_TIMES = 2.0
AT_WORK_RATIO = 0.4
"""Least share of the time with work of a disk that may be the reason for its server's pauses."""
SHORT_OF_PATH_RATIO, FAR_BELOW_RATIO = 0.8, 0.1
SCALED = ("one-core", "all-cores", "ceiling")
"""Causes whose limit is a load that was scaled up."""
FITS_RATIOS = 0.75, 1.3
"""Copy's rate over a limit that it runs at."""
CHANGED_TIMES = 1.5
"""Least path's rate at another time / the copy's at which the path has changed."""
SHARED_FULL_RATIO, IMPOSSIBLE_RATIO = 0.8, 1.15
"""Sum of a copy and others' traffic over a rate: at least of a full path; at most of a shared
link."""
NEAR_RATIOS = 0.7, 1.15
"""Copy's rate over a limit that is close enough to mention."""
CARRIED_TIMES = 1.1
"""Least other rate through a component / the copy's at which the component is no limit."""

Holds = Callable[[CopyFacts, Part], bool]
"""Whether a cause is present, by the copy's facts and the component."""


def limit_fact(copy: CopyFacts, part: Part) -> Fact | None:
    """Returns the limit of a component that the copy runs at; None: there is none."""
    if copy.rate is None:
        return None
    rate, (low, high) = copy.rate.median, NEAR_RATIOS
    near = [e for e in copy.facts_of(part, ALONE, ALLOWS) if low <= rate / e.level.median <= high]
    # A window's limit says more than a test of TCP that met the same limit.
    by_kind = {ALLOWS: 0, ALONE: 1 if part[0] == "tcp" else 0}
    apart = {each: abs(math.log(rate / each.level.median)) for each in near}
    return min(near, key=lambda each: (by_kind[each.kind], apart[each]), default=None)


def faster_twin(copy: CopyFacts, part: Part) -> Fact | None:
    """Returns the fastest copy of the run that does not pass a component; None: none is faster."""
    users = {each.words for each in copy.facts_of(part, SHOWN)}
    twins = [each for each in copy.facts_of(NETWORK, SHOWN) if each.words not in users]
    twin = max(twins, key=lambda each: each.level.median, default=None)
    rate = math.inf if copy.rate is None else copy.rate.median
    return twin if twin is not None and twin.level.median >= CARRIED_TIMES * rate else None


def is_reached(claim: Claim) -> bool:
    """Whether the copy is at a limit by more than a load that was scaled up."""
    return claim.reached is True and claim.ceiling.cause not in SCALED


def claim_of(copy: CopyFacts, words: str, part: Part) -> Claim | None:
    """Returns the first claim of a cause behind a component that fits the copy; None: none.

    It fits where the copy's own load shows it, or where the copy runs at its level.
    """
    for of, claim in copy.claims:
        is_cause = f"{claim.ceiling.component}/{claim.ceiling.cause}" == words
        is_limit = claim.ceiling.standing != "at-least"
        if of == part and is_cause and is_limit and _fits(copy, claim):
            return claim
    return None


def _fits(copy: CopyFacts, claim: Claim) -> bool:
    if copy.rate is None or claim.reached is not None:
        return claim.reached is not False or claim.partly
    low, high = FITS_RATIOS
    return low <= copy.rate.median / claim.ceiling.bytes_per_second <= high


def has_claim(words: str) -> Holds:
    """Makes the condition that a claim of a cause at the component's side fits the copy."""

    def holds(copy: CopyFacts, part: Part) -> bool:
        return claim_of(copy, words, part) is not None

    return holds


def unless_throttled(way: Holds) -> Holds:
    """Makes a condition of another, except where the copy runs at a control group's limit."""

    def holds(copy: CopyFacts, part: Part) -> bool:
        limits = (claim for of, claim in copy.claims if of == part and claim.detail == BY_CGROUP)
        return way(copy, part) and not any(_fits(copy, each) for each in limits)

    return holds


def either(*ways: Holds) -> Holds:
    """Makes the condition that any of several conditions holds."""

    def holds(copy: CopyFacts, part: Part) -> bool:
        return any(each(copy, part) for each in ways)

    return holds


def sign(name: str, threshold: float = 0.0) -> Holds:
    """Makes the condition that there is a sign, of the component's side if it has one."""

    def holds(copy: CopyFacts, part: Part) -> bool:
        fits = (e for e in copy.signs if e.name == name and e.value > threshold)
        return any(each.side is None or part[1] in ("path", each.side) for each in fits)

    return holds


def is_shared(copy: CopyFacts, part: Part) -> bool:
    """Whether others' bytes and the copy's together reach the path's highest known rate."""
    others = max((e.value for e in copy.signs if e.name == "others-traffic"), default=0.0)
    if others <= record.OTHERS_RATIO or copy.rate is None:
        return False
    total, link = copy.rate.median / (1 - others), copy.lowest(NETWORK, ALLOWS)
    # Their sum is more than one link carries, so they took different links.
    if link is not None and total > IMPOSSIBLE_RATIO * link:
        return False
    highest = max((e.level.median for e in copy.facts_of(NETWORK, ALONE, SHOWN)), default=0.0)
    return total >= SHARED_FULL_RATIO * highest


def is_lossy(copy: CopyFacts, part: Part, sign: str = "lost") -> bool:
    """Whether the loss of a sign explains the rate by the law of losses.

    Where several connections get no more than the copy, the path is full: a policer drops, too.
    """
    lost, several = copy.sign(sign), copy.sign("several-carry")
    if lost is None or copy.rate is None:
        return False
    capacity = several.value if several is not None else copy.lowest(NETWORK, ALLOWS)
    if capacity is not None and copy.rate.median >= FULL_RATIO * capacity:
        return False
    if several is None and copy.sign("ignores-loss"):
        return False
    trip = max(1e-6, copy.rtt_seconds or 1.0)
    return bracket(SEGMENT_BYTES, trip, lost.value, "cubic").fits(copy.rate.median)


def is_lossy_alone(copy: CopyFacts, part: Part) -> bool:
    return is_lossy(copy, part) and copy.sign("several-carry") is None and not copy.supplied


def vanish(copy: CopyFacts, part: Part) -> bool:
    """Whether large packets vanish: in the copy, or in the path's test if the copy waited."""
    waits = copy.rate is None or copy.sign("timeouts") is not None
    return copy.sign("stalled") is not None or (copy.sign("hole") is not None and waits)


def mtus_differ(copy: CopyFacts, part: Part) -> bool:
    below = copy.sign("below-link")
    return bool(copy.sign("mtu-differs")) and below is not None and below.value < FAR_BELOW_RATIO


def is_slow_one_way(copy: CopyFacts, part: Part) -> bool:
    return bool(copy.sign("below-link") and copy.sign("one-way"))


def was_faster(copy: CopyFacts, part: Part) -> bool:
    """Whether the path carried much more at another moment of the run."""
    rate = copy.rate.median if copy.rate is not None else math.inf
    return copy.highest(NETWORK, ALONE, SHOWN) > CHANGED_TIMES * rate


def is_starting(copy: CopyFacts, part: Part) -> bool:
    """Whether the copy ended while TCP still grew, below other rates over the path."""
    other = [each for each in copy.facts_of(NETWORK, ALONE, SHOWN) if not each.is_of_twin]
    highest = max((each.level.median for each in other), default=math.inf)
    return (
        copy.sign("grows") is not None
        and copy.rate is not None
        and copy.rate.median < SHORT_OF_PATH_RATIO * highest
    )


def stands_still(copy: CopyFacts, part: Part) -> bool:
    """Whether a server pauses for another reason than its disk."""
    disk: Part = ("disk", part[1])
    rate = copy.rate.median if copy.rate is not None else math.inf
    is_quick = copy.highest(disk, ALONE) > MOSTLY_ALONE_TIMES * rate
    is_quick = is_quick and (copy.busy(disk) or 0.0) < AT_WORK_RATIO
    if claim_of(copy, "cpu/quota", ("cpu", part[1])) is not None:
        return False
    return copy.sign("stalls") is not None and (disk not in copy.chain or is_quick)


def receives(copy: CopyFacts, part: Part) -> bool:
    return part[1] == copy.receiver


def is_signing_program(copy: CopyFacts, part: Part) -> bool:
    return copy.sign("signed") is not None and copy.sign("faster-program") is not None


def always(copy: CopyFacts, part: Part) -> bool:
    return True
