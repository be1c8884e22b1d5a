"""Requests of a spinning disc, and when each is done: no clock, no I/O."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

READ_AHEAD_BYTES = 4 << 20
"""Bytes that the drive reads beyond the last request when the next one is late, and keeps."""
PATIENCE_SECONDS = 0.05
"""A request that has waited longer goes first, wherever it is."""


@dataclass(frozen=True)
class Weak:
    """A span of the disc that reads and writes at a share of the rate that is due there."""

    from_ratio: float
    to_ratio: float
    share_ratio: float


@dataclass(frozen=True)
class Disc:
    """Planted disc; a position is 0 at the outer edge (the first byte) and 1 at the inner."""

    outer_bytes_per_second: float
    inner_bytes_per_second: float
    size_bytes: int = 24 << 30
    seek_seconds: float = 0.008
    """Seconds of every jump, however long."""
    flush_seconds: float = 0.008
    """Seconds of a flush after the last cached byte is on the platter; with no cache no work."""
    write_cache_bytes: int = 4 << 20
    """Bytes that the drive acknowledges before they are on the platter."""
    weak: Weak | None = None

    def bytes_per_second(self, position_ratio: float) -> float:
        """Sustained rate there; its square is linear, as bytes lie evenly on the area."""
        slope = 1 - (self.inner_bytes_per_second / self.outer_bytes_per_second) ** 2
        rate = self.outer_bytes_per_second * math.sqrt(1 - position_ratio * slope)
        weak = self.weak
        if weak is not None and weak.from_ratio <= position_ratio < weak.to_ratio:
            rate *= weak.share_ratio
        return rate


@dataclass
class Request:
    """One read or write, or a flush, which has no bytes."""

    unique: int
    verb: str
    """read, write, flush."""
    offset_bytes: int
    size_bytes: int
    arrived: float
    cached: bool = False
    """A write that was acknowledged already."""


class Platter:
    """The heads over one disc. Times are seconds of any clock that does not go back.

    A request begins when the one before it ends and not when this program gets to it, so that late
    wake-ups do not add up.
    """

    def __init__(self, planted: Disc) -> None:
        self._planted = planted
        self._waiting: list[Request] = []
        self._flushes: deque[Request] = deque()
        self._serving: Request | None = None
        self._free = 0.0  # when the heads ended their last work
        self._head = 0
        self._kept_from: int | None = None  # the drive's cache holds what was read from there on
        self._cached_bytes = 0
        self._dirty = False
        self.due: float | None = None
        """When the next request is done; None: nothing is under way."""

    def take(self, request: Request) -> None:
        (self._flushes if request.verb == "flush" else self._waiting).append(request)

    def done(self, now: float) -> list[Request]:
        """Everything that may be answered by now, in order; sets when to ask again."""
        answered = self._absorbed()
        while True:
            if self.due is None:
                self._begin()
            if self.due is None or self.due > now:
                return answered
            ended, self._serving = self._serving, None
            assert ended is not None
            self._free, self.due = self.due, None
            if ended.cached:
                self._cached_bytes -= ended.size_bytes
            else:
                answered.append(ended)
            answered += self._absorbed()

    def _absorbed(self) -> list[Request]:
        """Writes that the drive's cache takes."""
        taken = []
        for each in self._waiting:
            if each.verb != "write" or each.cached:
                continue
            if self._cached_bytes + each.size_bytes > self._planted.write_cache_bytes:
                break
            each.cached = True
            self._cached_bytes += each.size_bytes
            taken.append(each)
        return taken

    def _begin(self) -> None:
        # a flush covers what was acknowledged before it; what waits may as well go first
        if self._flushes and self._cached_bytes == 0:
            flush = self._flushes.popleft()
            cost = self._planted.flush_seconds if self._dirty else 0.0
            self._dirty = False
            self._serve(flush, max(self._free, flush.arrived) + cost)
        elif self._waiting:
            request = self._next()
            self._waiting.remove(request)
            self._serve(request, self._end(request))
            self._dirty = self._dirty or request.verb == "write"

    def _serve(self, request: Request, due: float) -> None:
        self._serving, self.due = request, due

    def _next(self) -> Request:
        """The one that waited too long, else the next ahead of the heads, else the first (NCQ)."""
        candidates = self._waiting
        if self._flushes:
            candidates = [each for each in candidates if each.cached] or candidates
        first = candidates[0]
        if self._free - first.arrived > PATIENCE_SECONDS:
            return first
        # upwards, as an elevator: neighbours that wait together go in their order
        return min(candidates, key=lambda each: (each.offset_bytes < self._head, each.offset_bytes))

    def _end(self, request: Request) -> float:
        """When the request is done; moves the heads."""
        planted, offset = self._planted, request.offset_bytes
        end, gap = offset + request.size_bytes, offset - self._head
        rate = planted.bytes_per_second((offset + end) / 2 / planted.size_bytes)
        start = max(self._free, request.arrived)
        old_start, self._kept_from = self._kept_from, None
        if request.verb == "read":
            if old_start is not None and old_start <= offset and end <= self._head:
                self._kept_from = old_start
                return start
            self._kept_from = offset
            if old_start is not None and 0 <= gap < planted.seek_seconds * rate:
                # the drive did not wait for the request: it read on into its own cache
                self._kept_from = max(old_start, end - READ_AHEAD_BYTES)
                self._head = end
                start = max(self._free, request.arrived - READ_AHEAD_BYTES / rate)
                return start + (gap + request.size_bytes) / rate
        self._head = end
        return start + (planted.seek_seconds if gap else 0.0) + request.size_bytes / rate
