"""A transfer's shape, its bounds, and what of a receiver's word is believed."""

from __future__ import annotations

import socket
import threading
from dataclasses import asdict

import pytest

from probes.net import port, sampling, transfer
from probes.net.sampling import Arrivals
from probes.net.transfer import Shape
from tests import living

HERE = "127.0.0.1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"verb": "copy"},
        {"streams": 0},
        {"streams": 65},
        {"buffer_bytes": 0},
        {"buffer_bytes": (8 << 20) + 1},
        {"seconds": 0.0},
        {"seconds": float("nan")},
        {"window_bytes": -1},
        {"window_bytes": 2 << 30},
        {"streams": 64, "buffer_bytes": 8 << 20},
    ],
)
def test_what_no_transfer_can_be_is_refused(wrong):
    with pytest.raises(ValueError):
        Shape(**wrong)


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [[0.0, 0]],
        [[0.0, 0], [0.0, 5]],
        [[0.0, 0], [0.2, 6], [0.1, 7]],
        [[0.0, 0], [0.1, 6], [0.2, 5]],
        [[0.0, 0], [float("nan"), 5]],
        [[0.0, 0], [0.1, 11]],
        [[0.0, 0], [0.04, 10]],
        [[0.0, 0], [0.41, 10]],
        [[0.0, 0], [float("inf"), 10]],
    ],
)
def test_a_receiver_is_not_believed_what_cannot_be(samples):
    with pytest.raises(RuntimeError, match="receiver"):
        transfer._check(transfer._samples(samples), 10, 0.05, 0.4)


@pytest.mark.parametrize("verb", transfer.VERBS)
def test_each_end_tells_of_its_own_window(transfer_to, verb, payload_clock):
    shape = Shape(verb, 2, 64 << 10, 0.4)
    with transfer.respond(HERE, 1.0) as peer:
        _, figures = transfer_to(shape, peer)
    for end in (figures.sender, figures.receiver):
        assert 0 < end["moved_bytes"] <= end["calls"] * shape.buffer_bytes
        assert end["seconds_per_call"] == pytest.approx(2 * end["seconds"] / end["calls"])
        assert end["granted_bytes"] > 0 and 0 < end["seconds"] < shape.seconds + 1
        assert end["cpu_seconds"] > 0
    assert 0 < figures.rtt_unloaded_seconds < 1
    assert figures.limits["glimpses"] > 1 and figures.limits["receiver_glimpses"] > 1
    assert figures.limits["congestion_control"] == figures.congestion_control


def test_a_sender_that_stops_too_soon_after_the_warm_up_gives_no_figure(clock, monkeypatch):
    count_whole, opened = Arrivals.count_without_hole, threading.Event()

    def noted(arrivals, seconds):
        count = count_whole(arrivals, seconds)
        opened.set()
        return count

    monkeypatch.setattr(Arrivals, "count_without_hole", noted)
    shape = Shape("push", 1, 64 << 10, 0.3)
    with transfer.respond(HERE, 1.0) as peer:
        meeting = port.meet(peer, asdict(shape), 1)
        meeting.connections[0].sendall(bytes(64 << 10))
        assert opened.wait(living.GENEROUS_SECONDS)
        meeting.connections[0].sendall(bytes(64 << 10))
        meeting.connections[0].shutdown(socket.SHUT_WR)
        with pytest.raises(RuntimeError, match="ended .* after its warm-up"):
            meeting.hear(living.GENEROUS_SECONDS)
        meeting.close()


def test_a_long_transfer_is_looked_at_less_often_and_a_short_one_50_times_a_second():
    assert sampling.spacing_seconds(2.0) == 0.02
    assert 3600 / sampling.spacing_seconds(3600) <= sampling.MOST_LOOKS
