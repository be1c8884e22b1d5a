"""Splits the time of the thread that moves the bytes into states, by bin of the copy's time."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from probes.core.copy_trace import KINDS, Bin

SMOOTHED_SECONDS = 0.15
"""Margin on either side of a bin: the kernel books a wait for a core when the wait ends."""


@dataclass(frozen=True)
class Shares:
    """Shares of a bin's time; they sum to 1."""

    read: float
    """Waiting for its own disk, as in `write`."""
    write: float
    flush: float
    send: float
    """Waiting for room in the socket."""
    reply: float
    """Waiting for the first byte of a reply."""
    body: float
    """Waiting for the rest of a reply."""
    cpu: float
    """Running, or waiting for a core."""

    @property
    def disk(self) -> float:
        """Share of waiting for its own disk."""
        return self.read + self.write

    @property
    def awaits_reply(self) -> float:
        """Share of waiting for the other host."""
        return self.reply + self.body


NOTHING = Shares(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class MovingThread:
    """The thread that moves the bytes, over the copy's time."""

    bins: tuple[Bin, ...]
    """The first one ends where the copy begins."""

    @cached_property
    def shares(self) -> tuple[Shares, ...]:
        """Shares of each bin but the first."""
        pairs = pairwise(self.bins)
        return tuple(self._shares(earlier.elapsed_seconds, each) for earlier, each in pairs)

    @cached_property
    def timed_shares(self) -> tuple[tuple[float, Shares], ...]:
        """Each bin but the first: its share of the copy's time, and the shares of its states."""
        ends = [each.elapsed_seconds for each in self.bins]
        total = max(1e-6, ends[-1] - ends[0])
        lasted = ((end - start) / total for start, end in pairwise(ends))
        return tuple(zip(lasted, self.shares, strict=True))

    @property
    def starves(self) -> bool:
        """Whether the thread waited for a core longer than it ran."""
        first, last = self.bins[0], self.bins[-1]
        return _wait(last) - _wait(first) > last.run_seconds - first.run_seconds

    def shares_at(self, seconds: float) -> Shares:
        ends = [each.elapsed_seconds for each in self.bins[1:]]
        index = min(bisect.bisect_left(ends, seconds), len(ends) - 1)
        return self.shares[index] if ends else NOTHING

    def mean(self, name: str) -> float:
        """Returns a state's share of the copy's time."""
        return sum(lasted * float(getattr(each, name)) for lasted, each in self.timed_shares)

    def _shares(self, began: float, time_bin: Bin) -> Shares:
        lasted = max(1e-6, time_bin.elapsed_seconds - began)
        run, wait = self._running_and_waiting(began, time_bin.elapsed_seconds)
        blocked = max(0.0, 1 - run - wait)
        walls = {kind: min(1.0, getattr(time_bin, kind) / lasted) for kind in KINDS}
        # These two calls only wait; their durations include a part of the wait for a core.
        idle = blocked / (1 - run) if run < 1 else 0.0
        pure = {kind: walls[kind] * idle for kind in ("reply", "flush")}
        over = max(1.0, sum(pure.values()) / blocked) if blocked > 0 else 1.0
        pure = {kind: share / over if blocked > 0 else 0.0 for kind, share in pure.items()}
        remaining = max(0.0, blocked - sum(pure.values()))
        # The other calls copy bytes as well: blocked time is divided by their durations.
        rest = {kind: walls[kind] for kind in ("send", "read", "write")}
        rest["body"] = max(0.0, 1 - sum(walls.values()))
        total = sum(rest.values())
        part = {kind: remaining * share / total if total else 0.0 for kind, share in rest.items()}
        return Shares(
            read=part["read"],
            write=part["write"],
            flush=pure["flush"],
            send=part["send"],
            reply=pure["reply"],
            body=part["body"] + (0.0 if total else remaining),
            cpu=1 - blocked,
        )

    def _running_and_waiting(self, began: float, ended: float) -> tuple[float, float]:
        """Returns the shares of the time around a bin of running and of waiting for a core."""
        first, last = (
            self._counters_at(began - SMOOTHED_SECONDS),
            self._counters_at(ended + SMOOTHED_SECONDS),
        )
        lasted = max(1e-6, last[0] - first[0])
        run = min(1.0, max(0.0, last[1] - first[1]) / lasted)
        return run, min(1 - run, max(0.0, last[2] - first[2]) / lasted)

    def _counters_at(self, seconds: float) -> tuple[float, float, float]:
        """Returns a moment, and the seconds that the thread had run and waited by then."""
        index = bisect.bisect_left(self._ends, seconds)
        if index in (0, len(self.bins)):
            each = self.bins[min(index, len(self.bins) - 1)]
            return each.elapsed_seconds, each.run_seconds, _wait(each)
        one, other = self.bins[index - 1], self.bins[index]
        part = (seconds - one.elapsed_seconds) / max(
            1e-9, other.elapsed_seconds - one.elapsed_seconds
        )
        return (
            seconds,
            one.run_seconds + part * (other.run_seconds - one.run_seconds),
            _wait(one) + part * (_wait(other) - _wait(one)),
        )

    @cached_property
    def _ends(self) -> Sequence[float]:
        return [each.elapsed_seconds for each in self.bins]


def _wait(time_bin: Bin) -> float:
    return time_bin.wait_seconds or 0.0
