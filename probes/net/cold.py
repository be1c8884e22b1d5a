"""Messages on a connection each: what the handshake, slow start and the close add to their time.

The responder takes them on a port of its own, beside the session's: being let in by that one would
be a part of the time. The token goes with the first message, in the same write.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from probes.net import exchange, port
from probes.net.timetable import LEAST
from probes.net.warm import MOST_OF_A_SIZE, Warm

ROUND_TRIPS = (0, 1, 2)
USUAL_SEGMENT_BYTES = 1460
SEGMENTS_AT_FIRST = 10
"""What a new connection sends before it hears from the other end (RFC 6928)."""
KEEP_SECONDS = 2.0
_TOKEN_BYTES = 32
_ACCEPTING = 8
"""Threads that wait for connections: starting one would be a part of the time."""

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
        listener.bind((host, 0, *scope))
        listener.listen(_ACCEPTING)
        for _ in range(_ACCEPTING):
            arguments = (listener, token.encode())
            threading.Thread(target=_take, args=arguments, daemon=True).start()
        yield listener.getsockname()[1], token
    finally:
        # A thread that waits in accept would keep a merely closed port open.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _take(listener: socket.socket, token: bytes) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        # A stranger, or an initiator that is gone: there is nobody to tell.
        with connection, contextlib.suppress(OSError, ValueError):
            connection.settimeout(port.HELLO_SECONDS)
            told = _head(connection)
            if told is not None and hmac.compare_digest(told, token):
                connection.settimeout(port.STALL_SECONDS)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                exchange.answer(connection)


def _head(connection: socket.socket) -> Optional[bytes]:
    """What a stranger has two seconds in all to say: it comes in one segment from our own."""
    parts: List[bytes] = []
    until = time.monotonic() + port.HELLO_SECONDS
    while sum(map(len, parts)) < _TOKEN_BYTES:
        part = connection.recv(_TOKEN_BYTES - sum(map(len, parts)))
        if not part or time.monotonic() > until:
            return None
        parts.append(part)
    return b"".join(parts)


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
