"""Finds the largest packets that pass a path on which larger ones vanish without an error.

A hop that takes less than the hosts believe, and whose "too big" never arrives (RFC 2923 2.1), lets
a connection open and its small messages pass, and stalls it at the first full segment. The test
does as TCP would: on a fresh connection something small, then full segments. A path has a black
hole only if it lets the small ones through and drops the full ones three times in a row.

Sending is judged by the far kernel's acknowledgements, so that a busy server does not look like a
broken path; receiving by what arrives. TCP_MAXSEG sets the size of the segments: it is announced in
the SYN, and both ends keep to it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence, Tuple

from probes.core.records import Details, Endpoint
from probes.core.stage import Unavailable
from probes.net import peers, port
from probes.sockets import tcp_info

CONFIRMATIONS = 3
AT_ONCE = 6
ROUNDS = 4
"""Rounds of AT_ONCE connections that narrow the size down to one of (AT_ONCE + 1) ** ROUNDS."""
ETHERNET_BYTES = 1500
"""The usual limit: a hop that drops larger packets most often lacks jumbo frames."""
LEAST_BYTES = 576
"""Packet size that every IPv4 host takes (RFC 791)."""


@dataclass(frozen=True)
class Trial:
    """The result of one connection."""

    packet_bytes: int
    """Size of the IP packet of a full segment, all headers included."""
    passed: Optional[bool]
    """Whether full segments came through; None: unclear, since small ones did not either."""


Attempt = Callable[[Optional[int]], Trial]
"""Function that tries a connection with IP packets of so many bytes; None: TCP's own choice."""


def find(attempt: Attempt, deadline: float) -> Tuple[int, Optional[Details]]:
    """Returns the size of TCP's full IP packets in one direction, and the black hole or None.

    deadline: by the monotonic clock; after it only the size that stalled is tried once more.

    The black hole's passes_bytes and stalls_bytes are sizes of IP packets that came through and
    that did not. Raises Unavailable where it stays unclear.
    """
    full: List[int] = []
    for number in range(2 * CONFIRMATIONS):
        if number and time.monotonic() >= deadline:
            raise Unavailable(_describe_timeout(len(full), number))
        trial = attempt(None)
        if trial.passed:
            return trial.packet_bytes, None
        if trial.passed is False:
            full.append(trial.packet_bytes)
        if len(full) == CONFIRMATIONS:
            break
    else:
        raise Unavailable("even small packets do not arrive in time")
    if time.monotonic() >= deadline:
        raise Unavailable("full-size packets do not arrive; out of time to find the size that does")
    passes, stalls = 0, min(full)
    for _ in range(ROUNDS):
        sizes = sizes_between(passes or LEAST_BYTES - 1, stalls)
        if not sizes or time.monotonic() >= deadline:
            break
        trials = _try_at_once(attempt, sizes)
        passes = max([passes, *(each.packet_bytes for each in trials if each.passed)])
        stalled_sizes = [each.packet_bytes for each in trials if each.passed is False]
        stalls = min([stalls, *(size for size in stalled_sizes if size > passes)])
    if not passes:
        raise Unavailable(f"no packets of {LEAST_BYTES} bytes or more arrive")
    if attempt(stalls).passed is not False:
        raise Unavailable("full-size packets are lost sometimes, but not because of their size")
    return max(full), {"passes_bytes": passes, "stalls_bytes": stalls}


def _describe_timeout(stalled: int, tried: int) -> str:
    """Returns why the connections tried until the deadline prove nothing."""
    what = f"on {stalled} of {tried} connections full-size packets did not arrive"
    if not stalled:
        what = "even small packets do not arrive in time"
    return f"{what}; out of time to try again"


def sizes_between(passes: int, stalls: int) -> List[int]:
    """Returns at most AT_ONCE sizes that divide the range between two sizes into equal parts."""
    count = min(AT_ONCE, stalls - passes - 1)
    sizes = [passes + (stalls - passes) * part // (count + 1) for part in range(1, count + 1)]
    if passes < ETHERNET_BYTES < stalls:
        nearest = min(sizes, key=lambda size: abs(size - ETHERNET_BYTES))
        sizes[sizes.index(nearest)] = ETHERNET_BYTES
    return sizes


def _try_at_once(attempt: Attempt, sizes: Sequence[int]) -> List[Trial]:
    with ThreadPoolExecutor(len(sizes)) as pool:
        return list(pool.map(attempt, sizes))


SEGMENTS = 4
"""Full segments sent at once, so that a single lost packet is soon retransmitted."""
MOST_BYTES = 64 << 10
"""Bytes of all these segments: every send buffer and the first congestion window hold them."""
MOST_UNASKED_BYTES = 12 << 10
"""Largest message to a server outside the session: less than any accepts before a login."""
LOOK_SECONDS = 0.002
TAKE, GIVE = "take", "give"
"""Values of the request's "do": the far end takes full segments, or gives them."""
_TCP_HEADER_BYTES = 20
_IPV4_HEADER_BYTES, _IPV6_HEADER_BYTES = 20, 40
_TIMESTAMP_BYTES = 12
_GIVEN_SECONDS = 10.0
_MESSAGE_START = struct.pack(">I", 16_000) + b"\xfeSMB" + struct.pack("<H58x", 64)
"""Direct TCP's message length (MS-SMB2 2.1), more than is ever sent, and a header (2.2.1.2)."""


def overhead_bytes(address: str) -> int:
    """Returns the header bytes of an IP packet, which the SYN's MSS leaves out (RFC 6691)."""
    over_ipv6 = ":" in peers.plain(address)
    return _TCP_HEADER_BYTES + (_IPV6_HEADER_BYTES if over_ipv6 else _IPV4_HEADER_BYTES)


def packet_bytes(connection: socket.socket) -> int:
    """Returns the size of an IP packet with a full segment, as this end's kernel cuts them."""
    figures = _figures(connection)
    options = _TIMESTAMP_BYTES if figures.get("timestamps") else 0
    return int(figures["segment_bytes"]) + options + overhead_bytes(connection.getpeername()[0])


def push(peer: Endpoint, size: Optional[int], patience_seconds: float) -> Trial:
    """Sends full segments to a session's port, where the far end takes them."""
    meeting = _meet_responder(peer, TAKE, size)
    if meeting is None:
        return Trial(size or 0, None)
    try:
        return _try_segments(meeting.connections[0], b"", MOST_BYTES, patience_seconds)
    except OSError:
        return Trial(size or 0, None)
    finally:
        meeting.close()


def pull(peer: Endpoint, size: Optional[int], patience_seconds: float) -> Trial:
    """Receives full segments from a session's port, where the far end gives them."""
    meeting = _meet_responder(peer, GIVE, size)
    if meeting is None:
        return Trial(size or 0, None)
    try:
        reply = meeting.hear(patience_seconds)
        passed = _has_arrived(meeting.connections[0], int(reply["bytes"]), patience_seconds)
        return Trial(int(reply["packet_bytes"]), passed)
    except (EOFError, OSError):
        return Trial(size or 0, None)
    except RuntimeError as error:
        raise Unavailable(str(error)) from None
    finally:
        meeting.close()


def serve(meeting: port.Meeting) -> None:
    """Does the responder's half: takes or gives until the initiator closes."""
    connection = meeting.connections[0]
    if meeting.request["do"] == GIVE:
        content = _full_segments(connection, MOST_BYTES)
        meeting.tell({"packet_bytes": packet_bytes(connection), "bytes": len(content)})
        connection.sendall(content)
    connection.settimeout(_GIVEN_SECONDS)
    # The initiator aborts a stalled connection: that is no error.
    with contextlib.suppress(OSError):
        while connection.recv(MOST_BYTES):
            continue
    _reset_on_close(connection)


def push_unasked(host: str, at_port: int, size: Optional[int], patience_seconds: float) -> Trial:
    """Sends full segments to a file server that knows nothing of this session.

    They begin one SMB message whose end is never sent: the server's kernel acknowledges them, the
    server waits for the rest and closes when the connection does.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        try:
            if size:
                limit_bytes = size - overhead_bytes(host)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, limit_bytes)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(patience_seconds)
            connection.connect(peers.for_socket(host, at_port))
            segment = int(_figures(connection)["segment_bytes"])
            if segment > MOST_UNASKED_BYTES:
                raise Unavailable(
                    f"a segment of {segment} bytes is more than a server takes unasked"
                )
            return _try_segments(connection, _MESSAGE_START, MOST_UNASKED_BYTES, patience_seconds)
        except OSError:
            return Trial(size or 0, None)


def _meet_responder(peer: Endpoint, do: str, size: Optional[int]) -> Optional[port.Meeting]:
    segment = size - overhead_bytes(peer.host) if size else 0
    try:
        return port.meet(peer, {"do": do}, 1, segment_bytes=segment)
    except (Unavailable, RuntimeError):
        return None


def _figures(connection: socket.socket) -> tcp_info.Figures:
    """Returns the connection's tcp_info. Raises Unavailable where the system has none."""
    figures = tcp_info.read(connection)
    if "segment_bytes" not in figures:
        raise Unavailable("this system does not report the size of its segments")
    return figures


def _full_segments(connection: socket.socket, most_bytes: int) -> bytes:
    """Returns full segments of random bytes: a tunnel might compress anything else."""
    segment = int(_figures(connection)["segment_bytes"])
    return os.urandom(segment * max(1, min(SEGMENTS, most_bytes // segment)))


def _try_segments(
    connection: socket.socket, small: bytes, most_bytes: int, patience_seconds: float
) -> Trial:
    """Sends something small and, once that is acknowledged, full segments."""
    connection.setblocking(False)
    if small:
        connection.send(small)
    size = packet_bytes(connection)
    if not _is_acknowledged(connection, patience_seconds):
        return Trial(size, None)
    connection.send(_full_segments(connection, most_bytes))
    passed = _is_acknowledged(connection, patience_seconds)
    if not passed:
        _reset_on_close(connection)
    # After a router's "too big" the kernel sends smaller segments, which pass. A reset empties the
    # queue as well, as if all had passed: packet_bytes raises for such a dead connection.
    return Trial(packet_bytes(connection) if passed else size, passed)


def _is_acknowledged(connection: socket.socket, patience_seconds: float) -> bool:
    """Whether the far kernel acknowledges everything within patience_seconds.

    The last look comes after that time: this process may have been delayed, the kernels were not.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        late = time.monotonic() >= deadline
        figures = tcp_info.read(connection)
        if not figures.get("unacknowledged_segments") and not figures.get("unsent_bytes"):
            return True
        if late:
            return False
        time.sleep(LOOK_SECONDS)


def _has_arrived(connection: socket.socket, size: int, patience_seconds: float) -> bool:
    """Whether `size` bytes arrive within patience_seconds."""
    deadline = time.monotonic() + patience_seconds
    missing = size
    connection.setblocking(False)
    while True:
        late = time.monotonic() >= deadline
        try:
            count = len(connection.recv(MOST_BYTES))
            if not count:
                raise EOFError("closed")
            missing -= count
        except BlockingIOError:
            if late:
                return False
            time.sleep(LOOK_SECONDS)
        if not missing:
            return True


def _reset_on_close(connection: socket.socket) -> None:
    """Sets SO_LINGER: else the kernel retransmits stuck segments for minutes after the close."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
