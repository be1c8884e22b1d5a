"""smb/dialect: an old dialect that cannot keep enough in flight for the round trip.

SMB 1 and 2.0.2 have neither long requests nor credits for many of them. Where the round trips hold
such a copy, and the same copy in a newer dialect shows that hosts, disks and path carry more, it is
the dialect that has to change, at the side that asks. Source: MS-SMB2 3.2.4.1.5 (multi-credit
requests), MS-CIFS 2.2.4.52.2 (MaxMpxCount).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, behind
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import Found, dialect_name
from bottleneck.text.units import rate_text, size_text

CAUSE = Cause("smb", "dialect", "old dialect", title="SMB dialect", stays=True)
OLD = ("smb1", "2.0.2")
NEAR_RATIO = 1.5
"""Round trips that allow more than that over the copy's rate do not explain it."""
MORE_RATIO = 1.5
"""In flight in the newer dialect over the old one's: else it is not the dialect that differs."""
TRAVELLING_RATIO = 0.7
"""Share of a request's time that is the idle round trip: what else it waits for is little."""


def refine(given: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """The claims; round trips that a newer dialect was shown not to have, as the dialect."""
    newer = _newer(given)
    for claim in claims:
        waits = claim.ceiling.key[::2] == ("smb", "round-trips")
        if newer and waits and claim.ceiling.bytes_per_second <= NEAR_RATIO * given.rate.median:
            yield _dialect(given, claim, newer)
        else:
            yield claim


def _newer(given: Evidence) -> Found | None:
    """The fastest of the same copy in a newer dialect, where that is really faster."""
    copy, made = given.copy, given.copy.step
    if made is None or copy.dialect not in OLD:
        return None
    best = steps.fastest(
        each.step
        for each in steps.copies(given.report)
        if (each.name, each.initiator, each.engine) == (copy.name, copy.initiator, copy.engine)
        and each.dialect not in OLD
        and each.step is not None
        and each.step.intact
        and steps.alike_sources(each.step, made)
    )
    if best is None or best.rate.median < made.rate.median or not differ(best.rate, made.rate):
        return None
    more, less = best.details.in_flight_bytes, made.details.in_flight_bytes
    return best if more is not None and less is not None and more >= MORE_RATIO * less else None


def _dialect(given: Evidence, claim: Claim, faster: Found) -> Claim:
    old, name = dialect_name(given.copy.dialect), dialect_name(faster.setting.dialect or "")
    rate = rate_text(faster.rate.median)
    less, more = (size_text(e.details.in_flight_bytes or 0.0) for e in (given.step, faster))
    # Where its requests did little but travel their number is the cap.
    took, idle = given.details.request_seconds_median, given.details.rtt_seconds
    travels = took is not None and idle is not None and idle >= TRAVELLING_RATIO * took
    side = given.copy.initiator
    return replace(
        claim,
        ceiling=behind(claim.ceiling, CAUSE, side, faster.index),
        reached=True if travels else claim.reached,
        words=(
            f"{old} keeps {less} in flight; the same copy runs at {rate} over {name} with {more} "
            "in flight"
        ),
        evidence=(*claim.evidence, f"Over {old}, {claim.words}."),
        remedy=f"Use {name} instead of {old} on the {side} (it ran the same copy at {rate})",
        detail=old,
    )
