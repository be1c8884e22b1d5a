"""Rates that each component of a copy allows once some limits are lifted.

A component allows the rates of transfers through it, and of tests of it alone. Without these the
utilization law gives its limit: the copy's rate over the share of the time in which it had work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import model
from bottleneck.analysis.facts.record import (
    ALLOWS,
    ALONE,
    BUSY,
    COSTS,
    NETWORK,
    SHOWN,
    CopyFacts,
    Level,
    Part,
)
from bottleneck.analysis.finding import Ceiling, Named
from bottleneck.analysis.model import Band
from bottleneck.analysis.rules.registry import BY_WORDS

BATCHING, SLOW_BATCHING, BATCHING_DOUBT = 1.5, 2.0, 0.5
"""Exponent by which a core's cost for each byte falls as a paced copy speeds up."""
SLOW_BYTES_PER_SECOND = 50e6
"""Most rate of a copy that leaves a core idle between its packets."""
PACED = ("network", "tcp", "smb")
"""Components whose limit lets bytes trickle in, a few for each wake-up of a core."""
LEAST_BUSY = 0.05
"""Least share of the time with work that shows where a component would be full."""
DISKLESS_TIMES = 2.0
"""Gain of a host that neither reads nor writes a file, at most."""
LIGHT_LOAD_RATIO = 0.2
"""Least share of a CPU that a copy takes, to show where that CPU would be full."""
TAKEN_DOUBT = 0.3
"""Error of a CPU's limit where others or a quota took a part of it, as a ratio."""
SAME_RATIO = 1.01
"""Distance of two figures of one limit."""
REFUTED_RATIO = 0.95
"""Least share of the copy's rate at which a measurement is the component's limit."""
MET_BY_TESTS = ("loss", "mtu", "pcie", "usb")
"""Causes that slow down the tests of TCP by itself as well."""
MOST_OTHERS_RATIO = 0.99
"""Largest share of other traffic that is believed."""
UNLIMITED = Band(math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class Fix:
    """A limit that is taken away."""

    part: Part
    words: Named
    """Component, side and cause, in the contract's words."""
    level: float
    """The limit, bytes per second."""

    @property
    def limits_without_fault(self) -> bool:
        """Whether the component is a limit without this cause: a path without faults has a link."""
        is_slot = self.words[0] == "bus" and self.part == NETWORK
        return is_slot or BY_WORDS[self.words[0], self.words[2]].limits_without_fault

    @property
    def is_link(self) -> bool:
        """Whether the cause is a link's rate, to be exchanged for a faster one."""
        return (self.words[0], self.words[2]) == ("network", "link-rate")


def capability(copy: CopyFacts, part: Part, fixes: Sequence[Fix]) -> Band | None:
    """Returns a component's rates without some limits, bytes per second; None: unknown."""
    band = _capability(copy, part, fixes)
    # The limit after a removed one is no lower than that.
    floor = max((each.level for each in fixes), default=0.0)
    return None if band is None else Band.combine(max, band, Band(floor, floor, floor))


def _capability(copy: CopyFacts, part: Part, fixes: Sequence[Fix]) -> Band | None:
    assert copy.rate is not None
    here = [each for each in fixes if each.part == part]
    fix = here[0] if here else None
    is_inside = part == NETWORK and copy.sign("one-host") is not None
    if is_inside or len(here) > 1 or (fix is not None and not fix.limits_without_fault):
        return UNLIMITED
    match part[0]:
        case "network":
            band = path_with_slots(copy, _path(copy, fix), fixes)
        case "disk":
            band = _disk(copy, part, fix)
        case "cpu":
            return _cpu(copy, part, fixes)
        case _:
            return _window(copy, part)
    if not any(each.part[0] == "cpu" for each in fixes):
        return band
    # The component's test may have waited for the same CPU: its rate is a lower bound.
    floor = demonstrated_rate(copy, part)
    if band is None:
        return Band(floor, math.inf, math.inf) if floor > copy.rate.median else None
    is_link = part == NETWORK and model.looks_like(band.median) is not None
    return band if is_link else replace(band, high=math.inf)


def demonstrated_rate(copy: CopyFacts, part: Part) -> float:
    """Returns the least that a component can do, bytes per second: the highest rate through it.

    For a disk that was watched, its rate with work all the time, by the utilization law.
    """
    assert copy.rate is not None
    floor = max(copy.rate.median, copy.highest(part, SHOWN))
    use = _use(copy, part) if part[0] == "disk" else None
    return floor if use is None else max(floor, copy.rate.median / max(LEAST_BUSY, use.high))


def _use(copy: CopyFacts, part: Part) -> Level | None:
    if part in copy.unseen or not copy.is_watched:
        return None
    # A view of both hosts sees each component that has work.
    idle = Level(0.0, 0.0, 0.0) if copy.view == "both" else None
    return next((each.level for each in copy.facts_of(part, BUSY)), idle)


def is_too_small(copy: CopyFacts, part: Part) -> bool:
    """Whether an end's window or buffer was observed to be too small."""
    return any(copy.sign(name, part[1]) is not None for name in ("small-window", "small-buffer"))


def _above(floor: float, low: float, median: float, high: float) -> Band:
    return Band(max(floor, low), max(floor, median), max(floor, high))


def _tests(copy: CopyFacts, part: Part) -> list[Band]:
    """Returns a component's rates by itself, lowest first, unless the copy exceeds them."""
    assert copy.rate is not None
    levels = [each.level for each in copy.facts_of(part, ALONE)]
    bands = (Band.from_rate(e) for e in levels if e.median >= REFUTED_RATIO * copy.rate.median)
    return sorted(bands, key=lambda each: each.median)


def _path(copy: CopyFacts, fix: Fix | None) -> Band | None:
    floor = demonstrated_rate(copy, NETWORK)
    assert copy.rate is not None
    if fix is not None and fix.words[2] == "contention":
        others = max((e.value for e in copy.signs if e.name == "others-traffic"), default=0.0)
        total = copy.rate.median / (1 - min(MOST_OTHERS_RATIO, others))
        return _above(floor, total, total, total)
    tests = _tests(copy, NETWORK)
    # Tests of TCP suffer from the same losses and slot: without these the path may carry more.
    if tests and (fix is None or fix.words[2] not in MET_BY_TESTS):
        return _above(floor, tests[-1].low, tests[-1].median, tests[-1].high)
    lifted_level = fix.level if fix is not None else 0.0
    levels = (each.level.median for each in copy.facts_of(NETWORK, ALLOWS))
    link = min((each for each in levels if each > SAME_RATIO * lifted_level), default=None)
    if link is not None and link >= REFUTED_RATIO * floor:
        return _above(floor, link, link, link)
    back = copy.sign("other-way") if fix is None else None
    if back is not None and back.value > floor:
        # Most links carry as much both ways.
        return Band(floor, back.value, back.value)
    return None


def path_with_slots(copy: CopyFacts, path: Band | None, fixes: Sequence[Fix]) -> Band | None:
    """Returns a path's rates with the slots and buses of its cards."""
    limits = [e.ceiling for of, e in copy.claims if of == NETWORK and e.ceiling.component == "bus"]
    remaining = [
        e for e in limits if e.standing != "at-least" and e.key not in [f.words for f in fixes]
    ]
    if not remaining:
        return path
    level = min(each.bytes_per_second for each in remaining)
    bus = _above(demonstrated_rate(copy, NETWORK), level, level, level)
    return bus if path is None else Band.combine(min, path, bus)


def _disk(copy: CopyFacts, part: Part, fix: Fix | None) -> Band | None:
    floor = demonstrated_rate(copy, part)
    if tests := _tests(copy, part):
        band = tests[0 if fix is None else -1]
        if fix is not None and band.median < REFUTED_RATIO * floor:
            return None  # its test was disturbed, too: it does more
        return _above(floor, band.low, band.median, band.high)
    use = _use(copy, part)
    if fix is not None or use is None or use.median < LEAST_BUSY or copy.rate is None:
        return None  # a part of its work was others'
    rate = copy.rate.median
    return _above(floor, *(rate / max(LEAST_BUSY, e) for e in (use.high, use.median, use.low)))


def _batching_exponent(copy: CopyFacts, fixes: Sequence[Fix]) -> float:
    """Returns the exponent by which a core carries more than its utilization suggests."""
    assert copy.rate is not None
    if not fixes or fixes[0].part[0] not in PACED:
        return 1.0
    return SLOW_BATCHING if copy.rate.median < SLOW_BYTES_PER_SECOND else BATCHING


def likely_ceiling(copy: CopyFacts, ceiling: Ceiling, fixes: Sequence[Fix]) -> Ceiling:
    """Returns a CPU's ceiling by its load, corrected for a copy without the removed limits."""
    is_load = ceiling.standing == "estimated" and ceiling.component in ("cpu", "instrument")
    if copy.rate is None or not is_load or any(ceiling.key == each.words for each in fixes):
        return ceiling
    rate, batching = copy.rate.median, _batching_exponent(copy, fixes)
    floor, level = max((each.level for each in fixes), default=0.0), ceiling.bytes_per_second
    level = max(floor, model.scaled_by_load(rate, min(1.0, rate / level), batching))
    high = max(level, ceiling.high_bytes_per_second)
    return replace(ceiling, bytes_per_second=level, high_bytes_per_second=high)


def _cpu(copy: CopyFacts, part: Part, fixes: Sequence[Fix]) -> Band:
    costs = next((each.level for each in copy.facts_of(part, COSTS)), None)
    if costs is None or copy.rate is None:
        return UNLIMITED
    cap = fixes[0].part[0] if fixes else ""
    if cap == "cpu" and fixes[0].words[2] == "contention":
        # Beside other work a load says little: the limit lies between the rates that were reached,
        # some of them without a disk, and that load scaled up.
        floor, high = demonstrated_rate(copy, part), costs.high * (1 + BATCHING_DOUBT)
        if all(each.part != part for each in fixes):
            return Band(floor, math.inf, math.inf)
        low = max(copy.rate.median, floor / DISKLESS_TIMES)
        return _above(low, low, math.sqrt(low * max(low, high)), high)
    rate, batching = copy.rate.median, _batching_exponent(copy, fixes)
    doubt = BATCHING_DOUBT if cap in (*PACED, "cpu") else 0.0
    ratio = min(1.0, rate / costs.median)
    # A CPU that is stopped repeatedly has cold caches.
    low = max(demonstrated_rate(copy, part), costs.low * (1 - TAKEN_DOUBT if cap == "cpu" else 1.0))
    median, high = (model.scaled_by_load(rate, ratio, batching + e) for e in (0.0, doubt))
    band = _above(low, low, median, max(high, costs.high))
    if ratio < LIGHT_LOAD_RATIO:
        band = Band(low, math.inf, math.inf)
    # TCP within one host is the least work that moves bytes: no copy costs its host less.
    tools = [e.ceiling.bytes_per_second for of, e in copy.claims if of == part and e.ceiling.tool]
    quota = copy.sign("quota", part[1])
    if quota is not None and not any(each.part == part for each in fixes):
        tools.append(quota.value)
    ceiling = min(tools, default=math.inf)
    return Band.combine(min, band, Band(ceiling, ceiling, ceiling))


def _window(copy: CopyFacts, part: Part) -> Band:
    floor = demonstrated_rate(copy, part)
    levels = [Band.from_rate(each.level) for each in copy.facts_of(part, ALLOWS)]
    if part[0] == "tcp" and not copy.supplied and not is_too_small(copy, part):
        return UNLIMITED  # the kernel makes it larger as the copy speeds up
    if part[0] == "smb":
        # Requests in flight at a full link need not be all that are allowed.
        limits = [e.ceiling for of, e in copy.claims if of == part]
        levels = [
            Band(each.low_bytes_per_second, each.bytes_per_second, each.high_bytes_per_second)
            for each in limits
            if each.cause == "round-trips" and each.standing != "at-least"
        ]
    levels = [each for each in levels if each.high >= floor]
    if not levels:
        return UNLIMITED
    lowest = min(levels, key=lambda each: each.median)
    return _above(floor, lowest.low, lowest.median, lowest.high)
