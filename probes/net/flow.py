"""The data connections of one transfer at one end: a thread each, and their byte counts.

A thread does nothing but send or receive; the only other one samples the counts, and sleeps.
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
"""Payload that is sent repeatedly, as iperf3 does: it stays in a core's cache (4 MiB cost a tenth
of the throughput), and repeats beyond the 64 KiB that LZ4, LZO and deflate look back (not zstd)."""
MOST_BLOCKS = 4096
"""Blocks before the payload repeats: few enough to be made beforehand."""
GROUP_BYTES = 16 << 10
"""Size of a group of small buffers, which are sent and counted together."""
STACK_BYTES = 256 << 10
"""Stack of a thread: 64 of the system's default size exceed a probe's memory limit."""
RELEASE_SECONDS = 30.0
GATHER_SECONDS = 0.0005
LEAST_GATHERED_BYTES, MOST_GATHERED_BYTES = 64 << 10, 1 << 20
"""Limits of `Flow.gather`: it does nothing below the first (1 Gbit/s has less), and never gathers
more than an eighth of the receive buffer: the offered window and the buffer's growth stay."""
_SO_MAX_PACING_RATE, _MOST_PACED = 47, 2**32 - 2
"""Option of asm-generic/socket.h, and its highest limit of a connection, bytes per second."""


@dataclass
class Flow:
    """Data connections of one transfer, and their counts."""

    connections: List[socket.socket]
    totals: List[int] = field(default_factory=list)
    """Payload bytes by connection, as the application counts them."""
    calls: List[int] = field(default_factory=list)
    """send(), sendfile() or recv() calls by connection."""
    gathered: List[int] = field(default_factory=list)
    """Bytes by connection that arrive before its reader is woken; see gather."""
    one_ended: threading.Event = field(default_factory=threading.Event)
    """Set once a connection has ended: from then on fewer of them share the path."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Set once all have ended."""
    released: threading.Event = field(default_factory=threading.Event)
    """Set when the threads may end: the CPU time of an ended thread cannot be read."""
    errors: List[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    running: int = 0

    def __post_init__(self) -> None:
        self.totals = [0] * len(self.connections)
        self.calls = [0] * len(self.connections)
        self.gathered = [0] * len(self.connections)

    def start_threads(self, move: Any, *arguments: Any) -> None:
        """Starts one thread a connection: move(flow, index, *arguments)."""
        self.running = len(self.connections)
        previous = threading.stack_size(STACK_BYTES)
        try:
            for index in range(len(self.connections)):
                work = (move, index, *arguments)
                threading.Thread(target=self._guard, args=work, daemon=True).start()
        finally:
            threading.stack_size(previous)

    def _guard(self, move: Any, index: int, *arguments: Any) -> None:
        try:
            move(self, index, *arguments)
        except Exception as error:  # any error ends the transfer and is reported
            self.errors.append(str(error) or type(error).__name__)
        with self.lock:
            self.running -= 1
            last = not self.running
        self.one_ended.set()
        if last:
            self.ended.set()
        self.released.wait(RELEASE_SECONDS)

    def pace(self, bytes_per_second: float) -> None:
        """Limits the rate of all connections together. RuntimeError: the kernel cannot."""
        if not LINUX_OPTIONS:
            raise RuntimeError("this system cannot pace a TCP connection")
        each = min(_MOST_PACED, max(1, round(bytes_per_second / len(self.connections))))
        for connection in self.connections:
            connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("=I", each))

    def gather(self, bytes_per_second: float) -> None:
        """Has the receiving threads of a high rate woken once in GATHER_SECONDS, not per segment.

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
        """Shuts every connection down, or its sending alone, and wakes the waiting threads."""
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(how)

    def error_text(self) -> str:
        """Returns the first error as the end of a sentence, or an empty text."""
        return f": {self.errors[0]}" if self.errors else ""

    @property
    def busiest(self) -> int:
        """Index of the connection that moved the most bytes."""
        return max(range(len(self.totals)), key=self.totals.__getitem__)


def send(flow: Flow, index: int, ring: memoryview, buffer_bytes: int, until: float) -> None:
    """Sends payload in buffers of a size until a moment of the monotonic clock."""
    connection, sums, calls, now = flow.connections[index], flow.totals, flow.calls, time.monotonic
    count = max(1, min(MOST_BLOCKS, REGION_BYTES // buffer_bytes))
    region = _allocate(count * buffer_bytes)
    region[:] = ring[: count * buffer_bytes]
    blocks = [region[i * buffer_bytes : (i + 1) * buffer_bytes] for i in range(count)]
    # Small buffers go in groups: else the loop around a call would cost as much as the call.
    size = max(1, GROUP_BYTES // buffer_bytes)
    groups = [blocks[i : i + size] for i in range(0, count, size)]
    put, total, number = connection.send, 0, 0
    with _end_sending(connection, until):
        try:
            for group in itertools.cycle(groups):
                if now() >= until:
                    break
                for block in group:
                    total += put(block)
                    number += 1
                sums[index] = total
                calls[index] = number
        finally:
            sums[index] = total
            calls[index] = number


def _allocate(size_bytes: int) -> memoryview:
    """Allocates page-aligned memory: the processor copies from and to it faster."""
    return memoryview(mmap.mmap(-1, size_bytes))


def payload_file(ring: memoryview, buffer_bytes: int) -> BinaryIO:
    """Creates a nameless file of whole buffers for send_file, in the page cache.

    It lies on a disk: a file in memory (memfd_create) has single pages on most systems, which
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
    """Sends a file's cached pages, which the kernel does not copy (sendfile(2)), until then."""
    connection, sums, calls, now = flow.connections[index], flow.totals, flow.calls, time.monotonic
    to, source_fd = connection.fileno(), file.fileno()
    size, total, number = os.fstat(source_fd).st_size, 0, 0
    if not hasattr(os, "sendfile"):
        raise RuntimeError("this system has no sendfile")
    with _end_sending(connection, until):
        while now() < until:
            total += os.sendfile(to, source_fd, total % size, buffer_bytes)
            number += 1
            sums[index] = total
            calls[index] = number


@contextlib.contextmanager
def _end_sending(connection: socket.socket, until: float) -> Iterator[None]:
    """Ends the sending; ignores errors after `until`, since both ends stop by their clocks."""
    try:
        yield
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        if time.monotonic() < until:
            raise


def receive(flow: Flow, index: int, buffer_bytes: int, copies: bool = True) -> None:
    """Receives until the other end closes.

    copies: whether the payload is copied into this process; else the kernel acknowledges and drops
    it (MSG_TRUNC, tcp(7)), where it can.
    """
    connection, sums, calls = flow.connections[index], flow.totals, flow.calls
    buffer = _allocate(buffer_bytes)
    take, total, number = connection.recv_into, 0, 0
    # The first bytes are counted at once: a slow link would take long to fill a large buffer.
    flags = 0
    while True:
        count = take(buffer, 0, flags)
        # From here on a call returns when the buffer is full (tcp_recvmsg), not for each segment.
        flags = WHOLE if copies or not LINUX_OPTIONS else WHOLE | socket.MSG_TRUNC
        if not count:
            return
        total += count
        number += 1
        sums[index] = total
        calls[index] = number
