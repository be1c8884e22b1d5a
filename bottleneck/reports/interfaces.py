"""The interfaces that the packets leave by: a line or two a host."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.interface_facts import interfaces, wifi_text
from bottleneck.analysis.rules.bus.links import slot_text
from bottleneck.report import Report
from bottleneck.reports.document import Points, points
from bottleneck.reports.safe import safe
from bottleneck.reports.units import bit_rate_text, link_text, rate_text
from probes.records import InterfaceFacts

MOST_BELOW = 4
ORDINARY_QDISCS = ("noqueue", "noop", "pfifo_fast", "fq_codel", "fq", "mq")


def interface_points(report: Report) -> Iterator[Points]:
    """Both hosts' interfaces with what lies below them; nothing where none is known."""
    told = (f"{side}: {each}" for side, link in interfaces(report) for each in _lines(link))
    yield from points("Interfaces", told)


def _lines(link: InterfaceFacts) -> Iterator[str]:
    yield interface_text(link)
    for each in link.lower[:MOST_BELOW]:
        yield f"below {safe(link.name, 24)}: {interface_text(each)}"
        if each.lower:
            names = ", ".join(safe(one.name, 24) for one in each.lower[:MOST_BELOW])
            yield f"below {safe(each.name, 24)}: {names}"
    if len(link.lower) > MOST_BELOW:
        yield f"below {safe(link.name, 24)}: {len(link.lower) - MOST_BELOW} more"


def interface_text(link: InterfaceFacts) -> str:
    """An interface in one line: name, what it is, link, MTU, and what is unusual about it."""
    what = _what(link)
    name = safe(link.name, 24)
    return ", ".join((f"{name} ({what})" if what else name, *_known(link)))


def _what(link: InterfaceFacts) -> str:
    told = [link.driver if link.kind in (None, "ethernet") else link.kind, link.bond_mode]
    if link.kind == "wifi":
        told = ["Wi-Fi", link.driver]
    if link.vlan_id is not None:
        told.append(str(link.vlan_id))
    return safe(" ".join(each for each in told if each), 40)


def _known(link: InterfaceFacts) -> Iterator[str]:
    # What a virtual interface with nothing below claims is a constant in its driver.
    if link.rate_bits_per_second and (link.virtual is False or link.lower):
        duplex = f" {safe(link.duplex, 8)} duplex" if link.duplex else ""
        by_hand = " set by hand" if link.autonegotiated is False and link.virtual is False else ""
        yield f"{link_text(link.rate_bits_per_second)}{duplex}{by_hand}"
    if link.kind == "wifi":
        yield wifi_text(link).removeprefix(" at ") or "rate unknown"
    if link.mtu_bytes:
        yield f"MTU {link.mtu_bytes}"
    if link.pcie:
        rate = link.pcie.get("bytes_per_second", 0.0)
        yield f"slot of {slot_text(link.pcie)} ({rate_text(rate)})"
    if link.usb_bits_per_second:
        yield f"USB at {link_text(link.usb_bits_per_second)}"
    if link.pause:
        uses = [word for word in ("receives", "sends") if link.pause.get(word)]
        yield f"flow control {' and '.join(uses)}" if uses else "no flow control"
    off = [name for name in ("tcp_segmentation", "generic_receive") if _is_off(link, name)]
    if off and link.virtual is False:
        yield f"{' and '.join(off).replace('_', ' ')} offload off"
    if link.qdisc_rate_bytes_per_second:
        yield f"shaped to {bit_rate_text(link.qdisc_rate_bytes_per_second)} by {_qdisc(link)}"
    elif link.qdisc and link.qdisc not in ORDINARY_QDISCS:
        yield f"qdisc {_qdisc(link)}"


def _qdisc(link: InterfaceFacts) -> str:
    return safe(link.qdisc or "its qdisc", 16)


def _is_off(link: InterfaceFacts, offload: str) -> bool:
    return link.offloads.get(offload) is False
