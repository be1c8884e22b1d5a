"""Through a pipe: one file, in a window of requests that is kept full, or a steady load.

The load keeps a chosen number of requests in flight, over and over a region of one open file.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from probes.files import free_space, payload
from probes.smb.copy_length import Flushes
from probes.smb.frames import Broken
from probes.smb.pipe import IN_FLIGHT_LIMIT_BYTES, Pipe, Reply

FLUSH_BYTES = 16 * 1024 * 1024
SHORT_FLUSH_BYTES = 4 * 1024 * 1024
"""For a server that does nothing else while it flushes (Samba over SMB1): less than the requests
in flight, so that the link does not run dry meanwhile."""

FIRST_REQUESTS = 4
"""READs or WRITEs in flight at first; each reply allows one more."""

Sink = Callable[[int, memoryview], None]
"""Takes what arrived for an offset; the buffer is reused after it returns."""
Source = Callable[[int, int], memoryview]
"""From offset and size to the bytes; the buffer is free again after they were sent."""


FILESYSTEM, FULL_SIZE = 2, 7
"""SMB2_0_INFO_FILESYSTEM, FileFsFullSizeInformation: MS-SMB2 2.2.37, MS-FSCC 2.5.4."""
HEADER_BYTES = 64
_REQUEST = struct.Struct("<HBBIHHIII16sx")
_REPLY = struct.Struct("<HHI")
_SIZES = struct.Struct("<QQQII")


class ShareRoom:
    """What a push asks about its file's file system, after each free_space.LOOK_BYTES.

    The question goes along with its WRITEs (SMB2 and SMB3).
    """

    def __init__(self, pipe: Pipe, file_id: bytes, name: str) -> None:
        """file_id: of the open file; name: of the share, for the message."""
        self._pipe, self._file_id = pipe, file_id
        self._watch = free_space.Watch(name)

    def ask(self) -> None:
        """Sends the question; its reply has the verb "space"."""
        self._pipe.ask("space", 0, room_question(self._file_id))

    def take(self, body: bytes) -> None:
        """Refused ("space") where the reply says that the reserve is touched; Broken: garbled."""
        self._watch.look(*parse_room(body))


def room_question(file_id: bytes) -> bytes:
    """Body of a QUERY_INFO for the sizes of an open file's file system."""
    return _REQUEST.pack(41, FILESYSTEM, FULL_SIZE, _SIZES.size, 0, 0, 0, 0, 0, file_id)


def parse_room(body: bytes) -> tuple[int, int]:
    """Free bytes for this user and all bytes, of all that follows the reply's header; 0 of 0: the
    server does not tell."""
    try:
        _, start, length = _REPLY.unpack_from(body)
        if start < HEADER_BYTES + _REPLY.size or length < _SIZES.size:
            raise struct.error
        total, free, _, sectors, sector_bytes = _SIZES.unpack_from(body, start - HEADER_BYTES)
    except struct.error:
        raise Broken("the server reported its free space in a garbled reply") from None
    unit_bytes = sectors * sector_bytes
    return free_space.credible_room(free * unit_bytes, total * unit_bytes)


def fetched(
    pipe: Pipe, ranges: Iterator[tuple[int, int]], request_bytes: int, depth: int, sink: Sink
) -> Iterator[int]:
    """Reads ranges, from and to which offset, into sink; yields the bytes that arrived.

    One buffer of request_bytes does, whatever the depth: a reply has left for the sink before the
    next. After a short reply the rest is asked for again, and later requests are no longer than
    what came.
    """
    # Hot in the processor's cache: a buffer a request costs a fifth more CPU time.
    buffer = memoryview(bytearray(request_bytes))
    flying: dict[int, int] = {}
    to_ask: deque[tuple[int, int]] = deque()
    longest, moved, answered = request_bytes, 0, 0
    while True:
        # What is under way when the time is over still comes: a slow disk gets what it serves.
        while len(flying) < min(depth, FIRST_REQUESTS + answered):
            if not to_ask:
                to_ask.extend(islice(ranges, 1))
            # What is asked for again waits until the first answer is there.
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
        moved += reply.moved_bytes
        answered += 1
        size = flying.pop(reply.offset)
        if reply.moved_bytes < size:
            to_ask.appendleft((reply.offset + reply.moved_bytes, reply.offset + size))
            longest = min(longest, max(4096, reply.moved_bytes & ~1023))
        yield moved


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
    """Writes size_bytes from source to the pipe's file; yields the bytes that were acknowledged.

    After each flush_bytes a FLUSH goes along, one at a time, so that the server writes to its disk
    while it receives. Ends when the last WRITE is acknowledged; finish() makes it durable.
    room: asked now and then; Refused where somebody else takes it. over: no WRITE is to follow.
    """
    sent = moved = looked = looking = 0
    flushes, most = flushes or Flushes(), min(depth, FIRST_REQUESTS)
    while moved < size_bytes or looking:
        size_bytes = sent if 0 < sent < size_bytes and over() else size_bytes
        while sent < size_bytes and pipe.outstanding - flushes.outstanding - looking < most:
            if room is not None and sent - looked >= free_space.LOOK_BYTES and not looking:
                if not pipe.affords(1):
                    break
                room.ask()
                looked, looking = sent, 1
            if sent - flushes.asked_bytes >= flush_bytes and not flushes.outstanding:
                # Before the next WRITE: where the window is all in use there is never room else.
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
            moved += reply.moved_bytes
            most = min(depth, most + 1)
            yield moved
    if flushes.outstanding:
        pipe.counters.flushing_seconds += time.monotonic() - flushes.asked_at


def finish(pipe: Pipe) -> None:
    """Makes durable what was written: a last FLUSH, and waits for every reply that is due."""
    while not pipe.affords(1):
        pipe.wait()
    pipe.flush()
    while pipe.outstanding:
        pipe.wait()


CHECK_ONE_IN = 16
BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True)
class Pace:
    """What a load reached between its first full window and its last reply."""

    moved_bytes: int
    seconds: float

    @property
    def bytes_per_second(self) -> float:
        """Exact where replies come in bursts, one a round trip, and where they trickle."""
        return self.moved_bytes / self.seconds


class Load:
    """READs or WRITEs of the first region_bytes of the pipe's file, whose content is a payload."""

    def __init__(
        self, pipe: Pipe, verb: Literal["read", "write"], region_bytes: int, ring: memoryview
    ) -> None:
        self._pipe, self.verb, self._ring = pipe, verb, ring
        self._region_bytes = region_bytes
        # One for all depths, hot in the processor's cache: a reply is looked at before the next.
        self._buffer = memoryview(bytearray(0))
        self._replies = 0
        self.written_bytes = 0
        """How much of the region holds the payload by now, from its start."""
        self.intact = True
        """Nothing that was read and compared so far differed."""

    def turning(
        self, request_bytes: int, depth: int, more: Callable[[int], bool]
    ) -> Iterator[Reply]:
        """Keeps depth requests in flight while more(sent so far) says so; yields every reply.

        A reply's bytes are valid until the next is asked for.
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
                and more(sent)
                and self._pipe.affords(request_bytes) == request_bytes
            ):
                # a reply that is late keeps its place: none is asked for twice at once
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

    def paced(self, request_bytes: int, depth: int, seconds: float, until: float) -> Pace | None:
        """Runs whole windows for about `seconds`; None: two windows did not fit before `until`.

        The clock starts with the last reply of the first window. Where replies come in bursts of
        depth, one a round trip, a part of a window would make the rate look too high; where they
        trickle at the ceiling, the first reply's way would make it look too low.
        """
        started, goal = 0.0, 2 * depth

        def more(sent: int) -> bool:
            nonlocal goal
            now = time.perf_counter()
            if time.monotonic() > until:
                return False
            if sent == goal and (not started or now - started < seconds):
                goal += depth
            return sent < goal

        moved = replies = 0
        ended = 0.0
        for reply in self.turning(request_bytes, depth, more):
            replies += 1
            if replies == depth:
                started = time.perf_counter()
            elif replies > depth:
                moved += reply.moved_bytes
                ended = time.perf_counter()
        if replies < 2 * depth or ended <= started:
            return None
        return Pace(moved, ended - started)

    def read_back(self, blocks: int) -> None:
        """Compares so many blocks (2 at least), spread over what was written, with the payload.

        Nothing may be in flight.
        """
        size = min(BLOCK_BYTES, self.written_bytes)
        last = self.written_bytes - size
        for number in range(blocks if size else 0):
            while not (affordable := self._pipe.affords(size)):
                self._compare(self._pipe.wait())
            offset = last * number // (blocks - 1)
            self._pipe.read(offset, memoryview(bytearray(affordable)))
        while self._pipe.outstanding:
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
