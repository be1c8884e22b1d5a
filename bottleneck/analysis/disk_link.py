"""Rules bus/usb and bus/pcie of disks: the link that a disk hangs on is full, not the disk.

A disk alone that reads or writes what its USB or PCI Express link carries in practice would do
more at another one. Nothing is claimed of a disk whose rate falls from its outer edge to its inner
(that is the disk's own), of a card that has all the lanes that it can use, of several disks, or of
what a hypervisor calls a bus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bottleneck.analysis import bus, physics, steps
from bottleneck.analysis.disk_alone import DOES, Alone
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Claim
from bottleneck.reports.units import link_text, rate_text

REACHED_RATIO = 0.85
"""Of what USB carries in practice, and of a slot's bytes, from which on it is full."""
USB_PRACTICE_RATIO, PCIE_PRACTICE_RATIO = 0.85, 0.9
"""Of a link's bytes that a disk's data get in practice: the rest is headers, and commands."""
USB2_PRACTICE_BYTES_PER_SECOND = 38e6
"""Hosts send 8 and receive 10 of the 13 packets that an eighth of a millisecond has room for, and
a disk waits for its next command in between: 33 to 43 MB/s."""
SURE_RATIO = 0.95
OLD_USB_BYTES_PER_SECOND = 100e6
"""Hardly a disk of today is as slow as USB 2; many are as fast as 5 Gbit/s."""
BOTH_WAYS_RATIO = 1.08
SURE_TRUST, TRUST = 0.85, 0.75
"""Some disks by themselves do what an older bus carries."""


@dataclass(frozen=True)
class Link:
    """What a disk is connected by."""

    cause: str
    """pcie or usb."""
    name: str
    """As a person calls it: "its USB link (480 Mbit/s)"."""
    least_bytes_per_second: float
    """What it gives at the least where it is full."""
    practice_bytes_per_second: float
    """What it gives then as a rule."""
    most_bytes_per_second: float
    """What it can never exceed."""
    remedy: str
    """Another one, as the subject of a sentence."""

    def full(self, bytes_per_second: float) -> bool:
        """Whether a disk's rate is what the link gives."""
        most = self.most_bytes_per_second * (1 + physics.TOLERANCE_RATIO)
        return self.least_bytes_per_second <= bytes_per_second <= most


def claims(alone: Alone) -> Iterator[Claim]:
    """The link that the disk's rate fills; nothing where the disk itself is slower."""
    zones = alone.zones
    if zones is not None and zones.curve is not None and zones.curve.falls:
        return
    full = [each for each in links(alone) if each.full(alone.rate)]
    at = min(full, key=lambda each: each.most_bytes_per_second, default=None)
    if at is None:
        return
    if _carried_more(alone, at):
        return
    sure = alone.rate >= SURE_RATIO * at.practice_bytes_per_second
    sure = sure and at.most_bytes_per_second < OLD_USB_BYTES_PER_SECOND
    yield Claim(
        replace(alone.ceiling(alone.verb), component="bus", cause=at.cause),
        words=(
            f"{alone.disk} {DOES[alone.verb]} {rate_text(alone.rate)}, which is what {at.name} "
            "carries"
        ),
        trust=SURE_TRUST if sure else TRUST,
        evidence=(
            f"{at.name[0].upper()}{at.name[1:]} carries {rate_text(at.most_bytes_per_second)} at "
            f"the most, about {rate_text(at.practice_bytes_per_second)} in practice; alone, "
            f"{alone.disk} {DOES[alone.verb]} {rate_text(alone.rate)}.",
        ),
        remedy=at.remedy,
    )


def _carried_more(alone: Alone, at: Link) -> bool:
    """Whether the same link was seen to carry more the other way: it is not what is full."""
    verb = "read" if alone.verb == "write" else "write"
    back = (
        each.rate.median
        for each in disk_steps(alone.report, alone.side, verb, "sequential")
        if verb == "write" or steps.flag(each.outcome.details, "cache", "proven")
    )
    most = max(back, default=0.0)
    return alone.rate * BOTH_WAYS_RATIO < most <= at.most_bytes_per_second


def links(alone: Alone) -> Iterator[Link]:
    """The links of the one disk below a side's folder; none where there are several disks."""
    host = alone.report.client if alone.side == "client" else alone.report.server
    if host is None or host.folder is None or not physics.real(host):
        return
    disks = [each for each in host.folder.layers if steps.word(each, "kind") == "disk"]
    if len(disks) == 1:
        yield from _usb(disks[0], alone.disk)
        yield from _pcie(disks[0], alone.disk)


def _usb(disk: dict[str, Any], name: str) -> Iterator[Link]:
    bits = steps.positive(disk, "usb_bits_per_second")
    most = physics.usb_payload(round(bits)) if bits else 0.0
    if bits is None or not most:
        return
    second = bits == bus.USB2_BITS_PER_SECOND
    practice = USB2_PRACTICE_BYTES_PER_SECOND if second else USB_PRACTICE_RATIO * most
    # USB 3.2, 9.2.6.6: at a USB 2 port such a device tells 2.10.
    able = (steps.word(disk, "usb_version") or "").strip() >= "2.10"
    if second and able:
        remedy = f"A USB 3 port and cable for {name} (5 Gbit/s; by its descriptor it can)"
    elif second:
        remedy = f"A USB 3 case or adapter for {name} (5 Gbit/s), at a USB 3 port"
    else:
        remedy = f"A port for {name} that carries more than {link_text(bits)}"
    least = REACHED_RATIO * practice
    yield Link("usb", f"its USB link ({link_text(bits)})", least, practice, most, remedy)


def _pcie(disk: dict[str, Any], name: str) -> Iterator[Link]:
    most = steps.positive(disk, "pcie", "bytes_per_second")
    able = steps.positive(disk, "pcie", "able_bytes_per_second")
    if most is None or (able is not None and able <= most):
        return
    slot = _slot(disk["pcie"], "")
    remedy = f"A slot with more than {slot} for {name}, and a card that can use it"
    if able is not None:
        remedy = f"A slot with {_slot(disk['pcie'], 'able_')} for {name}"
    least, practice = REACHED_RATIO * most, PCIE_PRACTICE_RATIO * most
    yield Link("pcie", f"its PCI Express slot ({slot})", least, practice, most, remedy)


def _slot(told: dict[str, Any], prefix: str) -> str:
    names = ("lanes", "transfers_per_second")
    return bus.slot_text({name: steps.amount(told, f"{prefix}{name}") or 0.0 for name in names})
