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
from bottleneck.analysis.claim import TRUST, Cause, behind
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import Copy, Found, dialect_name
from bottleneck.report import Report
from bottleneck.reports.units import rate_text, size_text

CAUSE = Cause("smb", "dialect", "a newer dialect", title="SMB dialect", stays=True)
OLD = ("smb1", "2.0.2")
NEAR_RATIO = 1.5
"""Round trips that allow more than that over the copy's rate do not explain it."""
MORE_RATIO = 1.5
"""In flight in the newer dialect over the old one's: else it is not the dialect that differs."""
TRAVELLING_RATIO = 0.7
"""Share of a request's time that is the idle round trip: what else it waits for is little."""


def refine(report: Report, copy: Copy, claims: Sequence[Claim]) -> Iterator[Claim]:
    """The claims; round trips that a newer dialect was shown not to have, as the dialect."""
    made, newer = copy.made, _newer(report, copy)
    for claim in claims:
        if made is not None and newer is not None and _bounds(claim, made):
            yield _dialect(copy, made, claim, newer)
        else:
            yield claim


def _bounds(claim: Claim, made: Found) -> bool:
    ceiling = claim.ceiling
    waits = (ceiling.component, ceiling.cause) == ("smb", "round-trips")
    return waits and ceiling.bytes_per_second <= NEAR_RATIO * made.rate.median


def _newer(report: Report, copy: Copy) -> Found | None:
    """The fastest of the same copy in a newer dialect, where that is really faster."""
    made = copy.made
    if made is None or copy.dialect not in OLD:
        return None
    best = steps.fastest(
        each.made
        for each in steps.copies(report)
        if (each.name, each.initiator, each.engine) == (copy.name, copy.initiator, copy.engine)
        and each.dialect not in OLD
        and each.made is not None
        and each.made.intact
        and steps.alike_sources(each.made, made)
    )
    if best is None or best.rate.median < made.rate.median or not differ(best.rate, made.rate):
        return None
    more, less = best.details.in_flight_bytes, made.details.in_flight_bytes
    return best if more is not None and less is not None and more >= MORE_RATIO * less else None


def _travels(made: Found) -> bool:
    """Whether the copy's requests did little but travel, so that their number is the cap."""
    took, idle = made.details.request_seconds_median, made.details.rtt_seconds
    return took is not None and idle is not None and idle >= TRAVELLING_RATIO * took


def _dialect(copy: Copy, made: Found, claim: Claim, faster: Found) -> Claim:
    old, name = dialect_name(copy.dialect), dialect_name(faster.setting.dialect or "")
    rate, more = rate_text(faster.rate.median), size_text(faster.details.in_flight_bytes or 0.0)
    return replace(
        claim,
        ceiling=behind(claim.ceiling, CAUSE, copy.initiator, faster.index),
        reached=True if _travels(made) else claim.reached,
        words=(
            f"over {old} {claim.words}, while the same copy runs at {rate} over {name}, with "
            f"{more} in flight"
        ),
        trust=min(claim.trust, TRUST["measured"]),
        remedy=f"{name} instead of {old} on the {copy.initiator} (it ran the same copy at {rate})",
    )
