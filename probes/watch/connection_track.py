"""One TCP connection while a copy is watched: its looks, and what they tell of a span of time."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import List, NamedTuple, Optional, Tuple

from probes.core.copy_trace import SocketLook
from probes.core.records import Details
from probes.sockets import limits, tcp_info
from probes.sockets.sock_diag import SocketState, parse
from probes.watch.look_rows import socket_row, thinned

MOST_LOOKS = 2000  # even: see Track.take
"""Of one connection: some hundred bytes each."""
LEAST_LOOKS = 5
"""Fewer in the copy's time tell nothing of who limited it."""
IDLE_SECONDS = 1.0
"""What moves nothing for so long is looked at by the searches alone."""
BUSY_BYTES = 64 << 10
"""Between two searches: more than a login or a question moves."""
_TWO_COUNTERS = struct.Struct("=QQ")
_COUNTERS = slice(120, 136)
"""Of tcp_info: the bytes acknowledged and received, which stand still where nothing moves."""


@dataclass(frozen=True)
class Connection:
    """What was seen of one connection in the copy's time; None where the kernel does not tell."""

    own: str
    """Address and port at this host: "10.0.0.1 445"."""
    peer: str
    sent_bytes: int
    """Payload that the peer acknowledged in that time."""
    received_bytes: int
    looks: int
    sender: Optional[Details]
    """limits.of_sender; None: too few looks."""
    receiver: Optional[Details]
    """limits.of_receiver; None: too few looks."""
    congestion_control: Optional[str]
    send_buffer_bytes: Optional[int]
    """The most that it was in that time."""
    receive_buffer_bytes: Optional[int]
    process: Optional[str]
    """The program that serves it; None: not ours to see, the kernel itself, or not looked for."""
    rows: Tuple[SocketLook, ...] = ()


class Look(NamedTuple):
    """One look, as the kernel told it: it is read when it is asked for."""

    clock_seconds: float
    """time.monotonic() of this host."""
    raw: bytes


@dataclass
class Track:
    """One connection while it is watched, in bounded memory."""

    seen: SocketState
    """When it was last found by a search."""
    question: bytes = b""
    """What asks the kernel for it."""
    looks: List[Look] = field(default_factory=list)
    fresh: bool = False
    """Whether it began while its port was watched: its counters began at 0."""
    every: int = 1
    """Keep every Nth look."""
    skipped: int = 0
    moved_at: float = 0.0
    busy_at: float = -1e9
    idle: bool = False
    """Whether it had moved nothing for a while when it was last found."""
    process: Optional[str] = None
    """Who holds the socket, once that was looked for."""
    gone: bool = False

    def find(self, now: float, seen: SocketState) -> None:
        """Takes what a search found of it: a look, and whether it moves anything."""
        before, counted = self.seen.info[_COUNTERS], seen.info[_COUNTERS]
        if not self.looks or before != counted or seen.unread_bytes or seen.unacknowledged_bytes:
            self.moved_at = now
        if len(before) == len(counted) == _TWO_COUNTERS.size:
            grown = sum(_TWO_COUNTERS.unpack(counted)) - sum(_TWO_COUNTERS.unpack(before))
            self.busy_at = now if grown >= BUSY_BYTES else self.busy_at
        self.idle = now - self.moved_at > IDLE_SECONDS
        self.seen = seen
        self.take(now, seen.raw)

    def take(self, now: float, raw: bytes) -> None:
        """Keeps a look; where there are too many, every second one goes."""
        self.skipped += 1
        if self.skipped < self.every:
            return
        self.skipped = 0
        self.looks.append(Look(now, raw))
        if len(self.looks) > MOST_LOOKS:
            # Of an odd number the first and the last stay: what follows comes at even distances.
            self.looks = self.looks[::2]
            self.every *= 2

    def busy(self, now: float) -> bool:
        """Whether it carries a copy."""
        return now - self.busy_at <= IDLE_SECONDS

    def moved_bytes(self, began: float, ended: float) -> Tuple[int, int]:
        """Payload sent (and acknowledged) and received between two moments of this host's clock.

        From the last look before to the first one after, so that none of a copy's is missed.
        """
        before = [each for each in self.looks if each.clock_seconds <= began][-1:]
        after = [each for each in self.looks if each.clock_seconds >= ended][:1]
        last = _figures((after or self.looks)[-1])
        first: tcp_info.Figures = {}
        if before or not self.fresh:
            first = _figures((before or self.looks)[0])
        sent, received = (
            max(0, int(last.get(name, 0)) - int(first.get(name, 0)))
            for name in ("acknowledged_bytes", "received_bytes")
        )
        return sent, received

    def between(self, began: float, ended: float) -> Connection:
        """What it did between two moments of this host's clock."""
        inside = [each for each in self.looks if began <= each.clock_seconds <= ended]
        sent, received = self.moved_bytes(began, ended)
        seen = [(each.clock_seconds, parse(each.raw)) for each in inside]
        read = [(clock, each) for clock, each in seen if each is not None]
        looks = [_glimpse(*each) for each in read]
        glimpses = looks if len(read) >= LEAST_LOOKS else []
        # A copy of some milliseconds is over between two looks, and its buffers are still there.
        held = [each for _, each in read] or [self.seen]
        memories = [each.memory for each in held if each.memory is not None]
        return Connection(
            own="{} {}".format(*self.seen.local),
            peer="{} {}".format(*self.seen.peer),
            sent_bytes=sent,
            received_bytes=received,
            looks=len(read),
            sender=limits.of_sender(glimpses) if glimpses else None,
            receiver=limits.of_receiver(glimpses) if glimpses else None,
            congestion_control=self.seen.congestion_control,
            process=self.process,
            send_buffer_bytes=max((each.send_buffer_bytes for each in memories), default=None),
            receive_buffer_bytes=max(
                (each.receive_buffer_bytes for each in memories), default=None
            ),
            rows=tuple(socket_row(each, began) for each in thinned(looks)),
        )


def _figures(look: Look) -> tcp_info.Figures:
    seen = parse(look.raw)
    return tcp_info.decode(seen.info) if seen is not None else {}


def _glimpse(clock_seconds: float, seen: SocketState) -> limits.Glimpse:
    figures = tcp_info.decode(seen.info)
    if seen.memory is not None:
        held = seen.memory._asdict().items()
        figures.update({name: value for name, value in held if value is not None})
    unsent = figures.get("unsent_bytes")
    return limits.Glimpse(
        elapsed_seconds=clock_seconds,
        figures=figures,
        unread_bytes=seen.unread_bytes,
        unsent_bytes=None if unsent is None else int(unsent),
    )
