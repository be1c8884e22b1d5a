"""Finds the components that had work around each look at the sender's connection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import mean

from bottleneck.analysis.attribution import sender_socket
from bottleneck.analysis.attribution.shares import NETWORK, UNKNOWN, Instant, Slice, split_by_ratios
from bottleneck.analysis.attribution.thread import Shares
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import Connection, HostLooks, nearest
from bottleneck.analysis.finding import Part
from probes.core.copy_trace import SocketLook

LEAST_SHARE = 1e-3
RESTS_RATIO = 0.3
"""Least use of a core at which a receiver's CPU may explain unread bytes."""


@dataclass(frozen=True)
class Server:
    """Load of the file server's host: by smbd's threads, or by its cores if those are hidden."""

    host: HostLooks

    def disk(self, seconds: float) -> float | None:
        """Returns the share of the time that it waited for its disk; None: no look near then."""
        if self.host.threads:
            look = nearest(self.host.threads, seconds)
            return look.disk if look else None
        count = nearest(self.host.counts, seconds)
        waiting = count.io_waiting_cores if count else None
        return None if waiting is None else min(1.0, waiting)

    def cpu(self, seconds: float) -> float | None:
        """Returns the share of the time that smbd ran or waited for a core; None: no look near.

        For several threads the union lies between the busiest one and the sum; the share of looks
        with a running thread picks the place between. By itself that share is too high, because
        each packet wakes a receiver.
        """
        if not self.host.threads:
            count = nearest(self.host.counts, seconds)
            return count.busiest_core_ratio if count else None
        look = nearest(self.host.threads, seconds)
        if look is None or look.busiest_ratio is None or look.all_ratio is None:
            return None
        return look.busiest_ratio + self._part * max(
            0.0, min(1.0, look.all_ratio) - look.busiest_ratio
        )

    @cached_property
    def _part(self) -> float:
        threads = self.host.threads
        lowest = mean(each.busiest_ratio or 0.0 for each in threads)
        highest = mean(min(1.0, each.all_ratio or 0.0) for each in threads)
        running = mean(each.running or 0.0 for each in threads)
        spare = highest - lowest
        return (max(lowest, min(highest, running)) - lowest) / spare if spare > 1e-9 else 0.0


@dataclass(frozen=True)
class Instants:
    """Splitter of a copy's time into instants, each with the components that had work in it."""

    copy: TimedCopy
    sender: Connection
    receiver: Connection | None = None
    """None: that host has no agent."""
    server: Server | None = None
    """None: the file server's host has no agent."""

    def all(self, moments: tuple[SocketLook, ...]) -> list[Slice]:
        """Returns the instants around some looks, weighted by the time between these."""
        slices: list[Slice] = []
        for index, moment in enumerate(moments):
            earlier, later = moments[max(0, index - 1)], moments[min(index + 1, len(moments) - 1)]
            lasted = (later.elapsed_seconds - earlier.elapsed_seconds) / 2
            look = nearest(self.sender.looks, moment.elapsed_seconds)
            instants: list[Instant] = []
            for state, share in _states(self.copy.thread.shares_at(moment.elapsed_seconds)):
                if look is not None:
                    instants += self._split(look, moment.elapsed_seconds, state, lasted * share)
            slices.append((lasted, instants))
        return slices

    def _split(self, look: SocketLook, seconds: float, state: str, lasted: float) -> list[Instant]:
        copy = self.copy
        other = nearest(self.receiver.looks, seconds) if self.receiver else None
        room = self.receiver.receive_buffer_bytes if self.receiver else None
        # Another program may wait for a reply and for room in its socket in one call (poll).
        asks = not copy.pull and state == "awaits_reply" and copy.has_requests
        blocker = sender_socket.blocked_by(look, self.sender, other, room, asks, copy.rate)
        works = {self._part_of(blocker)} if blocker in _BLOCKERS else set()
        ordered = not copy.pull and copy.flushes_at(seconds)
        counts = not ordered or not works or copy.is_synced or self._is_in_last_flush(seconds)
        if state in ("disk", "flush"):
            works.add(("disk", copy.asking))
        by_path = blocker == sender_socket.NETWORK
        if state == "cpu" and not (by_path and copy.pull and copy.keeps_up(other)):
            works.add(("cpu", copy.asking))
        ratios: list[tuple[Part, float]] = []
        disk = self.server.disk(seconds) if self.server else None
        cpu = self.server.cpu(seconds) if self.server else None
        if disk is not None and cpu is not None:
            # A thread in state D during a FLUSH that the copy sent counts only if nothing else has
            # work, in the last flush, or if the server flushes more often than the copy asked for.
            ratios = [
                (("disk", copy.serving), disk if counts else 0.0),
                (("disk", copy.receiver), copy.disk_lag),
                (("cpu", copy.serving), cpu),
            ]
        unseen = self.server is not None and not ratios
        idle = frozenset({UNKNOWN if unseen else self._idle(look, seconds, blocker)})
        pieces = split_by_ratios((lasted, frozenset(works)), ratios)
        return [(weight, at_work or idle) for weight, at_work in pieces]

    @cached_property
    def _receiver_rests(self) -> bool:
        """Whether the receiving program leaves bytes unread and hardly runs: its CPU is no cap."""
        if self.copy.receiver == self.copy.asking:
            return self.copy.thread.mean("cpu") < RESTS_RATIO
        threads = self.server.host.threads if self.server else ()
        ratios = [each.all_ratio for each in threads if each.all_ratio is not None]
        return bool(ratios) and mean(ratios) < RESTS_RATIO

    @cached_property
    def _is_far(self) -> bool:
        """Whether a round trip is long enough for the copy to wait for it."""
        return self.sender.min_rtt_seconds >= sender_socket.FAR_SECONDS

    def _is_in_last_flush(self, seconds: float) -> bool:
        return seconds >= self.copy.seconds - self.copy.flush_seconds

    def _part_of(self, blocker: str | None) -> Part:
        if blocker == sender_socket.NETWORK:
            return NETWORK
        return "tcp", self.copy.receiver if blocker == sender_socket.WINDOW else self.copy.sender

    def _idle(self, look: SocketLook, seconds: float, blocker: str | None) -> Part:
        """Returns the component for time in which no component was observed to have work."""
        if self.server is None and self.copy.has_long_flush and self._is_in_last_flush(seconds):
            return "disk", self.copy.receiver
        if blocker == sender_socket.RECEIVER:
            return UNKNOWN if self._receiver_rests else ("cpu", self.copy.receiver)
        is_queued = sender_socket.has_standing_queue(look, self.sender.segment_bytes)
        if is_queued and blocker != sender_socket.PAUSED:
            return NETWORK
        if self.server is None or blocker == sender_socket.NOT_REPORTED:
            return UNKNOWN
        if blocker == sender_socket.PAUSED:
            return NETWORK
        return ("smb", self.copy.serving) if self._is_far else UNKNOWN


_BLOCKERS = (sender_socket.NETWORK, sender_socket.WINDOW, sender_socket.SEND_BUFFER)


def _states(shares: Shares) -> list[tuple[str, float]]:
    """Returns the mutually exclusive states of the moving thread with their shares."""
    states = (
        ("disk", shares.disk),
        ("flush", shares.flush),
        ("send", shares.send),
        ("awaits_reply", shares.awaits_reply),
        ("cpu", shares.cpu),
    )
    return [each for each in states if each[1] > LEAST_SHARE]
