"""The network interface by which packets to an address leave, and what is known of it.

The kernel itself is asked for the route (rtnetlink(7), RTM_GETROUTE), so that policy routing and
this host's own addresses come out right; /sys tells the rest.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from probes.records import InterfaceFacts

NETLINK_ROUTE = 0
RTM_GETROUTE = 26
RTM_NEWROUTE = 24
NLM_F_REQUEST = 1
RTA_DST = 1
RTA_OIF = 4
HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
ROUTE = struct.Struct("=BBBBBBBBI")
"""rtmsg: family, prefix lengths, tos, table, protocol, scope, type, flags."""
ATTRIBUTE = struct.Struct("=HH")
"""rtattr: length, type."""
ANSWER_SECONDS = 1.0
DISCARD_PORT = 9
SIOCGIFMTU = 0x8921


def interface_facts(toward: str) -> InterfaceFacts | None:
    """The interface towards an IP address; None: no route, or a system without rtnetlink."""
    try:
        address = source_address(toward)
        index = outgoing_index(toward)
        name = socket.if_indextoname(index) if index is not None else None
    except (OSError, ValueError):
        return None
    if name is None:
        return None
    folder = Path("/sys/class/net") / name
    # a namespace that was entered without a /sys of its own shows somebody else's interfaces
    ours = _word(folder / "ifindex") == str(index)
    return InterfaceFacts(
        name=name,
        address=address,
        rate_bits_per_second=parse_rate(_word(folder / "speed")) if ours else None,
        duplex=parse_duplex(_word(folder / "duplex")) if ours else None,
        mtu_bytes=_mtu_bytes(name),
        driver=_driver(folder) if ours else None,
        virtual=not (folder / "device").exists() if ours else None,
    )


def source_address(toward: str) -> str:
    """This host's address in packets to another; nothing is sent. OSError: no route."""
    family = socket.AF_INET6 if ":" in toward else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((toward, DISCARD_PORT))
        return str(probe.getsockname()[0])


def outgoing_index(toward: str) -> int | None:
    """Index of the interface that the kernel routes packets to an IP address by."""
    family = getattr(socket, "AF_NETLINK", None)
    if family is None:
        return None
    with socket.socket(family, socket.SOCK_RAW, NETLINK_ROUTE) as kernel:
        kernel.settimeout(ANSWER_SECONDS)
        kernel.send(route_request(toward))
        return parse_route(kernel.recv(65536))


def route_request(toward: str) -> bytes:
    """The RTM_GETROUTE message for an IP address (zone of a link-local one left aside)."""
    family = socket.AF_INET6 if ":" in toward else socket.AF_INET
    packed = socket.inet_pton(family, toward.partition("%")[0])
    attribute = ATTRIBUTE.pack(ATTRIBUTE.size + len(packed), RTA_DST) + packed
    body = ROUTE.pack(family, len(packed) * 8, 0, 0, 0, 0, 0, 0, 0) + attribute
    return HEADER.pack(HEADER.size + len(body), RTM_GETROUTE, NLM_F_REQUEST, 1, 0) + body


def parse_route(answer: bytes) -> int | None:
    """The outgoing interface's index in the kernel's answer; None: it is an error."""
    if len(answer) < HEADER.size + ROUTE.size:
        return None
    length, kind, _, _, _ = HEADER.unpack_from(answer)
    if kind != RTM_NEWROUTE:
        return None
    at, end = HEADER.size + ROUTE.size, min(length, len(answer))
    while at + ATTRIBUTE.size <= end:
        size, name = ATTRIBUTE.unpack_from(answer, at)
        if size < ATTRIBUTE.size:
            return None
        if name == RTA_OIF and size >= ATTRIBUTE.size + 4:
            return int(struct.unpack_from("=I", answer, at + ATTRIBUTE.size)[0])
        at += (size + 3) & ~3
    return None


def parse_rate(speed: str | None) -> int | None:
    """Bits per second of sysfs's speed (Mbit/s); None: not told, or -1, or no link."""
    if speed is None or not speed.isdigit() or int(speed) in (0, 0xFFFFFFFF):
        return None
    return int(speed) * 1_000_000


def parse_duplex(duplex: str | None) -> str | None:
    """full or half; None: the driver says unknown."""
    return duplex if duplex in ("full", "half") else None


def _mtu_bytes(name: str) -> int | None:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("=16si12x", name.encode(), 0)
        try:
            answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFMTU, request)
        except OSError:
            return None
    return int(struct.unpack_from("=16si", answer)[1])


def _driver(folder: Path) -> str | None:
    try:
        return os.readlink(folder / "device" / "driver").rpartition("/")[2]  # noqa: PTH115
    except OSError:
        return None


def _word(path: Path) -> str | None:
    """A word of sysfs; None: not there, or the driver refuses (EINVAL without a link)."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
