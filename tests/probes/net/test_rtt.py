"""Handshakes measure a round trip, few and polite, and loss is not taken for length."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Unavailable
from probes.net import rtt, transfer
from probes.net.rtt import Handshakes, measure_handshakes
from tests import living


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_as_many_handshakes_as_asked_for_and_nothing_is_sent_or_reset(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, backlog=64) as server:
        rtts = measure_handshakes(host, server.getsockname()[1], 12, 0.001, living.GENEROUS_SECONDS)
        for _ in range(12):
            connection, _ = server.accept()
            with connection:
                assert connection.recv(1) == b""
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert len(rtts.seconds) == 12 and rtts.lost == 0
    spread = rtts.spread()
    assert 0 < spread["low_seconds"] <= spread["median_seconds"] <= spread["high_seconds"]
    assert spread["count"] == 12


def test_no_round_trip_is_shorter_than_the_path(lab_path):
    with lab_path(0.01) as path:
        with path.server.entered():
            server = socket.create_server((path.server.address, 0))
        with server, path.client.entered():
            trips = measure_handshakes(*server.getsockname(), 10, 0.005, living.GENEROUS_SECONDS)
    assert len(trips.seconds) == 10
    assert min(trips.seconds) >= path.round_trip_seconds


@pytest.mark.long
def test_a_lost_packet_is_counted_and_not_taken_for_a_long_round_trip(lab_path):
    with lab_path(0.001, loss_ratio=0.3, seed=3) as path:
        with path.server.entered():
            server = socket.create_server((path.server.address, 0))
        with server, path.client.entered():
            # until the hosts know each other's hardware address
            trips = Handshakes((), 0)
            while not trips.seconds:
                with suppress(Unavailable):
                    trips = measure_handshakes(*server.getsockname(), 1, 0.0, 0.2)
            trips = measure_handshakes(*server.getsockname(), 40, 0.002, 3.0)
    assert trips.lost > 0
    # a SYN is sent again after a second
    assert max(trips.seconds) < 1.0


def test_a_closed_port_is_a_reason():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(Unavailable, match="refused"):
        measure_handshakes("127.0.0.1", port, 3, 0.001, living.GENEROUS_SECONDS)


def test_silence_is_no_round_trip_and_ends_in_time(monkeypatch):
    monkeypatch.setattr(rtt, "time", living.FakeClock(step=0.01))
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        filling = [socket.socket() for _ in range(4)]
        for each in filling:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        trips = measure_handshakes("127.0.0.1", port, 3, 0.001, 0.2)
        for each in filling:
            each.close()
    assert trips == Handshakes((), 3)
    assert trips.spread() == {}


def test_no_more_are_started_once_it_is_enough():
    enough = threading.Event()
    enough.set()
    with socket.create_server(("127.0.0.1", 0)) as server:
        trips = measure_handshakes("127.0.0.1", server.getsockname()[1], 9, 0.0, 1.0, enough.is_set)
    assert trips == Handshakes((), 0)


@pytest.mark.long
def test_an_answer_after_a_second_is_late_and_no_round_trip(lab_path):
    with lab_path(0.6) as path:
        with path.server.entered():
            server = socket.create_server((path.server.address, 0))
        with server, path.client.entered():
            trips = measure_handshakes(*server.getsockname(), 1, 0.0, 10.0)
    assert (trips.seconds, trips.lost, trips.late) == ((), 1, 1)


@pytest.fixture
def load(payload_clock, monkeypatch):
    """A load whose time passes with its payload, and three handshakes beside it."""

    def three(host, port, limit, pace, seconds, ended):
        return measure_handshakes(host, port, 3, pace, living.GENEROUS_SECONDS)

    monkeypatch.setattr(rtt, "measure_handshakes", three)


@pytest.mark.usefixtures("load")
@pytest.mark.parametrize("verb", ["push", "pull"])
def test_round_trips_are_told_with_the_load_that_they_were_beside(verb):
    with transfer.respond("127.0.0.1", 1.0) as peer:
        figures = rtt.measure_loaded(verb, peer, 0.5, 1e-9)
    assert 0 < figures["rtt_seconds_median"] <= figures["rtt_seconds_high"]
    assert figures["count"] == 3
    assert figures["buffer_delay_seconds"] == figures["rtt_seconds_median"] - 1e-9
    assert figures["buffer_delay_ratio"] == figures["buffer_delay_seconds"] / 1e-9
    assert figures["bytes_per_second"] > 0 and figures["streams"] == 1


@pytest.mark.usefixtures("load")
def test_a_load_does_not_make_a_path_shorter():
    with transfer.respond("127.0.0.1", 1.0) as peer:
        figures = rtt.measure_loaded("push", peer, 0.5, 10.0)
    assert figures["buffer_delay_seconds"] == figures["buffer_delay_ratio"] == 0.0


def test_where_no_stream_can_be_opened_there_is_a_reason_at_once():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        peer = Endpoint("127.0.0.1", closed.getsockname()[1], "0" * 32)
    threads = threading.active_count()
    with pytest.raises(Unavailable):
        rtt.measure_loaded("push", peer, 0.5, 0.001)
    assert threading.active_count() <= threads


def test_a_stream_longer_than_the_session_allows_has_no_figures():
    with transfer.respond("127.0.0.1", 0.1) as peer, pytest.raises(RuntimeError):
        rtt.measure_loaded("pull", peer, 0.5, 0.001)
