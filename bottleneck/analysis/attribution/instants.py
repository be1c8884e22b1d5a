"""Who had work around each look at the sender's connection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import mean

from bottleneck.analysis.attribution import sockets
from bottleneck.analysis.attribution.copied import Copied
from bottleneck.analysis.attribution.shares import NETWORK, UNKNOWN, Instant, Stage, chances
from bottleneck.analysis.attribution.thread import Shares
from bottleneck.analysis.attribution.trace import Connection, HostLooks, SocketLook, nearest

LEAST_SHARE = 1e-3


@dataclass(frozen=True)
class Server:
    """The host of the file server, by its threads; where these are hidden, by its cores."""

    host: HostLooks

    def disk(self, seconds: float) -> float | None:
        """Share of the time around a moment in which it waited for its disk; None: not seen."""
        if self.host.threads:
            look = nearest(self.host.threads, seconds)
            return look.disk if look else None
        count = nearest(self.host.counts, seconds)
        waiting = count.io_waiting_cores if count else None
        return None if waiting is None else min(1.0, waiting)

    def cpu(self, seconds: float) -> float | None:
        """Share of the time around a moment in which it ran, or waited for a core; None: not seen.

        A thread's is exact; of several the union lies between the busiest one's and the sum. How
        often one was seen running is the best guess within; alone it says too much: each packet
        wakes a receiver.
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
        least = mean(each.busiest_ratio or 0.0 for each in threads)
        most = mean(min(1.0, each.all_ratio or 0.0) for each in threads)
        seen = mean(each.running or 0.0 for each in threads)
        spare = most - least
        return (max(least, min(most, seen)) - least) / spare if spare > 1e-9 else 0.0


@dataclass(frozen=True)
class Instants:
    """A copy by its sender's connection, and by what else is seen of it."""

    copy: Copied
    sender: Connection
    receiver: Connection | None = None
    """None: that host did not look."""
    server: Server | None = None
    """None: the same of the file server's."""

    def all(self, moments: tuple[SocketLook, ...]) -> list[Instant]:
        """Those around some moments, each as long as the time around it."""
        found: list[Instant] = []
        for at, moment in enumerate(moments):
            before, after = moments[max(0, at - 1)], moments[min(at + 1, len(moments) - 1)]
            lasted = (after.elapsed_seconds - before.elapsed_seconds) / 2
            look = nearest(self.sender.looks, moment.elapsed_seconds)
            for state, share in _states(self.copy.thread.at(moment.elapsed_seconds)):
                if look is not None:
                    found += self._of(look, moment.elapsed_seconds, state, lasted * share)
        return found

    def _of(self, look: SocketLook, seconds: float, state: str, lasted: float) -> list[Instant]:
        copy = self.copy
        other = nearest(self.receiver.looks, seconds) if self.receiver else None
        room = self.receiver.receive_buffer_bytes if self.receiver else None
        asks = not copy.pull and state == "heard"
        held = sockets.holder(look, self.sender, other, room, asks, copy.rate)
        works = {self._stage(held)} if held in _HOLDERS else set()
        ordered = not copy.pull and copy.flushes_at(seconds)
        counts = not ordered or not works or copy.synced or self._flushed(seconds)
        if state in ("disk", "flush"):
            works.add(("disk", copy.asking))
        if state == "cpu" and not (held == sockets.NETWORK and copy.pull and copy.keeps_up(other)):
            works.add(("cpu", copy.asking))
        ratios: list[tuple[Stage, float]] = []
        disk = self.server.disk(seconds) if self.server else None
        cpu = self.server.cpu(seconds) if self.server else None
        if disk is not None and cpu is not None:
            # A disk that waits for our own flush does it by order: that counts where nobody else
            # has work, at the end, or where the server flushes more than it was asked to.
            ratios = [
                (("disk", copy.serving), disk if counts else 0.0),
                (("disk", copy.receiver), self._lag),
                (("cpu", copy.serving), cpu),
            ]
        unseen = self.server is not None and not ratios
        idle = frozenset({UNKNOWN if unseen else self._idle(look, seconds, held)})
        parts = chances((lasted, frozenset(works)), ratios)
        return [(part, stages or idle) for part, stages in parts]

    @cached_property
    def _lag(self) -> float:
        return self.copy.lag()

    @cached_property
    def _far(self) -> bool:
        """Whether a round trip is long enough for the copy to wait for it."""
        return sockets.middle(self.sender.known("min_rtt_seconds")) >= sockets.FAR_SECONDS

    def _flushed(self, seconds: float) -> bool:
        """Whether it is the time of the last flush."""
        return seconds >= self.copy.seconds - self.copy.flush_seconds

    def _stage(self, held: str | None) -> Stage:
        if held == sockets.NETWORK:
            return NETWORK
        return "tcp", self.copy.receiver if held == sockets.WINDOW else self.copy.sender

    def _idle(self, look: SocketLook, seconds: float, held: str | None) -> Stage:
        """Whose the time is in which nobody has work."""
        if self.server is None and self.copy.lags and self._flushed(seconds):
            return "disk", self.copy.receiver
        if held == sockets.RECEIVER:
            return "cpu", self.copy.receiver
        if sockets.queue_stands(look, self.sender.segment_bytes) and held != sockets.PAUSED:
            return NETWORK
        if self.server is None or held == sockets.UNTOLD:
            return UNKNOWN
        if held == sockets.PAUSED:
            return NETWORK
        return ("smb", self.copy.serving) if self._far else UNKNOWN


_HOLDERS = (sockets.NETWORK, sockets.WINDOW, sockets.SEND_BUFFER)


def _states(shares: Shares) -> list[tuple[str, float]]:
    """What the moving thread did, one at a time."""
    found = (
        ("disk", shares.disk),
        ("flush", shares.flush),
        ("send", shares.send),
        ("heard", shares.heard),
        ("cpu", shares.cpu),
    )
    return [each for each in found if each[1] > LEAST_SHARE]
