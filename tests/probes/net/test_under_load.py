"""Round trips beside a stream: told with the stream that they were beside, or not at all."""

from __future__ import annotations

import socket
import threading

import pytest

from probes.net import under_load
from probes.records import Endpoint
from probes.stage import Unavailable


@pytest.mark.parametrize("verb", ["push", "pull"])
def test_round_trips_are_told_with_the_load_that_they_were_beside(verb):
    with under_load.respond("127.0.0.1", 1.0) as peer:
        told = under_load.loaded(verb, peer, 0.5, 1e-9)
    assert 0 < told["rtt_seconds_median"] <= told["rtt_seconds_high"]
    assert 0 < told["count"] <= under_load.MOST_HANDSHAKES
    assert told["buffer_delay_seconds"] == told["rtt_seconds_median"] - 1e-9
    assert told["buffer_delay_ratio"] == told["buffer_delay_seconds"] / 1e-9
    assert told["bytes_per_second"] > 0 and told["streams"] == 1


def test_a_load_does_not_make_a_path_shorter():
    with under_load.respond("127.0.0.1", 1.0) as peer:
        told = under_load.loaded("push", peer, 0.5, 10.0)
    assert told["buffer_delay_seconds"] == told["buffer_delay_ratio"] == 0.0


def test_where_no_stream_can_be_opened_there_is_a_reason_at_once():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        peer = Endpoint("127.0.0.1", closed.getsockname()[1], "0" * 32)
    before = threading.active_count()
    with pytest.raises(Unavailable):
        under_load.loaded("push", peer, 0.5, 0.001)
    assert threading.active_count() <= before


def test_a_stream_longer_than_the_session_allows_has_no_figures():
    with under_load.respond("127.0.0.1", 0.1) as peer, pytest.raises(RuntimeError):
        under_load.loaded("pull", peer, 0.5, 0.001)
