"""network/duplex: a card that negotiated half duplex, on one side or both.

Whoever sends then has to wait for the other, and where one end alone is half duplex frames collide
late and are lost (IEEE 802.3, clauses 4 and 28).
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence, hindered
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.link_end import NAMELESS
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import count_text, link_text, rate_text
from probes.core.records import SIDES, InterfaceFacts

CAUSE = Cause("network", "duplex", "half duplex")
COSTLESS_RATIO = 0.9
"""A half-duplex link that gives more than this of its full payload cost nothing."""


def half_duplex(report: Report) -> tuple[tuple[str, InterfaceFacts], ...]:
    """The sides whose card is half duplex, with that card.

    None where several lie below a bond or bridge: which of them carries a connection is not known.
    """
    hosts = zip(SIDES, (report.client, report.server), strict=True)
    found = ((side, hardware_limits.cards(host)) for side, host in hosts)
    return tuple(
        (side, cards[0]) for side, cards in found if len(cards) == 1 and cards[0].duplex == "half"
    )


def held(report: Report, found: Found) -> str | None:
    """The side whose half-duplex card kept a step over TCP below the link's payload; None: none.

    A rate that is another standard link's is that link's.
    """
    mtu = steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES
    if model.looks_like(found.rate.median, mtu) is not None:
        return None
    for side, card in half_duplex(report):
        payload = hardware_limits.link_payload(card, mtu)
        if payload is None or found.rate.median < COSTLESS_RATIO * payload:
            return side
    return None


def rule(given: Evidence) -> Iterator[Claim | str]:
    """What TCP moved in the copy's direction over a half-duplex link."""
    half = half_duplex(given.report)
    best = steps.fastest(given.believed) if half else None
    told = tuple(_evidence(half))
    side = None if best is None else held(given.report, best)
    if best is None or side is None:
        yield from told
        return
    name = next(card.name for each, card in half if each == side)
    how = f" (`ethtool -s {name} autoneg on`)" if name != NAMELESS else ""
    yield claim(
        CAUSE,
        side,
        best,
        f"the {side}'s link is half duplex and carries at most {rate_text(best.rate.median)}",
        standing="at-least" if any(hindered(best, each) for each in SIDES) else "measured",
        evidence=told,
        remedy=f"Turn on autonegotiation at both ends of the {side}'s cable{how}",
        detail=f"{name} in half duplex",
    )


def _evidence(half: tuple[tuple[str, InterfaceFacts], ...]) -> Iterator[str]:
    for side, card in half:
        rate = card.rate_bits_per_second
        at = f" at {link_text(rate)}" if rate else ""
        how = {True: "with", False: "without", None: ""}[card.autonegotiated]
        how = f", {how} autonegotiation" if how else ""
        hit = card.counts.get("collisions", 0)
        counted = f"; it had counted {count_text(hit)} collisions" if hit else ""
        name = card.name.replace(NAMELESS, "The card")
        yield f"{name} on the {side} ran in half duplex{at}{how}{counted}."
