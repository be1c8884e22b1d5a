"""A connection's bytes in a span of time are read off looks that are kept in bounded memory."""

import socket
import struct
from collections.abc import Iterable

import pytest

from probes.sockets.sock_diag import Socket, parse
from probes.watch.connection_track import (
    BUSY_BYTES,
    IDLE_SECONDS,
    LEAST_LOOKS,
    MOST_LOOKS,
    Look,
    Track,
)
from probes.watch.trace_rows import MOST_ROWS

CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
IDENTITY = struct.pack("!HH4s12x4s12x", 50000, 445, CLIENT, SERVER) + bytes(12)


def tcp_socket(sent: int = 0, received: int = 0, unread: int = 0, buffer: int = 87040) -> Socket:
    """Returns a connection as the kernel reports it."""
    info = bytearray(280)
    struct.pack_into("=QQ", info, 120, sent, received)
    parts = {2: bytes(info), 4: b"cubic\0", 7: struct.pack("=9I", 0, 131072, 0, buffer, *[0] * 5)}
    raw = struct.pack("=BBBB48sIIIII", socket.AF_INET, 1, 0, 0, IDENTITY, 0, unread, 0, 0, 7)
    for kind, value in parts.items():
        raw += struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
    read = parse(raw)
    assert read is not None
    return read


def track(looks: Iterable[tuple[float, Socket]]) -> Track:
    tracked = None
    for now, each in looks:
        tracked = tracked or Track(each)
        tracked.find(now, each)
    assert tracked is not None
    return tracked


def test_bytes_are_those_between_the_looks_around_the_time():
    of = track((number / 10, tcp_socket(1000 * number, number)) for number in range(100))
    span = of.connection_between(1.05, 2.05)
    assert (span.sent_bytes, span.received_bytes) == (11000, 11)
    assert span.looks == 10
    assert (span.local, span.peer) == ("10.0.0.1 50000", "10.0.0.2 445")


def test_a_time_that_begins_before_the_first_look_counts_from_it():
    of = track((number / 10, tcp_socket(1000 * number)) for number in range(5, 10))
    assert of.connection_between(0.0, 99.0).sent_bytes == 4000


def test_too_few_looks_tell_of_the_bytes_but_not_of_who_limited():
    of = track((number, tcp_socket(1000 * number)) for number in range(50))
    few = of.connection_between(10.5, 10.5 + LEAST_LOOKS - 1)
    assert (few.looks, few.sender, few.receiver) == (LEAST_LOOKS - 1, None, None)
    assert few.sent_bytes == 1000 * LEAST_LOOKS
    enough = of.connection_between(10.5, 10.5 + LEAST_LOOKS)
    assert enough.sender is not None and enough.receiver is not None


@pytest.mark.long
def test_an_hour_is_kept_in_bounded_memory_from_its_beginning_to_its_end():
    of = track((number / 50, tcp_socket(number)) for number in range(180_000))
    assert MOST_LOOKS / 3 < len(of.looks) <= MOST_LOOKS
    assert of.looks[0] == Look(0.0, tcp_socket(0).raw)
    assert of.looks[-1].clock_seconds > 3590
    apart = {
        round(two.clock_seconds - one.clock_seconds, 3)
        for one, two in zip(of.looks[:-1], of.looks[1:], strict=True)
    }
    assert len(apart) == 1
    assert abs(of.connection_between(900.0, 1800.0).sent_bytes - 45_000) < 500


def test_a_connection_is_idle_once_nothing_has_moved_for_a_while():
    looks = [(0.0, tcp_socket(1)), (10.0, tcp_socket(2)), (10.5, tcp_socket(2))]
    assert not track(looks).idle
    assert track([*looks, (10.0 + IDLE_SECONDS + 0.1, tcp_socket(2))]).idle


def test_a_connection_is_busy_where_it_moves_more_than_a_login():
    few = track([(0.0, tcp_socket(0)), (0.1, tcp_socket(5000, 6000))])
    assert not few.busy(0.1)
    many = track([(0.0, tcp_socket(0)), (0.1, tcp_socket(0, BUSY_BYTES))])
    assert many.busy(0.2)
    assert not many.busy(0.3 + IDLE_SECONDS)


def test_each_look_of_the_time_is_a_row_and_of_many_some():
    of = track((number / 10, tcp_socket(1000 * number)) for number in range(100))
    rows = of.connection_between(1.05, 2.05).rows
    assert [row[0] for row in rows] == pytest.approx([0.05 + number / 10 for number in range(10)])
    many = track((number / 50, tcp_socket(number)) for number in range(MOST_LOOKS))
    assert len(many.connection_between(0.0, 1e9).rows) <= MOST_ROWS
