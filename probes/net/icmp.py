"""What ICMP says of datagrams of ours: the routers on the way, and the largest packet that passes.

Read without privileges, from the socket's error queue. Linux alone. Source: ip(7) IP_RECVERR,
ipv6(7), include/uapi/linux/errqueue.h (sock_extended_err).

Hops: UDP datagrams whose time to live grows by one a hop, as traceroute sends them, several hops at
a time. A host that does not answer datagrams is looked for by a TCP connection whose packets live
just long enough.

Path MTU: a UDP datagram as large as the kernel believes a path to carry, which no router may cut,
goes to a port where nobody listens. A router whose next link is narrower says so, and the kernel
lowers its path MTU (RFC 1191, RFC 8201); the far host's "port unreachable" proves that the datagram
came through. Silence proves nothing.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from probes.core.records import Details
from probes.core.stage import Unavailable
from probes.net import callers
from probes.sockets.tcp_info import LINUX_OPTIONS

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
    if not LINUX_OPTIONS:
        raise Unavailable("only root can read ICMP messages on this system")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sender = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sender.setsockopt(*_RECVERR[family], 1)
    except OSError as error:
        sender.close()
        raise Unavailable(f"the kernel does not report ICMP messages ({error})") from None
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


TRIES = 3
SPANS = ((1, 4), (5, 12), (13, 30))
"""First and last hop that are asked at the same time; a local network ends in the first span."""
LAST_HOP = SPANS[-1][-1]
LEAST_PATIENCE_SECONDS = 0.15
"""For all tries of a span."""
ROUND_TRIPS = 6.0
"""Two for each try: a router has other work than to answer."""


@dataclass
class Trace:
    """Who answered."""

    answers: Dict[int, Tuple[Optional[str], float]] = field(default_factory=dict)
    """By hop, from 1: address and round trip in seconds, the first answer's."""
    end: Optional[int] = None
    """The hop that is the far host itself; None: it was not found."""
    stopped: Optional[int] = None
    """The hop that sends such datagrams back, though the host lies beyond it."""

    def take(self, hop: int, said: Saying, seconds: float) -> None:
        """One ICMP answer to a datagram that lives for so many hops."""
        if said.kind == "port-unreachable":
            # Later hops' datagrams arrive as well: the first that does is the host's own hop.
            self.end = min(hop, self.end or hop)
        elif said.kind == "unreachable":
            self.stopped = min(hop, self.stopped or hop)
        elif said.kind != "time-exceeded":
            return
        self.answers.setdefault(hop, (said.address, seconds))
        last = min(self.end or LAST_HOP, self.stopped or LAST_HOP)
        self.answers = {at: told for at, told in self.answers.items() if at <= last}

    def missing(self, first: int, last: int) -> List[int]:
        """The hops of a span that have not answered, and may yet."""
        last = min(last, self.end or last, self.stopped or last)
        return [hop for hop in range(first, last + 1) if hop not in self.answers]

    def hops(self) -> List[Details]:
        """ttl, address and rtt_seconds of each hop up to the last that answered.

        One that did not answer has None for both.
        """
        last = self.end or max(self.answers, default=0)
        found = []
        for hop in range(1, last + 1):
            address, seconds = self.answers.get(hop, (None, None))
            found.append({"ttl": hop, "address": address, "rtt_seconds": seconds})
        # A router that sends back what lives longer has answered for its own hop as well.
        if self.end is None and len(found) > 1 and found[-1]["address"] == found[-2]["address"]:
            found.pop()
        return found


def trace(host: str, port: int, rtt_seconds: float, seconds: float) -> Trace:
    """The path to a host, within so many seconds.

    host: an IP address; port: one where it takes connections; rtt_seconds: a round trip to it.
    Raises Unavailable where the kernel does not tell of ICMP messages.
    """
    deadline = time.monotonic() + seconds
    patience = max(LEAST_PATIENCE_SECONDS, ROUND_TRIPS * rtt_seconds)
    found = Trace()
    with datagrams(host) as sender:
        for first, last in SPANS:
            now = time.monotonic()
            if now >= deadline:
                break
            _ask_hops(sender, host, first, last, found, min(deadline, now + patience))
            if found.end is None:
                _knock(host, port, found, min(deadline, time.monotonic() + patience))
            silent = not any(first <= hop <= last for hop in found.answers)
            if found.end is not None or found.stopped is not None or silent:
                break
    return found


def _ask_hops(
    sender: socket.socket, host: str, first: int, last: int, found: Trace, until: float
) -> None:
    """Sends to each hop of a span, and takes what comes back."""
    asked: Dict[int, Tuple[int, float]] = {}
    began = time.monotonic()
    for again in range(TRIES):
        for hop in found.missing(first, last):
            port = FIRST_PORT + hop * TRIES + again
            _live(sender, hop)
            if _send(sender, callers.for_socket(host, port)):
                asked[port] = (hop, time.monotonic())
        part = began + (until - began) * (again + 1) / TRIES
        for said in sayings(sender, part):
            now = time.monotonic()
            hop, sent = asked.get(said.about_port, (0, now))
            if hop:
                found.take(hop, said, now - sent)
            if not found.missing(first, last):
                return


def _live(sender: socket.socket, hops: int) -> None:
    if sender.family == socket.AF_INET6:
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)
    else:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)


def _send(sender: socket.socket, where: Any) -> bool:
    """Whether it was sent; an earlier datagram's ICMP answer makes one attempt fail."""
    for _ in range(TRIES):
        try:
            sender.sendto(b"\0" * 12, where)
        except OSError:
            continue
        return True
    return False


def _knock(host: str, port: int, found: Trace, until: float) -> None:
    """Looks whether the hop after the last that answered is the host itself, by its TCP port."""
    hop = max((h for h in found.answers if h != found.stopped), default=0) + 1
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as knocking:
        _live(knocking, hop)
        knocking.settimeout(max(0.01, until - time.monotonic()))
        began = time.monotonic()
        try:
            knocking.connect(callers.for_socket(host, port))
        except OSError:
            return
        found.end = hop
        found.answers[hop] = (host, time.monotonic() - began)


_DISCOVER = {socket.AF_INET: (0, 10), socket.AF_INET6: (41, 23)}
"""Level and name of IP_MTU_DISCOVER and IPV6_MTU_DISCOVER."""
_MTU = {socket.AF_INET: (0, 14), socket.AF_INET6: (41, 24)}
_PROBE = 3
"""IP_PMTUDISC_PROBE: set DF and send what the device takes, whatever the kernel believes."""
_HEADERS = {socket.AF_INET: 20 + 8, socket.AF_INET6: 40 + 8}
_LARGEST = {socket.AF_INET: 65535, socket.AF_INET6: 65535 + 40}
ROUNDS = 6
MTU_TRIES = 3
"""One after the other: hosts answer no more than a few such datagrams a second."""
LEAST_MTU_PATIENCE_SECONDS = 0.1
MTU_ROUND_TRIPS = 3.0


def path_mtu(host: str, rtt_seconds: float, seconds: float) -> Details:
    """What the kernel knows of the path to a host, after probing it for at most so many seconds.

    Returns:
        path_mtu_bytes: size of an IP packet, headers included; path_mtu_confirmed: whether the
        host answered a packet of that size.

    Raises Unavailable where the system does not tell.
    """
    deadline = time.monotonic() + seconds
    patience = max(LEAST_MTU_PATIENCE_SECONDS, MTU_ROUND_TRIPS * rtt_seconds)
    confirmed = False
    size = 0
    for number in range(ROUNDS):
        with datagrams(host) as sender:
            sender.setsockopt(*_DISCOVER[sender.family], _PROBE)
            sender.connect(callers.for_socket(host, FIRST_PORT + number))
            known = sender.getsockopt(*_MTU[sender.family])
            if known == size or time.monotonic() >= deadline:
                break
            size = known
            confirmed = _answered(sender, size, patience, deadline)
    return {"path_mtu_bytes": size, "path_mtu_confirmed": confirmed}


def _answered(sender: socket.socket, packet_bytes: int, patience: float, deadline: float) -> bool:
    """Whether the far host answered a packet of that size; a router's word ends the wait."""
    size = min(packet_bytes, _LARGEST[sender.family]) - _HEADERS[sender.family]
    for _ in range(MTU_TRIES):
        try:
            sender.send(b"\0" * size)
        except OSError:
            # A late answer to the one before, or the device takes less by now.
            continue
        for said in sayings(sender, min(deadline, time.monotonic() + patience)):
            if said.kind != "time-exceeded":
                return said.kind == "port-unreachable"
    return False
