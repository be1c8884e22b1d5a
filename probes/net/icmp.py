"""Traces the routers of a path and finds its MTU, by the ICMP messages about our datagrams.

They are read without privileges from the socket's error queue. Linux only. Source: ip(7)
IP_RECVERR, ipv6(7), include/uapi/linux/errqueue.h (sock_extended_err).

Hops: UDP datagrams whose time to live grows by one a hop, as traceroute sends them, several hops at
a time. A host that does not answer datagrams is found by a TCP connection whose packets have just
the time to live to reach it.

Path MTU: a UDP datagram of the kernel's current path MTU, which no router may fragment, goes to a
port where nobody listens. A router whose next link is narrower says so, and the kernel lowers its
path MTU (RFC 1191, RFC 8201); the far host's "port unreachable" proves that the datagram came
through. Silence proves nothing.
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
from probes.net import peers
from probes.sockets.tcp_info import LINUX_OPTIONS

FIRST_PORT = 33434
"""traceroute's first port since 1988: nobody listens there."""

_RECVERR = {socket.AF_INET: (0, 11), socket.AF_INET6: (41, 25)}
"""Level and name of IP_RECVERR and IPV6_RECVERR, as option and as control message."""
_MSG_ERRQUEUE = 0x2000
_EXTENDED_ERROR = struct.Struct("=IBBBBII")
"""errno, origin, type, code, pad, info, data; the offender's address follows."""
_ORIGIN_ICMP = (2, 3)
_TIME_EXCEEDED = ((2, 11), (3, 3))
"""Origin and type, of ICMP and ICMPv6; the next two have the code as well."""
_PORT_UNREACHABLE = ((2, 3, 3), (3, 1, 4))
_TOO_BIG = ((2, 3, 4), (3, 2, 0))
_CONTROL_BYTES = 512

Message = Tuple[int, int, bytes]
"""Level, type and content of a control message."""


@dataclass(frozen=True)
class Report:
    """One ICMP message about one datagram."""

    about_port: int
    """The datagram's destination port."""
    kind: str
    """"time-exceeded", "port-unreachable", "too-big" or "unreachable"."""
    address: Optional[str]
    """Sender of the ICMP message."""


def datagrams(host: str) -> socket.socket:
    """Opens a UDP socket whose error queue collects the ICMP messages about its datagrams.

    host: an IP address, for its family. Raises Unavailable where the system has no such queue.
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


def read_reports(sender: socket.socket, until: float) -> Iterator[Report]:
    """Yields each message as it arrives, until a moment of the monotonic clock."""
    poll = select.poll()
    poll.register(sender, select.POLLERR)
    while True:
        remaining = until - time.monotonic()
        if remaining <= 0 or not poll.poll(max(1, int(remaining * 1000))):
            return
        try:
            _, control, _, destination = sender.recvmsg(0, _CONTROL_BYTES, _MSG_ERRQUEUE)
        except BlockingIOError:
            # Only the socket's pending error was there, not a message: reading it clears it.
            sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            continue
        report = parse(control, destination[1])
        if report is not None:
            yield report


def parse(control: Sequence[Message], about_port: int) -> Optional[Report]:
    """Returns the ICMP message in the control messages of an error queue's entry, or None."""
    for level, name, content in control:
        if (level, name) not in _RECVERR.values() or len(content) < _EXTENDED_ERROR.size:
            continue
        _, origin, kind, code, *_ = _EXTENDED_ERROR.unpack_from(content)
        if origin not in _ORIGIN_ICMP:
            continue
        address = _address(content[_EXTENDED_ERROR.size :])
        if (origin, kind) in _TIME_EXCEEDED:
            return Report(about_port, "time-exceeded", address)
        if (origin, kind, code) in _PORT_UNREACHABLE:
            return Report(about_port, "port-unreachable", address)
        if (origin, kind, code) in _TOO_BIG:
            return Report(about_port, "too-big", address)
        return Report(about_port, "unreachable", address)
    return None


def _address(raw: bytes) -> Optional[str]:
    """Returns the IP address in a struct sockaddr; None: another family, or truncated."""
    family = struct.unpack_from("=H", raw)[0] if len(raw) >= 2 else socket.AF_UNSPEC
    if family == socket.AF_INET and len(raw) >= 8:
        return socket.inet_ntop(socket.AF_INET, raw[4:8])
    if family == socket.AF_INET6 and len(raw) >= 24:
        return socket.inet_ntop(socket.AF_INET6, raw[8:24])
    return None


TRIES = 3
SPANS = ((1, 4), (5, 12), (13, 30))
"""First and last hop that are probed at the same time; a local network ends in the first span."""
LAST_HOP = SPANS[-1][-1]
LEAST_PATIENCE_SECONDS = 0.15
"""Shortest wait for all tries of a span."""
ROUND_TRIPS = 6.0
"""Wait in round trips, two for each try: routers answer late."""


@dataclass
class Trace:
    """The hops of a path that answered."""

    answers: Dict[int, Tuple[Optional[str], float]] = field(default_factory=dict)
    """Address and round trip in seconds of the first answer, by hop from 1."""
    end: Optional[int] = None
    """The far host's hop; None: it was not reached."""
    stopped: Optional[int] = None
    """The hop that rejects such datagrams, though the host lies beyond it."""

    def take(self, hop: int, report: Report, seconds: float) -> None:
        """Records an ICMP answer to a datagram whose time to live is `hop`."""
        if report.kind == "port-unreachable":
            # Datagrams with a longer life arrive as well: the shortest is the host's hop.
            self.end = min(hop, self.end or hop)
        elif report.kind == "unreachable":
            self.stopped = min(hop, self.stopped or hop)
        elif report.kind != "time-exceeded":
            return
        self.answers.setdefault(hop, (report.address, seconds))
        last = min(self.end or LAST_HOP, self.stopped or LAST_HOP)
        self.answers = {number: answer for number, answer in self.answers.items() if number <= last}

    def missing_hops(self, first: int, last: int) -> List[int]:
        """Returns the hops of a span that have not answered, and may yet."""
        last = min(last, self.end or last, self.stopped or last)
        return [hop for hop in range(first, last + 1) if hop not in self.answers]

    def hops(self) -> List[Details]:
        """Returns ttl, address and rtt_seconds of each hop up to the last that answered.

        The latter two are None for a hop that did not answer.
        """
        last = self.end or max(self.answers, default=0)
        rows = []
        for hop in range(1, last + 1):
            address, seconds = self.answers.get(hop, (None, None))
            rows.append({"ttl": hop, "address": address, "rtt_seconds": seconds})
        # A router that rejects datagrams beyond it has answered for its own hop as well.
        if self.end is None and len(rows) > 1 and rows[-1]["address"] == rows[-2]["address"]:
            rows.pop()
        return rows


def trace(host: str, port: int, rtt_seconds: float, seconds: float) -> Trace:
    """Traces the path to a host, within so many seconds.

    host: an IP address; port: one that accepts connections there; rtt_seconds: a round trip to it.
    Raises Unavailable where the kernel does not report ICMP messages.
    """
    deadline = time.monotonic() + seconds
    patience = max(LEAST_PATIENCE_SECONDS, ROUND_TRIPS * rtt_seconds)
    route = Trace()
    with datagrams(host) as sender:
        for first, last in SPANS:
            now = time.monotonic()
            if now >= deadline:
                break
            _ask_hops(sender, host, first, last, route, min(deadline, now + patience))
            if route.end is None:
                _knock(host, port, route, min(deadline, time.monotonic() + patience))
            silent = not any(first <= hop <= last for hop in route.answers)
            if route.end is not None or route.stopped is not None or silent:
                break
    return route


def _ask_hops(
    sender: socket.socket, host: str, first: int, last: int, route: Trace, until: float
) -> None:
    """Sends to each hop of a span, and records the answers."""
    probes: Dict[int, Tuple[int, float]] = {}
    began = time.monotonic()
    for again in range(TRIES):
        for hop in route.missing_hops(first, last):
            port = FIRST_PORT + hop * TRIES + again
            _set_lifetime(sender, hop)
            if _send(sender, peers.for_socket(host, port)):
                probes[port] = (hop, time.monotonic())
        part = began + (until - began) * (again + 1) / TRIES
        for report in read_reports(sender, part):
            now = time.monotonic()
            hop, sent = probes.get(report.about_port, (0, now))
            if hop:
                route.take(hop, report, now - sent)
            if not route.missing_hops(first, last):
                return


def _set_lifetime(sender: socket.socket, hops_limit: int) -> None:
    if sender.family == socket.AF_INET6:
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops_limit)
    else:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops_limit)


def _send(sender: socket.socket, target: Any) -> bool:
    """Sends a short datagram; an earlier one's ICMP answer makes one attempt fail."""
    for _ in range(TRIES):
        try:
            sender.sendto(b"\0" * 12, target)
        except OSError:
            continue
        return True
    return False


def _knock(host: str, port: int, route: Trace, until: float) -> None:
    """Checks by a TCP port whether the hop after the last that answered is the host itself."""
    hop = max((h for h in route.answers if h != route.stopped), default=0) + 1
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as knocking:
        _set_lifetime(knocking, hop)
        knocking.settimeout(max(0.01, until - time.monotonic()))
        began = time.monotonic()
        try:
            knocking.connect(peers.for_socket(host, port))
        except OSError:
            return
        route.end = hop
        route.answers[hop] = (host, time.monotonic() - began)


_DISCOVER = {socket.AF_INET: (0, 10), socket.AF_INET6: (41, 23)}
"""Level and name of IP_MTU_DISCOVER and IPV6_MTU_DISCOVER."""
_MTU = {socket.AF_INET: (0, 14), socket.AF_INET6: (41, 24)}
_PROBE = 3
"""IP_PMTUDISC_PROBE: sets DF, and sends what the device takes, beyond the known path MTU too."""
_HEADERS = {socket.AF_INET: 20 + 8, socket.AF_INET6: 40 + 8}
_LARGEST = {socket.AF_INET: 65535, socket.AF_INET6: 65535 + 40}
ROUNDS = 6
MTU_TRIES = 3
"""Datagrams of each size, one after the other: hosts answer only a few of them a second."""
LEAST_MTU_PATIENCE_SECONDS = 0.1
MTU_ROUND_TRIPS = 3.0


def path_mtu(host: str, rtt_seconds: float, seconds: float) -> Details:
    """Returns the path MTU to a host, after probing it for at most so many seconds.

    path_mtu_bytes: size of an IP packet, headers included; path_mtu_confirmed: whether the host
    answered a packet of that size. Raises Unavailable where the system does not tell.
    """
    deadline = time.monotonic() + seconds
    patience = max(LEAST_MTU_PATIENCE_SECONDS, MTU_ROUND_TRIPS * rtt_seconds)
    confirmed = False
    size = 0
    for number in range(ROUNDS):
        with datagrams(host) as sender:
            sender.setsockopt(*_DISCOVER[sender.family], _PROBE)
            sender.connect(peers.for_socket(host, FIRST_PORT + number))
            mtu_bytes = sender.getsockopt(*_MTU[sender.family])
            if mtu_bytes == size or time.monotonic() >= deadline:
                break
            size = mtu_bytes
            confirmed = _is_answered(sender, size, patience, deadline)
    return {"path_mtu_bytes": size, "path_mtu_confirmed": confirmed}


def _is_answered(
    sender: socket.socket, packet_bytes: int, patience: float, deadline: float
) -> bool:
    """Whether the far host answers a packet of that size; a router's message ends the wait."""
    size = min(packet_bytes, _LARGEST[sender.family]) - _HEADERS[sender.family]
    for _ in range(MTU_TRIES):
        try:
            sender.send(b"\0" * size)
        except OSError:
            # A late answer to the previous datagram, or the device's MTU fell meanwhile.
            continue
        for report in read_reports(sender, min(deadline, time.monotonic() + patience)):
            if report.kind != "time-exceeded":
                return report.kind == "port-unreachable"
    return False
