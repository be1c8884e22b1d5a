"""Cap of a copy, and the confidence that the copy's own measurement allows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bottleneck.analysis.claim import GAP
from bottleneck.analysis.finding import Claim, Ladder, Part
from bottleneck.analysis.steps import Copy, MeasuredStep
from probes.core.records import Measured, Spread

SCATTERED_RATIO, SCATTERED_TRUST = 0.5, 0.75
STOLEN_RATIO = 0.1
"""Most share of a virtual machine's cores that a busy host usually takes."""
ROBBED_TRUST = 0.75


@dataclass(frozen=True)
class Cap:
    """Limit of a copy, with its confidence."""

    claim: Claim
    confidence: float
    rival: Claim | None = None
    """A limit that is also reached, within the noise, and as likely."""


def is_scattered(rate: Spread) -> bool:
    """Whether runs lie too far apart to name their cap."""
    return rate.runs > 1 and (rate.high - rate.low) / rate.median > SCATTERED_RATIO


def bounded_confidence(copy: Copy, step: MeasuredStep, confidence: float) -> float:
    """Lowers a confidence if the cold source is unproven, runs scatter or cores were stolen."""
    stolen = ROBBED_TRUST if stolen_ratio(step.outcome) > STOLEN_RATIO else 1.0
    apart = SCATTERED_TRUST if is_scattered(step.rate) else 1.0
    return min(confidence, proof(copy, step), stolen, apart)


def proof(copy: Copy, step: MeasuredStep) -> float:
    """Returns the confidence in the source: an unproven uncached one may have come from RAM."""
    cache = step.details.cache
    unproven = GAP if cache.cold_source else 0.7
    return unproven if copy.cache == "uncached" and not cache.proven else 1.0


def stolen_ratio(outcome: Measured) -> float:
    """Returns the larger share of a host's cores that its hypervisor gave to others."""
    usages = (outcome.initiator, outcome.responder)
    return max(usage.steal_ratio if usage else 0.0 for usage in usages)


def unknown_parts(copy: Copy, ladder: Ladder, level: float) -> tuple[Part, ...]:
    """Returns the copy's stages not known to carry more than a level, bytes per second."""
    measured = {
        each.ceiling.part
        for each in ladder.claims
        if each.ceiling.standing != "at-least" or each.ceiling.bytes_per_second >= level
    }
    return tuple(part for part in required_parts(copy) if part not in measured)


def required_parts(copy: Copy) -> tuple[Part, ...]:
    """Returns the stages that every byte of a copy passes; none if it stays on one host."""
    if copy.on_one_host:
        return ()
    parts: tuple[Part, ...] = (("network", "path"), ("disk", copy.receiver))
    return (*parts, ("disk", copy.sender)) if copy.cache == "uncached" else parts


def ladder_with_cap(ladder: Ladder, cap: Cap) -> Ladder:
    """Returns the ladder with the cap's own version of its claim."""
    claim = cap.claim
    key = (claim.ceiling.key, claim.words)
    claims = [claim if (e.ceiling.key, e.words) == key else e for e in ladder.claims]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return replace(ladder, claims=tuple(dict.fromkeys(claims)))
