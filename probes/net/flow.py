"""The data connections of one transfer at one end: a thread each, and what they have moved.

A thread does nothing else than send or receive: beside it only the watch runs, which sleeps.

What has arrived is told by the receiver's kernel, at moments that are known. It counts what arrived
in order; what lies beyond a hole is counted in one leap when the hole is filled, and would seem to
have come faster than the link: a count is whole only at a moment without a hole. Source:
tcpi_bytes_received and tcpi_rcv_ooopack of include/uapi/linux/tcp.h, SK_MEMINFO_RMEM_ALLOC and
SK_MEMINFO_RCVBUF of include/uapi/linux/sock_diag.h.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import socket
import struct
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Iterator, List, Sequence, Tuple

from probes.host import limits, payload, tcp_info
from probes.host.limits import Glimpse
from probes.records import Details

REGION_BYTES = 128 << 10
"""Of payload, over and over, as iperf3 does: it stays in a core's cache, where 4 MiB cost a tenth
of the throughput, and repeats beyond the 64 KiB that LZ4, LZO and deflate look back (not zstd)."""
MOST_BLOCKS = 4096
"""That are sent before the payload begins again: few enough to be made beforehand."""
GROUP_BYTES = 16 << 10
"""That small buffers are sent and counted in."""
STACK_BYTES = 256 << 10
"""Of a thread: 64 of the system's own size would be more memory than a probe may have."""
RELEASE_SECONDS = 30.0
_SO_MAX_PACING_RATE, _MOST_PACED = 47, 2**32 - 2
"""Of asm-generic/socket.h; bytes per second of a connection, where more is no limit."""


@dataclass
class Flow:
    """Connections at work."""

    connections: List[socket.socket]
    moved: List[int] = field(default_factory=list)
    """Payload bytes by connection, as the application counts them."""
    calls: List[int] = field(default_factory=list)
    """send(), sendfile() or recv() calls by connection."""
    first: threading.Event = field(default_factory=threading.Event)
    """A connection has ended: from here on fewer of them share the path."""
    ended: threading.Event = field(default_factory=threading.Event)
    """All have."""
    released: threading.Event = field(default_factory=threading.Event)
    """Until then the threads stay: one that is gone tells nobody how busy it was."""
    errors: List[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    running: int = 0

    def __post_init__(self) -> None:
        self.moved = [0] * len(self.connections)
        self.calls = [0] * len(self.connections)

    def run(self, move: Any, *arguments: Any) -> None:
        """Starts one thread a connection: move(flow, index, *arguments)."""
        self.running = len(self.connections)
        before = threading.stack_size(STACK_BYTES)
        try:
            for index in range(len(self.connections)):
                work = (move, index, *arguments)
                threading.Thread(target=self._guard, args=work, daemon=True).start()
        finally:
            threading.stack_size(before)

    def _guard(self, move: Any, index: int, *arguments: Any) -> None:
        try:
            move(self, index, *arguments)
        except Exception as error:  # whatever it is, it ends the transfer and is told
            self.errors.append(str(error) or type(error).__name__)
        with self.lock:
            self.running -= 1
            last = not self.running
        self.first.set()
        if last:
            self.ended.set()
        self.released.wait(RELEASE_SECONDS)

    def pace(self, bytes_per_second: float) -> None:
        """Has the kernel send no faster, all connections together. RuntimeError: it cannot."""
        if not sys.platform.startswith("linux"):
            raise RuntimeError("this system cannot pace a TCP connection")
        each = min(_MOST_PACED, max(1, round(bytes_per_second / len(self.connections))))
        for connection in self.connections:
            connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("=I", each))

    def stop(self, how: int = socket.SHUT_RDWR) -> None:
        """Ends every connection's sending, or all of it, and wakes the threads that wait there."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(how)

    def why(self) -> str:
        """The first error, as the end of a sentence."""
        return f": {self.errors[0]}" if self.errors else ""

    @property
    def busiest(self) -> int:
        """Index of the connection that moved most."""
        return max(range(len(self.moved)), key=self.moved.__getitem__)


def send(flow: Flow, index: int, ring: memoryview, buffer_bytes: int, until: float) -> None:
    """Sends payload in buffers of a size until a moment of the monotonic clock."""
    connection, moved, calls, now = flow.connections[index], flow.moved, flow.calls, time.monotonic
    count = max(1, min(MOST_BLOCKS, REGION_BYTES // buffer_bytes))
    region = _aligned(count * buffer_bytes)
    region[:] = ring[: count * buffer_bytes]
    blocks = [region[i * buffer_bytes : (i + 1) * buffer_bytes] for i in range(count)]
    # Small buffers go in groups: what stands around a call would else cost as much as the call.
    size = max(1, GROUP_BYTES // buffer_bytes)
    groups = [blocks[i : i + size] for i in range(0, count, size)]
    put, total, number = connection.send, 0, 0
    with _ending(connection, until):
        try:
            for group in itertools.cycle(groups):
                if now() >= until:
                    break
                for block in group:
                    total += put(block)
                    number += 1
                moved[index] = total
                calls[index] = number
        finally:
            moved[index] = total
            calls[index] = number


def _aligned(size_bytes: int) -> memoryview:
    """Memory that begins at a page: the processor copies from and to it faster."""
    return memoryview(mmap.mmap(-1, size_bytes))


def payload_file(ring: memoryview, buffer_bytes: int) -> BinaryIO:
    """A nameless file of whole buffers for send_file, in the page cache.

    On a disk, since the pages of one in memory (memfd_create) are single ones on most systems, and
    cost more each.
    """
    size = max(buffer_bytes, payload.PERIOD_BYTES // buffer_bytes * buffer_bytes)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - whoever asked for it closes it
    try:
        file.write(ring[:size])
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


def send_file(flow: Flow, index: int, file: BinaryIO, buffer_bytes: int, until: float) -> None:
    """As send, but from a file's cached pages, which the kernel sends uncopied (sendfile(2))."""
    connection, moved, calls, now = flow.connections[index], flow.moved, flow.calls, time.monotonic
    to, come = connection.fileno(), file.fileno()
    size, total, number = os.fstat(come).st_size, 0, 0
    with _ending(connection, until):
        while now() < until:
            total += os.sendfile(to, come, total % size, buffer_bytes)
            number += 1
            moved[index] = total
            calls[index] = number


@contextlib.contextmanager
def _ending(connection: socket.socket, until: float) -> Iterator[None]:
    """Tells the receiver the end; what goes wrong after it is no error: both ends stop by clock."""
    try:
        yield
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        if time.monotonic() < until:
            raise


def receive(flow: Flow, index: int, buffer_bytes: int) -> None:
    """Receives until the other end has no more."""
    connection, moved, calls = flow.connections[index], flow.moved, flow.calls
    buffer = _aligned(buffer_bytes)
    take, total, number = connection.recv_into, 0, 0
    # The first bytes are told at once: a slow link would take long to fill a large buffer.
    how = 0
    while True:
        got = take(buffer, 0, how)
        # From here on the kernel fills all of it as bytes come (tcp_recvmsg): no call for each.
        how = socket.MSG_WAITALL
        if not got:
            return
        total += got
        number += 1
        moved[index] = total
        calls[index] = number


INFO_BYTES = 512
"""More than any kernel's struct tcp_info."""
TIE_SECONDS = 0.001
"""A count that took longer to read is of no moment: the reader was kept waiting meanwhile."""
ATTEMPTS = 5
_RECEIVED = struct.Struct("@Q"), 128
_OUT_OF_ORDER = struct.Struct("@I"), 224
_SO_MEMINFO, _MEMINFO_BYTES = 55, 36


def raw_info(connection: socket.socket) -> bytes:
    """The connection's struct tcp_info; empty where the system has none."""
    if not sys.platform.startswith("linux"):
        return b""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)


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
        info = raw_info(connection)
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
        info = raw_info(connection)
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
class Looks:
    """What was seen of each connection."""

    flow: Flow
    began: float = field(default_factory=time.monotonic)
    seen: List[Tuple[float, Sequence[bytes], Sequence[bytes], Sequence[int]]] = field(
        default_factory=list
    )
    """When, then by connection: tcp_info, what fills its buffers, unread bytes."""

    def at_sender(self) -> None:
        """One look at sockets that send."""
        when = time.monotonic() - self.began
        infos = [raw_info(each) for each in self.flow.connections]
        memories = [tcp_info.raw_memory(each) for each in self.flow.connections]
        self.seen.append((when, infos, memories, ()))

    def at_receiver(self, count: Count) -> None:
        """One look at sockets that receive, just counted."""
        memories = [tcp_info.raw_memory(each) for each in self.flow.connections]
        when = count.after_seconds - self.began
        self.seen.append((when, count.infos, memories, count.unread))

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
