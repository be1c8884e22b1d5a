"""Times messages of many sizes on one warm connection, and on a new connection each.

A path of any rate and length gets the same few seconds: sizes are chosen so that each is timed
often enough, and the longest shows the bandwidth where there is time for that.

Cold connections add the handshake, slow start and the close. The responder accepts them on a port
of their own: the session port's admission would be a part of the time. The token goes with the
first message, in the same write.
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
from probes.net.exchange import DECADES, LEAST_TIMES, Times
from probes.net.peers import accept_peers

SIZES = 1, 10, 100, *(digit * 10**power for power in range(3, 8) for digit in (1, 3))
"""Message sizes of the fit, up to 30 MB: few below a segment, which all take the same time."""
FIRST_GROWN_BYTES = 1000
"""Shorter ones are always tried: none of them takes longer than the path's round trip."""
LONG_ENOUGH, TELLING = 32, 4
"""Multiples of n1/2: messages that long get 97 % and 80 % of the bandwidth."""
SPLIT_BYTES = 100
"""Payload that is written apart from its length: both fit into one segment."""

MOST_PINGS = 2000
MOST_OF_A_SIZE = 100
MOST_OF_SPLIT = 20
UNTIMED = 3
MOST_WARM_UPS = 6
STABLE_RATIO = 0.05
FLAT_RATIO = 1.1
"""Multiple of the latency: a faster message shows nothing of the bandwidth yet."""
GROW_SHARE, FURTHER_SHARE = 0.5, 0.15
"""Shares of the stage's time for the warm-up with the longest message and its window: for sizes
that the table and the bandwidth need, and for those that show the bandwidth better."""
WINDOW_SHARE, SIZES_SHARE, PING_SHARE, SPLIT_SHARE = 0.1, 0.15, 0.1, 0.05
"""Further shares of that time; the cold connections get the rest."""
GRACE_SECONDS = 10.0
"""Longest time after the stage's end that an exchange under way may take."""


@dataclass
class Warm:
    """The connection that stays, and the stage's time."""

    connection: socket.socket
    seconds: float
    began: float = field(default_factory=time.monotonic)
    ring: memoryview = field(default_factory=lambda: payload.make_ring(secrets.token_bytes(16)))

    def remaining_seconds(self) -> float:
        """Returns the seconds that remain of the stage's time."""
        return self.began + self.seconds - time.monotonic()

    def is_late(self) -> bool:
        """Whether the grace after the stage's time is over as well."""
        return self.remaining_seconds() < -GRACE_SECONDS

    def message(self, size: int) -> bytearray:
        """Builds a message, which is not to be timed."""
        return exchange.message(self.ring, size)

    def exchange(self, request: bytearray) -> float:
        """Sends a message and awaits its answer; returns seconds."""
        return exchange.exchange(self.connection, request)

    def times(self, size: int, seconds: float, limit: int = MOST_OF_A_SIZE) -> Times:
        """Times exchanges of a size for so long: at least LEAST_TIMES, unless it is late."""
        request, times = self.message(size), Times()
        until = time.monotonic() + seconds
        while not self.is_late():
            if len(times.one) >= LEAST_TIMES and (
                time.monotonic() > until or len(times.one) >= limit
            ):
                break
            began = time.monotonic()
            times.one.append(self.exchange(request))
            if len(times.two) < limit // 2:
                times.one.append(self.exchange(request))
                times.two.append(time.monotonic() - began)
        return times


def grow(warm: Warm) -> Tuple[int, Dict[int, float]]:
    """Warms the connection up with longer and longer messages.

    Returns the longest size to time, chosen by the bandwidth and the time, and each size's seconds.
    """
    one = warm.message(1)
    latency = min(warm.exchange(one) for _ in range(LEAST_TIMES))
    expected: Dict[int, float] = {1: latency}
    began = time.monotonic()
    longest, seconds, n_half = 1, latency, 0.0
    for size in (each for each in SIZES if each >= FIRST_GROWN_BYTES):
        further = latency + max(0.0, seconds - latency) * size / longest
        telling = size <= max(DECADES[-1], TELLING * n_half)
        budget = (
            began + (GROW_SHARE if telling else FURTHER_SHARE) * warm.seconds - time.monotonic()
        )
        if size > FIRST_GROWN_BYTES and (LEAST_TIMES + UNTIMED) * further > budget:
            break
        request = warm.message(size)
        seconds = warm.exchange(request)
        if seconds > FLAT_RATIO * latency:
            # The first one widened the congestion window for the second.
            seconds = min(seconds, warm.exchange(request))
        longest, expected[size] = size, seconds
        n_half = latency * size / max(seconds - latency, 1e-9)
        if size >= DECADES[-1] and size >= LONG_ENOUGH * n_half:
            break
    request = warm.message(longest)
    for _ in range(MOST_WARM_UPS):
        previous, seconds = seconds, warm.exchange(request)
        expected[longest] = min(seconds, expected[longest])
        if abs(seconds - previous) <= STABLE_RATIO * previous or warm.remaining_seconds() < 0:
            break
    return longest, expected


def choose_sizes(longest: int, expected: Dict[int, float], seconds: float) -> List[int]:
    """Returns sizes below the longest that the time allows, decades first; from long to short."""
    shorter = [size for size in SIZES if 1 < size < longest]
    latency = expected[1]
    sizes: List[int] = []
    remaining = seconds
    for size in sorted(shorter, key=lambda each: (each not in DECADES, -each)):
        needed = LEAST_TIMES * expected.get(size, latency)
        if needed <= remaining or len(sizes) < fit.LEAST_SIZES - 2:
            sizes.append(size)
            remaining -= needed
    return sorted(sizes, reverse=True)


def nagle(warm: Warm) -> Optional[Details]:
    """Times length and payload in two writes: Nagle holds the second until the first is
    acknowledged (RFC 896), which the other end delays for 40 ms or more (RFC 1122).
    """
    request = warm.message(SPLIT_BYTES)
    plain: List[float] = []
    split: List[float] = []
    until = time.monotonic() + SPLIT_SHARE * warm.seconds
    while not warm.is_late():
        plain.append(warm.exchange(request))
        warm.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        split.append(exchange.exchange_in_two(warm.connection, request))
        warm.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        many = len(split) >= MOST_OF_SPLIT or time.monotonic() > until
        if len(split) >= LEAST_TIMES and many:
            break
    if len(split) < LEAST_TIMES:
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
"""Initial congestion window in segments (RFC 6928)."""
KEEP_SECONDS = 2.0
_TOKEN_BYTES = 32
_ACCEPTING = 8
"""Threads that wait for connections: starting one would be a part of the time."""
_TOKEN_SECONDS = 0.2
"""Time for the rest of a token whose beginning is there: it comes in one segment."""

Trips = Tuple[int, int]
"""Message bytes, round trips."""


@dataclass(frozen=True)
class Cold:
    """The responder's port for connections that carry a few messages each."""

    host: str
    port: int
    token: bytes

    def seconds(self, request: bytearray, round_trips: int) -> float:
        """Times connect, messages one after the other, and close. Raises as exchange."""
        family, _, _, _, target = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[
            0
        ]
        first = self.token + request if round_trips else self.token
        began = time.monotonic()
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(port.CONNECT_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect(target)
            connection.settimeout(port.STALL_SECONDS)
            connection.sendall(first)
            for trip in range(round_trips):
                if trip:
                    connection.sendall(request)
                exchange.await_answer(connection)
        return time.monotonic() - began


@contextmanager
def accept_cold(connection: socket.socket) -> Iterator[Tuple[int, str]]:
    """Accepts cold connections on the address of another connection; yields port and token."""
    token = secrets.token_hex(_TOKEN_BYTES // 2)
    listener = socket.socket(connection.family, socket.SOCK_STREAM)
    try:
        host, _, *scope = connection.getsockname()
        if connection.family == socket.AF_INET6:
            # The address may be one of IPv4 in the form of IPv6.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        with contextlib.suppress(AttributeError, OSError):
            # A client that sends nothing is not accepted, and occupies no thread (tcp(7)).
            seconds = math.ceil(port.HELLO_SECONDS)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, seconds)
        listener.bind((host, 0, *scope))
        listener.listen(_ACCEPTING)
        for _ in range(_ACCEPTING):
            threading.Thread(target=_take, args=(listener, token.encode()), daemon=True).start()
        yield listener.getsockname()[1], token
    finally:
        port.close(listener)


def _take(listener: socket.socket, token: bytes) -> None:
    for connection in accept_peers(listener):
        # A stranger, or an initiator that has closed: there is nobody to report to.
        with connection, contextlib.suppress(OSError, EOFError, ValueError):
            until = time.monotonic() + _TOKEN_SECONDS
            if hmac.compare_digest(port.read_exactly(connection, _TOKEN_BYTES, until), token):
                connection.settimeout(port.STALL_SECONDS)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                exchange.answer(connection)


def time_cold(
    warm: Warm, cold: Cold, expected: Dict[int, float], by_trips: Dict[Trips, List[float]]
) -> str:
    """Fills by_trips, by size and round trips; sizes that there is no time for are not in it.

    expected: seconds of the sizes to try on the warm connection, which is kept active. The shortest
    comes first, then the longest: those between can be predicted. Returns the error that ended it,
    the warm connection's times being valid all the same; empty: none.
    """
    sizes = sorted(expected)
    one = warm.message(1)
    last_exchange = time.monotonic()
    for index, size in enumerate((*sizes[:1], *sizes[:0:-1])):
        each = _predict(size, expected)
        if index and LEAST_TIMES * each > warm.remaining_seconds():
            continue
        until = time.monotonic() + max(0.0, warm.remaining_seconds()) / (len(sizes) - index)
        request = warm.message(size)
        times: Dict[Trips, List[float]] = {(size, trips): [] for trips in ROUND_TRIPS}
        for count in range(MOST_OF_A_SIZE):
            if warm.is_late() or (count >= LEAST_TIMES and time.monotonic() + each > until):
                break
            for trips in ROUND_TRIPS:
                try:
                    times[size, trips].append(cold.seconds(request, trips))
                except (EOFError, OSError) as error:
                    return f"a second port of the responder does not answer: {error}"
                if time.monotonic() - last_exchange > KEEP_SECONDS:
                    # The responder closes a warm connection that stays silent.
                    warm.exchange(one)
                    last_exchange = time.monotonic()
        by_trips.update(
            {key: series for key, series in times.items() if len(series) >= LEAST_TIMES}
        )
    return ""


def _predict(size: int, expected: Dict[int, float]) -> float:
    """Predicts the seconds of three cold connections with 0, 1 and 2 round trips."""
    rounds, segments = 0, size / USUAL_SEGMENT_BYTES
    while segments > SEGMENTS_AT_FIRST:
        segments, rounds = segments / 2, rounds + 1
    return 3 * expected[size] + (3 + 2 * rounds) * expected[1]
