"""network/duplex: a card that negotiated half duplex, on one side or both.

Each sender then has to wait for the other, and if only one end is half duplex, frames collide late
and are lost (IEEE 802.3, clauses 4 and 28).
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence, hindrance_text
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.link_end import NAMELESS
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import count_text, link_text, rate_text
from probes.core.records import SIDES, InterfaceFacts

CAUSE = Cause("network", "duplex", "half duplex")
COSTLESS_RATIO = 0.9
"""Least share of the full payload at which a half-duplex link costs nothing."""


def half_duplex(report: Report) -> tuple[tuple[str, InterfaceFacts], ...]:
    """Returns the sides whose card is half duplex, with that card.

    A side with several cards below a bond or bridge is left out: the one in use is not known.
    """
    hosts = zip(SIDES, (report.client, report.server), strict=True)
    pairs = ((side, hardware_limits.cards(host)) for side, host in hosts)
    return tuple(
        (side, cards[0]) for side, cards in pairs if len(cards) == 1 and cards[0].duplex == "half"
    )


def limiting_side(report: Report, step: MeasuredStep) -> str | None:
    """Returns the side whose half-duplex card limited a TCP step; None: no side's.

    The rate of another standard link is due to that link.
    """
    mtu = steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES
    if model.looks_like(step.rate.median, mtu) is not None:
        return None
    for side, card in half_duplex(report):
        payload = hardware_limits.link_payload(card, mtu)
        if payload is None or step.rate.median < COSTLESS_RATIO * payload:
            return side
    return None


def rule(evidence: Evidence) -> Iterator[Claim | str]:
    """Yields the rate of TCP in the copy's direction over a half-duplex link."""
    half = half_duplex(evidence.report)
    best = steps.fastest(evidence.believed_steps) if half else None
    remarks = tuple(_evidence(half))
    side = None if best is None else limiting_side(evidence.report, best)
    if best is None or side is None:
        yield from remarks
        return
    name = next(card.name for each, card in half if each == side)
    how = f" (`ethtool -s {name} autoneg on`)" if name != NAMELESS else ""
    yield claim(
        CAUSE,
        side,
        best,
        f"the {side}'s link is half duplex and carries at most {rate_text(best.rate.median)}",
        standing="at-least" if any(hindrance_text(best, each) for each in SIDES) else "measured",
        evidence=remarks,
        remedy=f"Turn on autonegotiation at both ends of the {side}'s cable{how}",
        detail=f"{name} in half duplex",
    )


def _evidence(half: tuple[tuple[str, InterfaceFacts], ...]) -> Iterator[str]:
    for side, card in half:
        rate = card.rate_bits_per_second
        speed = f" at {link_text(rate)}" if rate else ""
        how = {True: "with", False: "without", None: ""}[card.autonegotiated]
        how = f", {how} autonegotiation" if how else ""
        hit = card.counts.get("collisions", 0)
        counted = f"; it had counted {count_text(hit)} collisions" if hit else ""
        name = card.name.replace(NAMELESS, "The card")
        yield f"{name} on the {side} ran in half duplex{speed}{how}{counted}."
