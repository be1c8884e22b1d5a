"""The kernel's list of network interfaces: what each is made of, and which lie below it.

rtnetlink's own list is of this very network namespace, whatever /sys shows.
Source: include/uapi/linux/if_link.h, if_arp.h; drivers/net/bonding (BOND_MODE_*).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Dict, Optional

from probes.host import rtnetlink

RTM_NEWLINK = 16
RTM_GETLINK = 18
BODY = struct.Struct("=BxHiII")
"""ifinfomsg: family, ARP hardware type, index, flags, change mask."""
IFNAME, MTU, LINK, QDISC, MASTER, LINKINFO = 3, 4, 5, 6, 10, 18
STATS64, LINK_NETNSID, PARENT_NAME, PARENT_BUS = 23, 37, 56, 57
INFO_KIND, INFO_DATA = 1, 2
VLAN_ID, BOND_MODE = 1, 1

BOND_MODES = (
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
)
HARDWARE = {
    32: "infiniband",
    512: "ppp",
    768: "ipip",
    776: "sit",
    778: "gre",
    772: "loopback",
}
"""ARPHRD_*, for interfaces that tell no kind of their own."""
ARPHRD_ETHER = 1

STATISTICS = {
    "rx_dropped": 6,
    "tx_dropped": 7,
    "collisions": 9,
    "rx_over_errors": 11,
    "rx_crc_errors": 12,
    "rx_frame_errors": 13,
    "rx_fifo_errors": 14,
    "rx_missed_errors": 15,
    "tx_carrier_errors": 17,
}
"""Places in rtnl_link_stats64 of what tells of packets that were lost on this host or its cable."""


@dataclass(frozen=True)
class Link:
    """One interface of this network namespace."""

    index: int
    name: str
    kind: Optional[str]
    """As ip-link(8) names it: bond, vlan, bridge, veth, wireguard, tun, tap ...; loopback; None:
    nothing but an Ethernet."""
    mtu_bytes: Optional[int] = None
    qdisc: Optional[str] = None
    below: Optional[int] = None
    """Index of the interface that it sends through; None: none, or it is in another namespace."""
    master: Optional[int] = None
    """Index of the bond or bridge that it is a port of."""
    vlan_id: Optional[int] = None
    bond_mode: Optional[str] = None
    parent: Optional[str] = None
    """Its device on a bus: 0000:03:00.0, 1-1.4:1.0 (kernel 5.14 on)."""
    counts: Dict[str, int] = field(default_factory=dict)
    """Since it came up, by STATISTICS's names."""


def read_links() -> list[Link]:
    """All interfaces of this network namespace. Errors: OSError."""
    return parse_links(rtnetlink.dump(RTM_GETLINK, BODY.pack(0, 0, 0, 0, 0)))


def parse_links(answer: bytes) -> list[Link]:
    """The interfaces in what a dump of RTM_GETLINK answered; those that make no sense left out."""
    found = []
    for kind, body in rtnetlink.messages(answer):
        if kind != RTM_NEWLINK or len(body) < BODY.size:
            continue
        link = _link(body)
        if link is not None:
            found.append(link)
    return found


def lower(link: Link, links: list[Link]) -> list[Link]:
    """The interfaces right below one: a VLAN's real one, a bond's or a bridge's ports."""
    return [
        each
        for each in links
        if each.index != link.index and (each.index == link.below or each.master == link.index)
    ]


def _link(body: bytes) -> Link | None:
    _, hardware, index, _, _ = BODY.unpack_from(body)
    told = rtnetlink.attributes(body[BODY.size :])
    name = rtnetlink.text(told, IFNAME)
    if name is None:
        return None
    info = rtnetlink.attributes(told.get(LINKINFO, b""))
    data = rtnetlink.attributes(info.get(INFO_DATA, b""))
    kind = rtnetlink.text(info, INFO_KIND) or HARDWARE.get(hardware)
    if kind == "tun" and hardware == ARPHRD_ETHER:
        kind = "tap"
    mode = rtnetlink.number(data, BOND_MODE, "=B") if kind == "bond" else None
    # veth's own link is its other end, beside it and not below.
    elsewhere = LINK_NETNSID in told or kind == "veth"
    return Link(
        index=index,
        name=name,
        kind=kind,
        mtu_bytes=rtnetlink.number(told, MTU),
        qdisc=rtnetlink.text(told, QDISC),
        below=None if elsewhere else rtnetlink.number(told, LINK),
        master=rtnetlink.number(told, MASTER),
        vlan_id=rtnetlink.number(data, VLAN_ID, "=H") if kind == "vlan" else None,
        bond_mode=BOND_MODES[mode] if mode is not None and mode < len(BOND_MODES) else None,
        parent=rtnetlink.text(told, PARENT_NAME),
        counts=_counts(told.get(STATS64, b"")),
    )


def _counts(raw: bytes) -> dict[str, int]:
    return {
        name: int(struct.unpack_from("=Q", raw, 8 * place)[0])
        for name, place in STATISTICS.items()
        if len(raw) >= 8 * (place + 1)
    }
