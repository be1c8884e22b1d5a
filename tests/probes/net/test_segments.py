"""Full segments on real connections: swallowed by size or not, and never mistaken for slowness."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from probes.net import black_hole, port, segments
from probes.records import Endpoint
from probes.stage import Unavailable

PATIENCE_SECONDS = 0.3
LATER = float("inf")


def assert_at_1400(found):
    """A hole in a path of full packets, narrowed down to some bytes: under load not to the last."""
    full, hole = found
    assert full == 1500
    assert hole["passes_bytes"] <= 1400 < hole["stalls_bytes"] <= hole["passes_bytes"] + 16


def ways(stack, path):
    """The three ways to try it on a path: to the session's port, from it, to a server's port."""
    with path.server.entered():
        peer = stack.enter_context(port.opened(path.server.address, segments.serve))
        family = socket.AF_INET6 if ":" in path.server.address else socket.AF_INET
        server = socket.create_server((path.server.address, 0), family=family, backlog=64)
        stack.enter_context(server)
    share = server.getsockname()[:2]
    return {
        "push": lambda size: segments.pushed(peer, size, PATIENCE_SECONDS),
        "pull": lambda size: segments.pulled(peer, size, PATIENCE_SECONDS),
        "unasked": lambda size: segments.pushed_unasked(*share, size, PATIENCE_SECONDS),
    }


@pytest.mark.parametrize("way", ["push", "pull", "unasked"])
def test_a_black_hole_of_1400_bytes_is_found_to_the_byte(faulty_path, way):
    with ExitStack() as stack:
        path = stack.enter_context(faulty_path(0.005, mtu_bytes=1500, largest_bytes=1400))
        attempt = ways(stack, path)[way]
        stack.enter_context(path.client.entered())
        found = black_hole.find(attempt, LATER)
    assert_at_1400(found)


@pytest.mark.parametrize("loss_ratio", [0.0, 0.01, 0.02])
def test_a_path_that_loses_packets_of_any_size_has_none(faulty_path, loss_ratio):
    with ExitStack() as stack:
        path = stack.enter_context(faulty_path(0.005, mtu_bytes=1500, loss_ratio=loss_ratio))
        attempts = ways(stack, path)
        stack.enter_context(path.client.entered())
        for _ in range(5):
            for attempt in attempts.values():
                assert black_hole.find(attempt, LATER) == (1500, None)


@pytest.mark.parametrize("version", [4, 6])
def test_a_router_that_says_too_big_makes_no_black_hole(routed, version):
    with ExitStack() as stack:
        path = stack.enter_context(routed(routers=2, version=version, mtus={1: 1400}))
        attempts = ways(stack, path)
        stack.enter_context(path.client.entered())
        for attempt in attempts.values():
            assert black_hole.find(attempt, LATER)[1] is None


def rule(end, chain, words):
    """A packet filter's rule in a namespace."""
    table = f"add table ip t; add chain ip t {chain} {{ type filter hook {chain} priority 0; }}"
    command = [*end.prefix, "nft", f"{table}; add rule ip t {chain} {words}"]
    subprocess.run(command, check=True)


def test_a_router_that_keeps_silent_makes_one_unless_it_lowers_the_mss(routed):
    with ExitStack() as stack:
        path = stack.enter_context(routed(routers=2, mtus={1: 1400}))
        for router in path.inside:
            rule(router, "output", "icmp type destination-unreachable drop")
        attempts = ways(stack, path)
        stack.enter_context(path.client.entered())
        assert_at_1400(black_hole.find(attempts["push"], LATER))
        rule(path.inside[0], "forward", "tcp flags syn tcp option maxseg size set 1360")
        for attempt in attempts.values():
            assert black_hole.find(attempt, LATER) == (1400, None)


def test_the_size_tried_is_that_of_the_packets_on_the_way(faulty_path):
    with ExitStack() as stack:
        path = stack.enter_context(faulty_path(0.0, mtu_bytes=1500))
        attempts = ways(stack, path)
        stack.enter_context(path.client.entered())
        for attempt in attempts.values():
            assert attempt(None) == black_hole.Trial(1500, True)
            assert attempt(1234) == black_hole.Trial(1234, True)


def test_a_server_that_hangs_makes_no_black_hole():
    """Its kernel acknowledges all the same."""
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])"
    command = [sys.executable, "-uc", f"{code}; import time; time.sleep(60)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as hanging:
        at_port = int(hanging.stdout.readline())
        os.kill(hanging.pid, signal.SIGSTOP)
        try:
            trial = segments.pushed_unasked("127.0.0.1", at_port, 1500, PATIENCE_SECONDS)
        finally:
            hanging.kill()
    assert trial == black_hole.Trial(1500, True)


def test_a_real_file_server_takes_it_and_serves_on(smbd):
    _, server = smbd
    for _ in range(3):
        trial = segments.pushed_unasked(server.host, server.port, 1500, PATIENCE_SECONDS)
        assert trial == black_hole.Trial(1500, True)


def test_a_server_that_leaves_has_not_received_what_vanished(faulty_path):
    """Its reset empties our queue, which looks as if all had been acknowledged."""
    with ExitStack() as stack:
        path = stack.enter_context(faulty_path(0.005, mtu_bytes=1500, largest_bytes=1400))
        with path.server.entered():
            server = stack.enter_context(socket.create_server((path.server.address, 0)))

        def leave():
            connection, _ = server.accept()
            connection.recv(16)
            time.sleep(0.1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

        threading.Thread(target=leave, daemon=True).start()
        stack.enter_context(path.client.entered())
        trial = segments.pushed_unasked(*server.getsockname(), None, 1.0)
    assert trial.passed is None


def test_what_no_server_takes_unasked_is_not_sent():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(Unavailable, match="unasked"):
            segments.pushed_unasked(*server.getsockname(), None, PATIENCE_SECONDS)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1) == b""


def test_where_nobody_can_be_met_nothing_follows():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        at_port = closed.getsockname()[1]
    peer = Endpoint("127.0.0.1", at_port, "0" * 32)
    for trial in (
        segments.pushed(peer, None, 0.1),
        segments.pulled(peer, None, 0.1),
        segments.pushed_unasked("127.0.0.1", at_port, None, 0.1),
    ):
        assert trial.passed is None


def test_nothing_stuck_is_left_behind(faulty_path, becomes):
    """Neither end's kernel goes on trying for minutes."""
    with ExitStack() as stack:
        path = stack.enter_context(faulty_path(0.001, mtu_bytes=1500, largest_bytes=1400))
        attempts = ways(stack, path)
        with path.client.entered():
            for attempt in attempts.values():
                assert attempt(None).passed is False

        def stuck():
            found = []
            for end in (path.client, path.server):
                command = [*end.prefix, "ss", "-Htno", "state", "connected"]
                lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
                found += [line for line in lines if line.split()[2] != "0"]
            return found

        began = time.monotonic()
        assert becomes(lambda: not stuck(), 5.0), (stuck(), time.monotonic() - began)


@pytest.mark.parametrize(
    ("address", "size"),
    [("192.0.2.1", 40), ("2001:db8::1", 60), ("::ffff:192.0.2.1", 40), ("fe80::1%eth0", 60)],
)
def test_headers_are_those_of_the_version_on_the_wire(address, size):
    assert segments.overhead_bytes(address) == size
