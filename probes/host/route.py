"""Where packets to an address leave this host, and whether they reach a port there.

By the kernel's own answer: rtnetlink(7), RTM_GETROUTE: policy routing and this host's own addresses
come out right.
"""

from __future__ import annotations

import errno
import socket
import struct

from probes.host import rtnetlink
from probes.host.rtnetlink import ANSWER_SECONDS, ATTRIBUTE, HEADER, NETLINK_ROUTE, NLM_F_REQUEST
from probes.meaning import Called, Port, Seconds

RTM_GETROUTE = 26
RTM_NEWROUTE = 24
RTA_DST = 1
RTA_OIF = 4
ROUTE = struct.Struct("=BBBBBBBBI")
"""rtmsg: family, prefix lengths, tos, table, protocol, scope, type, flags."""
DISCARD_PORT = 9


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
    for kind, body in rtnetlink.messages(answer):
        if kind == RTM_NEWROUTE and len(body) >= ROUTE.size:
            return rtnetlink.number(rtnetlink.attributes(body[ROUTE.size :]), RTA_OIF)
    return None


_SAYINGS = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "no route to it, or a firewall rejects it",
    errno.ENETUNREACH: "no route to it",
}


def reach(host: Called, port: Port, patience_seconds: Seconds) -> str:
    """Empty where a connection is taken within so many seconds, else why not, in a few words.

    The connection is closed at once and nothing is sent.
    """
    try:
        socket.create_connection((host, port), timeout=patience_seconds).close()
    except socket.timeout:  # noqa: UP041 - only since Python 3.10 it is TimeoutError
        return f"no answer within {patience_seconds:.0f} s"
    except socket.gaierror:
        return "the name does not resolve"
    except OSError as error:
        return _SAYINGS.get(error.errno or 0) or (error.strerror or str(error)).lower()
    return ""
