"""What ICMP says about a datagram of ours, read without privileges: the socket's error queue.

Linux alone. Source: ip(7) IP_RECVERR, ipv6(7), include/uapi/linux/errqueue.h (sock_extended_err).
"""

from __future__ import annotations

import select
import socket
import struct
import sys
import time
from dataclasses import dataclass
from typing import Iterator, Optional, Sequence, Tuple

from probes.stage import Unavailable

FIRST_PORT = 33434
"""Where traceroute has sent its datagrams since 1988: nobody listens there."""

_RECVERR = {socket.AF_INET: (0, 11), socket.AF_INET6: (41, 25)}
"""Level and name of IP_RECVERR and IPV6_RECVERR: to set it, and of its control message."""
_MSG_ERRQUEUE = 0x2000
_EXTENDED_ERROR = struct.Struct("=IBBBBII")
"""errno, origin, type, code, pad, info, data; the offender's address follows."""
_ORIGIN_ICMP = (2, 3)
_TIME_EXCEEDED = ((2, 11), (3, 3))
"""Origin and type of each version."""
_PORT_UNREACHABLE = ((2, 3, 3), (3, 1, 4))
_TOO_BIG = ((2, 3, 4), (3, 2, 0))
_CONTROL_BYTES = 512

Message = Tuple[int, int, bytes]
"""Level, type and content of a control message."""


@dataclass(frozen=True)
class Saying:
    """One ICMP message about one datagram."""

    about_port: int
    """The datagram's destination port."""
    kind: str
    """"time-exceeded", "port-unreachable", "too-big" or "unreachable"."""
    address: Optional[str]
    """Who sent it."""
    mtu_bytes: Optional[int]
    """Of the link that a datagram was too big for."""


def datagrams(host: str) -> socket.socket:
    """A UDP socket that gathers what ICMP says of what it sends.

    host: an IP address, for its family. Raises Unavailable where the system has no such thing.
    """
    if not sys.platform.startswith("linux"):
        raise Unavailable("this system lets nobody but root read ICMP messages")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sender = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sender.setsockopt(*_RECVERR[family], 1)
    except OSError as error:
        sender.close()
        raise Unavailable(f"the kernel does not tell of ICMP messages ({error})") from None
    sender.setblocking(False)
    return sender


def sayings(sender: socket.socket, until: float) -> Iterator[Saying]:
    """Each message as it comes, until a moment of the monotonic clock."""
    poll = select.poll()
    poll.register(sender, select.POLLERR)
    while True:
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(max(1, int(left * 1000))):
            return
        try:
            _, control, _, about = sender.recvmsg(0, _CONTROL_BYTES, _MSG_ERRQUEUE)
        except BlockingIOError:
            # Only the socket's pending error was there, not a message: reading it clears it.
            sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            continue
        said = parse(control, about[1])
        if said is not None:
            yield said


def parse(control: Sequence[Message], about_port: int) -> Optional[Saying]:
    """The ICMP message in the control messages of one entry of the error queue; None: none."""
    for level, name, content in control:
        if (level, name) not in _RECVERR.values() or len(content) < _EXTENDED_ERROR.size:
            continue
        _, origin, kind, code, _, info, _ = _EXTENDED_ERROR.unpack_from(content)
        if origin not in _ORIGIN_ICMP:
            continue
        address = _address(content[_EXTENDED_ERROR.size :])
        if (origin, kind) in _TIME_EXCEEDED:
            return Saying(about_port, "time-exceeded", address, None)
        if (origin, kind, code) in _PORT_UNREACHABLE:
            return Saying(about_port, "port-unreachable", address, None)
        if (origin, kind, code) in _TOO_BIG:
            return Saying(about_port, "too-big", address, info)
        return Saying(about_port, "unreachable", address, None)
    return None


def _address(raw: bytes) -> Optional[str]:
    """The IP address in a struct sockaddr; None: another family, or cut off."""
    family = struct.unpack_from("=H", raw)[0] if len(raw) >= 2 else socket.AF_UNSPEC
    if family == socket.AF_INET and len(raw) >= 8:
        return socket.inet_ntop(socket.AF_INET, raw[4:8])
    if family == socket.AF_INET6 and len(raw) >= 24:
        return socket.inet_ntop(socket.AF_INET6, raw[8:24])
    return None
