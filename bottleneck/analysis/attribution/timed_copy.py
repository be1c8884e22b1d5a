"""Input of the attribution of one copy: its trace, direction, counters and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from bottleneck.analysis.attribution.thread import MovingThread
from bottleneck.analysis.attribution.trace import Connection, HostLooks, Trace
from probes.core.copy_trace import CountLook, SocketLook
from probes.core.records import Usage

BACKLOG_RATIO = 0.1
"""Least unread bytes over those requested at which the reading thread is too slow."""
MANY_RATIO = 0.15
"""Share of the copy's time that a last flush takes where the disk lagged behind."""


@dataclass(frozen=True, eq=False)
class TimedCopy:
    """One copy that timed itself."""

    trace: Trace
    pull: bool
    """Whether the bytes go to the host that makes the copy."""
    asking: str
    """Side that makes it: client, server."""
    serving: str
    moved_bytes: float
    flush_seconds: float
    """Duration of its last flush."""
    usages: Mapping[str, Usage]
    """Counters by side; no entry for a host without an agent."""
    link_rates: Mapping[str, float]
    """Interface rates by side, bytes per second; no entry if its driver claims none."""
    flushes: float | None
    """FLUSH requests of the copy; None: not recorded."""
    requests: float
    loss_based: bool = True
    """Whether its sender's congestion control slows down for a lost packet."""
    uncached: bool = False
    watched: bool = False
    """Whether another program makes it, and runs before and after its looks."""
    on_one_host: bool = False
    """Whether that program copies between two folders of the client."""

    @cached_property
    def thread(self) -> MovingThread:
        return MovingThread(self.trace.bins)

    @property
    def seconds(self) -> float:
        """Time from the first request to the end of the last flush."""
        return self.trace.lasted_seconds

    @property
    def rate(self) -> float:
        """Payload, bytes per second."""
        return self.moved_bytes / max(1e-6, self.seconds)

    @property
    def sender(self) -> str:
        return self.serving if self.pull else self.asking

    @property
    def receiver(self) -> str:
        return self.asking if self.pull else self.serving

    def moved_in(self, usage: Usage) -> float:
        """Returns the copy's payload, bytes, in the time of a host's counters."""
        return self.rate * usage.wall_seconds if self.watched else self.moved_bytes

    def host(self, side: str) -> HostLooks | None:
        """Returns the observations of a side; None: it has no agent."""
        return self.trace.asking if side == self.asking else self.trace.serving

    def connection(self, side: str) -> Connection | None:
        """Returns the copy's connection at a side; None: not observed there."""
        host = self.host(side)
        return host.connection if host else None

    @property
    def has_long_flush(self) -> bool:
        """Whether the last flush took MANY_RATIO of the copy, so that the disk lagged behind."""
        return self.flush_seconds >= MANY_RATIO * self.seconds

    @cached_property
    def disk_lag(self) -> float:
        """Estimated utilization of the receiver's disk if the last flush is long; else 0.

        It is the time that all bytes take at the device's rate during that flush over the copy's
        time; the share of the flush itself if the device was not counted.
        """
        if not self.has_long_flush:
            return 0.0
        host = self.host(self.receiver)
        counts = host.counts if host else ()
        written = [each for each in counts if each.device_written_bytes is not None]
        earlier = [e for e in written if e.elapsed_seconds <= self.seconds - self.flush_seconds]
        pace = _pace(earlier[-1], written[-1]) if earlier else 0.0
        flush_ratio = self.flush_seconds / self.seconds
        return max(flush_ratio, min(1.0, self.rate / pace)) if pace > 0 else flush_ratio

    @property
    def is_synced(self) -> bool:
        """Whether the server flushes its disk far more often than the copy asked (sync always)."""
        host = self.host(self.serving)
        counted = [each.device_flushes for each in host.counts] if host else []
        counts = [each for each in counted if each is not None]
        if self.pull or not counts or self.flushes is None:
            return False
        count = counts[-1] - counts[0]
        journal = JOURNAL_FLUSHES * (1 + self.seconds)
        return count > max(FLUSHES_RATIO * self.flushes + journal, OF_WRITES_RATIO * self.requests)

    @property
    def has_requests(self) -> bool:
        """Whether the copy's READs and WRITEs were recorded, as in this tool's own copies."""
        return any(each.verb in ("read", "write") for each in self.trace.requests)

    @cached_property
    def in_flight_bytes(self) -> float:
        """Median of the payload requested and not yet answered.

        For another program, whose requests are not recorded, the bytes in flight at the sender
        that only a twentieth of the looks exceed.
        """
        carry = [each for each in self.trace.requests if each.verb in ("read", "write")]
        if carry:
            return median(each.in_flight_bytes for each in carry)
        sender = self.connection(self.sender)
        flights = sorted(sender.values_of("in_flight_bytes")) if sender else []
        return flights[-1 - len(flights) // 20] if flights else 0.0

    def keeps_up(self, look: SocketLook | None) -> bool:
        """Whether the pulling thread had read nearly all bytes that had arrived at its socket.

        A thread that is fed in small pieces uses much CPU and still keeps up, so its CPU is no cap.
        """
        if look is None or look.unread_bytes is None or self.thread.starves:
            return False
        # Another program's requests are not recorded: no more than its window can arrive.
        room = self.in_flight_bytes or look.own_window_bytes or 0.0
        return look.unread_bytes <= BACKLOG_RATIO * room

    def flushes_at(self, seconds: float) -> bool:
        """Whether a FLUSH request was outstanding then."""
        return any(
            each.verb == "flush" and each.sent_seconds <= seconds <= each.last_seconds
            for each in self.trace.requests
        )


FLUSHES_RATIO, JOURNAL_FLUSHES = 4, 2
"""Device flushes per FLUSH of the copy, and more per second, that are normal: a file system makes
at most two of each, and a journal some by itself."""
OF_WRITES_RATIO = 0.25
"""Least device flushes per request of a server that makes each write durable."""


def _pace(one: CountLook, other: CountLook) -> float:
    written = (other.device_written_bytes or 0.0) - (one.device_written_bytes or 0.0)
    return written / max(1e-6, other.elapsed_seconds - one.elapsed_seconds)
