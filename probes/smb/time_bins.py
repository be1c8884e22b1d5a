"""Adds up the time of the thread that moves a copy's bytes: in bins of 50 ms, and by request.

Waits are timed where they occur: for a reply, for room in the socket, for the client's disk; these
calls include the copying of bytes. The kernel counts the time that the thread ran and waited for a
core (/proc/thread-self/schedstat, Documentation/scheduler/sched-stats.rst), so that no call needs
to read its own CPU time; on other systems the wait for a core is unknown. The rest of a bin are
bodies of replies, protection, comparing, and the passing on of samples.

Two readings of the clock per request are affordable: after copying a megabyte the rest of this
program has left the processor's cache.
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
"""Shortest time between two READs or WRITEs that are recorded singly."""
MOST_BINS, MOST_REQUESTS = 160, 120
"""Limits beyond which two bins become one, and every second request is dropped."""
RUN = "/proc/thread-self/schedstat"


class TimeBins:
    """The bins of one copy, used only by the thread that makes it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: the one that the waiting code uses as well."""
        self.clock = clock
        self.walls = [0.0] * len(KINDS)
        """Seconds of the present bin by KINDS: the waiting code adds to them."""
        self.due = self.request_at = 0.0
        """End of the bin, and earliest time of the next recorded request (clock)."""
        self.bins: list[Bin] = []
        self.requests: list[Request] = []
        self._began = self._bin_at = 0.0
        self._bin_seconds, self._request_seconds = BIN_SECONDS, REQUEST_SECONDS
        self._fd = -1

    def begin(self) -> None:
        """Begins to add up."""
        with suppress(OSError):
            self._fd = os.open(RUN, os.O_RDONLY)
        self._began = self.due = self.request_at = self.clock()
        self._end_bin(self._began)

    def turn(self, now: float) -> None:
        """Closes the bin if it has lasted its time; called between two requests."""
        if now >= self._bin_at:
            self._end_bin(now)
        self.due = self._bin_at

    def record_answer(
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
        """Returns the bins and requests: numbers only, but for the verbs."""
        self._end_bin(self.clock())
        self.due = self.request_at = math.inf
        return {
            "clock_seconds": self._began,
            "lasted_seconds": self.bins[-1].elapsed_seconds,
            "kinds": KINDS,
            "bins": [_round(each) for each in self.bins],
            "requests": [_round(each) for each in self.requests],
        }

    def close(self) -> None:
        """Closes schedstat, however the copy ended."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _end_bin(self, now: float) -> None:
        wait = None
        # A kernel without CONFIG_SCHEDSTATS prints zeros, or nothing.
        with suppress(OSError, IndexError, ValueError):
            run, waited, _ = map(int, os.pread(self._fd, 80, 0).split())
            wait = waited / 1e9 if run else None
        # schedstat has a running thread's time only as of the last tick.
        self.bins.append(Bin._make((now - self._began, *self.walls, time.thread_time(), wait)))
        self.walls[:] = [0.0] * len(KINDS)
        if len(self.bins) > MOST_BINS:
            self.bins[1:] = map(_join, self.bins[1::2], self.bins[2::2])
            self._bin_seconds *= 2
        self._bin_at = now + self._bin_seconds


def _round(row: Bin | Request) -> tuple[Any, ...]:
    return tuple(round(each, 6) if isinstance(each, float) else each for each in row)


def _join(one: Bin, other: Bin) -> Bin:
    walls = {kind: getattr(one, kind) + getattr(other, kind) for kind in KINDS}
    return other._replace(**walls)
