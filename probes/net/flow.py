"""The data connections of one transfer at one end: a thread each, and what they have moved.

A thread does nothing else than send or receive: beside it only the watch runs, which sleeps.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import socket
import struct
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Iterator, List

from probes.files import payload
from probes.sockets.tcp_info import LINUX_OPTIONS, WHOLE

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
GATHER_SECONDS = 0.0005
LEAST_GATHERED_BYTES, MOST_GATHERED_BYTES = 64 << 10, 1 << 20
"""Below the first (1 Gbit/s has less) nothing is changed; nor is more gathered than an eighth of
the receive buffer, so that neither the offered window nor the buffer's own growth changes."""
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
    gathered: List[int] = field(default_factory=list)
    """Bytes by connection that are let come before its reader is woken; see gather."""
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
        self.gathered = [0] * len(self.connections)

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
        if not LINUX_OPTIONS:
            raise RuntimeError("this system cannot pace a TCP connection")
        each = min(_MOST_PACED, max(1, round(bytes_per_second / len(self.connections))))
        for connection in self.connections:
            connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("=I", each))

    def gather(self, bytes_per_second: float) -> None:
        """Wakes the receiving threads once in GATHER_SECONDS of a high rate, not at each segment.

        The kernel wakes a reader for every few segments, MSG_WAITALL or not, and the core that
        delivers them pays for it (SO_RCVLOWAT; tcp_data_ready in net/ipv4/tcp_input.c).
        """
        if not LINUX_OPTIONS:
            return
        each = GATHER_SECONDS * bytes_per_second / len(self.connections)
        for index, connection in enumerate(self.connections):
            buffer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            mark = int(min(each, MOST_GATHERED_BYTES, buffer / 8))
            if mark >= LEAST_GATHERED_BYTES:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)
                self.gathered[index] = mark

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
    if not hasattr(os, "sendfile"):
        raise RuntimeError("this system has no sendfile")
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


def receive(flow: Flow, index: int, buffer_bytes: int, copies: bool = True) -> None:
    """Receives until the other end has no more.

    copies: whether all of it is copied into this process; else the kernel acknowledges and drops
    what it would copy (MSG_TRUNC, tcp(7)), where it can.
    """
    connection, moved, calls = flow.connections[index], flow.moved, flow.calls
    buffer = _aligned(buffer_bytes)
    take, total, number = connection.recv_into, 0, 0
    # The first bytes are told at once: a slow link would take long to fill a large buffer.
    how = 0
    while True:
        got = take(buffer, 0, how)
        # From here on the kernel fills all of it as bytes come (tcp_recvmsg): no call for each.
        how = WHOLE if copies or not LINUX_OPTIONS else WHOLE | socket.MSG_TRUNC
        if not got:
            return
        total += got
        number += 1
        moved[index] = total
        calls[index] = number
