"""Moves one file through a pipe, with a window of requests that is kept full, or a steady load.

A Transfer keeps a fixed number of requests in flight, repeatedly over a region of one open file.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

from probes.core.records import Moved
from probes.files import free_space, payload
from probes.smb.copy_length import Flushes
from probes.smb.frames import SmbError
from probes.smb.pipe import IN_FLIGHT_LIMIT_BYTES, Pipe, Reply

FLUSH_BYTES = 16 * 1024 * 1024
SHORT_FLUSH_BYTES = 4 * 1024 * 1024
"""Bytes between FLUSHes to a server that does nothing else while it flushes (Samba over SMB1): less
than those in flight, so that the link does not idle meanwhile."""

FIRST_REQUESTS = 4
"""READs or WRITEs in flight at the start; each reply allows one more."""

Sink = Callable[[int, memoryview], None]
"""Function that takes the bytes at an offset; the buffer is reused after it returns."""
Source = Callable[[int, int], memoryview]
"""Function from offset and size to the bytes; the buffer is reused after they were sent."""


FILESYSTEM, FULL_SIZE = 2, 7
"""SMB2_0_INFO_FILESYSTEM, FileFsFullSizeInformation: MS-SMB2 2.2.37, MS-FSCC 2.5.4."""
HEADER_BYTES = 64
_REQUEST = struct.Struct("<HBBIHHIII16sx")
_REPLY = struct.Struct("<HHI")
_SIZES = struct.Struct("<QQQII")


class ShareRoom:
    """Queries the free space of a push's file system, after each free_space.LOOK_BYTES.

    The query is sent among the WRITEs (SMB2 and SMB3).
    """

    def __init__(self, pipe: Pipe, file_id: bytes, name: str) -> None:
        """file_id: that of the open file; name: that of the share, for the message."""
        self._pipe, self._file_id = pipe, file_id
        self._watch = free_space.Watch(name)

    def ask(self) -> None:
        """Sends the query; its reply has the verb "space"."""
        self._pipe.ask("space", 0, room_question(self._file_id))

    def take(self, body: bytes) -> None:
        """Raises Refused ("space") where the reserve is touched, SmbError for a garbled reply."""
        self._watch.look(*parse_room(body))


def room_question(file_id: bytes) -> bytes:
    """Builds the body of a QUERY_INFO for the sizes of an open file's file system."""
    return _REQUEST.pack(41, FILESYSTEM, FULL_SIZE, _SIZES.size, 0, 0, 0, 0, 0, file_id)


def parse_room(body: bytes) -> tuple[int, int]:
    """Returns free bytes for this user and total bytes from a reply's body; 0 of 0: unknown."""
    try:
        _, start, length = _REPLY.unpack_from(body)
        if start < HEADER_BYTES + _REPLY.size or length < _SIZES.size:
            raise struct.error
        total, free, _, sectors, sector_bytes = _SIZES.unpack_from(body, start - HEADER_BYTES)
    except struct.error:
        raise SmbError("the server reported its free space in a garbled reply") from None
    unit_bytes = sectors * sector_bytes
    return free_space.credible_room(free * unit_bytes, total * unit_bytes)


def fetch(
    pipe: Pipe, ranges: Iterator[tuple[int, int]], request_bytes: int, depth: int, sink: Sink
) -> Iterator[int]:
    """Reads ranges (start and end offsets) into sink; yields the bytes that arrived so far.

    One buffer of request_bytes suffices for any depth: the sink takes a reply before the next
    arrives. After a short reply the rest is requested again, and later requests are as short.
    """
    # Hot in the processor's cache: a buffer a request costs a fifth more CPU time.
    buffer = memoryview(bytearray(request_bytes))
    flying: dict[int, int] = {}
    to_ask: deque[tuple[int, int]] = deque()
    longest, moved_bytes, answered = request_bytes, 0, 0
    while True:
        # Few at first: requests in flight outlast the time, and a slow disk takes long for them.
        while len(flying) < min(depth, FIRST_REQUESTS + answered):
            if not to_ask:
                to_ask.extend(islice(ranges, 1))
            # A repeated range waits for the first answer.
            if not to_ask or to_ask[0][0] in flying:
                break
            offset, end = to_ask[0]
            if not (size := pipe.affords(min(longest, end - offset))):
                break
            if offset + size < end:
                to_ask[0] = offset + size, end
            else:
                to_ask.popleft()
            flying[offset] = size
            pipe.read(offset, buffer[:size])
        if not flying:
            return
        pipe.turn_times()
        reply = pipe.wait()
        sink(reply.offset, reply.view)
        moved_bytes += reply.moved_bytes
        answered += 1
        size = flying.pop(reply.offset)
        if reply.moved_bytes < size:
            to_ask.appendleft((reply.offset + reply.moved_bytes, reply.offset + size))
            longest = min(longest, max(4096, reply.moved_bytes & ~1023))
        yield moved_bytes


def push(
    pipe: Pipe,
    size_bytes: int,
    request_bytes: int,
    depth: int,
    source: Source,
    flush_bytes: int = FLUSH_BYTES,
    room: ShareRoom | None = None,
    flushes: Flushes | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Iterator[int]:
    """Writes size_bytes from source to the pipe's file; yields the bytes acknowledged so far.

    After each flush_bytes a FLUSH is sent, one at a time, so that the server writes to its disk
    while it receives. Ends when the last WRITE is acknowledged; finish() makes it durable.
    room: checked repeatedly; Refused where others use it up. over: whether no WRITE is to follow.
    """
    sent = moved_bytes = looked = looking = 0
    flushes, window = flushes or Flushes(), min(depth, FIRST_REQUESTS)
    while moved_bytes < size_bytes or looking:
        size_bytes = sent if 0 < sent < size_bytes and over() else size_bytes
        while sent < size_bytes and pipe.in_flight - flushes.in_flight - looking < window:
            if room is not None and sent - looked >= free_space.LOOK_BYTES and not looking:
                if not pipe.affords(1):
                    break
                room.ask()
                looked, looking = sent, 1
            if sent - flushes.asked_bytes >= flush_bytes and not flushes.in_flight:
                # Before the next WRITE, which would use up the window.
                if not pipe.affords(1):
                    break
                pipe.flush()
                flushes.ask(sent, time.monotonic())
            if not (size := pipe.affords(min(request_bytes, size_bytes - sent))):
                break
            pipe.write(sent, source(sent, size))
            sent += size
        pipe.turn_times()
        reply = pipe.wait()
        if reply.verb == "flush":
            pipe.counters.flushing_seconds += flushes.answer(time.monotonic())
        elif reply.verb == "space" and room is not None:
            looking = 0
            room.take(reply.body)
        else:
            moved_bytes += reply.moved_bytes
            window = min(depth, window + 1)
            yield moved_bytes
    if flushes.in_flight:
        pipe.counters.flushing_seconds += time.monotonic() - flushes.asked_at


def finish(pipe: Pipe) -> None:
    """Sends a last FLUSH, and waits for every reply."""
    while not pipe.affords(1):
        pipe.wait()
    pipe.flush()
    while pipe.in_flight:
        pipe.wait()


CHECK_ONE_IN = 16
BLOCK_BYTES = 64 * 1024


class Transfer:
    """READs or WRITEs of the first region_bytes of the pipe's file, whose content is a payload."""

    def __init__(
        self, pipe: Pipe, verb: Literal["read", "write"], region_bytes: int, ring: memoryview
    ) -> None:
        self._pipe, self.verb, self._ring = pipe, verb, ring
        self._region_bytes = region_bytes
        # One for all depths, hot in the processor's cache: a reply is compared before the next.
        self._buffer = memoryview(bytearray(0))
        self._replies = 0
        self.written_bytes = 0
        """Bytes of the region, from its start, that hold the payload by now."""
        self.intact = True
        """Whether all content compared so far was right."""

    def replies(
        self, request_bytes: int, depth: int, may_send: Callable[[int], bool]
    ) -> Iterator[Reply]:
        """Keeps depth requests in flight while may_send(sent so far); yields every reply.

        A reply's bytes are valid until the generator continues.
        request_bytes x depth must not exceed region_bytes nor IN_FLIGHT_LIMIT_BYTES.
        """
        places = self._region_bytes // request_bytes
        if not 0 < depth <= places or depth * request_bytes > IN_FLIGHT_LIMIT_BYTES:
            raise ValueError(f"{depth} x {request_bytes} bytes do not fit the region")
        if self.verb == "read" and len(self._buffer) < request_bytes:
            self._buffer = memoryview(bytearray(request_bytes))
        busy: set[int] = set()
        sent = place = 0
        while True:
            while (
                len(busy) < depth
                and may_send(sent)
                and self._pipe.affords(request_bytes) == request_bytes
            ):
                # The place of a late reply stays busy: none is requested twice at once.
                while place * request_bytes in busy:
                    place = (place + 1) % places
                offset = place * request_bytes
                busy.add(offset)
                self._send(offset, request_bytes)
                place, sent = (place + 1) % places, sent + 1
            if not busy:
                return
            reply = self._pipe.wait()
            busy.remove(reply.offset)
            self._look(reply)
            yield reply

    def measure_pace(
        self, request_bytes: int, depth: int, seconds: float, until: float
    ) -> Moved | None:
        """Runs whole windows for about `seconds`; None: two windows did not fit before `until`.

        The clock starts with the last reply of the first window. Where replies come in bursts of
        depth, one a round trip, a part of a window would make the rate look too high; where they
        come evenly at the ceiling, the first reply's delay would make it look too low.
        """
        started, goal = 0.0, 2 * depth

        def may_send(sent: int) -> bool:
            nonlocal goal
            now = time.perf_counter()
            if time.monotonic() > until:
                return False
            if sent == goal and (not started or now - started < seconds):
                goal += depth
            return sent < goal

        moved_bytes = replies = 0
        ended = 0.0
        for reply in self.replies(request_bytes, depth, may_send):
            replies += 1
            if replies == depth:
                started = time.perf_counter()
            elif replies > depth:
                moved_bytes += reply.moved_bytes
                ended = time.perf_counter()
        if replies < 2 * depth or ended <= started:
            return None
        return Moved(moved_bytes, ended - started)

    def read_back(self, blocks: int) -> None:
        """Compares so many blocks (2 at least), spread over the written region, with the payload.

        Nothing may be in flight.
        """
        size = min(BLOCK_BYTES, self.written_bytes)
        last = self.written_bytes - size
        for number in range(blocks if size else 0):
            while not (affordable := self._pipe.affords(size)):
                self._compare(self._pipe.wait())
            self._pipe.read(last * number // (blocks - 1), memoryview(bytearray(affordable)))
        while self._pipe.in_flight:
            self._compare(self._pipe.wait())

    def _send(self, offset: int, request_bytes: int) -> None:
        if self.verb == "read":
            self._pipe.read(offset, self._buffer[:request_bytes])
        else:
            self._pipe.write(offset, payload.block(self._ring, offset, request_bytes))
            self.written_bytes = max(self.written_bytes, offset + request_bytes)

    def _look(self, reply: Reply) -> None:
        self._replies += 1
        if self.verb == "read" and self._replies % CHECK_ONE_IN == 1:
            self._compare(reply)

    def _compare(self, reply: Reply) -> None:
        self.intact = self.intact and payload.matches(self._ring, reply.offset, reply.view)
