"""Messages on one warm connection, and on a connection each: how long they may be, what they take.

A path of any rate and length has to do with the same few seconds: sizes are chosen so that each is
timed often enough, and the longest shows the bandwidth where there is time for that.

Cold: what the handshake, slow start and the close add. The responder takes them on a port of its
own, beside the session's: being let in by that one would be a part of the time. The token goes with
the first message, in the same write.
"""

from __future__ import annotations

import contextlib
import hmac
import math
import secrets
import socket
import statistics
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Tuple

from probes.core.records import Details
from probes.files import payload
from probes.net import exchange, fit, port
from probes.net.callers import accepted
from probes.net.exchange import DECADES, LEAST, Times

SIZES = (
    *(1, 10, 100, 1000, 3000, 10_000, 30_000, 100_000, 300_000),
    *(1_000_000, 3_000_000, 10_000_000, 30_000_000),
)
"""Of the fit: few below a segment, which all take the same."""
FIRST_GROWN_BYTES = 1000
"""Shorter ones are always tried: none of them takes longer than the path's round trip."""
LONG_ENOUGH, TELLING = 32, 4
"""Times n1/2: a message of so many bytes gets 97 % of the bandwidth; 80 %."""
SPLIT_BYTES = 100
"""Of the body that is written apart from its head: both fit into one segment."""

MOST_PINGS = 2000
MOST_OF_A_SIZE = 100
MOST_OF_SPLIT = 20
UNTIMED = 3
MOST_WARM_UPS = 6
STABLE_RATIO = 0.05
FLAT_RATIO = 1.1
"""Of the latency: a message that takes no more shows nothing of the bandwidth yet."""
GROW_SHARE, FURTHER_SHARE = 0.5, 0.15
"""Of the stage's time, for the warm-up with the longest message and its window: of those that the
table and the bandwidth need, and of those that show the bandwidth better."""
WINDOW_SHARE, SIZES_SHARE, PING_SHARE, SPLIT_SHARE = 0.1, 0.15, 0.1, 0.05
"""Of that time as well; the cold connections get what is left."""
GRACE_SECONDS = 10.0
"""After the stage's time, the most that what is under way may take."""


@dataclass
class Warm:
    """The connection that stays, and the stage's time."""

    connection: socket.socket
    seconds: float
    began: float = field(default_factory=time.monotonic)
    ring: memoryview = field(default_factory=lambda: payload.ring(secrets.token_bytes(16)))

    def left(self) -> float:
        """Seconds of the stage's time."""
        return self.began + self.seconds - time.monotonic()

    def late(self) -> bool:
        """Whether even what is under way has to end."""
        return self.left() < -GRACE_SECONDS

    def message(self, size: int) -> bytearray:
        """A message, made before it is timed."""
        return exchange.message(self.ring, size)

    def exchange(self, sent: bytearray) -> float:
        """One exchange, seconds."""
        return exchange.exchange(self.connection, sent)

    def times(self, size: int, seconds: float, most: int = MOST_OF_A_SIZE) -> Times:
        """Exchanges of a size for so long: LEAST at least, unless it is late."""
        sent, times = self.message(size), Times()
        until = time.monotonic() + seconds
        while not self.late():
            if len(times.one) >= LEAST and (time.monotonic() > until or len(times.one) >= most):
                break
            began = time.monotonic()
            times.one.append(self.exchange(sent))
            if len(times.two) < most // 2:
                times.one.append(self.exchange(sent))
                times.two.append(time.monotonic() - began)
        return times


def grow(warm: Warm) -> Tuple[int, Dict[int, float]]:
    """The longest message to time, its connection warmed up for it, and what each size took.

    Long enough that the bandwidth shows, and short enough for the time that there is.
    """
    one = warm.message(1)
    latency = min(warm.exchange(one) for _ in range(LEAST))
    expected: Dict[int, float] = {1: latency}
    began = time.monotonic()
    longest, seconds, n_half = 1, latency, 0.0
    for size in (each for each in SIZES if each >= FIRST_GROWN_BYTES):
        further = latency + max(0.0, seconds - latency) * size / longest
        telling = size <= max(DECADES[-1], TELLING * n_half)
        left = began + (GROW_SHARE if telling else FURTHER_SHARE) * warm.seconds - time.monotonic()
        if size > FIRST_GROWN_BYTES and (LEAST + UNTIMED) * further > left:
            break
        sent = warm.message(size)
        seconds = warm.exchange(sent)
        if seconds > FLAT_RATIO * latency:
            # The first one widened the congestion window for the second.
            seconds = min(seconds, warm.exchange(sent))
        longest, expected[size] = size, seconds
        n_half = latency * size / max(seconds - latency, 1e-9)
        if size >= DECADES[-1] and size >= LONG_ENOUGH * n_half:
            break
    sent = warm.message(longest)
    for _ in range(MOST_WARM_UPS):
        before, seconds = seconds, warm.exchange(sent)
        expected[longest] = min(seconds, expected[longest])
        if abs(seconds - before) <= STABLE_RATIO * before or warm.left() < 0:
            break
    return longest, expected


def afforded(longest: int, expected: Dict[int, float], seconds: float) -> List[int]:
    """Sizes below the longest that the time allows, the decades first; from long to short."""
    shorter = [size for size in SIZES if 1 < size < longest]
    latency = expected[1]
    chosen: List[int] = []
    left = seconds
    for size in sorted(shorter, key=lambda each: (each not in DECADES, -each)):
        needed = LEAST * expected.get(size, latency)
        if needed <= left or len(chosen) < fit.LEAST_SIZES - 2:
            chosen.append(size)
            left -= needed
    return sorted(chosen, reverse=True)


def nagle(warm: Warm) -> Optional[Details]:
    """Head and body in two writes, held back by Nagle until the head is acknowledged (RFC 896).

    The other end delays that for 40 ms or more, in the hope of an answer to send along (RFC 1122).
    """
    sent = warm.message(SPLIT_BYTES)
    plain: List[float] = []
    split: List[float] = []
    until = time.monotonic() + SPLIT_SHARE * warm.seconds
    while not warm.late():
        plain.append(warm.exchange(sent))
        warm.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        split.append(exchange.exchange_in_two(warm.connection, sent))
        warm.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        many = len(split) >= MOST_OF_SPLIT or time.monotonic() > until
        if len(split) >= LEAST and many:
            break
    if len(split) < LEAST:
        return None
    seconds, plain_seconds = statistics.median(split), statistics.median(plain)
    return {
        "message_bytes": SPLIT_BYTES,
        "seconds": seconds,
        "plain_seconds": plain_seconds,
        "ratio": seconds / plain_seconds,
        "count": len(split),
    }


ROUND_TRIPS = (0, 1, 2)
USUAL_SEGMENT_BYTES = 1460
SEGMENTS_AT_FIRST = 10
"""What a new connection sends before it hears from the other end (RFC 6928)."""
KEEP_SECONDS = 2.0
_TOKEN_BYTES = 32
_ACCEPTING = 8
"""Threads that wait for connections: starting one would be a part of the time."""
_TOKEN_SECONDS = 0.2
"""For the rest of a token whose beginning is there: it comes in one segment."""

Trips = Tuple[int, int]
"""Message bytes, round trips."""


@dataclass(frozen=True)
class Cold:
    """Where connections are taken that carry a few messages each."""

    host: str
    port: int
    token: bytes

    def seconds(self, sent: bytearray, round_trips: int) -> float:
        """A new connection, messages one after the other, and its close. Raises as exchange."""
        family, _, _, _, where = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[
            0
        ]
        first = self.token + sent if round_trips else self.token
        began = time.monotonic()
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(port.CONNECT_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect(where)
            connection.settimeout(port.STALL_SECONDS)
            connection.sendall(first)
            for at in range(round_trips):
                if at:
                    connection.sendall(sent)
                exchange.await_answer(connection)
        return time.monotonic() - began


@contextmanager
def taking_cold(beside: socket.socket) -> Iterator[Tuple[int, str]]:
    """Takes cold connections on the address of another connection; yields port and token."""
    token = secrets.token_hex(_TOKEN_BYTES // 2)
    listener = socket.socket(beside.family, socket.SOCK_STREAM)
    try:
        host, _, *scope = beside.getsockname()
        if beside.family == socket.AF_INET6:
            # The address may be one of IPv4 in the form of IPv6.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        with contextlib.suppress(AttributeError, OSError):
            # Who says nothing is not handed over, and holds no thread (tcp(7)).
            seconds = math.ceil(port.HELLO_SECONDS)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, seconds)
        listener.bind((host, 0, *scope))
        listener.listen(_ACCEPTING)
        for _ in range(_ACCEPTING):
            arguments = (listener, token.encode())
            threading.Thread(target=_take, args=arguments, daemon=True).start()
        yield listener.getsockname()[1], token
    finally:
        port.close(listener)


def _take(listener: socket.socket, token: bytes) -> None:
    for connection in accepted(listener):
        # A stranger, or an initiator that is gone: there is nobody to tell.
        with connection, contextlib.suppress(OSError, EOFError, ValueError):
            until = time.monotonic() + _TOKEN_SECONDS
            if hmac.compare_digest(port.read_exactly(connection, _TOKEN_BYTES, until), token):
                connection.settimeout(port.STALL_SECONDS)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                exchange.answer(connection)


def timed(
    warm: Warm, cold: Cold, expected: Dict[int, float], by_trips: Dict[Trips, List[float]]
) -> str:
    """Fills by_trips, by size and round trips; sizes that there is no time for are not in it.

    expected: what the sizes to try take on the warm connection, which is kept from falling asleep.
    The shortest first, then the longest: between them lies what can be foretold. Returns what broke
    it off, the warm connection's times being good all the same; empty: nothing.
    """
    sizes = sorted(expected)
    one = warm.message(1)
    kept = time.monotonic()
    for at, size in enumerate((*sizes[:1], *sizes[:0:-1])):
        each = _foretold(size, expected)
        if at and LEAST * each > warm.left():
            continue
        until = time.monotonic() + max(0.0, warm.left()) / (len(sizes) - at)
        sent = warm.message(size)
        times: Dict[Trips, List[float]] = {(size, trips): [] for trips in ROUND_TRIPS}
        for count in range(MOST_OF_A_SIZE):
            if warm.late() or (count >= LEAST and time.monotonic() + each > until):
                break
            for trips in ROUND_TRIPS:
                try:
                    times[size, trips].append(cold.seconds(sent, trips))
                except (EOFError, OSError) as error:
                    return f"a second port of the responder does not answer: {error}"
                if time.monotonic() - kept > KEEP_SECONDS:
                    # The responder waits no longer than for an answer.
                    warm.exchange(one)
                    kept = time.monotonic()
        by_trips.update({key: told for key, told in times.items() if len(told) >= LEAST})
    return ""


def _foretold(size: int, expected: Dict[int, float]) -> float:
    """Seconds of three cold connections with 0, 1 and 2 round trips, slow start included."""
    rounds, segments = 0, size / USUAL_SEGMENT_BYTES
    while segments > SEGMENTS_AT_FIRST:
        segments, rounds = segments / 2, rounds + 1
    return 3 * expected[size] + (3 + 2 * rounds) * expected[1]
