"""What no measurement can exceed: the payload that an interface, its slot or its USB lets through.

Only what a driver knows of real hardware counts. What a virtual or emulated card claims is no
fact, and a radio link changes its rate while it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bottleneck.analysis import model, steps
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, rate_text
from probes.core.records import SIDES, HostFacts, InterfaceFacts

TOLERANCE_RATIO = 0.01
"""By how much a rate may be above the bound: clocks, and UDP's shorter headers."""
INSTRUMENT_RATIO = 1.5
"""This tool's own limit over its TCP rate, below which TCP by itself does not limit a copy."""
CONTAINERS = frozenset(
    ("docker", "podman", "kubepods", "containerd", "lxc", "systemd-nspawn", "machine.slice")
)
"""Of a host's `virtual`: what shares the kernel and its real cards; all else emulates them."""
CLAIMING_DRIVERS = frozenset(
    ("virtio_net", "vmxnet3", "xen_netfront", "vif", "hv_netvsc", "ena", "gve", "mana")
    + ("cdc_ether", "cdc_ncm", "cdc_mbim", "rndis_host", "huawei_cdc_ncm", "ipheth")
)
"""Virtual cards, and tethered devices that stand for another link behind them."""
WIDEST_MTU_BYTES = 16_000
ON_ANOTHER = frozenset(("vlan", "macvlan", "macvtap", "ipvlan"))
"""Kinds that send all through the one interface below."""
ONE_AT_A_TIME = ("active-backup", "broadcast")
_UNBOUNDED = frozenset(("loopback", "disk", "smb-multichannel"))
"""Stages that a link does not bound: of no link, or of several."""
_USB_PAYLOAD = {
    1_500_000: 0.0,
    12_000_000: 19 * 64 * 1e3,
    480_000_000: 13 * 512 * 8e3,
    5_000_000_000: 5e9 * 8 / 10 / 8,
}
"""Bytes per second in bulk packets: USB 2.0, tables 5-9 and 5-10 (19 packets of 64 bytes a
millisecond; 13 of 512 bytes an eighth of one); USB 3.2, 8b/10b at 5 Gbit/s."""
_USB_CODING = 128 / 132
"""Of USB 3.2 from 10 Gbit/s on."""


@dataclass(frozen=True)
class Bound:
    """The most payload that a part of a host lets through, bytes per second."""

    bytes_per_second: float
    what: str
    """As the subject of a sentence: "the client's 1 Gbit/s link"."""


def cards(host: HostFacts | None) -> tuple[InterfaceFacts, ...]:
    """The real cards that a host's packets to the peer leave by; empty: none, or not known."""
    if host is None or host.interface is None or not real(host):
        return ()
    return tuple(each for each in tree(host.interface) if not each.lower and _is_card(each))


def interfaces(report: Report) -> Iterator[tuple[str, InterfaceFacts]]:
    """Both sides' interfaces, as far as they are known."""
    for side, host in zip(SIDES, (report.client, report.server), strict=True):
        if host is not None and host.interface is not None:
            yield side, host.interface


def shaped(report: Report, sender: str) -> Bound | None:
    """The payload that the sender's own shaper lets out; None: it has none."""
    share = model.counted_efficiency(steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES)
    found = (
        Bound(share * each.qdisc_rate_bytes_per_second, f"{each.name} on the {side} ({each.qdisc})")
        for side, link in interfaces(report)
        for each in tree(link)
        if side == sender and each.qdisc_rate_bytes_per_second
    )
    return min(found, key=lambda each: each.bytes_per_second, default=None)


def physical_rate(report: Report) -> Bound | None:
    """The most payload that both hosts' hardware lets through, either way; None: not known.

    The lowest of both ends' links (at the MTU that both have, without TCP timestamps), PCI
    Express slots and USB links. Half duplex does not lower it: how few acknowledgements a
    receiver sends is not known.
    """
    mtu = steps.mtu_bytes(report) or WIDEST_MTU_BYTES
    found = [
        _most(host.interface, side, mtu, 0)
        for side, host in zip(SIDES, (report.client, report.server), strict=True)
        if host is not None and host.interface is not None and real(host)
    ]
    return _lowest(found)


def sent_rate(report: Report, sender: str) -> Bound | None:
    """The most of what a side sends: by both hosts' hardware, or by its shaper."""
    return _lowest((shaped(report, sender), physical_rate(report)))


def _lowest(found: Iterable[Bound | None]) -> Bound | None:
    known = (each for each in found if each is not None)
    return min(known, key=lambda each: each.bytes_per_second, default=None)


def impossible(report: Report, found: Found) -> str | None:
    """Why a step's rate cannot be true, as a sentence; None: it can.

    The operating system's own copies are compared with TCP. Multichannel is left aside: it may use
    several links.
    """
    if found.step.stage == "native-copy":
        return _faster_than_tcp(report, found)
    bound = physical_rate(report)
    inside = found.setting.over == "loopback"
    if bound is None or inside or found.step.stage in _UNBOUNDED:
        return None
    rate = found.rate.median
    if rate <= bound.bytes_per_second * (1 + TOLERANCE_RATIO):
        return None
    what = found.setting.copy or found.step.stage
    return (
        f"Not credible: {what} at {rate_text(rate)} is more than {bound.what} carries "
        f"({rate_text(bound.bytes_per_second)})."
    )


def _faster_than_tcp(report: Report, found: Found) -> str | None:
    """Why the rate of the operating system's own copy is not that of the path; None: it may be.

    Not where this tool limits TCP itself, nor where one of its copies was faster than TCP too.
    """
    mount, verb = found.details.mount, steps.verb_and_cache(found.setting.copy)[0]
    best = steps.fastest(believed(report, steps.sender(verb, found.step.initiator)))
    alone = [each.rate.median for each in steps.measured(report, "loopback")]
    one_path = mount.filesystem.startswith(("cifs", "smb", "fuse."))
    if best is None or not alone or not one_path or "multichannel" in mount.options.split(","):
        return None
    copies = (each for each in steps.measured(report, "smb-copy") if verb in each.setting.copy)
    ours = steps.fastest(each for each in copies if each.step.initiator == found.step.initiator)
    most = max((each.rate for each in (best, ours) if each is not None), key=lambda e: e.median)
    is_own_limit = min(alone) < INSTRUMENT_RATIO * best.rate.median
    if is_own_limit or found.rate.median <= most.median or not differ(found.rate, most):
        return None
    did = "acknowledged bytes that had not arrived at the server yet"
    if verb == "pull":
        did = "delivered bytes that did not come from the server in this copy"
    return (
        f"Not credible: TCP moved at most {rate_text(best.rate.median)} the same way. Inferred: a "
        f"cache of the mount ({mount.filesystem}) {did}."
    )


def believed(report: Report, sender: str) -> list[Found]:
    """The tcp steps in which a side sends, without those whose rate is impossible."""
    return [
        each
        for each in steps.measured(report, "tcp")
        if each.sender == sender and impossible(report, each) is None
    ]


def doubted(report: Report, sender: str) -> Iterator[str]:
    """Why the others of them are not believed."""
    for each in steps.measured(report, "tcp"):
        why = impossible(report, each) if each.sender == sender else None
        if why is not None:
            yield why


def link_payload(card: InterfaceFacts, mtu_bytes: int, vlan_tags: int = 0) -> float | None:
    """The most payload of a card's link at an MTU, bytes per second; None: no rate is told."""
    if not card.rate_bits_per_second:
        return None
    mtu = min(max(mtu_bytes, 576), WIDEST_MTU_BYTES)
    share = model.payload_efficiency(mtu, timestamps=False, vlan_tags=vlan_tags)
    return card.rate_bits_per_second / 8 * share


def usb_payload(bits_per_second: int) -> float:
    """The most payload of a USB link in bulk packets, bytes per second."""
    told = _USB_PAYLOAD.get(bits_per_second)
    return bits_per_second / 8 * _USB_CODING if told is None else told


def tree(link: InterfaceFacts) -> Iterator[InterfaceFacts]:
    """An interface and all that lies below it."""
    yield link
    for each in link.lower:
        yield from tree(each)


def real(host: HostFacts) -> bool:
    """Whether what a card of this host tells is true of hardware."""
    return host.virtual is None or set(host.virtual.split(" on ")) <= CONTAINERS


def _is_card(link: InterfaceFacts) -> bool:
    wired = link.kind in (None, "ethernet")
    return link.virtual is False and wired and link.driver not in CLAIMING_DRIVERS


def _most(link: InterfaceFacts, side: str, mtu: int, tags: int) -> Bound | None:
    """The bound of an interface and what lies below; None: any part of it is not known."""
    if not link.lower:
        return _card_bound(link, side, mtu, tags) if _is_card(link) else None
    tags += link.kind == "vlan"
    below = [_most(each, side, mtu, tags) for each in link.lower]
    known = [each for each in below if each is not None]
    if len(known) < len(below):
        return None
    one_below = link.kind in ON_ANOTHER and len(known) == 1
    one_used = link.kind == "bond" and link.bond_mode in ONE_AT_A_TIME
    if one_below or link.kind == "bridge" or one_used:
        return max(known, key=lambda each: each.bytes_per_second)
    if link.kind in ("bond", "team"):
        return Bound(sum(each.bytes_per_second for each in known), f"the {side}'s {link.kind}")
    return None


def _card_bound(card: InterfaceFacts, side: str, mtu: int, tags: int) -> Bound | None:
    link = link_text(card.rate_bits_per_second or 0)
    usb = card.usb_bits_per_second or 0
    parts = (
        (link_payload(card, mtu, tags), f"{link} link"),
        (card.pcie.get("bytes_per_second"), "PCI Express slot"),
        (usb_payload(usb), f"USB link ({link_text(usb)})"),
    )
    return _lowest(Bound(rate, f"the {side}'s {what}") for rate, what in parts if rate)
