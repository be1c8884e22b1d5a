"""Who holds the bytes in a sender's socket, by its queues."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck.analysis.attribution import sender_socket
from bottleneck.analysis.attribution.trace import Connection
from probes.core.copy_trace import SocketLook
from tests.analysis.attribution.planted import IDLE_SOCKET, MIB, SEGMENT, SENDING

RATE = 25e6


def find_blocker(
    room: float = 6 * MIB, unread: float = 0.0, asks: bool = False, **figures: Any
) -> str | None:
    look = SocketLook(1.0, **{**IDLE_SOCKET, **figures})
    other = SocketLook(1.0, unread_bytes=unread)
    sender = Connection((look,), 64 << 10, None, SEGMENT)
    return sender_socket.blocked_by(look, sender, other, room, asks, RATE)


def test_unsent_bytes_before_an_open_window_are_the_paths() -> None:
    assert find_blocker(**SENDING) == sender_socket.NETWORK
    assert find_blocker() is None


def test_all_that_the_window_lets_through_is_under_way() -> None:
    full = {**SENDING, "peer_window_bytes": 64 << 10}
    assert find_blocker(**full) == sender_socket.WINDOW
    assert find_blocker(**full, unread=4 * MIB) == sender_socket.RECEIVER
    queue = {"rtt_seconds": 0.02, "min_rtt_seconds": 0.002}
    assert find_blocker(**full, **queue) == sender_socket.NETWORK
    assert find_blocker(**{**SENDING, "peer_window_bytes": None}) == sender_socket.NOT_REPORTED
    assert find_blocker(**{**SENDING, "unsent_bytes": None}) == sender_socket.NOT_REPORTED


def test_a_full_buffer_of_which_all_is_under_way_is_too_small() -> None:
    full = {"queued_bytes": 60 << 10, "in_flight_bytes": 50 << 10}
    assert find_blocker(**full) == sender_socket.SEND_BUFFER
    assert find_blocker(**full, asks=True) is None
    assert find_blocker(**full, rtt_seconds=0.02, min_rtt_seconds=0.002) == sender_socket.NETWORK
    assert find_blocker(**{**full, "queued_bytes": 20 << 10}) is None
    # A server's write of a megabyte lies above a small buffer, and a few segments are not sent yet.
    above = {"queued_bytes": 240 << 10, "in_flight_bytes": 200 << 10}
    assert find_blocker(**above, unsent_bytes=10 * SEGMENT) == sender_socket.SEND_BUFFER
    assert find_blocker(**above, unsent_bytes=60 * SEGMENT) == sender_socket.NETWORK


def test_where_nothing_is_acknowledged_for_long_the_path_is_not_at_work() -> None:
    assert find_blocker(**SENDING, since_acknowledged_seconds=0.03) == sender_socket.PAUSED
    far = {"min_rtt_seconds": 0.02, "rtt_seconds": 0.02}
    assert find_blocker(**SENDING, **far, since_acknowledged_seconds=0.03) == sender_socket.NETWORK
    assert (
        find_blocker(**SENDING, backoffs=1, since_acknowledged_seconds=0.3) == sender_socket.NETWORK
    )


@pytest.mark.parametrize(
    ("window", "rtt", "fits"),
    [(RATE * 0.01, 0.01, True), (RATE, 0.01, False), (RATE * 1e-3, 1e-3, False), (0, 1, False)],
)
def test_a_window_a_round_trip_is_what_holds_a_rate(window: float, rtt: float, fits: bool) -> None:
    assert sender_socket.window_limits(window, rtt, RATE) is fits


@pytest.mark.parametrize(
    ("trips", "full"),
    [
        ([0.040] * 6 + [0.050] * 6, True),
        ([0.031] * 4 + [0.050] * 8, False),
        ([0.034] * 12, False),
        ([0.050] * 7, False),
        ([0.0005] * 12, False),
    ],
    ids=["never-empty", "emptied-by-losses", "no-queue", "few-looks", "near"],
)
def test_a_path_is_full_where_its_rtt_never_comes_back_to_the_least(
    trips: list[float], full: bool
) -> None:
    """A sender that backs off below the bandwidth-delay product leaves no queue."""
    base_rtt = 0.0001 if trips[0] < 0.001 else 0.031
    assert sender_socket.is_always_full(trips, base_rtt, sender_socket.FILLED_RATIO) is full


@pytest.mark.parametrize(
    ("flights", "trips", "rises"),
    [
        ([100, 200] * 10, [0.020, 0.040] * 10, True),
        ([100, 200] * 10, [0.040, 0.020] * 10, False),
        ([100, 101] * 10, [0.040, 0.020] * 10, True),
        ([], [], True),
    ],
    ids=["queue", "jitter", "always-as-much", "not-told"],
)
def test_a_queue_makes_the_rtt_rise_with_what_is_in_flight(
    flights: list[float], trips: list[float], rises: bool
) -> None:
    looks = [
        SocketLook(n / 10, in_flight_bytes=flying, rtt_seconds=rtt)
        for n, (flying, rtt) in enumerate(zip(flights, trips, strict=True))
    ]
    assert sender_socket.rises_with_flight(Connection(tuple(looks), None, None, SEGMENT)) is rises
