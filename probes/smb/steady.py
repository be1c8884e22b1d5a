"""A steady load on one open file: a chosen number of requests in flight, over and over a region."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from probes.host import payload
from probes.smb.pipe import IN_FLIGHT_LIMIT_BYTES, Pipe, Reply

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
