"""What holds a copy, and how far its own measurement can be trusted to tell."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bottleneck.analysis.claim import GAP
from bottleneck.analysis.finding import Claim, Ladder, Part
from bottleneck.analysis.steps import Copy, Found
from probes.core.records import Measured, Spread

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


def scattered(rate: Spread) -> bool:
    """Whether runs lie too far apart to name what caps them."""
    return rate.runs > 1 and (rate.high - rate.low) / rate.median > SCATTERED_RATIO


def bounded(copy: Copy, made: Found, confidence: float) -> float:
    """A confidence, less where the cold source is unproven, runs scatter or cores were stolen."""
    stolen = ROBBED_TRUST if stolen_ratio(made.outcome) > STOLEN_RATIO else 1.0
    apart = SCATTERED_TRUST if scattered(made.rate) else 1.0
    return min(confidence, proof(copy, made), stolen, apart)


def proof(copy: Copy, made: Found) -> float:
    """An uncached copy whose cold source was not proven may have come from RAM."""
    cache = made.details.cache
    unproven = GAP if cache.cold_source else 0.7
    return unproven if copy.cache == "uncached" and not cache.proven else 1.0


def stolen_ratio(outcome: Measured) -> float:
    """Share of a host's cores that its hypervisor gave to somebody else meanwhile, the larger."""
    usages = (outcome.initiator, outcome.responder)
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


def settled(ladder: Ladder, cap: Cap) -> Ladder:
    """The ladder with the cap's ceiling as the cap has it."""
    claim = cap.claim
    key = (claim.ceiling.key, claim.words)
    claims = [claim if (e.ceiling.key, e.words) == key else e for e in ladder.claims]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return replace(ladder, claims=tuple(dict.fromkeys(claims)))
