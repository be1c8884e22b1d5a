"""The largest packet that the kernel believes a path to carry, after it was tried.

A UDP datagram as large as that, which no router may cut, goes to a port where nobody listens. A
router whose next link is narrower says so, and the kernel lowers its path MTU (RFC 1191, RFC 8201);
the far host's "port unreachable" proves that the datagram came through. Silence proves nothing.
"""

from __future__ import annotations

import socket
import time

from probes.net import icmp
from probes.records import Details

_DISCOVER = {socket.AF_INET: (0, 10), socket.AF_INET6: (41, 23)}
"""Level and name of IP_MTU_DISCOVER and IPV6_MTU_DISCOVER."""
_MTU = {socket.AF_INET: (0, 14), socket.AF_INET6: (41, 24)}
_PROBE = 3
"""IP_PMTUDISC_PROBE: set DF and send what the device takes, whatever the kernel believes."""
_HEADERS = {socket.AF_INET: 20 + 8, socket.AF_INET6: 40 + 8}
_LARGEST = {socket.AF_INET: 65535, socket.AF_INET6: 65535 + 40}
ROUNDS = 6
TRIES = 3
"""One after the other: hosts answer no more than a few such datagrams a second."""
LEAST_PATIENCE_SECONDS = 0.1
ROUND_TRIPS = 3.0


def path_mtu(host: str, rtt_seconds: float, seconds: float) -> Details:
    """What the kernel knows of the path to a host, after probing it for at most so many seconds.

    Returns:
        path_mtu_bytes: size of an IP packet, headers included; path_mtu_confirmed: whether the
        host answered a packet of that size.

    Raises Unavailable where the system does not tell.
    """
    deadline = time.monotonic() + seconds
    patience = max(LEAST_PATIENCE_SECONDS, ROUND_TRIPS * rtt_seconds)
    confirmed = False
    size = 0
    for number in range(ROUNDS):
        with icmp.datagrams(host) as sender:
            sender.setsockopt(*_DISCOVER[sender.family], _PROBE)
            sender.connect((host, icmp.FIRST_PORT + number))
            known = sender.getsockopt(*_MTU[sender.family])
            if known == size or time.monotonic() >= deadline:
                break
            size = known
            confirmed = _answered(sender, size, patience, deadline)
    return {"path_mtu_bytes": size, "path_mtu_confirmed": confirmed}


def _answered(sender: socket.socket, packet_bytes: int, patience: float, deadline: float) -> bool:
    """Whether the far host answered a packet of that size; a router's word ends the wait."""
    size = min(packet_bytes, _LARGEST[sender.family]) - _HEADERS[sender.family]
    for _ in range(TRIES):
        try:
            sender.send(b"\0" * size)
        except OSError:
            # A late answer to the one before, or the device takes less by now.
            continue
        for said in icmp.sayings(sender, min(deadline, time.monotonic() + patience)):
            if said.kind != "time-exceeded":
                return said.kind == "port-unreachable"
    return False
