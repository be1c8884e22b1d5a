"""bus/pcie and bus/usb: the slot or the USB link that a card or a disk sits at carries no more.

A network card's link may carry more than what is behind it. That part is named where TCP, or a copy
to or from memory, ran at what such a slot or USB link gives in practice. A disk alone that reads or
writes what its link carries in practice would do more at another one. Nothing is claimed of a disk
whose rate falls from its outer edge to its inner (that is the disk's own), of one that has all the
lanes that it can use, of several disks, or of what a hypervisor calls a bus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, hindered, host
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import DID, DOES, Alone
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, rate_and_bits_text, rate_text
from probes.core import lenient
from probes.core.lenient import Positive
from probes.core.records import SIDES, InterfaceFacts

PCIE = Cause("bus", "pcie", "PCIe slot")
USB = Cause("bus", "usb", "USB")
USUAL_RATIO = 0.6
"""Least share of a slot's or a USB 3 link's bytes that a card's payload gets; headers of packets
and USB's protocol take the rest (PCI Express with 128 bytes a packet leaves 0.84)."""
USUAL_USB2_BYTES_PER_SECOND = 25e6
"""USB 2 host controllers send 8 and receive 10 of the 13 packets of 512 bytes that an eighth of a
millisecond has room for, 33 and 41 MB/s; a Raspberry Pi 3 B+ reaches 28 MB/s of TCP."""
USB2_BITS_PER_SECOND = 480_000_000
REACHED_RATIO = 0.85
"""Of what a disk gets of a link in practice, from which on that is full."""
USB_PRACTICE_RATIO, PCIE_PRACTICE_RATIO = 0.85, 0.9
"""Of a link's bytes that a disk's data get in practice: the rest is headers, and commands."""
USB2_PRACTICE_BYTES_PER_SECOND = 38e6
"""As above, and a disk waits for its next command in between: 33 to 43 MB/s."""
BOTH_WAYS_RATIO = 1.08


@dataclass(frozen=True)
class Link:
    """What a card or a disk is connected by."""

    cause: Cause
    side: str
    name: str
    """As a person calls it: "the server's PCI Express slot (1 lane at 2.5 GT/s)"."""
    least_bytes_per_second: float
    """What it gives at the least where it is full."""
    practice_bytes_per_second: float
    """What it gives then as a rule."""
    most_bytes_per_second: float
    """What it can never exceed."""
    remedy: str
    """What to do, as an imperative sentence without its full stop."""
    evidence: tuple[str, ...] = ()

    def full(self, bytes_per_second: float) -> bool:
        """Whether a rate is what the link gives."""
        most = self.most_bytes_per_second * (1 + hardware_limits.TOLERANCE_RATIO)
        return self.least_bytes_per_second <= bytes_per_second <= most


def slot_text(pcie: Mapping[str, float], able: str = "") -> str:
    """A slot's link in words: `4 lanes at 8 GT/s`; able: "able_" for what could be used."""
    lanes, transfers = pcie.get(f"{able}lanes", 0), pcie.get(f"{able}transfers_per_second", 0)
    many = "lane" if lanes == 1 else "lanes"
    return f"{lanes:.0f} {many} at {transfers / 1e9:g} GT/s"


def _is_usb3(version: str | None) -> bool:
    """USB 3.2, 9.2.6.6: at a USB 2 port such a device tells 2.10."""
    return (version or "").strip() >= "2.10"


def _capital(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"


def _narrowest(links: Iterator[Link]) -> Link | None:
    return min(links, key=lambda each: each.most_bytes_per_second, default=None)


# -- cards -------------------------------------------------------------------------------------


def rule(given: Evidence) -> Iterator[Claim | str]:
    """What a narrow slot or USB link of a card lets through in the copy's direction."""
    alone = steps.fastest(given.believed)
    best = alone or given.copy.memory
    at = None if best is None else reached(given.report, best)
    for each in narrow(given.report):
        if best is None or each != at:
            yield _rung(each)
            continue
        rate, why = rate_text(best.rate.median), hindered(best, each.side)
        if why:
            yield f"{_capital(each.name)} carried {rate} while {why}; it may carry more."
        measured = alone is not None and not why
        yield claim(
            each.cause,
            each.side,
            best,
            f"{each.name} carries at most {rate}",
            standing="at-least" if why else "measured" if measured else "inferred",
            evidence=each.evidence,
            remedy=each.remedy,
        )


def narrow(report: Report) -> tuple[Link, ...]:
    """The slots and USB links of both hosts that carry less than their cards' links."""
    return tuple(each for side in SIDES for each in _of_card(report, side))


def reached(report: Report, found: Found) -> Link | None:
    """The slot or USB link that a step over TCP ran at; None: at none, or at a standard link."""
    rate = found.rate.median
    if model.looks_like(rate, steps.mtu_bytes(report)) is not None:
        return None
    return _narrowest(each for each in narrow(report) if each.full(rate))


def _rung(at: Link) -> Claim:
    """What it can never exceed, above what is known of the rest."""
    most = at.most_bytes_per_second
    return claim(
        at.cause,
        at.side,
        None,
        f"{at.name} can carry at most {rate_text(most)}",
        level=most,
        low=min(most, max(at.least_bytes_per_second, 0.8 * most)),
        standing="inferred",
        evidence=at.evidence,
        remedy=at.remedy,
    )


def _of_card(report: Report, side: str) -> Iterator[Link]:
    found = hardware_limits.cards(host(report, side))
    if len(found) != 1:
        return  # which card of several carries a connection is not known
    card = found[0]
    mtu = steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES
    carried = hardware_limits.link_payload(card, mtu)
    if carried is None:
        return
    if card.usb_bits_per_second:
        most = hardware_limits.usb_payload(card.usb_bits_per_second)
        second = card.usb_bits_per_second == USB2_BITS_PER_SECOND
        usual = USUAL_USB2_BYTES_PER_SECOND if second else most * USUAL_RATIO
        if carried > usual > 0:
            yield _card_on_usb(side, card, card.usb_bits_per_second, usual, most)
    slot = card.pcie.get("bytes_per_second", 0.0)
    if carried > USUAL_RATIO * slot > 0:
        yield _card_in_slot(side, card, slot)


def _card_on_usb(side: str, card: InterfaceFacts, bits: int, usual: float, most: float) -> Link:
    able, at = _is_usb3(card.usb_version), link_text(bits)
    evidence = [
        f"{card.name} on the {side}{_link_of(card)} was on USB at {at}, which carries at most "
        f"{rate_and_bits_text(most)}."
    ]
    if bits == USB2_BITS_PER_SECOND and able:
        evidence.append("The adapter supports USB 3, so the port or the cable is USB 2.")
    remedy = f"Use a faster adapter, or one that is not on USB, on the {side}"
    if able:
        remedy = f"Connect the {side}'s adapter {card.name} to a USB 3 port"
    name = f"the {side}'s USB link ({at})"
    return Link(USB, side, name, usual, usual, most, remedy, tuple(evidence))


def _card_in_slot(side: str, card: InterfaceFacts, slot: float) -> Link:
    text = slot_text(card.pcie)
    evidence = [
        f"{card.name} on the {side}{_link_of(card)} was in a slot with {text}, which carries at "
        f"most {rate_and_bits_text(slot)}."
    ]
    remedy = f"Use a card on the {side} with more PCI Express lanes, or faster ones"
    if card.pcie.get("able_bytes_per_second", 0) > slot:
        able = slot_text(card.pcie, "able_")
        evidence.append(f"The card supports {able}.")
        remedy = f"Move the {side}'s card {card.name} to a slot with {able}"
    name, usual = f"the {side}'s PCI Express slot ({text})", USUAL_RATIO * slot
    return Link(PCIE, side, name, usual, usual, slot, remedy, tuple(evidence))


def _link_of(card: InterfaceFacts) -> str:
    rate = card.rate_bits_per_second
    return f" ({link_text(rate)})" if rate else ""


# -- disks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """A disk's PCI Express link, and what the disk could use."""

    lanes: float = 0.0
    transfers_per_second: float = 0.0
    bytes_per_second: Positive | None = None
    able_lanes: float = 0.0
    able_transfers_per_second: float = 0.0
    able_bytes_per_second: Positive | None = None


@dataclass(frozen=True)
class Layer:
    """What lies below a folder, as probes/files/layers.py tells it."""

    kind: str | None = None
    usb_bits_per_second: Positive | None = None
    usb_version: str | None = None
    pcie: Slot = Slot()


def claims(alone: Alone) -> Iterator[Claim]:
    """The link that the disk's rate fills; nothing where the disk itself is slower."""
    zones = alone.zones
    if zones is not None and zones.curve is not None and zones.curve.falls:
        return
    at = _narrowest(each for each in _of_disk(alone) if each.full(alone.rate))
    if at is None or _carried_more(alone, at):
        return
    most, practice = at.most_bytes_per_second, at.practice_bytes_per_second
    does = f"{alone.disk} {DOES[alone.verb]} {rate_text(alone.rate)}"
    yield claim(
        at.cause,
        at.side,
        alone.best,
        f"{does}, the most that {at.name} carries",
        # Some disks by themselves do what an older bus carries.
        evidence=(
            f"{_capital(alone.disk)} by itself {DID[alone.verb]} "
            f"{rate_text(alone.rate)}. {_capital(at.name)} carries at most "
            f"{rate_text(most)}, about {rate_text(practice)} in practice.",
        ),
        remedy=at.remedy,
    )


def _carried_more(alone: Alone, at: Link) -> bool:
    """Whether the same link was seen to carry more the other way: it is not what is full."""
    verb = "read" if alone.verb == "write" else "write"
    back = (
        each.rate.median
        for each in disk_steps(alone.report, alone.side, verb, "sequential")
        if verb == "write" or each.disk.cache.proven
    )
    return alone.rate * BOTH_WAYS_RATIO < max(back, default=0.0) <= at.most_bytes_per_second


def _of_disk(alone: Alone) -> Iterator[Link]:
    """The links of the one disk below a side's folder; none where there are several disks."""
    facts = host(alone.report, alone.side)
    if facts is None or facts.folder is None or not hardware_limits.real(facts):
        return
    layers = [lenient.record(Layer, each) for each in facts.folder.layers]
    disks = [each for each in layers if each.kind == "disk"]
    if len(disks) == 1:
        yield from _disk_on_usb(disks[0], alone)
        yield from _disk_in_slot(disks[0].pcie, alone)


def _disk_on_usb(disk: Layer, alone: Alone) -> Iterator[Link]:
    bits = disk.usb_bits_per_second
    most = hardware_limits.usb_payload(round(bits)) if bits else 0.0
    if bits is None or not most:
        return
    second = round(bits) == USB2_BITS_PER_SECOND
    practice = USB2_PRACTICE_BYTES_PER_SECOND if second else USB_PRACTICE_RATIO * most
    if second and _is_usb3(disk.usb_version):
        remedy = (
            f"Connect {alone.disk} to a USB 3 port with a USB 3 cable (5 Gbit/s; it supports that)"
        )
    elif second:
        remedy = f"Use a USB 3 case or adapter for {alone.disk} (5 Gbit/s), at a USB 3 port"
    else:
        remedy = f"Connect {alone.disk} to a port that carries more than {link_text(bits)}"
    name = f"its USB link ({link_text(bits)})"
    yield Link(USB, alone.side, name, REACHED_RATIO * practice, practice, most, remedy)


def _disk_in_slot(slot: Slot, alone: Alone) -> Iterator[Link]:
    most, able = slot.bytes_per_second, slot.able_bytes_per_second
    if most is None or (able is not None and able <= most):
        return
    now = slot_text(vars(slot))
    remedy = f"Use a slot with more than {now} for {alone.disk}, and a card that supports it"
    if able is not None:
        remedy = f"Move {alone.disk} to a slot with {slot_text(vars(slot), 'able_')}"
    least, practice = REACHED_RATIO * most, PCIE_PRACTICE_RATIO * most
    name = f"its PCI Express slot ({now})"
    yield Link(PCIE, alone.side, name, least, practice, most, remedy)
