"""bus/pcie and bus/usb: the slot or the USB link of a card or a disk limits it.

A network card's link may carry more than its slot or USB link. That is named where TCP, or a copy
to or from memory, ran at the practical rate of such a slot or USB link. A disk that reads or writes
by itself at its link's practical rate would do more at another link. Nothing is claimed of a disk
whose rate falls from its outer edge to its inner (that is the disk's own), of one that has all the
lanes that it can use, of several disks, or of a hypervisor's bus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, hindrance_text, host
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import DID, DOES, DiskTest
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, rate_and_bits_text, rate_text
from probes.core import lenient
from probes.core.lenient import Positive
from probes.core.records import SIDES, InterfaceFacts

PCIE = Cause("bus", "pcie", "PCIe slot")
USB = Cause("bus", "usb", "USB")
LEAST_PAYLOAD_RATIO = 0.6
"""Least ratio of a card's payload to the bytes of a slot or a USB 3 link; headers and protocol take
the rest (PCI Express with 128 bytes a packet leaves 0.84)."""
LEAST_USB2_BYTES_PER_SECOND = 25e6
"""Rate from which USB 2 may be full: controllers reach 33 to 41 MB/s, a Raspberry Pi 3 B+ 28."""
USB2_BITS_PER_SECOND = 480_000_000
FILLED_RATIO = 0.85
"""Share of a link's practical rate at which a disk counts as filling it."""
USB_PRACTICE_RATIO, PCIE_PRACTICE_RATIO = 0.85, 0.9
"""Share of a link's bytes that is a disk's data in practice: the rest is headers and commands."""
USB2_PRACTICE_BYTES_PER_SECOND = 38e6
"""Practical rate of USB 2, where a disk waits between commands: 33 to 43 MB/s."""
OTHER_WAY_RATIO = 1.08
"""Rate of the other direction over this one that shows the link is not full."""


@dataclass(frozen=True)
class Link:
    """Connection of a card or a disk to its host."""

    cause: Cause
    side: str
    name: str
    """Noun phrase: "the server's PCI Express slot (1 lane at 2.5 GT/s)"."""
    least_bytes_per_second: float
    """Lowest rate at which it may be full."""
    practice_bytes_per_second: float
    """Usual rate when it is full."""
    most_bytes_per_second: float
    """Rate that it can never exceed."""
    remedy: str
    """Imperative sentence without its full stop."""
    evidence: tuple[str, ...] = ()

    def may_be_full(self, bytes_per_second: float) -> bool:
        highest = self.most_bytes_per_second * (1 + hardware_limits.TOLERANCE_RATIO)
        return self.least_bytes_per_second <= bytes_per_second <= highest


def slot_text(pcie: Mapping[str, float], prefix: str = "") -> str:
    """Returns a slot's link in words: `4 lanes at 8 GT/s`; prefix: "able_" for the usable link."""
    lanes, transfers = pcie.get(f"{prefix}lanes", 0), pcie.get(f"{prefix}transfers_per_second", 0)
    noun = "lane" if lanes == 1 else "lanes"
    return f"{lanes:.0f} {noun} at {transfers / 1e9:g} GT/s"


def _is_usb3(version: str | None) -> bool:
    """Whether a device supports USB 3: at a USB 2 port it reports 2.10 (USB 3.2, 9.2.6.6)."""
    return (version or "").strip() >= "2.10"


def _capital(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"


def _narrowest(links: Iterator[Link]) -> Link | None:
    return min(links, key=lambda each: each.most_bytes_per_second, default=None)


# -- cards -------------------------------------------------------------------------------------


def rule(evidence: Evidence) -> Iterator[Claim | str]:
    """Yields the limits of narrow slots or USB links of cards in the copy's direction."""
    tcp_step = steps.fastest(evidence.believed_steps)
    best = tcp_step or evidence.copy.memory
    full_link = None if best is None else filled_link(evidence.report, best)
    for each in narrow_links(evidence.report):
        if best is None or each != full_link:
            yield _rung(each)
            continue
        rate, why = rate_text(best.rate.median), hindrance_text(best, each.side)
        if why:
            yield f"{_capital(each.name)} carried {rate} while {why}; it may carry more."
        measured = tcp_step is not None and not why
        yield claim(
            each.cause,
            each.side,
            best,
            f"{each.name} carries at most {rate}",
            standing="at-least" if why else "measured" if measured else "inferred",
            evidence=each.evidence,
            remedy=each.remedy,
        )


def narrow_links(report: Report) -> tuple[Link, ...]:
    """Returns the slots and USB links of both hosts that carry less than their cards' links."""
    return tuple(each for side in SIDES for each in _card_links(report, side))


def filled_link(report: Report, step: MeasuredStep) -> Link | None:
    """Returns the slot or USB link that a TCP step filled; None: none, or a standard link."""
    rate = step.rate.median
    if model.looks_like(rate, steps.mtu_bytes(report)) is not None:
        return None
    return _narrowest(each for each in narrow_links(report) if each.may_be_full(rate))


def _rung(link: Link) -> Claim:
    """Returns the claim of a link's absolute limit, a rung above other limits."""
    highest = link.most_bytes_per_second
    return claim(
        link.cause,
        link.side,
        None,
        f"{link.name} can carry at most {rate_text(highest)}",
        level=highest,
        low=min(highest, max(link.least_bytes_per_second, 0.8 * highest)),
        standing="inferred",
        evidence=link.evidence,
        remedy=link.remedy,
    )


def _card_links(report: Report, side: str) -> Iterator[Link]:
    cards = hardware_limits.cards(host(report, side))
    if len(cards) != 1:
        return  # which card of several carries a connection is not known
    card = cards[0]
    mtu = steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES
    link_payload = hardware_limits.link_payload(card, mtu)
    if link_payload is None:
        return
    if card.usb_bits_per_second:
        highest = hardware_limits.usb_payload(card.usb_bits_per_second)
        is_usb2 = card.usb_bits_per_second == USB2_BITS_PER_SECOND
        usual = LEAST_USB2_BYTES_PER_SECOND if is_usb2 else highest * LEAST_PAYLOAD_RATIO
        if link_payload > usual > 0:
            yield _card_on_usb(side, card, card.usb_bits_per_second, usual, highest)
    slot_rate = card.pcie.get("bytes_per_second", 0.0)
    if link_payload > LEAST_PAYLOAD_RATIO * slot_rate > 0:
        yield _card_in_slot(side, card, slot_rate)


def _card_on_usb(side: str, card: InterfaceFacts, bits: int, usual: float, highest: float) -> Link:
    supports_usb3, speed = _is_usb3(card.usb_version), link_text(bits)
    evidence = [
        f"{card.name} on the {side}{_link_suffix(card)} was on USB at {speed}, which carries at "
        f"most {rate_and_bits_text(highest)}."
    ]
    if bits == USB2_BITS_PER_SECOND and supports_usb3:
        evidence.append("The adapter supports USB 3, so the port or the cable is USB 2.")
    remedy = f"Use a faster adapter, or one that is not on USB, on the {side}"
    if supports_usb3:
        remedy = f"Connect the {side}'s adapter {card.name} to a USB 3 port"
    name = f"the {side}'s USB link ({speed})"
    return Link(USB, side, name, usual, usual, highest, remedy, tuple(evidence))


def _card_in_slot(side: str, card: InterfaceFacts, slot_rate: float) -> Link:
    text = slot_text(card.pcie)
    evidence = [
        f"{card.name} on the {side}{_link_suffix(card)} was in a slot with {text}, which carries "
        f"at most {rate_and_bits_text(slot_rate)}."
    ]
    remedy = f"Use a card on the {side} with more PCI Express lanes, or faster ones"
    if card.pcie.get("able_bytes_per_second", 0) > slot_rate:
        usable_text = slot_text(card.pcie, "able_")
        evidence.append(f"The card supports {usable_text}.")
        remedy = f"Move the {side}'s card {card.name} to a slot with {usable_text}"
    name, usual = f"the {side}'s PCI Express slot ({text})", LEAST_PAYLOAD_RATIO * slot_rate
    return Link(PCIE, side, name, usual, usual, slot_rate, remedy, tuple(evidence))


def _link_suffix(card: InterfaceFacts) -> str:
    rate = card.rate_bits_per_second
    return f" ({link_text(rate)})" if rate else ""


# -- disks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """A disk's PCI Express link, and the link that the disk could use."""

    lanes: float = 0.0
    transfers_per_second: float = 0.0
    bytes_per_second: Positive | None = None
    able_lanes: float = 0.0
    able_transfers_per_second: float = 0.0
    able_bytes_per_second: Positive | None = None


@dataclass(frozen=True)
class Layer:
    """A layer below a folder, as probes/files/layers.py reports it."""

    kind: str | None = None
    usb_bits_per_second: Positive | None = None
    usb_version: str | None = None
    pcie: Slot = Slot()


def disk_claims(test: DiskTest) -> Iterator[Claim]:
    """Yields a claim of the link that the disk's rate fills; nothing if the disk is slower."""
    zones = test.zones
    if zones is not None and zones.curve is not None and zones.curve.falls:
        return
    link = _narrowest(each for each in _disk_links(test) if each.may_be_full(test.rate))
    if link is None or _carried_more(test, link):
        return
    highest, practice = link.most_bytes_per_second, link.practice_bytes_per_second
    does = f"{test.disk} {DOES[test.verb]} {rate_text(test.rate)}"
    yield claim(
        link.cause,
        link.side,
        test.best,
        f"{does}, the most that {link.name} carries",
        # No `standing`: some disks happen to run at the rate of an older bus.
        evidence=(
            f"{_capital(test.disk)} by itself {DID[test.verb]} "
            f"{rate_text(test.rate)}. {_capital(link.name)} carries at most "
            f"{rate_text(highest)}, about {rate_text(practice)} in practice.",
        ),
        remedy=link.remedy,
    )


def _carried_more(test: DiskTest, link: Link) -> bool:
    """Whether the link carried more in the other direction, so that it was not full."""
    verb = "read" if test.verb == "write" else "write"
    back = (
        each.rate.median
        for each in disk_steps(test.report, test.side, verb, "sequential")
        if verb == "write" or each.disk.cache.proven
    )
    return test.rate * OTHER_WAY_RATIO < max(back, default=0.0) <= link.most_bytes_per_second


def _disk_links(test: DiskTest) -> Iterator[Link]:
    facts = host(test.report, test.side)
    if facts is None or facts.folder is None or not hardware_limits.is_real(facts):
        return
    layers = [lenient.record(Layer, each) for each in facts.folder.layers]
    disks = [each for each in layers if each.kind == "disk"]
    if len(disks) == 1:
        yield from _disk_on_usb(disks[0], test)
        yield from _disk_in_slot(disks[0].pcie, test)


def _disk_on_usb(disk: Layer, test: DiskTest) -> Iterator[Link]:
    bits = disk.usb_bits_per_second
    highest = hardware_limits.usb_payload(round(bits)) if bits else 0.0
    if bits is None or not highest:
        return
    is_usb2 = round(bits) == USB2_BITS_PER_SECOND
    practice = USB2_PRACTICE_BYTES_PER_SECOND if is_usb2 else USB_PRACTICE_RATIO * highest
    if is_usb2 and _is_usb3(disk.usb_version):
        remedy = (
            f"Connect {test.disk} to a USB 3 port with a USB 3 cable (5 Gbit/s; it supports that)"
        )
    elif is_usb2:
        remedy = f"Use a USB 3 case or adapter for {test.disk} (5 Gbit/s), at a USB 3 port"
    else:
        remedy = f"Connect {test.disk} to a port that carries more than {link_text(bits)}"
    name = f"its USB link ({link_text(bits)})"
    yield Link(USB, test.side, name, FILLED_RATIO * practice, practice, highest, remedy)


def _disk_in_slot(slot: Slot, test: DiskTest) -> Iterator[Link]:
    highest, usable_rate = slot.bytes_per_second, slot.able_bytes_per_second
    if highest is None or (usable_rate is not None and usable_rate <= highest):
        return
    text = slot_text(vars(slot))
    remedy = f"Use a slot with more than {text} for {test.disk}, and a card that supports it"
    if usable_rate is not None:
        remedy = f"Move {test.disk} to a slot with {slot_text(vars(slot), 'able_')}"
    lowest, practice = FILLED_RATIO * highest, PCIE_PRACTICE_RATIO * highest
    yield Link(PCIE, test.side, f"its PCI Express slot ({text})", lowest, practice, highest, remedy)
