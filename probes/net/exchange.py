"""Messages and their answers: n bytes out in one write, 4 bytes back, and the times that it takes.

A message is 8 bytes that tell its length and n bytes of payload. The next is sent when the last is
answered, so that the time is a whole round trip.
"""

from __future__ import annotations

import socket
import statistics
import struct
import time
from dataclasses import dataclass, field
from typing import Dict, List, Tuple

from probes.core.records import Details
from probes.files import payload

LENGTH = struct.Struct("!Q")
ANSWER = b"here"
MOST_MESSAGE_BYTES = 32_000_000
PART_BYTES = 1 << 20


def message(ring: memoryview, size: int) -> bytearray:
    """A message of so many bytes of payload, ready to be sent in one write."""
    made = bytearray(LENGTH.pack(size))
    while len(made) < LENGTH.size + size:
        left = LENGTH.size + size - len(made)
        made += payload.block(ring, len(made), min(left, payload.LONGEST_BLOCK_BYTES))
    return made


def exchange(connection: socket.socket, sent: bytearray) -> float:
    """Sends a message and waits for its answer; seconds. Raises EOFError or OSError."""
    began = time.monotonic()
    connection.sendall(sent)
    await_answer(connection)
    return time.monotonic() - began


def exchange_in_two(connection: socket.socket, sent: bytearray) -> float:
    """The same as a program does it that writes the head and the body apart; see exchange."""
    body = memoryview(sent)
    began = time.monotonic()
    connection.sendall(body[: LENGTH.size])
    connection.sendall(body[LENGTH.size :])
    await_answer(connection)
    return time.monotonic() - began


def await_answer(connection: socket.socket) -> None:
    """Waits for the answer to a message. Raises EOFError where another comes, or the end."""
    got = connection.recv(len(ANSWER))
    while got != ANSWER:
        more = connection.recv(len(ANSWER) - len(got)) if len(got) < len(ANSWER) else b""
        if not more:
            raise EOFError("no answer to a message")
        got += more


def answer(connection: socket.socket) -> None:
    """Answers each message until the other end closes.

    Raises ValueError for a message of more than MOST_MESSAGE_BYTES, OSError where one stops short.
    """
    buffer = memoryview(bytearray(PART_BYTES))
    while True:
        got = connection.recv_into(buffer)
        while 0 < got < LENGTH.size:
            more = connection.recv_into(buffer[got:])
            got = got + more if more else 0
        if not got:
            return
        (size,) = LENGTH.unpack_from(buffer)
        if size > MOST_MESSAGE_BYTES:
            raise ValueError(f"a message has at most {MOST_MESSAGE_BYTES} bytes, not {size}")
        left = LENGTH.size + size - got
        while left > 0:
            got = connection.recv_into(buffer, min(left, PART_BYTES))
            if not got:
                return
            left -= got
        connection.sendall(ANSWER)


DECADES = tuple(10**power for power in range(7))
"""1 byte to 1 MB: the sizes that are told."""
LEAST = 5
"""Times of each median."""
LEAST_OF_P95 = 20
PERCENTILES = ((50, 2), (90, 10), (99, 100))
"""Percent, and how many times there have to be to tell it."""


@dataclass
class Times:
    """Times of one kind of exchange."""

    one: List[float] = field(default_factory=list)
    two: List[float] = field(default_factory=list)
    """Of two exchanges, the second right after the first."""

    @property
    def median(self) -> float:
        """Of one exchange, seconds."""
        return statistics.median(self.one)


def quick(times: List[float]) -> float:
    """The lowest eighth's last: what disturbs an exchange makes it longer, never shorter."""
    return sorted(times)[len(times) // 8]


def table(by_size: Dict[int, Times], by_trips: Dict[Tuple[int, int], List[float]]) -> List[Details]:
    """A row for each decade, way and count of round trips that was timed LEAST times.

    by_size: on the warm connection; by_trips: of cold ones, by size and round trips. Returns
    message_bytes, round_trips, connection ("cold", "warm"), seconds (the median), low_seconds,
    high_seconds, count, and of 20 times or more p95_seconds.
    """
    rows = []
    for size in sorted(by_size):
        if size not in DECADES:
            continue
        for (cold_size, trips), cold in sorted(by_trips.items()):
            if cold_size == size:
                rows.append(_row(size, trips, "cold", cold))
        times = by_size[size]
        rows.append(_row(size, 1, "warm", times.one))
        if len(times.two) >= LEAST:
            rows.append(_row(size, 2, "warm", times.two))
    return rows


def _row(size: int, round_trips: int, connection: str, times: List[float]) -> Details:
    row = {
        "message_bytes": size,
        "round_trips": round_trips,
        "connection": connection,
        "seconds": statistics.median(times),
        "low_seconds": min(times),
        "high_seconds": max(times),
        "count": len(times),
    }
    if len(times) >= LEAST_OF_P95:
        row["p95_seconds"] = _percentile(times, 95)
    return row


def _percentile(times: List[float], percent: int) -> float:
    """The time that so many percent of them do not exceed (nearest rank)."""
    return sorted(times)[-(-percent * len(times) // 100) - 1]


def percentiles(times: List[float]) -> Details:
    """p50_seconds, p90_seconds and p99_seconds, those that there are times enough for; count."""
    told: Details = {"count": len(times)}
    for percent, least in PERCENTILES:
        if len(times) >= least:
            told[f"p{percent}_seconds"] = _percentile(times, percent)
    return told
