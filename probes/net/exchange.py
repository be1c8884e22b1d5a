"""Times messages and their answers: n bytes out in one write, 4 bytes back.

A message is its length in 8 bytes and n bytes of payload. The next is sent when the last is
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
    """Builds a message of so many bytes of payload, ready to be sent in one write."""
    content = bytearray(LENGTH.pack(size))
    while len(content) < LENGTH.size + size:
        missing = LENGTH.size + size - len(content)
        content += payload.block(ring, len(content), min(missing, payload.LONGEST_BLOCK_BYTES))
    return content


def exchange(connection: socket.socket, request: bytearray) -> float:
    """Sends a message and awaits its answer; returns seconds. Raises EOFError or OSError."""
    began = time.monotonic()
    connection.sendall(request)
    await_answer(connection)
    return time.monotonic() - began


def exchange_in_two(connection: socket.socket, request: bytearray) -> float:
    """Does as exchange, but writes the length and the payload separately, as some programs do."""
    body = memoryview(request)
    began = time.monotonic()
    connection.sendall(body[: LENGTH.size])
    connection.sendall(body[LENGTH.size :])
    await_answer(connection)
    return time.monotonic() - began


def await_answer(connection: socket.socket) -> None:
    """Waits for the answer to a message. Raises EOFError where it is wrong or missing."""
    reply = connection.recv(len(ANSWER))
    while reply != ANSWER:
        part = connection.recv(len(ANSWER) - len(reply)) if len(reply) < len(ANSWER) else b""
        if not part:
            raise EOFError("no answer to a message")
        reply += part


def answer(connection: socket.socket) -> None:
    """Answers each message until the other end closes.

    Raises ValueError for a message of more than MOST_MESSAGE_BYTES, OSError where one stops short.
    """
    buffer = memoryview(bytearray(PART_BYTES))
    while True:
        count = connection.recv_into(buffer)
        while 0 < count < LENGTH.size:
            added = connection.recv_into(buffer[count:])
            count = count + added if added else 0
        if not count:
            return
        (size,) = LENGTH.unpack_from(buffer)
        if size > MOST_MESSAGE_BYTES:
            raise ValueError(f"a message has at most {MOST_MESSAGE_BYTES} bytes, not {size}")
        missing = LENGTH.size + size - count
        while missing > 0:
            count = connection.recv_into(buffer, min(missing, PART_BYTES))
            if not count:
                return
            missing -= count
        connection.sendall(ANSWER)


DECADES = tuple(10**power for power in range(7))
"""Message sizes that are reported: 1 byte to 1 MB."""
LEAST_TIMES = 5
"""Timings that a median needs."""
LEAST_OF_P95 = 20
PERCENTILES = ((50, 2), (90, 10), (99, 100))
"""Percent, and the timings that such a percentile needs."""


@dataclass
class Times:
    """Timings of one kind of exchange, seconds."""

    one: List[float] = field(default_factory=list)
    two: List[float] = field(default_factory=list)
    """Timings of two exchanges, the second right after the first."""

    @property
    def median(self) -> float:
        """Median seconds of one exchange."""
        return statistics.median(self.one)


def quick(times: List[float]) -> float:
    """Returns the highest of the lowest eighth: disturbances only make an exchange longer."""
    return sorted(times)[len(times) // 8]


def table(by_size: Dict[int, Times], by_trips: Dict[Tuple[int, int], List[float]]) -> List[Details]:
    """Builds a row for each decade, kind of connection and count of round trips.

    by_size: timings on the warm connection; by_trips: on cold ones, by size and round trips. A row
    has message_bytes, round_trips, connection ("cold", "warm"), seconds (the median), low_seconds,
    high_seconds, count, and from 20 timings on p95_seconds.
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
        if len(times.two) >= LEAST_TIMES:
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
    """Returns the time that so many percent of them do not exceed (nearest rank)."""
    return sorted(times)[-(-percent * len(times) // 100) - 1]


def percentiles(times: List[float]) -> Details:
    """Returns count, and p50_seconds, p90_seconds and p99_seconds where the times suffice."""
    details: Details = {"count": len(times)}
    for percent, needed in PERCENTILES:
        if len(times) >= needed:
            details[f"p{percent}_seconds"] = _percentile(times, percent)
    return details
