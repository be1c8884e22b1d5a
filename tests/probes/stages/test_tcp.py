"""The tcp stage: counted by the receiver, open to its own session alone."""

import socket
from functools import partial

import pytest

from probes import STAGES
from probes.core.records import Endpoint, Sample, window_rates
from probes.core.stage import Unavailable
from probes.stages import loopback, tcp


@pytest.fixture
def run(run_stage):
    return partial(run_stage, tcp)


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("verb", ["push", "pull"])
def test_each_direction_is_counted_from_a_first_sample_of_zero_to_a_last(
    run, verb, streams, payload_clock
):
    setting = tcp.Setting(verb, streams, seconds=0.4, address="127.0.0.1")
    with tcp.respond(setting) as peer:
        samples, details = run(setting, peer)
    moved_bytes = [each.moved_bytes for each in samples]
    assert moved_bytes == sorted(moved_bytes) and moved_bytes[-1] > 0
    assert details["congestion_control"] == details["limits"]["congestion_control"]
    reasons = "network receiver sender send-buffer receive-window unknown"
    assert details["limits"]["by"] in reasons.split()
    assert details["limits"]["glimpses"] > 1 and details["limits"]["receiver_glimpses"] > 1
    for end in (details["sender"], details["receiver"]):
        assert {"calls", "seconds_per_call", "cpu_seconds", "granted_bytes"} <= set(end)
    assert details["rtt_unloaded_seconds"] > 0 and details["rtt_loaded_seconds"] > 0
    assert details["retransmitted_segments"] >= 0


def test_loopback_is_the_tcp_stage_to_oneself(payload_clock):
    setting = loopback.Setting("push", 1, seconds=0.4)
    assert setting.shape.copies and not tcp.Setting().shape.copies
    with loopback.respond(setting) as peer:
        samples = list(loopback.initiate(setting, peer))
    assert samples[-1].moved_bytes > 0
    assert {"loopback", "tcp"} <= set(STAGES)


def test_the_port_is_closed_with_the_session():
    setting = tcp.Setting("pull", 1, seconds=1.0, address="127.0.0.1")
    with tcp.respond(setting) as peer:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((peer.host, peer.port)).close()


def test_a_blocked_port_is_a_reason_not_an_end(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="firewall"):
        run(tcp.Setting("push", seconds=0.3), Endpoint(host="127.0.0.1", port=port, nonce="0" * 32))


def test_an_address_that_is_not_ours_is_listened_for_everywhere():
    with tcp.respond(tcp.Setting("push", address="203.0.113.9")) as peer:
        assert peer.port > 0


def test_windows_are_parts_of_one_transfer_in_order():
    samples = [Sample(i * 0.1, i * 100) for i in range(10)]
    assert window_rates(samples) == pytest.approx([1000.0] * 3)
    assert window_rates(samples[:5]) == []
