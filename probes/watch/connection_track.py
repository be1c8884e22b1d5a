"""One TCP connection while a copy is watched: its looks, and its figures in a span of time."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import List, NamedTuple, Optional, Tuple

from probes.core.copy_trace import SocketLook
from probes.core.records import Details
from probes.sockets import limits, tcp_info
from probes.sockets.sock_diag import Socket, parse
from probes.watch.trace_rows import socket_row, thinned_rows

MOST_LOOKS = 2000  # even: see Track.take
"""Limit of looks at one connection, some hundred bytes each."""
LEAST_LOOKS = 5
"""Least number of looks in the copy's time from which its limit is inferred."""
IDLE_SECONDS = 1.0
"""Time without traffic after which only the searches look at a connection."""
BUSY_BYTES = 64 << 10
"""Growth between two searches that is more than a login or a question moves."""
_TWO_COUNTERS = struct.Struct("=QQ")
_COUNTERS = slice(120, 136)
"""Bytes acknowledged and received in tcp_info, which stand still where nothing moves."""


@dataclass(frozen=True)
class Connection:
    """Figures of one connection in the copy's time; None where the kernel does not report them."""

    local: str
    """Address and port at this host: "10.0.0.1 445"."""
    peer: str
    sent_bytes: int
    """Payload that the peer acknowledged in that time."""
    received_bytes: int
    looks: int
    sender: Optional[Details]
    """Details of limits.sender_details(); None: too few looks."""
    receiver: Optional[Details]
    """Details of limits.receiver_details(); None: too few looks."""
    congestion_control: Optional[str]
    send_buffer_bytes: Optional[int]
    """Largest size in that time."""
    receive_buffer_bytes: Optional[int]
    process: Optional[str]
    """Program that serves it; None: not visible to us, the kernel itself, or not searched."""
    rows: Tuple[SocketLook, ...] = ()


class Look(NamedTuple):
    """One look with the kernel's raw message, which is parsed on demand."""

    clock_seconds: float
    """time.monotonic() of this host."""
    raw: bytes


@dataclass
class Track:
    """One connection while it is watched, in bounded memory."""

    state: Socket
    """State at the last search that found it."""
    question: bytes = b""
    """Request to the kernel for it."""
    looks: List[Look] = field(default_factory=list)
    fresh: bool = False
    """Whether it began while its port was watched: its counters began at 0."""
    every: int = 1
    """N where every Nth look is stored."""
    skipped: int = 0
    moved_at: float = 0.0
    busy_at: float = -1e9
    idle: bool = False
    """Whether it had moved nothing for IDLE_SECONDS at the last search."""
    process: Optional[str] = None
    """Name of the program that has the socket open, after a search for it."""
    has_ended: bool = False

    def find(self, now: float, state: Socket) -> None:
        """Takes its state in a search: a look, and whether it moves anything."""
        old, new = self.state.info[_COUNTERS], state.info[_COUNTERS]
        if not self.looks or old != new or state.unread_bytes or state.unacknowledged_bytes:
            self.moved_at = now
        if len(old) == len(new) == _TWO_COUNTERS.size:
            grown = sum(_TWO_COUNTERS.unpack(new)) - sum(_TWO_COUNTERS.unpack(old))
            self.busy_at = now if grown >= BUSY_BYTES else self.busy_at
        self.idle = now - self.moved_at > IDLE_SECONDS
        self.state = state
        self.take(now, state.raw)

    def take(self, now: float, raw: bytes) -> None:
        """Stores a look; drops every second one where there are too many."""
        self.skipped += 1
        if self.skipped < self.every:
            return
        self.skipped = 0
        self.looks.append(Look(now, raw))
        if len(self.looks) > MOST_LOOKS:
            # An odd number: first and last stay, and the distances stay even.
            self.looks = self.looks[::2]
            self.every *= 2

    def busy(self, now: float) -> bool:
        """Whether it carries a copy."""
        return now - self.busy_at <= IDLE_SECONDS

    def moved_bytes(self, began: float, ended: float) -> Tuple[int, int]:
        """Returns payload sent (and acknowledged) and received between two moments of our clock.

        From the last look before to the first one after, so that none of a copy's is missed.
        """
        earlier = [each for each in self.looks if each.clock_seconds <= began][-1:]
        later = [each for each in self.looks if each.clock_seconds >= ended][:1]
        last = _figures((later or self.looks)[-1])
        first: tcp_info.Figures = {}
        if earlier or not self.fresh:
            first = _figures((earlier or self.looks)[0])
        sent, received = (
            max(0, int(last.get(name, 0)) - int(first.get(name, 0)))
            for name in ("acknowledged_bytes", "received_bytes")
        )
        return sent, received

    def connection_between(self, began: float, ended: float) -> Connection:
        """Returns its figures between two moments of this host's clock."""
        inside = [each for each in self.looks if began <= each.clock_seconds <= ended]
        sent, received = self.moved_bytes(began, ended)
        states = [(each.clock_seconds, parse(each.raw)) for each in inside]
        read = [(clock, each) for clock, each in states if each is not None]
        looks = [_glimpse(*each) for each in read]
        glimpses = looks if len(read) >= LEAST_LOOKS else []
        # A copy of some milliseconds may lie between two looks; its buffers have not changed.
        shown_states = [each for _, each in read] or [self.state]
        memories = [each.memory for each in shown_states if each.memory is not None]
        return Connection(
            local="{} {}".format(*self.state.local),
            peer="{} {}".format(*self.state.peer),
            sent_bytes=sent,
            received_bytes=received,
            looks=len(read),
            sender=limits.sender_details(glimpses) if glimpses else None,
            receiver=limits.receiver_details(glimpses) if glimpses else None,
            congestion_control=self.state.congestion_control,
            process=self.process,
            send_buffer_bytes=max((each.send_buffer_bytes for each in memories), default=None),
            receive_buffer_bytes=max(
                (each.receive_buffer_bytes for each in memories), default=None
            ),
            rows=tuple(socket_row(each, began) for each in thinned_rows(looks)),
        )


def _figures(look: Look) -> tcp_info.Figures:
    state = parse(look.raw)
    return tcp_info.decode(state.info) if state is not None else {}


def _glimpse(clock_seconds: float, state: Socket) -> limits.Glimpse:
    figures = tcp_info.decode(state.info)
    if state.memory is not None:
        memory = state.memory._asdict().items()
        figures.update({name: value for name, value in memory if value is not None})
    unsent = figures.get("unsent_bytes")
    return limits.Glimpse(
        elapsed_seconds=clock_seconds,
        figures=figures,
        unread_bytes=state.unread_bytes,
        unsent_bytes=None if unsent is None else int(unsent),
    )
