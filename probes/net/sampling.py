"""Samples the kernel's figures of a transfer's connections: bytes arrived, tcp_info, buffers.

The kernel counts what arrived in order; bytes beyond a hole (a lost segment) are added at once when
the hole is filled, and would seem to have come faster than the link: a count is exact only at a
moment without a hole. Source: tcpi_bytes_received and tcpi_rcv_ooopack of
include/uapi/linux/tcp.h, SK_MEMINFO_RMEM_ALLOC and SK_MEMINFO_RCVBUF of
include/uapi/linux/sock_diag.h.
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
"""Longest reading of a count; a slower one is repeated, as its moment is uncertain."""
ATTEMPTS = 5
_RECEIVED = struct.Struct("@Q"), 128
_OUT_OF_ORDER = struct.Struct("@I"), 224
_SO_MEMINFO, _MEMINFO_BYTES = 55, 36


@dataclass(frozen=True)
class Count:
    """Bytes that had arrived at a moment, which lies between two clock readings."""

    before_seconds: float
    after_seconds: float
    """By the monotonic clock, around the reading."""
    moved_bytes: int
    """Bytes in order since the connections began."""
    beyond_bytes: int
    """Upper bound of the bytes behind a hole; 0: there is no hole."""
    infos: Tuple[bytes, ...]
    """tcp_info of each connection."""
    unread: Tuple[int, ...]
    """Bytes of each connection that the application had not read."""


class Arrivals:
    """Counts the arrived bytes of a receiving flow."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._hole_free: List[int] = [0] * len(flow.connections)
        """Segments out of order, by connection, when it was last known to have no hole."""
        self._since: List[Tuple[int, int]] = [(0, 0)] * len(flow.connections)
        """Segments out of order, and the bytes in order when that count was first read."""

    def count(self) -> Count:
        """Counts the bytes arrived by now; repeats a reading that took over TIE_SECONDS."""
        count = self._read()
        for _ in range(ATTEMPTS):
            if count.after_seconds - count.before_seconds <= TIE_SECONDS:
                break
            count = self._read()
        return count

    def count_without_hole(self, seconds: float) -> Count:
        """Returns the first count without a hole, or the last within so many seconds."""
        until = time.monotonic() + seconds
        count = self.count()
        while count.beyond_bytes and time.monotonic() < until:
            time.sleep(0.002)
            count = self.count()
        return count

    def _read(self) -> Count:
        start = time.monotonic()
        each = [self._read_one(index) for index in range(len(self._flow.connections))]
        end = time.monotonic()
        in_order, beyond, infos, unread = zip(*each)
        return Count(start, end, sum(in_order), sum(beyond), infos, unread)

    def _read_one(self, index: int) -> Tuple[int, int, bytes, int]:
        """Reads a connection: bytes in order, behind holes at most, tcp_info, bytes unread."""
        connection = self._flow.connections[index]
        # The application's count is read first: what it reads meanwhile is counted as unread.
        read_bytes = self._flow.totals[index]
        info = tcp_info.raw(connection)
        if len(info) < _RECEIVED[1] + 8:
            waiting = tcp_info.unread_bytes(connection) or 0
            return read_bytes + waiting, 0, info, waiting
        received, disordered = _read_field(info, _RECEIVED), _read_field(info, _OUT_OF_ORDER)
        # From the kernel: the application counts a large buffer only once its call has filled it.
        unread = tcp_info.unread_bytes(connection) or 0
        if disordered == self._hole_free[index]:
            return received, 0, info, unread
        if disordered != self._since[index][0]:
            self._since[index] = disordered, received
        queued, room = _memory(connection)
        info = tcp_info.raw(connection)
        received, again = _read_field(info, _RECEIVED), _read_field(info, _OUT_OF_ORDER)
        # Nothing is queued; or a whole receive buffer has come since, which no hole can exceed.
        if again == disordered and (not queued or received - self._since[index][1] >= room):
            self._hole_free[index] = disordered
            return received, 0, info, unread
        queued, _ = _memory(connection)
        waiting = tcp_info.unread_bytes(connection) or 0
        return received, max(1, queued - waiting), info, unread


def _read_field(info: bytes, field: Tuple[struct.Struct, int]) -> int:
    """Returns a field of tcp_info; 0 where the kernel's is too short for it."""
    code, offset = field
    return int(code.unpack_from(info, offset)[0]) if offset + code.size <= len(info) else 0


def _memory(connection: socket.socket) -> Tuple[int, int]:
    """Returns the memory of what is queued unread, behind holes or not (no less than its payload),
    and the size of the receive buffer, which no window exceeds."""
    raw = connection.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO_BYTES)
    queued, room = struct.unpack_from("=II", raw)
    return int(queued), int(room)


LOOK_SECONDS = 0.02
MOST_LOOKS = 3000
"""Looks at one transfer at most; a longer one is sampled less often."""
_SUMMED = (
    "retransmitted_segments sent_bytes retransmitted_bytes spurious_segments out_of_order_segments"
).split()
"""Figures that are summed over all connections; the others are of the busiest one."""


def spacing_seconds(seconds: float) -> float:
    """Returns the time between two looks at a transfer of so many seconds."""
    return max(LOOK_SECONDS, seconds / MOST_LOOKS)


@dataclass
class Sampling:
    """The samples of each connection's tcp_info and buffers."""

    flow: Flow
    began: float = field(default_factory=time.monotonic)
    looks: List[Tuple[float, Sequence[bytes], Sequence[bytes], Sequence[int]]] = field(
        default_factory=list
    )
    """Seconds since began, then by connection: tcp_info, SO_MEMINFO, bytes left unread."""

    def at_sender(self) -> None:
        """Samples the sockets of a sender."""
        elapsed = time.monotonic() - self.began
        infos = [tcp_info.raw(each) for each in self.flow.connections]
        memories = [tcp_info.raw_memory(each) for each in self.flow.connections]
        self.looks.append((elapsed, infos, memories, ()))

    def at_receiver(self, count: Count) -> None:
        """Samples the sockets of a receiver, along with a count just made."""
        memories = [tcp_info.raw_memory(each) for each in self.flow.connections]
        elapsed = count.after_seconds - self.began
        # What the kernel gathers before it wakes the reader is not due to a slow reader.
        pairs = zip(count.unread, self.flow.gathered)
        unread = [max(0, waiting - gathered) for waiting, gathered in pairs]
        self.looks.append((elapsed, count.infos, memories, unread))

    def glimpses(self, index: int) -> List[Glimpse]:
        """Returns the samples of one connection."""
        rows = []
        for elapsed, infos, memories, unread in self.looks:
            figures = tcp_info.decode(infos[index])
            figures.update(tcp_info.decode_memory(memories[index]))
            unsent: Any = figures.get("unsent_bytes")
            rows.append(Glimpse(elapsed, figures, unread[index] if unread else None, unsent))
        return rows

    def sender_details(self) -> Details:
        """Returns limits.sender_details of all connections together."""
        each = [limits.sender_details(self.glimpses(i)) for i, _ in enumerate(self.flow.totals)]
        details = _sum_up(each, self.flow.busiest)
        loss = limits.loss_ratio(details)
        if loss is not None:
            details["loss_ratio"] = loss
        return details

    def receiver_details(self) -> Details:
        """Returns limits.receiver_details of all connections together."""
        each = [limits.receiver_details(self.glimpses(i)) for i, _ in enumerate(self.flow.totals)]
        return _sum_up(each, self.flow.busiest)


def _sum_up(each: Sequence[Details], busiest: int) -> Details:
    details = dict(each[busiest])
    for name in _SUMMED:
        figures = [one[name] for one in each if name in one]
        if figures:
            details[name] = sum(figures)
    return details
