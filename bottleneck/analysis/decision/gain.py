"""Gain of a fix: the next limit of a copy, and its rate without its cap.

A copy of this report that lacks the cap gives that rate. Otherwise the lowest of the other
components sets the rate of the transfer, and a disk works in parallel with it after some time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import model
from bottleneck.analysis.decision.capability import (
    SLOW_BYTES_PER_SECOND,
    Fix,
    capability,
    demonstrated_rate,
    likely_ceiling,
    path_with_slots,
)
from bottleneck.analysis.decision.causes import rows
from bottleneck.analysis.facts.counters import FAR_SECONDS
from bottleneck.analysis.facts.record import ALLOWS, ALONE, NETWORK, SHOWN, CopyFacts, Level, Part
from bottleneck.analysis.facts.rule_claims import NOT_REFUTABLE
from bottleneck.analysis.finding import Named, Next, Rung
from bottleneck.analysis.model import Band
from bottleneck.analysis.steps import OWN

READ_START_RATIO, WRITE_START_RATIO = Band(0.12, 0.07, 0.0), Band(0.5, 0.35, 0.2)
"""Share of the transfer's time that passes before the disk begins to work."""
AWAKE_BYTES_PER_SECOND, LATEST_RATIO, LATE_DOUBT = 2e7, 0.9, 0.15
"""First flush of a push, by disks of 12 to 100 MB/s: start x disk's rate; latest start; error."""
TWIN_DOUBT, LINK_DOUBT, FAR_DOUBT = 0.04, 0.05, 0.15
"""Relative error of a rate predicted from a Reference, a near link, a far link."""
SHARE, SLOW_SHARE, OTHERS_SHARE = 0.975, 0.99, 0.9
"""Share of TCP's rate that a copy by this tool gets, on a slow link, and by another program."""
FILLS_RATIO = 0.85
"""Least share of the path's rate at which another copy is evidence of the usual share."""
REACHED_RATIO = 0.8
"""A reference copy below this share of the next known limit has an unknown limit instead."""
TENFOLD = 10.5
"""Largest step to a faster link: the next kind of link."""
AGAIN_TIMES = 1.5
"""A rate that exceeded the link's limit so many times shows that the path can carry it."""
UNBOUNDED_TIMES = 2.0
"""Highest expected rate over the median where no limit is known above it."""
ENDS = ("low", "median", "high")
Bands = Mapping[Part, Band]
"""Rates that components allow; unknown ones are left out."""


@dataclass(frozen=True)
class Gain:
    """Outcome of a fix."""

    next: Next | None = None
    predicted: Band | None = None
    missing: tuple[Part, float] | None = None
    """Component that prevents a prediction, and what it carries at least; 0: unknown."""
    link_bits: int | None = None
    """Standard link that replaces a link, bits per second."""


def gain(copy: CopyFacts, fixes: Sequence[Fix]) -> Gain:
    """Returns the next limit of a copy, and its rate once some limits are removed."""
    return _gain(copy, fixes)[1]


def rungs(copy: CopyFacts, cap: Fix) -> Iterator[Rung]:
    """Yields the cap and the limits after it, as long as they are known."""
    assert copy.rate is not None
    rate: Band | None = Band.from_rate(copy.rate)
    yield Rung(*cap.words, cap.level, rate, None)
    fixes, bits = [cap], 0
    while True:
        part, outcome = _gain(copy, fixes)
        if part is None or outcome.next is None:
            return
        # Lifting more slows nothing down.
        predicted = outcome.predicted
        rate = None if rate is None or predicted is None else Band.combine(max, predicted, rate)
        bits = max(bits, outcome.link_bits or 0)
        link = model.link_payload(bits) if bits else None
        level = outcome.next.ceiling_bytes_per_second
        yield Rung(*outcome.next.key, level, rate, link)
        fixes.append(Fix(part, outcome.next.key, level))


def _gain(copy: CopyFacts, fixes: Sequence[Fix]) -> tuple[Part | None, Gain]:
    if any(each.words[0] == "instrument" for each in fixes):
        return None, Gain()
    assert copy.rate is not None
    bands = {part: band for part in copy.chain if (band := capability(copy, part, fixes))}
    part = _lowest(copy, bands)
    level = math.inf if part is None else bands[part].median
    reference = _reference(copy, fixes)
    if reference is not None:
        if reference.level.median < REACHED_RATIO * level:
            part = None  # something unknown limits it
        level = max(level, reference.level.median)
    limit = None if part is None else Next(*limit_key(copy, part, level, fixes), level)
    bits = _new_link_bits(copy, fixes, None if part is None else bands[part])
    if bits is not None:
        carries = model.link_payload(bits)
        link = Band(carries, carries, carries)
        bands[NETWORK] = path_with_slots(copy, link, fixes) or link
    rates = [_composed_rate(copy, bands, reference, end) for end in ENDS]
    missing = _unmeasured_component(copy, bands, reference, rates[1])
    if missing is None and math.isinf(rates[1]):
        # All that is known are lower bounds.
        if NETWORK not in copy.chain:
            return part, Gain(limit)
        missing = NETWORK, copy.highest(NETWORK, SHOWN)
    if missing is not None:
        return part, Gain(limit, missing=missing, link_bits=None if limit is None else bits)
    # Taking a limit away slows nothing down.
    low, median, high = (max(each, copy.rate.median) for each in rates)
    band = Band(low, median, max(median, min(high, UNBOUNDED_TIMES * median))).widened_band()
    return part, Gain(limit, replace(band, low=max(band.low, copy.rate.median)), link_bits=bits)


def _lowest(copy: CopyFacts, bands: Bands) -> Part | None:
    """Returns the component with the lowest limit; None: unknown, or the path's may be lower."""
    limits = [(band.median, part) for part, band in bands.items() if math.isfinite(band.median)]
    if not limits:
        return None
    level, part = min(limits, key=lambda each: each[0])
    return part if NETWORK in bands or demonstrated_rate(copy, NETWORK) >= level else None


def limit_key(copy: CopyFacts, part: Part, level: float, fixes: Sequence[Fix] = ()) -> Named:
    """Returns component, side and cause of a limit without transient causes."""
    limits = [likely_ceiling(copy, each.ceiling, fixes) for of, each in copy.claims if of == part]
    loads = [e for e in limits if e.standing == "estimated" and e.cause not in NOT_REFUTABLE]
    if not loads:
        loads = [e for e in limits if e.component == "cpu" and e.standing == "at-least"]
    if loads:
        return min(loads, key=lambda each: abs(math.log(level / each.bytes_per_second))).key
    row = next(each for each in rows(copy, part) if not each.passing and not each.is_evidence)
    component, _, cause = row.words.partition("/")
    return component, row.side_of(copy, part), cause


def _new_link_bits(copy: CopyFacts, fixes: Sequence[Fix], following: Band | None) -> int | None:
    link = next((each for each in fixes if each.is_link), None)
    if link is None:
        return None
    level = min(TENFOLD * link.level, math.inf if following is None else following.low)
    # The path's rate at another time, or the rate of both ends' cards, needs no new card.
    for rate in (copy.highest(NETWORK, SHOWN, ALONE), copy.highest(NETWORK, ALLOWS)):
        if rate > AGAIN_TIMES * link.level:
            level = min(level, rate)
    # A faster link for the last tenth of the next component's limit is not worth it.
    return model.faster_link(max(0.9 * level, 1.1 * link.level))


# -- unknown limits --------------------------------------------------------------------------------


def _unmeasured_component(
    copy: CopyFacts, bands: Bands, reference: Reference | None, rate: float
) -> tuple[Part, float] | None:
    """Returns a component with too few figures, and its highest observed rate; None: none."""
    for part in (NETWORK, ("disk", copy.receiver), ("disk", copy.sender)):
        is_not_in_reference = part in copy.chain and (reference is None or part in reference.lacks)
        if is_not_in_reference and part not in bands and demonstrated_rate(copy, part) < rate:
            return part, copy.highest(part, SHOWN)
    return None


# -- the rate --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reference:
    """A measurement of the same copy without some components, or without a cause."""

    level: Level
    lacks: frozenset[Part]


def _reference(copy: CopyFacts, fixes: Sequence[Fix]) -> Reference | None:
    for each in copy.without if len(fixes) == 1 else ():
        component, side, cause = fixes[0].words
        if each.cause in (component, cause) and each.side in (None, side):
            lacks = [part for part in copy.chain if part[0] == "disk" and each.is_diskless]
            lacks += [fixes[0].part] if each.cause == component else []
            return Reference(each.level, frozenset(lacks))
    return None


def _composed_rate(copy: CopyFacts, bands: Bands, reference: Reference | None, end: str) -> float:
    """Returns the rate at one end of the range: the transfer's, with disks working in parallel."""
    if reference is None:
        limits = (_rate_in_transfer(copy, part, band, end) for part, band in bands.items())
        rate = min(limits, default=math.inf)
    else:
        rate = float(getattr(Band.from_rate(reference.level).widened_band(TWIN_DOUBT), end))
    for part, band in bands.items():
        is_not_in_reference = reference is None or part in reference.lacks
        if part[0] == "disk" and is_not_in_reference and math.isfinite(band.median):
            is_read = part[1] == copy.sender
            late = READ_START_RATIO if is_read else _unflushed_ratio(copy, band.median)
            rate = model.rate_with_disk(rate, getattr(band, end), getattr(late, end))
    return rate


def _rate_in_transfer(copy: CopyFacts, part: Part, band: Band, end: str) -> float:
    level = float(getattr(band, end))
    if part != NETWORK:
        return math.inf if part[0] == "disk" else level
    ratio = share(copy, band.median)
    # On a far path a copy begins slowly, and ends with a wait for replies.
    is_far = (copy.rtt_seconds or 0.0) >= FAR_SECONDS
    low = ratio * (1 - (FAR_DOUBT if is_far else LINK_DOUBT))
    high = min(1.0, ratio + LINK_DOUBT)
    return {"low": low, "median": ratio, "high": high}[end] * level


def share(copy: CopyFacts, path: float) -> float:
    """Returns the share of a path's rate that a copy gets: as others of this run, or as usual."""
    shares = [e.level.median / path for e in copy.facts_of(NETWORK, SHOWN) if e.is_of_twin]
    if full := [each for each in shares if each >= FILLS_RATIO]:
        return min(1.0, max(full))
    usual = SLOW_SHARE if path < SLOW_BYTES_PER_SECOND else SHARE
    return usual if copy.engine == OWN else min(usual, OTHERS_SHARE)


def _unflushed_ratio(copy: CopyFacts, disk: float) -> Band:
    """Returns the share of a transfer that runs before the first flush; a slow disk: up to 1."""
    if copy.receiver == copy.initiator:
        return WRITE_START_RATIO
    late = min(LATEST_RATIO, AWAKE_BYTES_PER_SECOND / disk)
    return Band(min(1.0, late + LATE_DOUBT), late, max(0.0, late - LATE_DOUBT))
