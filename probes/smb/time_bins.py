"""Where the time of the thread that moves a copy's bytes goes: in bins of 50 ms, and by request.

What waits is added up where it waits: for a reply, for room in the socket, for the client's disk.
These calls copy bytes as well. What of a bin the thread ran, and what it waited for a core, the
kernel counts (/proc/thread-self/schedstat, Documentation/scheduler/sched-stats.rst), so that no
call needs a look at its own CPU time; elsewhere the wait is not known. What is left of a bin are
bodies of replies, protection, comparing, and samples that are handed over.

Two looks at the clock a request are all that is affordable: behind a megabyte that was copied all
else of this program has left the processor's cache.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from probes.core.copy_trace import KINDS, Bin, Request
from probes.core.records import Details
from probes.system.platform import os

REPLY, SEND, READ, WRITE, FLUSH = range(len(KINDS))
BIN_SECONDS = 0.05
REQUEST_SECONDS = 0.02
"""At least, between the READs and WRITEs that are recorded one by one."""
MOST_BINS, MOST_REQUESTS = 160, 120
"""Of a copy that lasts longer two bins become one, and every second request goes."""
RUN = "/proc/thread-self/schedstat"


class TimeBins:
    """Of one copy, and used by the thread that makes it alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: what those who wait look at as well."""
        self.clock = clock
        self.walls = [0.0] * len(KINDS)
        """Seconds of the present bin by KINDS: whoever waits adds to them."""
        self.due = self.request_at = 0.0
        """When the bin ends, and from when on the next request is recorded (clock)."""
        self.bins: list[Bin] = []
        self.requests: list[Request] = []
        self._began = self._bin_at = 0.0
        self._bin_seconds, self._request_seconds = BIN_SECONDS, REQUEST_SECONDS
        self._fd = -1

    def begin(self) -> None:
        """From now on."""
        with suppress(OSError):
            self._fd = os.open(RUN, os.O_RDONLY)
        self._began = self.due = self.request_at = self.clock()
        self._cut(self._began)

    def turn(self, now: float) -> None:
        """Closes the bin where it has lasted its time; somewhere between two requests."""
        if now >= self._bin_at:
            self._cut(now)
        self.due = self._bin_at

    def answered(
        self, verb: str, sent: float, first: float, size_bytes: int, in_flight_bytes: int
    ) -> None:
        """Records a request that was answered in full."""
        if size_bytes:
            self.request_at = first + self._request_seconds
        began = self._began
        times = (sent - began, first - began, self.clock() - began)
        self.requests.append(Request(verb, *times, size_bytes, in_flight_bytes))
        if len(self.requests) > MOST_REQUESTS:
            del self.requests[1::2]
            self._request_seconds *= 2

    def end(self) -> Details:
        """What was added up since the beginning: numbers alone, but for the verbs."""
        self._cut(self.clock())
        self.due = self.request_at = math.inf
        return {
            "clock_seconds": self._began,
            "lasted_seconds": self.bins[-1].elapsed_seconds,
            "kinds": KINDS,
            "bins": [_rounded(each) for each in self.bins],
            "requests": [_rounded(each) for each in self.requests],
        }

    def close(self) -> None:
        """However the copy ended."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _cut(self, now: float) -> None:
        wait = None
        # A kernel without CONFIG_SCHEDSTATS prints zeros, or nothing.
        with suppress(OSError, IndexError, ValueError):
            run, waited, _ = map(int, os.pread(self._fd, 80, 0).split())
            wait = waited / 1e9 if run else None
        # A running thread's own time stands in schedstat as of the last tick.
        self.bins.append(Bin._make((now - self._began, *self.walls, time.thread_time(), wait)))
        self.walls[:] = [0.0] * len(KINDS)
        if len(self.bins) > MOST_BINS:
            self.bins[1:] = map(_joined, self.bins[1::2], self.bins[2::2])
            self._bin_seconds *= 2
        self._bin_at = now + self._bin_seconds


def _rounded(row: Bin | Request) -> tuple[Any, ...]:
    return tuple(round(each, 6) if isinstance(each, float) else each for each in row)


def _joined(one: Bin, other: Bin) -> Bin:
    walls = {kind: getattr(one, kind) + getattr(other, kind) for kind in KINDS}
    return other._replace(**walls)
