"""The largest packets that pass a path, where larger ones vanish without a word.

A hop that takes less than the hosts believe, and whose "too big" never arrives (RFC 2923 2.1), lets
a connection open and its small messages pass, and stalls it at the first full segment. This is
looked for as TCP would meet it: on a fresh connection something small, then full segments. Nothing
is called a black hole but what let the small through and kept the large back, three times in turn.

Sending is judged by the far kernel's acknowledgements, so that a busy server does not look like a
broken path; receiving by what arrives. Segments of a given size come of TCP_MAXSEG, told in the
SYN: both ends keep to it.
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
from probes.net import callers, port
from probes.sockets import tcp_info

CONFIRMATIONS = 3
AT_ONCE = 6
ROUNDS = 4
"""Of connections that narrow the size down: (AT_ONCE + 1) ** ROUNDS sizes can be told apart."""
ETHERNET_BYTES = 1500
"""Where packets larger than this vanish, it is most often a hop without jumbo frames."""
LEAST_BYTES = 576
"""Every IPv4 host takes such a packet (RFC 791)."""


@dataclass(frozen=True)
class Trial:
    """What became of one connection."""

    packet_bytes: int
    """Of its full segments: an IP packet with all headers."""
    passed: Optional[bool]
    """None: the small ones did not come through either, so nothing follows from it."""


Attempt = Callable[[Optional[int]], Trial]
"""Tries a connection with IP packets of so many bytes; None: as large as TCP itself chooses."""


def find(attempt: Attempt, deadline: float) -> Tuple[int, Optional[Details]]:
    """The size of full IP packets of TCP in one direction, and the black hole, None for none.

    deadline: by the monotonic clock; what is known by then is told, and but for a last look at the
    size that was found no more is tried.

    Returns:
        The black hole's passes_bytes and stalls_bytes: sizes of IP packets that came through and
        that did not.

    Raises Unavailable where it stays unclear.
    """
    full: List[int] = []
    for number in range(2 * CONFIRMATIONS):
        if number and time.monotonic() >= deadline:
            raise Unavailable(_too_short(len(full), number))
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
        sizes = between(passes or LEAST_BYTES - 1, stalls)
        if not sizes or time.monotonic() >= deadline:
            break
        tried = _at_once(attempt, sizes)
        passes = max([passes, *(each.packet_bytes for each in tried if each.passed)])
        kept = [each.packet_bytes for each in tried if each.passed is False]
        stalls = min([stalls, *(size for size in kept if size > passes)])
    if not passes:
        raise Unavailable(f"no packets of {LEAST_BYTES} bytes or more arrive")
    if not _stall_again(attempt, stalls):
        raise Unavailable("full-size packets are lost sometimes, but not because of their size")
    return max(full), {"passes_bytes": passes, "stalls_bytes": stalls}


def _too_short(stalled: int, tried: int) -> str:
    """Why nothing follows from what was tried until the deadline."""
    what = f"on {stalled} of {tried} connections full-size packets did not arrive"
    if not stalled:
        what = "even small packets do not arrive in time"
    return f"{what}; out of time to try again"


def between(passes: int, stalls: int) -> List[int]:
    """At most AT_ONCE sizes that cut what lies between two into equal parts; none: nothing does."""
    count = min(AT_ONCE, stalls - passes - 1)
    sizes = [passes + (stalls - passes) * part // (count + 1) for part in range(1, count + 1)]
    if passes < ETHERNET_BYTES < stalls:
        nearest = min(sizes, key=lambda size: abs(size - ETHERNET_BYTES))
        sizes[sizes.index(nearest)] = ETHERNET_BYTES
    return sizes


def _at_once(attempt: Attempt, sizes: Sequence[int]) -> List[Trial]:
    with ThreadPoolExecutor(len(sizes)) as pool:
        return list(pool.map(attempt, sizes))


def _stall_again(attempt: Attempt, size: int) -> bool:
    """Whether the least size that did not pass does not do so again."""
    return attempt(size).passed is False


SEGMENTS = 4
"""Full ones that are sent at once, so that a single lost packet is soon made good."""
MOST_BYTES = 64 << 10
"""Of them together: what every send buffer takes and the first congestion window covers."""
MOST_UNASKED_BYTES = 12 << 10
"""Of a message to a server that did not ask for it: below what any takes before a login."""
LOOK_SECONDS = 0.002
TAKE, GIVE = "take", "give"
"""What the far end is asked to do."""
_TCP_HEADER_BYTES = 20
_IPV4_HEADER_BYTES, _IPV6_HEADER_BYTES = 20, 40
_TIMESTAMP_BYTES = 12
_GIVEN_SECONDS = 10.0
_MESSAGE_START = struct.pack(">I", 16_000) + b"\xfeSMB" + struct.pack("<H58x", 64)
"""Direct TCP's length of a message (MS-SMB2 2.1), more than will come, and a header (2.2.1.2)."""


def overhead_bytes(address: str) -> int:
    """What an IP packet carries beside the segment that the SYN's MSS speaks of (RFC 6691)."""
    over_ipv6 = ":" in callers.plain(address)
    return _TCP_HEADER_BYTES + (_IPV6_HEADER_BYTES if over_ipv6 else _IPV4_HEADER_BYTES)


def packet_bytes(connection: socket.socket) -> int:
    """Size of an IP packet with a full segment of this connection, as its kernel cuts them."""
    figures = _figures(connection)
    options = _TIMESTAMP_BYTES if figures.get("timestamps") else 0
    return int(figures["segment_bytes"]) + options + overhead_bytes(connection.getpeername()[0])


def pushed(peer: Endpoint, size: Optional[int], patience_seconds: float) -> Trial:
    """Full segments to a session's port, where the far end takes them."""
    meeting = _met(peer, TAKE, size)
    if meeting is None:
        return Trial(size or 0, None)
    try:
        return _sent(meeting.connections[0], b"", MOST_BYTES, patience_seconds)
    except OSError:
        return Trial(size or 0, None)
    finally:
        meeting.close()


def pulled(peer: Endpoint, size: Optional[int], patience_seconds: float) -> Trial:
    """Full segments from a session's port, where the far end gives them."""
    meeting = _met(peer, GIVE, size)
    if meeting is None:
        return Trial(size or 0, None)
    try:
        told = meeting.hear(patience_seconds)
        passed = _arrived(meeting.connections[0], int(told["bytes"]), patience_seconds)
        return Trial(int(told["packet_bytes"]), passed)
    except (EOFError, OSError):
        return Trial(size or 0, None)
    except RuntimeError as error:
        raise Unavailable(str(error)) from None
    finally:
        meeting.close()


def serve(meeting: port.Meeting) -> None:
    """The responder's half: takes or gives, until the initiator leaves."""
    connection = meeting.connections[0]
    if meeting.request["do"] == GIVE:
        content = _full_segments(connection, MOST_BYTES)
        meeting.tell({"packet_bytes": packet_bytes(connection), "bytes": len(content)})
        connection.sendall(content)
    connection.settimeout(_GIVEN_SECONDS)
    # The initiator abandons what got stuck: that is no error.
    with contextlib.suppress(OSError):
        while connection.recv(MOST_BYTES):
            continue
    _reset_on_close(connection)


def pushed_unasked(host: str, at_port: int, size: Optional[int], patience_seconds: float) -> Trial:
    """Full segments to a file server that knows nothing of this session.

    They are the beginning of one SMB message whose end is never sent: its kernel acknowledges them,
    the server waits for the rest and closes when the connection does.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        try:
            if size:
                most = size - overhead_bytes(host)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, most)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(patience_seconds)
            connection.connect(callers.for_socket(host, at_port))
            segment = int(_figures(connection)["segment_bytes"])
            if segment > MOST_UNASKED_BYTES:
                raise Unavailable(
                    f"a segment of {segment} bytes is more than a server takes unasked"
                )
            return _sent(connection, _MESSAGE_START, MOST_UNASKED_BYTES, patience_seconds)
        except OSError:
            return Trial(size or 0, None)


def _met(peer: Endpoint, do: str, size: Optional[int]) -> Optional[port.Meeting]:
    segment = size - overhead_bytes(peer.host) if size else 0
    try:
        return port.meet(peer, {"do": do}, 1, segment_bytes=segment)
    except (Unavailable, RuntimeError):
        return None


def _figures(connection: socket.socket) -> tcp_info.Figures:
    """The connection's tcp_info. Raises Unavailable where the system does not tell it."""
    figures = tcp_info.read(connection)
    if "segment_bytes" not in figures:
        raise Unavailable("this system does not report the size of its segments")
    return figures


def _full_segments(connection: socket.socket, most_bytes: int) -> bytes:
    """Content of full segments and nothing beside; random: a tunnel may compress what is not."""
    segment = int(_figures(connection)["segment_bytes"])
    return os.urandom(segment * max(1, min(SEGMENTS, most_bytes // segment)))


def _sent(
    connection: socket.socket, small: bytes, most_bytes: int, patience_seconds: float
) -> Trial:
    """Something small, and once that is acknowledged full segments."""
    connection.setblocking(False)
    if small:
        connection.send(small)
    size = packet_bytes(connection)
    if not _acknowledged(connection, patience_seconds):
        return Trial(size, None)
    connection.send(_full_segments(connection, most_bytes))
    passed = _acknowledged(connection, patience_seconds)
    if not passed:
        _reset_on_close(connection)
    # A router that says "too big" makes the segments smaller, and then they pass. A reset empties
    # the queue too, as if all had passed: asking for the size of a dead connection's raises.
    return Trial(packet_bytes(connection) if passed else size, passed)


def _acknowledged(connection: socket.socket, patience_seconds: float) -> bool:
    """Whether the far kernel has everything before our patience ends.

    The last look comes after that: if this process was kept waiting, the kernels were not.
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


def _arrived(connection: socket.socket, size: int, patience_seconds: float) -> bool:
    """Whether so much has come before our patience ends."""
    deadline = time.monotonic() + patience_seconds
    left = size
    connection.setblocking(False)
    while True:
        late = time.monotonic() >= deadline
        try:
            got = len(connection.recv(MOST_BYTES))
            if not got:
                raise EOFError("closed")
            left -= got
        except BlockingIOError:
            if late:
                return False
            time.sleep(LOOK_SECONDS)
        if not left:
            return True


def _reset_on_close(connection: socket.socket) -> None:
    """What is stuck is not tried again for minutes after we have gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
