"""Questions to the kernel by netlink(7), and where packets leave this host by its answer.

Dumps as messages, messages as attributes. rtnetlink(7), RTM_GETROUTE: policy routing and this
host's own addresses come out right.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Iterator

from probes.meaning import Called, Port, Seconds

NETLINK_ROUTE = 0
NLM_F_REQUEST = 0x001
NLM_F_DUMP = 0x300
NLMSG_ERROR = 2
NLMSG_DONE = 3
NESTED_MASK = 0x3FFF
"""Of an attribute's type: its two upper bits are flags."""
HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
ATTRIBUTE = struct.Struct("=HH")
"""rtattr: length, type."""
ANSWER_SECONDS = 1.0
MOST_BYTES = 4 << 20
"""Of one dump: ten thousand interfaces; a longer one is not read to its end."""


def dump(kind: int, body: bytes) -> bytes:
    """Everything that the kernel answers to one dump request, as it came.

    kind: RTM_GETLINK, RTM_GETQDISC ...; body: its fixed part. Errors: OSError, also where the
    system has no rtnetlink or does not answer within a second.
    """
    family = getattr(socket, "AF_NETLINK", None)
    if family is None:
        raise OSError("this system has no rtnetlink")
    until = time.monotonic() + ANSWER_SECONDS
    answer = b""
    with socket.socket(family, socket.SOCK_RAW, NETLINK_ROUTE) as kernel:
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
    """Type and body of each message of a sequence; what is cut off or malformed ends them."""
    at = 0
    while at + HEADER.size <= len(answer):
        length, kind, _, number, _ = HEADER.unpack_from(answer, at)
        if length < HEADER.size or at + length > len(answer):
            return
        if number == sequence:
            yield kind, answer[at + HEADER.size : at + length]
        at += (length + 3) & ~3


def attributes(body: bytes) -> dict[int, bytes]:
    """Value of each attribute by its type; what is cut off or malformed ends them."""
    found: dict[int, bytes] = {}
    at = 0
    while at + ATTRIBUTE.size <= len(body):
        length, kind = ATTRIBUTE.unpack_from(body, at)
        if length < ATTRIBUTE.size or at + length > len(body):
            break
        found[kind & NESTED_MASK] = body[at + ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found


def number(values: dict[int, bytes], kind: int, code: str = "=I") -> int | None:
    """An attribute as a number of the host's byte order; None: not there, or too short."""
    raw = values.get(kind, b"")
    return int(struct.unpack_from(code, raw)[0]) if len(raw) >= struct.calcsize(code) else None


def text(values: dict[int, bytes], kind: int) -> str | None:
    """An attribute as text; None: not there, or empty."""
    raw = values.get(kind, b"").split(b"\0")[0]
    return raw.decode("utf-8", "replace") or None


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
    for kind, body in messages(answer):
        if kind == RTM_NEWROUTE and len(body) >= ROUTE.size:
            return number(attributes(body[ROUTE.size :]), RTA_OIF)
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
