"""Questions to the kernel by netlink(7): this network namespace's interfaces, qdiscs and routes.

Splits dumps into messages, messages into attributes. /sys may show another namespace; asked for a
route, the kernel honours policy routing and this host's own addresses.
Source: rtnetlink(7); include/uapi/linux/if_link.h, if_arp.h, pkt_sched.h; drivers/net/bonding
(BOND_MODE_*); tc-tbf(8), tc-htb(8), tc-netem(8), tc-cake(8).
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple

FAMILY = getattr(socket, "AF_NETLINK", None)
"""Address family of netlink; None: this system has no rtnetlink."""
NETLINK_ROUTE = 0
NLM_F_REQUEST = 0x001
NLM_F_DUMP = 0x300
NLMSG_ERROR = 2
NLMSG_DONE = 3
NESTED_MASK = 0x3FFF
"""Mask of an attribute's type: its two upper bits are flags."""
HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
ATTRIBUTE = struct.Struct("=HH")
"""rtattr: length, type."""
ANSWER_SECONDS = 1.0
MOST_BYTES = 4 << 20
"""Limit of one dump, some ten thousand interfaces; a longer one is not read to its end."""


def dump(kind: int, body: bytes) -> bytes:
    """Returns the kernel's raw answer to one dump request.

    kind: RTM_GETLINK, RTM_GETQDISC ...; body: its fixed part. Errors: OSError, also where the
    system has no rtnetlink or does not answer within a second.
    """
    if FAMILY is None:
        raise OSError("this system has no rtnetlink")
    until = time.monotonic() + ANSWER_SECONDS
    answer = b""
    with socket.socket(FAMILY, socket.SOCK_RAW, NETLINK_ROUTE) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        length = HEADER.size + len(body)
        kernel.send(HEADER.pack(length, kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body)
        while len(answer) < MOST_BYTES and time.monotonic() < until:
            part = kernel.recv(1 << 18)
            answer += part
            if not part or any(each in (NLMSG_DONE, NLMSG_ERROR) for each, _ in messages(part)):
                break
    return answer


def messages(answer: bytes, sequence: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yields type and body of each message of a sequence, up to one truncated or malformed."""
    offset = 0
    while offset + HEADER.size <= len(answer):
        length, kind, _, number, _ = HEADER.unpack_from(answer, offset)
        if length < HEADER.size or offset + length > len(answer):
            return
        if number == sequence:
            yield kind, answer[offset + HEADER.size : offset + length]
        offset += (length + 3) & ~3


def attributes(body: bytes) -> dict[int, bytes]:
    """Returns the value of each attribute by its type, up to one truncated or malformed."""
    values: dict[int, bytes] = {}
    offset = 0
    while offset + ATTRIBUTE.size <= len(body):
        length, kind = ATTRIBUTE.unpack_from(body, offset)
        if length < ATTRIBUTE.size or offset + length > len(body):
            break
        values[kind & NESTED_MASK] = body[offset + ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
    return values


def entries(
    answer: bytes, kinds: Tuple[int, ...], head: struct.Struct
) -> Iterator[Tuple[Tuple[int, ...], Dict[int, bytes]]]:
    """Yields the fixed part and the attributes of each complete message of some types."""
    for kind, body in messages(answer):
        if kind in kinds and len(body) >= head.size:
            yield head.unpack_from(body), attributes(body[head.size :])


def number(values: dict[int, bytes], kind: int, code: str = "=I") -> int | None:
    """Returns an attribute as a number of the host's byte order; None: missing or too short."""
    raw = values.get(kind, b"")
    return int(struct.unpack_from(code, raw)[0]) if len(raw) >= struct.calcsize(code) else None


def text(values: dict[int, bytes], kind: int) -> str | None:
    """Returns an attribute as text; None: missing or empty."""
    return values.get(kind, b"").split(b"\0")[0].decode("utf-8", "replace") or None


RTM_GETROUTE = 26
RTM_NEWROUTE = 24
RTA_DST = 1
RTA_OIF = 4
ROUTE = struct.Struct("=BBBBBBBBI")
"""rtmsg: family, prefix lengths, tos, table, protocol, scope, type, flags."""
DISCARD_PORT = 9
RTM_NEWNEIGH, RTM_GETNEIGH = 28, 30
NDA_DST = 1
NEIGHBOUR = struct.Struct("=BxxxiHBB")
"""ndmsg: family, interface, state, flags, type."""
UNREACHABLE = 0x01 | 0x20
"""NUD_INCOMPLETE, NUD_FAILED: states of a neighbour that did not answer."""


def in_own_zone(address: str) -> str:
    """Returns a link-local address with this host's zone: the interface to that neighbour.

    Another host's zone means nothing here, even where an interface has its name. Any other address
    is returned unchanged, and so is one without a known neighbour.
    """
    names = dict(socket.if_nameindex())
    plain, _, zone = address.partition("%")
    if FAMILY is None or not re.fullmatch("fe[89ab][0-9a-f]?:[0-9a-f:.]*", plain.lower()):
        return address
    packed = socket.inet_pton(socket.AF_INET6, plain)
    answer = dump(RTM_GETNEIGH, NEIGHBOUR.pack(socket.AF_INET6, 0, 0, 0, 0))
    for (_, index, state, *_), values in entries(answer, (RTM_NEWNEIGH,), NEIGHBOUR):
        if values.get(NDA_DST) == packed and not state & UNREACHABLE:
            return f"{plain}%{names.get(index, index)}"
    return address


def source_address(toward: str) -> str:
    """Returns this host's address in packets to another; sends none. Errors: OSError, no route."""
    # A pair of host and port would lose the zone.
    family, *_, target = socket.getaddrinfo(toward, DISCARD_PORT, flags=socket.AI_NUMERICHOST)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def source_address_if_known(toward: str) -> str:
    """Returns this host's address in packets to another; empty: unknown, or there is no other."""
    try:
        return source_address(toward) if toward else ""
    except (OSError, ValueError):
        return ""


def outgoing_index(toward: str) -> int | None:
    """Returns the index of the interface by which the kernel routes packets to an IP address."""
    if FAMILY is None:
        return None
    zone = toward.partition("%")[2]
    if zone:  # each interface has a route to such addresses
        return int(zone) if zone.isdecimal() else socket.if_nametoindex(zone)
    with socket.socket(FAMILY, socket.SOCK_RAW, NETLINK_ROUTE) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        kernel.send(route_request(toward))
        return parse_route(kernel.recv(65536))


def route_request(toward: str) -> bytes:
    """Returns the RTM_GETROUTE message for an IP address (a link-local one's zone is ignored)."""
    family = socket.AF_INET6 if ":" in toward else socket.AF_INET
    packed = socket.inet_pton(family, toward.partition("%")[0])
    attribute = ATTRIBUTE.pack(ATTRIBUTE.size + len(packed), RTA_DST) + packed
    body = ROUTE.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, 0) + attribute
    return HEADER.pack(HEADER.size + len(body), RTM_GETROUTE, NLM_F_REQUEST, 1, 0) + body


def parse_route(answer: bytes) -> int | None:
    """Returns the outgoing interface's index in the kernel's answer; None: it is an error."""
    for _, values in entries(answer, (RTM_NEWROUTE,), ROUTE):
        return number(values, RTA_OIF)
    return None


RTM_NEWLINK = 16
RTM_GETLINK = 18
BODY = struct.Struct("=BxHiII")
"""ifinfomsg: family, ARP hardware type, index, flags, change mask."""
IFNAME, MTU, LINK, QDISC, MASTER, LINKINFO = 3, 4, 5, 6, 10, 18
STATS64, LINK_NETNSID, PARENT_NAME = 23, 37, 56
INFO_KIND, INFO_DATA = 1, 2
VLAN_ID, BOND_MODE = 1, 1

BOND_MODES = (
    "balance-rr active-backup balance-xor broadcast 802.3ad balance-tlb balance-alb"
).split()
HARDWARE = {32: "infiniband", 512: "ppp", 768: "ipip", 776: "sit", 778: "gre", 772: "loopback"}
"""ARPHRD_* numbers, for interfaces that report no kind."""
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
"""Index in rtnl_link_stats64 of each counter of packets lost on this host or its cable."""


@dataclass(frozen=True)
class Link:
    """One interface of this network namespace."""

    index: int
    name: str
    kind: Optional[str]
    """Kind as ip-link(8) names it: bond, vlan, bridge, veth, wireguard, tun ...; loopback; None:
    plain Ethernet."""
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
    """Counters since it came up, by STATISTICS's names."""


def read_links() -> list[Link]:
    """Returns all interfaces of this network namespace. Errors: OSError."""
    return parse_links(dump(RTM_GETLINK, BODY.pack(0, 0, 0, 0, 0)))


def parse_links(answer: bytes) -> list[Link]:
    """Returns the interfaces in the answer to RTM_GETLINK, without malformed ones."""
    links = (_link(*each) for each in entries(answer, (RTM_NEWLINK,), BODY))
    return [each for each in links if each is not None]


def lower(link: Link, links: list[Link]) -> list[Link]:
    """Returns the interfaces right below one: a VLAN's real one, a bond's or a bridge's ports."""
    return [
        each
        for each in links
        if each.index != link.index and (each.index == link.below or each.master == link.index)
    ]


def _link(fields: Tuple[int, ...], values: Dict[int, bytes]) -> Link | None:
    _, hardware, index, _, _ = fields
    name = text(values, IFNAME)
    if name is None:
        return None
    info = attributes(values.get(LINKINFO, b""))
    data = attributes(info.get(INFO_DATA, b""))
    kind = text(info, INFO_KIND) or HARDWARE.get(hardware)
    if kind == "tun" and hardware == ARPHRD_ETHER:
        kind = "tap"
    mode = number(data, BOND_MODE, "=B") if kind == "bond" else None
    # The link of a veth is its other end, beside it and not below.
    not_below = LINK_NETNSID in values or kind == "veth"
    return Link(
        index=index,
        name=name,
        kind=kind,
        mtu_bytes=number(values, MTU),
        qdisc=text(values, QDISC),
        below=None if not_below else number(values, LINK),
        master=number(values, MASTER),
        vlan_id=number(data, VLAN_ID, "=H") if kind == "vlan" else None,
        bond_mode=BOND_MODES[mode] if mode is not None and mode < len(BOND_MODES) else None,
        parent=text(values, PARENT_NAME),
        counts=_counts(values.get(STATS64, b"")),
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
"""Offset of the rate (bytes per second) in tc_ratespec."""
CEIL_AT = 12 + RATE_AT
"""Offset of the ceiling's rate in tc_htb_opt, after the rate's own tc_ratespec."""
NETEM_FIXED_BYTES = 24
"""Size of tc_netem_qopt, in front of netem's attributes."""
HTB_GLOBAL, HTB_DEFAULT_AT = 2, 8
"""Attribute of tc_htb_glob, and the offset of the default class in it."""
NO_RATE_32 = 0xFFFFFFFF
"""Mark that the rate is larger and stands in the 64-bit attribute."""


@dataclass(frozen=True)
class Queue:
    """One qdisc or class of an interface."""

    handle: int
    parent: int
    kind: str
    rate_bytes_per_second: Optional[int]
    """Rate to which it shapes; None: it does not shape."""
    default: bool = False
    """Whether an htb has a class for unclassified packets, which otherwise pass unshaped."""


def read_shaping(index: int) -> tuple[str | None, int | None]:
    """Returns an interface's root qdisc and the rate that it shapes to, bytes per second.

    None: not reported; it does not shape, or not all packets. Errors: OSError.
    """
    body = QUEUE_BODY.pack(0, index, 0, 0, 0)
    queues = parse_queues(dump(RTM_GETQDISC, body), index)
    return shape_of(queues, parse_queues(dump(RTM_GETTCLASS, body), index))


def shape_of(queues: list[Queue], classes: list[Queue]) -> tuple[str | None, int | None]:
    """Returns the root qdisc's kind, and the lowest rate that all outgoing packets pass."""
    root = next((each for each in queues if each.parent == ROOT), None)
    if root is None:
        return None, None
    rates = []
    queue: Queue | None = root
    handles: set[int] = set()
    while queue is not None and queue.handle not in handles:
        handles.add(queue.handle)
        if queue.kind == "htb":
            rates.append(_htb_rate(queue, classes))
            break
        if queue.kind not in _RATES:
            break
        rates.append(queue.rate_bytes_per_second)
        major = queue.handle & 0xFFFF0000
        queue = next((each for each in queues if each.parent & 0xFFFF0000 == major), None)
    return root.kind, min((each for each in rates if each), default=None)


def parse_queues(answer: bytes, interface: int) -> list[Queue]:
    """Returns an interface's qdiscs, or its classes, in the answer to a dump of them."""
    queues = []
    for fields, values in entries(answer, (RTM_NEWQDISC, RTM_NEWTCLASS), QUEUE_BODY):
        _, index, handle, parent, _ = fields
        name = text(values, TCA_KIND)
        if index == interface and name is not None:
            options = values.get(TCA_OPTIONS, b"")
            rate = _queue_rate(name, options)
            htb = attributes(options).get(HTB_GLOBAL, b"") if name == "htb" else b""
            default = any(htb[HTB_DEFAULT_AT : HTB_DEFAULT_AT + 4])
            queues.append(Queue(handle, parent, name, rate, default))
    return queues


_RATES = {"tbf": (1, RATE_AT, 4), "htb": (1, CEIL_AT, 7), "netem": (6, 0, 8), "cake": (None, 0, 2)}
"""Attribute and offset of the 32-bit rate, attribute of the 64-bit one, by kind of qdisc."""


def _queue_rate(kind: str, options: bytes) -> int | None:
    if kind not in _RATES:
        return None
    narrow, offset, wide = _RATES[kind]
    values = attributes(options[NETEM_FIXED_BYTES:] if kind == "netem" else options)
    rate = number(values, wide, "=Q")
    if rate is None and narrow is not None:
        raw = values.get(narrow, b"")
        if len(raw) >= offset + 4:
            rate = int(struct.unpack_from("=I", raw, offset)[0])
    return None if rate in (None, 0, NO_RATE_32) else rate


def _htb_rate(root: Queue, classes: list[Queue]) -> int | None:
    """Returns the top classes' sum of rates; None: unclassified packets pass unshaped."""
    top = [each for each in classes if each.parent in (ROOT, root.handle)]
    rates = [each.rate_bytes_per_second for each in top]
    if not rates or None in rates or not root.default:
        return None
    return sum(each for each in rates if each is not None)
