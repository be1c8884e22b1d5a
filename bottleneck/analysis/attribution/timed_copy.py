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
"""Of the bytes asked for: what lies unread in the socket of a thread that is too slow."""
MANY_RATIO = 0.15
"""Of the copy's time: a last flush so long says that the disk lagged behind."""


@dataclass(frozen=True, eq=False)
class TimedCopy:
    """One copy that timed itself."""

    trace: Trace
    pull: bool
    """Whether the bytes go to the host that makes the copy."""
    asking: str
    """The side that makes it: client, server."""
    serving: str
    moved_bytes: float
    flush_seconds: float
    """Of its last flush."""
    usages: Mapping[str, Usage]
    """By side; no entry for a host without an agent."""
    link_rates: Mapping[str, float]
    """By side: rate of the interface, bytes per second; no entry if its driver claims none."""
    flushes: float | None
    """FLUSH requests of the copy; None: not recorded."""
    requests: float
    loss_based: bool = True
    """Whether its sender's congestion control takes a lost packet for a full link."""
    uncached: bool = False
    watched: bool = False
    """Whether another's program makes it: it goes on before and after its looks."""
    on_one_host: bool = False
    """Whether that copies between two folders of the client."""

    @cached_property
    def thread(self) -> MovingThread:
        """The one that moves the bytes."""
        return MovingThread(self.trace.bins)

    @property
    def seconds(self) -> float:
        """From the first request to the end of the last flush."""
        return self.trace.lasted_seconds

    @property
    def rate(self) -> float:
        """Payload, bytes per second."""
        return self.moved_bytes / max(1e-6, self.seconds)

    @property
    def sender(self) -> str:
        """The side that the bytes come from."""
        return self.serving if self.pull else self.asking

    @property
    def receiver(self) -> str:
        """The side that they go to."""
        return self.asking if self.pull else self.serving

    def moved_in(self, usage: Usage) -> float:
        """Payload of the copy in the time of a host's counters."""
        return self.rate * usage.wall_seconds if self.watched else self.moved_bytes

    def host(self, side: str) -> HostLooks | None:
        """Observations of a side; None: it has no agent."""
        return self.trace.asking if side == self.asking else self.trace.serving

    def connection(self, side: str) -> Connection | None:
        """The copy's connection at a side; None: not observed there."""
        host = self.host(side)
        return host.connection if host else None

    @property
    def has_long_flush(self) -> bool:
        """Whether the last flush took MANY_RATIO of the copy, so that the disk lagged behind."""
        return self.flush_seconds >= MANY_RATIO * self.seconds

    def disk_lag(self) -> float:
        """Estimated utilization of the receiver's disk if the last flush is long, else 0.

        Time that all bytes take at the device's rate during that flush, over the copy's time; the
        share of the flush itself if the device was not counted.
        """
        if not self.has_long_flush:
            return 0.0
        host = self.host(self.receiver)
        counts = host.counts if host else ()
        written = [each for each in counts if each.device_written_bytes is not None]
        before = [
            each for each in written if each.elapsed_seconds <= self.seconds - self.flush_seconds
        ]
        pace = _pace(before[-1], written[-1]) if before else 0.0
        least = self.flush_seconds / self.seconds
        return max(least, min(1.0, self.rate / pace)) if pace > 0 else least

    @property
    def is_synced(self) -> bool:
        """Whether the server flushes its disk far more often than the copy asked (sync always)."""
        host = self.host(self.serving)
        counted = [each.device_flushes for each in host.counts] if host else []
        known = [each for each in counted if each is not None]
        if self.pull or not known or self.flushes is None:
            return False
        made = known[-1] - known[0]
        journal = JOURNAL_FLUSHES * (1 + self.seconds)
        return made > max(FLUSHES_RATIO * self.flushes + journal, OF_WRITES_RATIO * self.requests)

    @property
    def has_requests(self) -> bool:
        """Whether its READs and WRITEs were recorded, as those of our own copies are."""
        return any(each.verb in ("read", "write") for each in self.trace.requests)

    @cached_property
    def in_flight_bytes(self) -> float:
        """Median of the payload requested and not yet answered.

        Of another's program, whose requests are not seen: the most in flight at the sender, in all
        but a twentieth of the looks.
        """
        carry = [each for each in self.trace.requests if each.verb in ("read", "write")]
        if carry:
            return median(each.in_flight_bytes for each in carry)
        sender = self.connection(self.sender)
        flights = sorted(sender.values_of("in_flight_bytes")) if sender else []
        return flights[-1 - len(flights) // 20] if flights else 0.0

    def keeps_up(self, look: SocketLook | None) -> bool:
        """Whether the pulling thread had read nearly all that had arrived at its socket.

        A thread that is fed in small pieces uses much CPU and still keeps up, so its CPU is no cap.
        """
        if look is None or look.unread_bytes is None or self.thread.starves:
            return False
        # The requests of another's program are not recorded: no more than its window can come.
        room = self.in_flight_bytes or look.own_window_bytes or 0.0
        return look.unread_bytes <= BACKLOG_RATIO * room

    def flushes_at(self, seconds: float) -> bool:
        """Whether a FLUSH request was outstanding then."""
        return any(
            each.verb == "flush" and each.sent_seconds <= seconds <= each.last_seconds
            for each in self.trace.requests
        )


FLUSHES_RATIO, JOURNAL_FLUSHES = 4, 2
"""A device's flushes over those that the copy asked for, and beside them a second: a file system
makes at most two of each, and a journal some by itself."""
OF_WRITES_RATIO = 0.25
"""Of the copy's requests: a server that makes each write durable flushes after most of them."""


def _pace(one: CountLook, other: CountLook) -> float:
    written = (other.device_written_bytes or 0.0) - (one.device_written_bytes or 0.0)
    return written / max(1e-6, other.elapsed_seconds - one.elapsed_seconds)
