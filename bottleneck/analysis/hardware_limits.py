"""Physical limits of a measurement: the payload of an interface, its slot or its USB link.

Only a driver's figures of real hardware count. A virtual or emulated card's figures are no facts,
and a radio link's rate changes all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bottleneck.analysis import model, steps
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, rate_text
from probes.core.records import SIDES, HostFacts, InterfaceFacts

TOLERANCE_RATIO = 0.01
"""Excess of a rate over the bound that is possible: clocks, and UDP's shorter headers."""
INSTRUMENT_RATIO = 1.5
"""Least ratio of this tool's own limit to its TCP rate at which TCP may limit a copy."""
CONTAINERS = frozenset(
    ("docker", "podman", "kubepods", "containerd", "lxc", "systemd-nspawn", "machine.slice")
)
"""Values of a host's `virtual` that share the kernel's real cards; all others emulate them."""
CLAIMING_DRIVERS = frozenset(
    ("virtio_net", "vmxnet3", "xen_netfront", "vif", "hv_netvsc", "ena", "gve", "mana")
    + ("cdc_ether", "cdc_ncm", "cdc_mbim", "rndis_host", "huawei_cdc_ncm", "ipheth")
)
"""Virtual cards, and tethered devices that stand for another link behind them."""
WIDEST_MTU_BYTES = 16_000
ON_ANOTHER = frozenset(("vlan", "macvlan", "macvtap", "ipvlan"))
"""Kinds that send everything through the one interface below."""
ONE_AT_A_TIME = ("active-backup", "broadcast")
_UNBOUNDED = frozenset(("loopback", "disk", "smb-multichannel"))
"""Stages without a link's bound: they use no link, or several."""
_USB_PAYLOAD = {
    1_500_000: 0.0,
    12_000_000: 19 * 64 * 1e3,
    480_000_000: 13 * 512 * 8e3,
    5_000_000_000: 5e9 * 8 / 10 / 8,
}
"""Bytes per second in bulk packets: USB 2.0, tables 5-9 and 5-10 (19 packets of 64 bytes a
millisecond; 13 of 512 bytes an eighth of one); USB 3.2, 8b/10b at 5 Gbit/s."""
_USB_CODING = 128 / 132
"""Efficiency of USB 3.2's line coding from 10 Gbit/s on."""


@dataclass(frozen=True)
class Bound:
    """Highest payload rate of a part of a host."""

    bytes_per_second: float
    what: str
    """Subject of a sentence: "the client's 1 Gbit/s link"."""


def cards(host: HostFacts | None) -> tuple[InterfaceFacts, ...]:
    """Returns a host's real cards towards the peer; empty: none, or not known."""
    if host is None or host.interface is None or not is_real(host):
        return ()
    return tuple(each for each in tree(host.interface) if not each.lower and _is_card(each))


def interfaces(report: Report) -> Iterator[tuple[str, InterfaceFacts]]:
    """Yields both sides' interfaces, as far as they are known."""
    for side, host in zip(SIDES, (report.client, report.server), strict=True):
        if host is not None and host.interface is not None:
            yield side, host.interface


def shaped_rate(report: Report, sender: str) -> Bound | None:
    """Returns the payload rate of the sender's own shaper; None: it has none."""
    share = model.counted_efficiency(steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES)
    bounds = (
        Bound(share * each.qdisc_rate_bytes_per_second, f"{each.name} on the {side} ({each.qdisc})")
        for side, link in interfaces(report)
        for each in tree(link)
        if side == sender and each.qdisc_rate_bytes_per_second
    )
    return min(bounds, key=lambda each: each.bytes_per_second, default=None)


def physical_rate(report: Report) -> Bound | None:
    """Returns the highest payload rate of both hosts' hardware, each way; None: not known.

    The lowest of both ends' links (at the common MTU, without TCP timestamps), PCI Express slots
    and USB links. Half duplex does not lower it: the number of acknowledgements is not known.
    """
    mtu = steps.mtu_bytes(report) or WIDEST_MTU_BYTES
    bounds = [
        _bound_of(host.interface, side, mtu, 0)
        for side, host in zip(SIDES, (report.client, report.server), strict=True)
        if host is not None and host.interface is not None and is_real(host)
    ]
    return _lowest(bounds)


def sent_rate(report: Report, sender: str) -> Bound | None:
    """Returns the highest rate of a sender: by both hosts' hardware, or by its shaper."""
    return _lowest((shaped_rate(report, sender), physical_rate(report)))


def _lowest(bounds: Iterable[Bound | None]) -> Bound | None:
    candidates = (each for each in bounds if each is not None)
    return min(candidates, key=lambda each: each.bytes_per_second, default=None)


def impossible(report: Report, step: MeasuredStep) -> str | None:
    """Returns why a step's rate is impossible, as a sentence; None: it is possible.

    The operating system's own copies are compared with TCP. Multichannel is left out: it may use
    several links.
    """
    if step.plan.stage == "native-copy":
        return _faster_than_tcp(report, step)
    bound = physical_rate(report)
    if bound is None or step.setting.over == "loopback" or step.plan.stage in _UNBOUNDED:
        return None
    rate = step.rate.median
    if rate <= bound.bytes_per_second * (1 + TOLERANCE_RATIO):
        return None
    what = step.setting.copy or step.plan.stage
    return (
        f"Not credible: {what} at {rate_text(rate)} is more than {bound.what} carries "
        f"({rate_text(bound.bytes_per_second)})."
    )


def _faster_than_tcp(report: Report, step: MeasuredStep) -> str | None:
    """Returns why the rate of the system's own copy is not the path's; None: it may be.

    Nothing if this tool limits TCP itself, or if one of its copies was faster than TCP, too.
    """
    mount, verb = step.details.mount, steps.verb_and_cache(step.setting.copy)[0]
    best = steps.fastest(believed_steps(report, steps.sender(verb, step.plan.initiator)))
    loopbacks = [each.rate.median for each in steps.measured_steps(report, "loopback")]
    one_path = mount.filesystem.startswith(("cifs", "smb", "fuse."))
    if best is None or not loopbacks or not one_path or "multichannel" in mount.options.split(","):
        return None
    copies = (e for e in steps.measured_steps(report, "smb-copy") if verb in e.setting.copy)
    ours = steps.fastest(each for each in copies if each.plan.initiator == step.plan.initiator)
    fastest = max((each.rate for each in (best, ours) if each is not None), key=lambda e: e.median)
    is_own_limit = min(loopbacks) < INSTRUMENT_RATIO * best.rate.median
    if is_own_limit or step.rate.median <= fastest.median or not differ(step.rate, fastest):
        return None
    did = "acknowledged bytes that had not arrived at the server yet"
    if verb == "pull":
        did = "delivered bytes that did not come from the server in this copy"
    return (
        f"Not credible: TCP moved at most {rate_text(best.rate.median)} the same way. Inferred: a "
        f"cache of the mount ({mount.filesystem}) {did}."
    )


def believed_steps(report: Report, sender: str) -> list[MeasuredStep]:
    """Returns the tcp steps in which a side sends, without those whose rate is impossible."""
    return [
        each
        for each in steps.measured_steps(report, "tcp")
        if each.sender == sender and impossible(report, each) is None
    ]


def reasons_for_doubt(report: Report, sender: str) -> Iterator[str]:
    """Yields why the other tcp steps of that side are not credible."""
    for each in steps.measured_steps(report, "tcp"):
        why = impossible(report, each) if each.sender == sender else None
        if why is not None:
            yield why


def link_payload(card: InterfaceFacts, mtu_bytes: int, vlan_tags: int = 0) -> float | None:
    """Returns the payload of a card's link at an MTU, bytes per second; None: no rate known."""
    if not card.rate_bits_per_second:
        return None
    mtu = min(max(mtu_bytes, 576), WIDEST_MTU_BYTES)
    share = model.payload_efficiency(mtu, timestamps=False, vlan_tags=vlan_tags)
    return card.rate_bits_per_second / 8 * share


def usb_payload(bits_per_second: int) -> float:
    """Returns the payload of a USB link in bulk packets, bytes per second."""
    payload = _USB_PAYLOAD.get(bits_per_second)
    return bits_per_second / 8 * _USB_CODING if payload is None else payload


def tree(link: InterfaceFacts) -> Iterator[InterfaceFacts]:
    """Yields an interface and all interfaces below it."""
    yield link
    for each in link.lower:
        yield from tree(each)


def is_real(host: HostFacts) -> bool:
    """Whether the figures of this host's cards are those of hardware."""
    return host.virtual is None or set(host.virtual.split(" on ")) <= CONTAINERS


def _is_card(link: InterfaceFacts) -> bool:
    wired = link.kind in (None, "ethernet")
    return link.virtual is False and wired and link.driver not in CLAIMING_DRIVERS


def _bound_of(link: InterfaceFacts, side: str, mtu: int, tags: int) -> Bound | None:
    """Returns the bound of an interface and those below; None: a part of it is not known."""
    if not link.lower:
        return _card_bound(link, side, mtu, tags) if _is_card(link) else None
    tags += link.kind == "vlan"
    below = [_bound_of(each, side, mtu, tags) for each in link.lower]
    bounds = [each for each in below if each is not None]
    if len(bounds) < len(below):
        return None
    one_below = link.kind in ON_ANOTHER and len(bounds) == 1
    one_used = link.kind == "bond" and link.bond_mode in ONE_AT_A_TIME
    if one_below or link.kind == "bridge" or one_used:
        return max(bounds, key=lambda each: each.bytes_per_second)
    if link.kind in ("bond", "team"):
        return Bound(sum(each.bytes_per_second for each in bounds), f"the {side}'s {link.kind}")
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
