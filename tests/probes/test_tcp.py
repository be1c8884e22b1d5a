"""The tcp stage: counted by the receiver, open to its own session alone."""

import socket
import time

import pytest

from probes import STAGES, loopback, tcp
from probes.net import port, transfer
from probes.records import Endpoint, Sample
from probes.stage import Last, Unavailable


def run(setting, peer):
    running = tcp.initiate(setting, peer)
    samples = []
    while True:
        try:
            samples.append(next(running))
        except StopIteration as end:
            return samples, end.value


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("verb", ["push", "pull"])
def test_each_direction_is_counted_from_a_first_sample_of_zero_to_a_last(verb, streams):
    setting = tcp.Setting(verb, streams, seconds=0.5, address="127.0.0.1")
    with tcp.respond(setting) as peer:
        samples, details = run(setting, peer)
    assert samples[0] == Sample(0.0, 0)
    assert isinstance(samples[-1], Last)
    moved = [each.moved_bytes for each in samples]
    assert moved == sorted(moved) and moved[-1] > 0
    assert details["congestion_control"]
    assert details["limits"]["by"] in {
        "network",
        "receiver",
        "sender",
        "send-buffer",
        "receive-window",
    }


def test_loopback_is_the_tcp_stage_to_oneself():
    setting = loopback.Setting("push", 1, seconds=0.4)
    with loopback.respond(setting) as peer:
        samples = list(loopback.initiate(setting, peer))
    assert samples[-1].moved_bytes > 0
    assert {"loopback", "tcp"} <= set(STAGES)


def test_a_stranger_gets_nothing_and_does_not_keep_the_session_out():
    setting = tcp.Setting("pull", 1, seconds=0.4, address="127.0.0.1")
    with tcp.respond(setting) as peer:
        silent = [socket.create_connection((peer.host, peer.port)) for _ in range(8)]
        guess = socket.create_connection((peer.host, peer.port))
        guess.sendall(port._HELLO.pack(port._MAGIC, b"0" * 32, 1, 0))
        guess.settimeout(5)
        assert guess.recv(1) == b""
        samples, _ = run(setting, peer)
        assert samples[-1].moved_bytes > 0
        for each in (*silent, guess):
            each.close()


def test_a_silent_stranger_is_closed_after_two_seconds():
    setting = tcp.Setting("pull", 1, seconds=0.4, address="127.0.0.1")
    with tcp.respond(setting) as peer, socket.create_connection((peer.host, peer.port)) as silent:
        silent.settimeout(port.HELLO_SECONDS + 5)
        assert silent.recv(1) == b""


def test_the_port_is_closed_with_the_session():
    setting = tcp.Setting("pull", 1, seconds=0.4, address="127.0.0.1")
    with tcp.respond(setting) as peer:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((peer.host, peer.port)).close()


def test_a_blocked_port_is_a_reason_not_an_end():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="firewall"):
        run(tcp.Setting("push", seconds=0.3), Endpoint(host="127.0.0.1", port=port, nonce="0" * 32))


def test_a_wrong_nonce_fails_in_time():
    setting = tcp.Setting("push", 1, seconds=0.3, address="127.0.0.1")
    with tcp.respond(setting) as peer:
        began = time.monotonic()
        with pytest.raises((RuntimeError, OSError)):
            run(setting, Endpoint(host=peer.host, port=peer.port, nonce="1" * 32))
        assert time.monotonic() - began < port.CONNECT_SECONDS + 5


def test_an_address_that_is_not_ours_is_listened_for_everywhere():
    with tcp.respond(tcp.Setting("push", address="203.0.113.9")) as peer:
        assert peer.port > 0


@pytest.mark.parametrize(
    ("figures", "unread", "by"),
    [
        ({"unsent_bytes_median": 1 << 20}, [1 << 20], "receiver"),
        ({"send_buffer_limited_seconds": 0.5, "unsent_bytes_median": 0}, [0], "send-buffer"),
        ({"receive_window_limited_seconds": 0.5, "unsent_bytes_median": 0}, [0], "receive-window"),
        ({"unsent_bytes_median": 0}, [0], "sender"),
        ({"unsent_bytes_median": 1 << 20}, [0], "network"),
        ({}, [0], "unknown"),
        ({"unsent_bytes_median": 1 << 20}, [], "unknown"),
    ],
)
def test_who_limits_is_told_with_its_figures(figures, unread, by):
    told = transfer.limits(figures, unread, 1.0)
    assert told["by"] == by
    assert figures.items() <= told.items()


def test_windows_are_parts_of_one_transfer_in_order():
    samples = [Sample(i * 0.1, i * 100) for i in range(10)]
    assert transfer.window_rates(samples) == pytest.approx([1000.0] * 3)
    assert transfer.window_rates(samples[:5]) == []
