"""Where a copy's time went, by what both hosts saw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import mean

from bottleneck.analysis.attribution import sockets
from bottleneck.analysis.attribution.copied import Copied
from bottleneck.analysis.attribution.shares import (
    BOTH,
    HIDDEN,
    NETWORK,
    SATURATED_RATIO,
    Instant,
    Seen,
    Stage,
    chances,
    covered,
)
from bottleneck.analysis.attribution.thread import Shares
from bottleneck.analysis.attribution.trace import Connection, HostLooks, SocketLook, nearest

LEAST_LOOKS = 5
"""At the sender's connection: fewer tell nothing."""
LEAST_SHARE = 1e-3


def by_both(copy: Copied) -> Seen | None:
    """What both hosts saw; None: one of them saw too little."""
    sender, receiver = copy.connection(copy.sender), copy.connection(copy.receiver)
    host = copy.host(copy.serving)
    if sender is None or receiver is None or host is None or not (host.threads or host.counts):
        return None
    # A host that starves looks seldom: then the other one's looks say when.
    moments = sender.looks if len(sender.looks) >= LEAST_LOOKS else receiver.looks
    if len(moments) < LEAST_LOOKS:
        return None
    seen = _Both(copy, sender, receiver, _Server(host))
    instants: list[Instant] = []
    for at, moment in enumerate(moments):
        look = nearest(sender.looks, moment.elapsed_seconds)
        if look is not None:
            instants += seen.instants(look, moment.elapsed_seconds, weight(moments, at))
    time = covered(instants, len(sender.looks))
    if time is None:
        return None
    stage = time.first
    waits = stage[0] in ("disk", "cpu") and time.uses.get(stage, 0.0) < SATURATED_RATIO
    rtt = sockets.middle(sender.known("min_rtt_seconds"))
    if waits and sockets.fills(copy.in_flight_bytes, rtt, copy.rate):
        # Nobody works all the time, and most of a request's life is the round trip.
        stage = "smb", copy.serving
    return Seen(time, stage, BOTH if host.threads else HIDDEN)


def states(shares: Shares) -> list[tuple[str, float]]:
    """What the moving thread did, one at a time."""
    found = (
        ("disk", shares.disk),
        ("flush", shares.flush),
        ("send", shares.send),
        ("heard", shares.heard),
        ("cpu", shares.cpu),
    )
    return [each for each in found if each[1] > LEAST_SHARE]


def weight(looks: tuple[SocketLook, ...], at: int) -> float:
    """The time that a look stands for."""
    before, after = looks[max(0, at - 1)], looks[min(at + 1, len(looks) - 1)]
    return (after.elapsed_seconds - before.elapsed_seconds) / 2


@dataclass(frozen=True)
class _Server:
    """The host of the file server, by its threads; where these are hidden, by its cores."""

    host: HostLooks

    def disk(self, seconds: float) -> float:
        """Share of the time around a moment in which it waited for its disk."""
        look = nearest(self.host.threads, seconds)
        if look is not None:
            return look.disk or 0.0
        count = nearest(self.host.counts, seconds)
        return min(1.0, (count.io_waiting_cores or 0.0) if count else 0.0)

    def cpu(self, seconds: float) -> float:
        """Share of the time around a moment in which it ran, or waited for a core.

        A thread's is exact; of several the union lies between the busiest one's and the sum. How
        often one was seen running is the best guess within; alone it says too much: each packet
        wakes a receiver.
        """
        look = nearest(self.host.threads, seconds)
        if look is None:
            count = nearest(self.host.counts, seconds)
            return (count.busiest_core_ratio or 0.0) if count else 0.0
        least, most = look.busiest_ratio or 0.0, min(1.0, look.all_ratio or 0.0)
        return least + self._part * max(0.0, most - least)

    @cached_property
    def _part(self) -> float:
        threads = self.host.threads
        least = mean(each.busiest_ratio or 0.0 for each in threads)
        most = mean(min(1.0, each.all_ratio or 0.0) for each in threads)
        seen = mean(each.running or 0.0 for each in threads)
        spare = most - least
        return (max(least, min(most, seen)) - least) / spare if spare > 1e-9 else 0.0


@dataclass(frozen=True)
class _Both:
    copy: Copied
    sender: Connection
    receiver: Connection
    server: _Server

    def instants(self, look: SocketLook, seconds: float, lasted: float) -> list[Instant]:
        """Who had work around a moment; look: the sender's nearest."""
        parts: list[Instant] = []
        for state, share in states(self.copy.thread.at(seconds)):
            parts += self._in_state(look, seconds, state, lasted * share)
        return parts

    def _in_state(
        self, look: SocketLook, seconds: float, state: str, lasted: float
    ) -> list[Instant]:
        copy = self.copy
        other = nearest(self.receiver.looks, seconds)
        room = self.receiver.receive_buffer_bytes
        asks = not copy.pull and state == "heard"
        held = sockets.holder(look, self.sender, other, room, asks, copy.rate)
        works = {self._stage(held)} if held in _HOLDERS else set()
        if state in ("disk", "flush"):
            works.add(("disk", copy.asking))
        # The server's disk that waits for our own flush does it by order: that counts where nobody
        # else has work, at the end, or where it flushes more than it was asked for.
        ordered = not copy.pull and copy.flushes_at(seconds)
        waits = self.server.disk(seconds)
        if ordered and works and not copy.synced and seconds < copy.seconds - copy.flush_seconds:
            waits = 0.0
        if state == "cpu" and not (held == sockets.NETWORK and copy.pull and copy.keeps_up(other)):
            works.add(("cpu", copy.asking))
        ratios = [
            (("disk", copy.serving), waits),
            (("disk", copy.receiver), self._lag),
            (("cpu", copy.serving), self.server.cpu(seconds)),
        ]
        idle = frozenset({self._idle(look, held)})
        parts = chances((lasted, frozenset(works)), ratios)
        return [(part, stages or idle) for part, stages in parts]

    @cached_property
    def _lag(self) -> float:
        return self.copy.lag()

    def _stage(self, held: str | None) -> Stage:
        if held == sockets.NETWORK:
            return NETWORK
        return "tcp", self.copy.receiver if held == sockets.WINDOW else self.copy.sender

    def _idle(self, look: SocketLook, held: str | None) -> Stage:
        """Whose the time is in which nobody has work."""
        if held == sockets.RECEIVER:
            return "cpu", self.copy.receiver
        if held == sockets.PAUSED or sockets.queue_stands(look, self.sender.segment_bytes):
            return NETWORK
        return "smb", self.copy.serving


_HOLDERS = (sockets.NETWORK, sockets.WINDOW, sockets.SEND_BUFFER)
