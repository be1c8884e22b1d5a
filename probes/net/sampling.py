"""What the kernel tells of a transfer's connections while they work: what has arrived, and more.

It counts what arrived in order; what lies beyond a hole is counted in one leap when the hole is
filled, and would seem to have come faster than the link: a count is whole only at a moment without
a hole. Source: tcpi_bytes_received and tcpi_rcv_ooopack of include/uapi/linux/tcp.h,
SK_MEMINFO_RMEM_ALLOC and SK_MEMINFO_RCVBUF of include/uapi/linux/sock_diag.h.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any, List, Sequence, Tuple

from probes.core.records import Details
from probes.net.flow import Flow
from probes.sockets import limits, tcp_info
from probes.sockets.limits import Glimpse

TIE_SECONDS = 0.001
"""A count that took longer to read is of no moment: the reader was kept waiting meanwhile."""
ATTEMPTS = 5
_RECEIVED = struct.Struct("@Q"), 128
_OUT_OF_ORDER = struct.Struct("@I"), 224
_SO_MEMINFO, _MEMINFO_BYTES = 55, 36


@dataclass(frozen=True)
class Count:
    """What had arrived between two moments that are nearly one."""

    before_seconds: float
    after_seconds: float
    """By the monotonic clock, around the reading."""
    moved_bytes: int
    """In order, since the connections began."""
    beyond_bytes: int
    """At most so much more, that waits behind a hole; 0: there is none."""
    infos: Tuple[bytes, ...]
    """tcp_info of each connection."""
    unread: Tuple[int, ...]
    """Bytes of each connection that the application had not read."""


class Arrivals:
    """The counts of a flow that receives."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._whole_at: List[int] = [0] * len(flow.connections)
        """Segments out of order, by connection, when it was last known to have no hole."""
        self._since: List[Tuple[int, int]] = [(0, 0)] * len(flow.connections)
        """Segments out of order, and the bytes in order when they were first seen to be so many."""

    def count(self) -> Count:
        """What has arrived by now; read again where the reading took too long to be a moment."""
        count = self._read()
        for _ in range(ATTEMPTS):
            if count.after_seconds - count.before_seconds <= TIE_SECONDS:
                break
            count = self._read()
        return count

    def whole(self, seconds: float) -> Count:
        """The first count without a hole, or the last within so many seconds."""
        until = time.monotonic() + seconds
        count = self.count()
        while count.beyond_bytes and time.monotonic() < until:
            time.sleep(0.002)
            count = self.count()
        return count

    def _read(self) -> Count:
        before = time.monotonic()
        each = [self._of(index) for index in range(len(self._flow.connections))]
        after = time.monotonic()
        moved, beyond, infos, unread = zip(*each)
        return Count(before, after, sum(moved), sum(beyond), infos, unread)

    def _of(self, index: int) -> Tuple[int, int, bytes, int]:
        """Of one connection: bytes in order, behind holes at most, tcp_info, bytes unread."""
        connection = self._flow.connections[index]
        # What the application has read comes first: what it reads meanwhile is counted as unread.
        moved = self._flow.moved[index]
        info = tcp_info.raw(connection)
        if len(info) < _RECEIVED[1] + 8:
            waiting = tcp_info.unread_bytes(connection) or 0
            return moved + waiting, 0, info, waiting
        received, seen = _at(info, _RECEIVED), _at(info, _OUT_OF_ORDER)
        # The kernel's own count: a call that fills a large buffer tells of its bytes at its end.
        unread = tcp_info.unread_bytes(connection) or 0
        if seen == self._whole_at[index]:
            return received, 0, info, unread
        if seen != self._since[index][0]:
            self._since[index] = seen, received
        queued, room = _memory(connection)
        info = tcp_info.raw(connection)
        received, again = _at(info, _RECEIVED), _at(info, _OUT_OF_ORDER)
        # Nothing waits; or all has come since that any hole could have lain in: the window's span.
        if again == seen and (not queued or received - self._since[index][1] >= room):
            self._whole_at[index] = seen
            return received, 0, info, unread
        queued, _ = _memory(connection)
        waiting = tcp_info.unread_bytes(connection) or 0
        return received, max(1, queued - waiting), info, unread


def _at(info: bytes, field: Tuple[struct.Struct, int]) -> int:
    """A field of tcp_info; 0 where the kernel's is too short for it."""
    code, offset = field
    return int(code.unpack_from(info, offset)[0]) if offset + code.size <= len(info) else 0


def _memory(connection: socket.socket) -> Tuple[int, int]:
    """Of what has arrived and is not read, behind holes or not (no less than its payload); and
    the receive buffer, which no window is longer than."""
    told = connection.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO_BYTES)
    queued, room = struct.unpack_from("=II", told)
    return int(queued), int(room)


LOOK_SECONDS = 0.02
MOST_LOOKS = 3000
"""Of one transfer; a longer one is looked at less often."""
_SUMMED = (
    *("retransmitted_segments", "sent_bytes", "retransmitted_bytes"),
    *("spurious_segments", "out_of_order_segments"),
)
"""Of all connections; the rest is of the one that moved most."""


def spacing_seconds(seconds: float) -> float:
    """Between two looks at a transfer of so many seconds."""
    return max(LOOK_SECONDS, seconds / MOST_LOOKS)


@dataclass
class Sampling:
    """What was seen of each connection."""

    flow: Flow
    began: float = field(default_factory=time.monotonic)
    seen: List[Tuple[float, Sequence[bytes], Sequence[bytes], Sequence[int]]] = field(
        default_factory=list
    )
    """When, then by connection: tcp_info, what fills its buffers, bytes left unread."""

    def at_sender(self) -> None:
        """One look at sockets that send."""
        when = time.monotonic() - self.began
        infos = [tcp_info.raw(each) for each in self.flow.connections]
        memories = [tcp_info.raw_memory(each) for each in self.flow.connections]
        self.seen.append((when, infos, memories, ()))

    def at_receiver(self, count: Count) -> None:
        """One look at sockets that receive, just counted."""
        memories = [tcp_info.raw_memory(each) for each in self.flow.connections]
        when = count.after_seconds - self.began
        # What the kernel gathers before it wakes the reader is not left by a slow one.
        pairs = zip(count.unread, self.flow.gathered)
        unread = [max(0, waiting - gathered) for waiting, gathered in pairs]
        self.seen.append((when, count.infos, memories, unread))

    def glimpses(self, index: int) -> List[Glimpse]:
        """The looks at one connection."""
        found = []
        for when, infos, memories, unread in self.seen:
            figures = tcp_info.decode(infos[index])
            figures.update(tcp_info.decode_memory(memories[index]))
            unsent: Any = figures.get("unsent_bytes")
            found.append(Glimpse(when, figures, unread[index] if unread else None, unsent))
        return found

    def of_sender(self) -> Details:
        """limits.of_sender, of all connections together."""
        each = [limits.of_sender(self.glimpses(index)) for index in range(len(self.flow.moved))]
        told = _together(each, self.flow.busiest)
        lost = limits.loss_ratio(told)
        if lost is not None:
            told["loss_ratio"] = lost
        return told

    def of_receiver(self) -> Details:
        """limits.of_receiver, of all connections together."""
        each = [limits.of_receiver(self.glimpses(index)) for index in range(len(self.flow.moved))]
        return _together(each, self.flow.busiest)


def _together(each: Sequence[Details], busiest: int) -> Details:
    told = dict(each[busiest])
    for name in _SUMMED:
        known = [one[name] for one in each if name in one]
        if known:
            told[name] = sum(known)
    return told
