"""The path stage on real paths: what it finds, what it says it cannot see, how little it asks."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Unavailable
from probes.net import icmp, port, rtt
from probes.net.black_hole import Trial
from probes.stages import path as stage
from tests import living

sys.path.append(str(Path(__file__).parents[2] / "lab"))
from delay import delay_path, missing  # noqa: E402 - behind sys.path

MOST_CONNECTIONS = 50


class CountingServer:
    """A server that counts who connects to it, and what it is sent."""

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, 0), family=family, backlog=64)
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        self.read_bytes = 0
        self.reset = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self._read, args=(connection,), daemon=True).start()
        except OSError:
            return

    def _read(self, connection: socket.socket) -> None:
        with connection:
            try:
                while got := connection.recv(1 << 16):
                    self.read_bytes += len(got)
            except ConnectionResetError:
                self.reset += 1

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@contextmanager
def serve_counting(host):
    server = CountingServer(host)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def look_at(run_stage, monkeypatch):
    """look_at(host=..., agent=...): samples and details on a path of this host to itself.

    It waits for each answer as long as it takes.
    """
    monkeypatch.setattr(icmp, "LEAST_PATIENCE_SECONDS", living.GENEROUS_SECONDS)
    monkeypatch.setattr(icmp, "LEAST_MTU_PATIENCE_SECONDS", living.GENEROUS_SECONDS)

    def look(host="127.0.0.1", agent=True, seconds=living.GENEROUS_SECONDS, load=False):
        with ExitStack() as stack:
            server = stack.enter_context(serve_counting(host))
            setting = stage.Setting(host, server.port, seconds, load)
            peer = stack.enter_context(stage.respond(setting)) if agent else Endpoint()
            return (*run_stage(stage, setting, peer), server)

    return look


@contextmanager
def faulty(agent=True, seconds=1.0, load=False, **fault):
    """A setting and its peer at the client's end of a path with a planted fault."""
    if lacks := missing():
        pytest.skip("NOT RUN: " + "; ".join(lacks))
    with ExitStack() as stack:
        path = stack.enter_context(delay_path(fault.pop("delay_seconds", 0.005), **fault))
        with path.server.entered():
            server = stack.enter_context(serve_counting(path.server.address))
            setting = stage.Setting(path.server.address, server.port, seconds, load)
            peer = stack.enter_context(stage.respond(setting)) if agent else Endpoint()
        stack.enter_context(path.client.entered())
        yield setting, peer, path, server


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_it_opens_and_closes_a_window_and_moves_no_payload(look_at, host):
    samples, details, _ = look_at(host)
    assert len(samples) == 2
    assert samples[-1].moved_bytes == 0 and samples[-1].elapsed_seconds > 0
    assert json.loads(json.dumps(details)) == details


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_both_directions_are_looked_at_where_there_is_an_agent(look_at, host):
    _, details, _ = look_at(host)
    handshake = details["rtt"]["handshake"]
    assert handshake["count"] + handshake["lost"] == stage.HANDSHAKES
    assert 0 < handshake["low_seconds"] <= handshake["median_seconds"] <= handshake["high_seconds"]
    assert [hop["address"] for hop in details["hops"]] == [host] and details["hops_complete"]
    for verb in stage.VERBS:
        assert details[verb]["path_mtu_bytes"] in (65535, 65536)
        assert details[verb]["path_mtu_confirmed"] is True
        assert details[verb]["black_hole"] is None
    assert set(details["not_measured"]) == {"push.loaded", "pull.loaded"}


def test_without_an_agent_it_says_what_needs_one(look_at):
    _, details, _ = look_at(agent=False, load=True)
    assert "pull" not in details
    assert details["push"]["path_mtu_bytes"] == 65535
    for name in ("pull", "push.loaded"):
        assert details["not_measured"][name] == stage.NEEDS_AGENT


@pytest.mark.long
def test_under_load_both_directions_are_told_with_their_load(look_at):
    _, details, _ = look_at(load=True, seconds=4.0)
    for verb in stage.VERBS:
        loaded = details[verb]["loaded"]
        assert 0 < loaded["rtt_seconds_median"] <= loaded["rtt_seconds_high"]
        assert loaded["buffer_delay_seconds"] >= 0 and loaded["buffer_delay_ratio"] >= 0
        assert loaded["count"] > 0 and loaded["streams"] == 1
        assert loaded["bytes_per_second"] > 0 and loaded["congestion_control"]
    assert "not_measured" not in details


def test_the_share_s_server_sees_few_connections_and_none_is_reset(look_at):
    for agent in (True, False):
        _, _, server = look_at(agent=agent)
        assert server.connections <= MOST_CONNECTIONS
        assert server.reset == 0 and server.read_bytes == 0


def assert_at_1400(hole):
    """Checks a hole, narrowed down to some bytes, by the time that the looks took."""
    assert hole["passes_bytes"] <= 1400 < hole["stalls_bytes"] <= hole["passes_bytes"] + 16


@pytest.mark.long
def test_a_black_hole_is_found_in_both_directions_and_not_filled(run_stage):
    with faulty(load=True, mtu_bytes=1500, largest_bytes=1400) as (setting, peer, _, server):
        _, details = run_stage(stage, setting, peer)
        assert server.connections <= MOST_CONNECTIONS
    for verb in stage.VERBS:
        assert_at_1400(details[verb]["black_hole"])
        assert "dropped" in details["not_measured"][f"{verb}.loaded"]


@pytest.mark.long
def test_a_deep_queue_shows_as_buffer_delay(run_stage):
    """At 4 MB/s half a megabyte waits for an eighth of a second; reno fills it."""
    fault = {"mtu_bytes": 1500, "bytes_per_second": 4e6, "queue_bytes": 500_000}
    with faulty(seconds=3.0, load=True, **fault) as (setting, peer, path, _):
        for end in (path.server, path.client):
            with end.entered():
                control = Path("/proc/sys/net/ipv4/tcp_congestion_control")
                control.write_text("reno")
        _, details = run_stage(stage, setting, peer)
    for verb in stage.VERBS:
        loaded = details[verb]["loaded"]
        assert loaded["congestion_control"] == "reno"
        assert loaded["rtt_seconds_median"] > 3 * path.round_trip_seconds
        assert loaded["buffer_delay_seconds"] > 2 * path.round_trip_seconds
        assert loaded["bytes_per_second"] < 4.1e6


def test_a_closed_port_is_a_reason(run_stage):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        at_port = closed.getsockname()[1]
    with pytest.raises(Unavailable, match="refused"):
        run_stage(stage, stage.Setting("127.0.0.1", at_port), Endpoint())


def test_behind_a_firewall_that_blocks_the_session_s_port_the_rest_is_measured(run_stage):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        blocked = Endpoint("127.0.0.1", closed.getsockname()[1], "0" * 32)
    with serve_counting("127.0.0.1") as server:
        setting = stage.Setting("127.0.0.1", server.port, 1.0)
        _, details = run_stage(stage, setting, blocked)
    assert "firewall" in details["not_measured"]["pull"]
    assert details["rtt"] and details["hops"] and details["push"]["path_mtu_bytes"]


def test_what_is_no_request_of_this_stage_is_refused():
    setting = stage.Setting("127.0.0.1", 9)
    with stage.respond(setting) as peer:
        meeting = port.meet(peer, {"do": "format the disk"}, 0)
        with pytest.raises(RuntimeError, match="does not know this"):
            meeting.hear(5.0)
        meeting.close()


def test_nothing_listens_after_the_session():
    setting = stage.Setting("127.0.0.1", 9)
    with stage.respond(setting) as peer:
        meeting = port.meet(peer, {"do": stage.LOAD}, 0)
        reply = meeting.hear(5.0)
        meeting.close()
    for at_port in (peer.port, reply["port"]):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", at_port)).close()


def silent(monkeypatch, seconds):
    """Has every connection with full segments wait so long and deliver nothing."""
    tried = []

    def waiting(*_):
        tried.append(time.monotonic())
        time.sleep(seconds)
        return Trial(1500, None)

    monkeypatch.setattr(stage.black_hole, "push", waiting)
    monkeypatch.setattr(stage.black_hole, "pull", waiting)
    return tried


@pytest.mark.long
def test_where_each_try_takes_long_no_more_are_made_and_the_reason_is_told(look_at, monkeypatch):
    # The first try of each way begins before 3 s and ends behind them.
    tried = silent(monkeypatch, 3.5)
    monkeypatch.setattr(stage, "LATE_SECONDS", 2.0)
    _, details, _ = look_at(load=True, seconds=1.0)
    assert len(tried) < 2 * 2 * 3
    for verb in stage.VERBS:
        assert "small packets" in details["not_measured"][f"{verb}.black_hole"]
        assert "out of time" in details["not_measured"][f"{verb}.black_hole"]
        assert "out of time" in details["not_measured"][f"{verb}.loaded"]


@pytest.mark.long
def test_a_try_that_does_not_end_is_left_behind_and_the_rest_is_kept(look_at, monkeypatch):
    silent(monkeypatch, 30.0)
    monkeypatch.setattr(stage, "LATEST_SECONDS", 0.5)
    began = time.monotonic()
    _, details, _ = look_at(seconds=1.0)
    assert time.monotonic() - began < 15
    assert "no answer within" in details["not_measured"]["push.black_hole"]
    assert details["rtt"] and details["hops"]


def test_round_trips_of_more_than_a_second_are_a_reason_of_their_own(run_stage, monkeypatch):
    late = rtt.Handshakes((), 1, 1)
    monkeypatch.setattr(stage.rtt, "measure_handshakes", lambda *_: late)
    with pytest.raises(Unavailable, match="RTT is a second or more, or packets are lost"):
        run_stage(stage, stage.Setting("127.0.0.1", 9), Endpoint())
