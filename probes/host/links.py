"""The kernel's list of network interfaces: what each is made of, which lie below, how it is shaped.

rtnetlink's own list is of this very network namespace, whatever /sys shows.
Source: include/uapi/linux/if_link.h, if_arp.h, pkt_sched.h; drivers/net/bonding (BOND_MODE_*);
tc-tbf(8), tc-htb(8), tc-netem(8), tc-cake(8).
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


RTM_NEWQDISC, RTM_GETQDISC = 36, 38
RTM_NEWTCLASS, RTM_GETTCLASS = 40, 42
QUEUE_BODY = struct.Struct("=BxxxiIII")
"""tcmsg: family, interface, handle, parent, info."""
TCA_KIND, TCA_OPTIONS = 1, 2
ROOT = 0xFFFFFFFF
RATE_AT = 8
"""Of the rate in tc_ratespec, bytes per second."""
CEIL_AT = 12 + RATE_AT
"""Of the ceiling's in tc_htb_opt, after the rate's own tc_ratespec."""
NETEM_FIXED_BYTES = 24
"""tc_netem_qopt, in front of netem's attributes."""
HTB_GLOBAL, HTB_DEFAULT_AT = 2, 8
"""tc_htb_glob: its attribute, and where the default class stands in it."""
NO_RATE_32 = 0xFFFFFFFF
"""A rate above it stands in the 64-bit attribute."""


@dataclass(frozen=True)
class Queue:
    """One qdisc or class of an interface."""

    interface: int
    handle: int
    parent: int
    kind: str
    rate_bytes_per_second: Optional[int]
    """What it lets out; None: it does not shape."""
    default: bool = False
    """Of an htb: whether what no filter classifies has a class too, and is not let past."""


def read_shaping(index: int) -> tuple[str | None, int | None]:
    """An interface's root qdisc and the rate that it shapes to, bytes per second.

    None: none told; it does not shape, or not all of what leaves. Errors: OSError.
    """
    body = QUEUE_BODY.pack(0, index, 0, 0, 0)
    queues = parse_queues(rtnetlink.dump(RTM_GETQDISC, body), index)
    classes = parse_queues(rtnetlink.dump(RTM_GETTCLASS, body), index)
    return shaping(queues, classes)


def shaping(queues: list[Queue], classes: list[Queue]) -> tuple[str | None, int | None]:
    """The root qdisc's kind, and the lowest rate that everything on its way out passes."""
    root = next((each for each in queues if each.parent == ROOT), None)
    if root is None:
        return None, None
    rates = []
    at: Queue | None = root
    seen: set[int] = set()
    while at is not None and at.handle not in seen:
        seen.add(at.handle)
        if at.kind == "htb":
            rates.append(_htb_rate(at, classes))
            break
        if at.kind not in _SHAPERS:
            break
        rates.append(at.rate_bytes_per_second)
        major = at.handle & 0xFFFF0000
        at = next((each for each in queues if each.parent & 0xFFFF0000 == major), None)
    return root.kind, min((each for each in rates if each), default=None)


def parse_queues(answer: bytes, interface: int) -> list[Queue]:
    """An interface's qdiscs, or its classes, in what a dump of them answered."""
    found = []
    for kind, body in rtnetlink.messages(answer):
        if kind not in (RTM_NEWQDISC, RTM_NEWTCLASS) or len(body) < QUEUE_BODY.size:
            continue
        _, index, handle, parent, _ = QUEUE_BODY.unpack_from(body)
        told = rtnetlink.attributes(body[QUEUE_BODY.size :])
        name = rtnetlink.text(told, TCA_KIND)
        if index == interface and name is not None:
            options = told.get(TCA_OPTIONS, b"")
            rate = _queue_rate(name, options)
            found.append(Queue(index, handle, parent, name, rate, _has_default(name, options)))
    return found


_SHAPERS = {
    # parameters with the 32-bit rate, where it stands in them, the 64-bit rate
    "tbf": (1, RATE_AT, 4),
    "htb": (1, CEIL_AT, 7),
    "netem": (6, 0, 8),
    "cake": (None, 0, 2),
}
"""By kind: attribute and offset of the 32-bit rate, attribute of the 64-bit one."""


def _queue_rate(kind: str, options: bytes) -> int | None:
    if kind not in _SHAPERS:
        return None
    narrow, offset, wide = _SHAPERS[kind]
    told = rtnetlink.attributes(options[NETEM_FIXED_BYTES:] if kind == "netem" else options)
    rate = rtnetlink.number(told, wide, "=Q")
    if rate is None and narrow is not None:
        raw = told.get(narrow, b"")
        if len(raw) >= offset + 4:
            rate = int(struct.unpack_from("=I", raw, offset)[0])
    return None if rate in (None, 0, NO_RATE_32) else rate


def _has_default(kind: str, options: bytes) -> bool:
    raw = rtnetlink.attributes(options).get(HTB_GLOBAL, b"") if kind == "htb" else b""
    return len(raw) >= HTB_DEFAULT_AT + 4 and any(raw[HTB_DEFAULT_AT : HTB_DEFAULT_AT + 4])


def _htb_rate(root: Queue, classes: list[Queue]) -> int | None:
    """What the top classes let out in sum; None: unclassified packets pass unshaped, or none."""
    top = [each for each in classes if each.parent in (ROOT, root.handle)]
    rates = [each.rate_bytes_per_second for each in top]
    if not rates or None in rates or not root.default:
        return None
    return sum(each for each in rates if each is not None)
