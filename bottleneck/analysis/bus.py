"""Rules bus/pcie and bus/usb: the slot or the USB link that a network card sits at.

The card's link may carry more than what is behind it. That part is named where TCP, or a copy to or
from memory, ran at what such a slot or USB link gives in practice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import model, physics, steps
from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import link_text, rate_and_bits_text, rate_text
from probes.records import SIDES, InterfaceFacts

USUAL_RATIO = 0.6
"""Least share of a slot's or a USB 3 link's bytes that payload gets; headers of packets and USB's
protocol take the rest (PCI Express with 128 bytes a packet leaves 0.84)."""
USUAL_USB2_BYTES_PER_SECOND = 25e6
"""USB 2 host controllers send 8 and receive 10 of the 13 packets of 512 bytes that an eighth of a
millisecond has room for, 33 and 41 MB/s; a Raspberry Pi 3 B+ reaches 28 MB/s of TCP."""
FIT_TRUST = 0.85
"""Something unseen elsewhere on the path may give the same rate by chance."""
INFERRED_TRUST = 0.75
USB2_BITS_PER_SECOND = 480_000_000


@dataclass(frozen=True)
class Narrow:
    """A slot or USB link that carries less than the link of its card."""

    side: str
    cause: str
    """pcie or usb."""
    card: InterfaceFacts
    usual_bytes_per_second: float
    """The least that it gives where it is the limit."""
    most_bytes_per_second: float
    """What it can never exceed."""

    def fits(self, bytes_per_second: float, mtu_bytes: int | None) -> bool:
        """Whether a rate is what it gives, and no standard link's."""
        most = self.most_bytes_per_second * (1 + physics.TOLERANCE_RATIO)
        within = self.usual_bytes_per_second <= bytes_per_second <= most
        return within and model.looks_like(bytes_per_second, mtu_bytes) is None

    @property
    def name(self) -> str:
        """As a person calls it: "the server's PCI Express slot (1 lane at 2.5 GT/s)"."""
        if self.cause == "usb":
            return f"the {self.side}'s USB link ({link_text(self.card.usb_bits_per_second or 0)})"
        return f"the {self.side}'s PCI Express slot ({slot_text(self.card.pcie)})"


def slot_text(pcie: dict[str, float]) -> str:
    """A slot's link in words: `4 lanes at 8 GT/s`."""
    lanes, transfers = pcie.get("lanes", 0), pcie.get("transfers_per_second", 0)
    many = "lane" if lanes == 1 else "lanes"
    return f"{lanes:.0f} {many} at {transfers / 1e9:g} GT/s"


def narrow(report: Report) -> tuple[Narrow, ...]:
    """The slots and USB links of both hosts that carry less than their cards' links."""
    return tuple(each for side in SIDES for each in _of_side(report, side))


def reached(report: Report, found: Found) -> Narrow | None:
    """The slot or USB link that a step over TCP ran at; None: at none."""
    mtu = steps.mtu_bytes(report)
    fitting = [each for each in narrow(report) if each.fits(found.rate.median, mtu)]
    return min(fitting, key=lambda each: each.most_bytes_per_second, default=None)


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What a narrow slot or USB link lets through in the copy's direction."""
    known = narrow(report)
    if not known:
        return
    sent = physics.believed(report, copy.sender)
    best = max(sent, key=lambda each: each.rate.median, default=None)
    standing: Standing = "measured"
    if best is None:
        best, standing = copy.memory, "inferred"
    at = None if best is None else reached(report, best)
    for each in known:
        if best is not None and each == at:
            yield from _claim(each, best, standing)
        else:
            yield _rung(each)


def _claim(at: Narrow, best: Found, standing: Standing) -> Iterator[Claim | str]:
    """The slot or USB link that carried the best that was measured."""
    why = hindrance(load(best.usage(at.side)), at.side)
    if why:
        yield f"{at.name} carried {rate_text(best.rate.median)} while {why}: it may carry more."
        standing = "at-least"
    yield Claim(
        Ceiling(
            component="bus",
            side=at.side,
            cause=at.cause,
            bytes_per_second=best.rate.median,
            low_bytes_per_second=best.rate.low,
            high_bytes_per_second=best.rate.high,
            steps=(best.index,),
            standing=standing,
        ),
        words=f"{at.name} carries no more than {rate_text(best.rate.median)}",
        trust=FIT_TRUST if standing == "measured" else INFERRED_TRUST,
        evidence=tuple(_evidence(at)),
        remedy=_remedy(at),
    )


def _rung(at: Narrow) -> Claim:
    """What it can never exceed, above what is known of the rest."""
    most = at.most_bytes_per_second
    low = min(most, max(at.usual_bytes_per_second, 0.8 * most))
    ceiling = Ceiling("bus", at.side, at.cause, most, low, most, (), "inferred")
    return Claim(
        ceiling,
        words=f"{at.name} can carry no more than {rate_text(most)}",
        trust=INFERRED_TRUST,
        evidence=tuple(_evidence(at)),
        remedy=_remedy(at),
    )


def _evidence(at: Narrow) -> Iterator[str]:
    card = at.card
    rate = card.rate_bits_per_second
    link = f" has a link of {link_text(rate)}, but" if rate else ""
    most = rate_and_bits_text(at.most_bytes_per_second)
    if at.cause == "usb":
        yield (
            f"The {at.side}'s adapter {card.name}{link} is on USB at "
            f"{link_text(card.usb_bits_per_second or 0)}: {most} at the most, less in practice."
        )
        if card.usb_bits_per_second == USB2_BITS_PER_SECOND and _is_usb3(card):
            yield "By its descriptor the adapter can do USB 3: the port or the cable is USB 2."
        return
    yield (
        f"The {at.side}'s card {card.name}{link} sits in a slot with {slot_text(card.pcie)}: "
        f"{most} before the headers of its packets."
    )
    if card.pcie.get("able_bytes_per_second", 0) > card.pcie.get("bytes_per_second", 0):
        yield f"The card could use {_able_text(card.pcie)}."


def _remedy(at: Narrow) -> str:
    if at.cause == "usb":
        if _is_usb3(at.card):
            return f"A USB 3 port for the {at.side}'s adapter {at.card.name}"
        return f"A faster adapter, or one that is not on USB, on the {at.side}"
    if at.card.pcie.get("able_bytes_per_second", 0) > at.card.pcie.get("bytes_per_second", 0):
        return f"A slot with {_able_text(at.card.pcie)} for the {at.side}'s card {at.card.name}"
    return f"A card on the {at.side} with more PCI Express lanes, or faster ones"


def _able_text(pcie: dict[str, float]) -> str:
    return slot_text({key[5:]: each for key, each in pcie.items() if key.startswith("able_")})


def _is_usb3(card: InterfaceFacts) -> bool:
    """USB 3.2, 9.2.6.6: at a USB 2 port such a device tells 2.10."""
    return (card.usb_version or "").strip() >= "2.10"


def _of_side(report: Report, side: str) -> Iterator[Narrow]:
    found = physics.cards(report.client if side == "client" else report.server)
    if len(found) != 1:
        return  # which card of several carries a connection is not known
    card = found[0]
    mtu = steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES
    carried = physics.link_payload(card, min(max(mtu, 576), physics.WIDEST_MTU_BYTES))
    if carried is None:
        return
    if card.usb_bits_per_second:
        most = physics.usb_payload(card.usb_bits_per_second)
        usual = most * USUAL_RATIO
        if card.usb_bits_per_second == USB2_BITS_PER_SECOND:
            usual = USUAL_USB2_BYTES_PER_SECOND
        if carried > usual > 0:
            yield Narrow(side, "usb", card, usual, most)
    slot = card.pcie.get("bytes_per_second", 0.0)
    if carried > USUAL_RATIO * slot > 0:
        yield Narrow(side, "pcie", card, USUAL_RATIO * slot, slot)
