"""The routers between this host and another, without privileges.

UDP datagrams whose time to live grows by one a hop, as traceroute sends them, several hops at a
time; each router's ICMP answer comes back in the socket's error queue. A host that does not answer
datagrams is looked for by a TCP connection whose packets live just long enough.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from probes.net import icmp
from probes.records import Details

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

    def take(self, hop: int, said: icmp.Saying, seconds: float) -> None:
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
    with icmp.datagrams(host) as sender:
        for first, last in SPANS:
            now = time.monotonic()
            if now >= deadline:
                break
            _ask(sender, host, first, last, found, min(deadline, now + patience))
            if found.end is None:
                _knock(host, port, found, min(deadline, time.monotonic() + patience))
            silent = not any(first <= hop <= last for hop in found.answers)
            if found.end is not None or found.stopped is not None or silent:
                break
    return found


def _ask(
    sender: socket.socket, host: str, first: int, last: int, found: Trace, until: float
) -> None:
    """Sends to each hop of a span, and takes what comes back."""
    asked: Dict[int, Tuple[int, float]] = {}
    began = time.monotonic()
    for again in range(TRIES):
        for hop in found.missing(first, last):
            port = icmp.FIRST_PORT + hop * TRIES + again
            _live(sender, hop)
            if _send(sender, (host, port)):
                asked[port] = (hop, time.monotonic())
        part = began + (until - began) * (again + 1) / TRIES
        for said in icmp.sayings(sender, part):
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


def _send(sender: socket.socket, where: Tuple[str, int]) -> bool:
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
            knocking.connect((host, port))
        except OSError:
            return
        found.end = hop
        found.answers[hop] = (host, time.monotonic() - began)
