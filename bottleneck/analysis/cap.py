"""The lowest limit that a copy reaches, where its own time does not say what held it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis.claim import LIKENESS, SURE
from bottleneck.analysis.finding import Claim, Ladder, Part
from bottleneck.analysis.steps import Copy, Found
from probes.core.records import Spread

REACHED_RATIO = 0.85
SINGLE_RATIO = 0.8
"""For one run alone, which has no spread to tell how far off it may be."""
NOISE_RATIO = 0.75
"""Reached as well where the spreads meet, but not below this."""
NEAR_RATIO = 1.1
LOAD_NEAR_RATIO = 1.13
BY_RIVALS = 0.5
"""The most that limits say where two of them are as near."""
SCATTERED_RATIO, SCATTERED_TRUST = 0.5, 0.75
STOLEN_RATIO = 0.1
"""Of its cores: less than that a virtual machine loses on any busy host."""
ROBBED_TRUST = 0.75


@dataclass(frozen=True)
class Cap:
    """What holds a copy."""

    claim: Claim
    confidence: float
    rival: Claim | None = None
    """Reached as well, within the noise, and as likely."""


def find(copy: Copy, made: Found, ladder: Ladder) -> Cap | None:
    """Returns the lowest limit that a copy reaches, this tool's own first; None: none is known.

    A measured one goes before one that was scaled up from the load and is as near.

    Of runs that lie far apart only what the load itself shows counts: a neighbour on the cores or
    on the link scatters them.
    """
    instrument = next((each for each in ladder.claims if _is_reached_instrument(each)), None)
    if instrument is not None:
        return None if scattered(made.rate) else Cap(instrument, instrument.trust)
    at = [each for each in ladder.valid if reaches(each, made.rate)]
    cap = _lowest(copy, made, at) if at else _part_of_the_time(copy, made, ladder)
    if cap is None or not scattered(made.rate):
        return cap
    ceiling = cap.claim.ceiling
    shared = ceiling.cause == "contention" and ceiling.component in ("cpu", "network")
    return cap if cap.claim.reached is True or shared else None


def scattered(rate: Spread) -> bool:
    """Whether runs lie too far apart to name what caps them."""
    return rate.runs > 1 and (rate.high - rate.low) / rate.median > SCATTERED_RATIO


def _is_reached_instrument(claim: Claim) -> bool:
    # One that is read off the load has to be the lowest, like every load.
    return claim.ceiling.tool and claim.reached is True


def reaches(claim: Claim, rate: Spread) -> bool:
    """Whether a copy runs at a ceiling, by its own load or by its rate."""
    if claim.reached is not None:
        return claim.reached
    ceiling = claim.ceiling
    enough = SINGLE_RATIO if rate.runs == 1 else REACHED_RATIO
    if rate.median >= enough * ceiling.bytes_per_second:
        return True
    meet = rate.high >= ceiling.low_bytes_per_second
    return meet and rate.median >= NOISE_RATIO * ceiling.bytes_per_second


def _lowest(copy: Copy, made: Found, reached: Sequence[Claim]) -> Cap:
    floor = reached[0].ceiling
    # What the load says of a copy is its own rate: a little above it is as near.
    most = LOAD_NEAR_RATIO if floor.standing == "estimated" else NEAR_RATIO
    near = [each for each in reached if _level(each) <= most * floor.bytes_per_second]
    # A ceiling that was measured says more than a load that was scaled up.
    near.sort(key=lambda each: each.ceiling.standing == "estimated")
    cap = near[0]
    rival = next((each for each in near if each.ceiling.part != cap.ceiling.part), None)
    most = SURE if rival is None else BY_RIVALS
    return Cap(cap, bounded(copy, made, min(cap.trust, most)), rival)


def bounded(copy: Copy, made: Found, confidence: float) -> float:
    """A confidence, less where the cold source is unproven, runs scatter or cores were stolen."""
    stolen = ROBBED_TRUST if stolen_ratio(made) > STOLEN_RATIO else 1.0
    apart = SCATTERED_TRUST if scattered(made.rate) else 1.0
    return min(confidence, proof(copy, made), stolen, apart)


def proof(copy: Copy, made: Found) -> float:
    """An uncached copy whose cold source was not proven may have come from RAM."""
    proven = made.details.cache.proven
    return 0.7 if copy.cache == "uncached" and not proven else 1.0


def stolen_ratio(made: Found) -> float:
    """Share of a host's cores that its hypervisor gave to somebody else meanwhile, the larger."""
    usages = (made.outcome.initiator, made.outcome.responder)
    return max(usage.steal_ratio if usage else 0.0 for usage in usages)


def unknown_parts(copy: Copy, ladder: Ladder, level: float) -> tuple[Part, ...]:
    """Stages on the copy's way that nothing shows to carry more than a level, bytes per second."""
    known = {
        each.ceiling.part
        for each in ladder.claims
        if each.ceiling.standing != "at-least" or each.ceiling.bytes_per_second >= level
    }
    return tuple(part for part in required_parts(copy) if part not in known)


def required_parts(copy: Copy) -> tuple[Part, ...]:
    """The stages that every byte of a copy passes; none of one that stays on its host."""
    if copy.on_one_host:
        return ()
    parts: tuple[Part, ...] = (("network", "path"), ("disk", copy.receiver))
    return (*parts, ("disk", copy.sender)) if copy.cache == "uncached" else parts


def _partial(ladder: Ladder) -> list[Claim]:
    """What may have held the copy for a part of the time, the lowest first."""
    found = [each for each in ladder.valid if each.partly]
    # A quota is counted; a core that was full at times is a rough figure.
    return sorted(found, key=lambda each: (each.ceiling.cause != "quota", _level(each)))


def _part_of_the_time(copy: Copy, made: Found, ladder: Ladder) -> Cap | None:
    """A CPU or its quota that was full for a part of the time, where no ceiling is reached."""
    found = _partial(ladder)
    if not found:
        return None
    rival = next((e for e in found if e.ceiling.part != found[0].ceiling.part), None)
    confidence = bounded(copy, made, LIKENESS if rival is None else BY_RIVALS)
    return Cap(at_rate(made.rate, found[0]), confidence, rival)


def at_rate(rate: Spread, claim: Claim) -> Claim:
    """A claim whose ceiling is what the copy had of it."""
    ceiling = replace(
        claim.ceiling,
        low_bytes_per_second=rate.low,
        bytes_per_second=rate.median,
        high_bytes_per_second=rate.high,
    )
    return replace(claim, ceiling=ceiling)


def settled(ladder: Ladder, cap: Cap) -> Ladder:
    """The ladder with the cap's ceiling as the cap has it."""
    claim = cap.claim
    key = (claim.ceiling.named, claim.words)
    claims = [claim if (e.ceiling.named, e.words) == key else e for e in ladder.claims]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return replace(ladder, claims=tuple(dict.fromkeys(claims)))


def _level(claim: Claim) -> float:
    return claim.ceiling.bytes_per_second
