"""smb/dialect: an old dialect that cannot keep enough in flight for the round trip.

SMB 1 and 2.0.2 have neither long requests nor credits for many of them. Where round trips limit
such a copy, and the same copy in a newer dialect shows that hosts, disks and path carry more, the
initiator has to change its dialect. Source: MS-SMB2 3.2.4.1.5 (multi-credit requests), MS-CIFS
2.2.4.52.2 (MaxMpxCount).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, behind
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import MeasuredStep, dialect_name
from bottleneck.text.units import rate_text, size_text

CAUSE = Cause("smb", "dialect", "old dialect", title="SMB dialect", limits_without_fault=True)
OLD = ("smb1", "2.0.2")
NEAR_RATIO = 1.5
"""Most limit by round trips / copy's rate at which the limit explains the rate."""
MORE_RATIO = 1.5
"""Least bytes in flight in the newer dialect over the old one's, of a dialect's fault."""
TRAVELLING_RATIO = 0.7
"""Least share of the idle RTT in the time of a request that waits for little else."""


def refine(evidence: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """Yields the claims, with round trips replaced by the dialect if a newer one is faster."""
    newer = _newer(evidence)
    for claim in claims:
        waits = claim.ceiling.key[::2] == ("smb", "round-trips")
        if newer and waits and claim.ceiling.bytes_per_second <= NEAR_RATIO * evidence.rate.median:
            yield _dialect(evidence, claim, newer)
        else:
            yield claim


def _newer(evidence: Evidence) -> MeasuredStep | None:
    """Returns the fastest of the same copy in a newer dialect; None: none is clearly faster."""
    copy, step = evidence.copy, evidence.copy.step
    if step is None or copy.dialect not in OLD:
        return None
    best = steps.fastest(
        each.step
        for each in steps.copies(evidence.report)
        if (each.name, each.initiator, each.engine) == (copy.name, copy.initiator, copy.engine)
        and each.dialect not in OLD
        and each.step is not None
        and each.step.is_intact
        and steps.has_alike_sources(each.step, step)
    )
    if best is None or best.rate.median < step.rate.median or not differ(best.rate, step.rate):
        return None
    newer, older = best.details.in_flight_bytes, step.details.in_flight_bytes
    if newer is None or older is None:
        return None
    return best if newer >= MORE_RATIO * older else None


def _dialect(evidence: Evidence, claim: Claim, faster: MeasuredStep) -> Claim:
    old, name = dialect_name(evidence.copy.dialect), dialect_name(faster.setting.dialect or "")
    rate = rate_text(faster.rate.median)
    sizes = (each.details.in_flight_bytes or 0.0 for each in (evidence.step, faster))
    few, many = map(size_text, sizes)
    # If its requests spent most of their time on the path, their number is the cap.
    took, idle = evidence.details.request_seconds_median, evidence.details.rtt_seconds
    travels = took is not None and idle is not None and idle >= TRAVELLING_RATIO * took
    side = evidence.copy.initiator
    return replace(
        claim,
        ceiling=behind(claim.ceiling, CAUSE, side, faster.index),
        reached=True if travels else claim.reached,
        words=(
            f"{old} keeps {few} in flight; the same copy runs at {rate} over {name} with {many} "
            "in flight"
        ),
        evidence=(*claim.evidence, f"Over {old}, {claim.words}."),
        remedy=f"Use {name} instead of {old} on the {side} (it ran the same copy at {rate})",
        detail=old,
    )
