"""A black hole is found with its size; loss, silence and slowness are never called one."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Unavailable
from probes.net import black_hole, port
from probes.net.black_hole import ETHERNET_BYTES, LEAST_BYTES, Trial, find
from tests import living

LATER = float("inf")


def hole(largest, full):
    """Returns an attempt on a path where larger packets vanish; TCP would send full ones."""

    def attempt(size):
        packet = min(size or full, full)
        return Trial(packet, packet <= largest)

    return attempt


@pytest.mark.parametrize("largest", [576, 600, 1006, 1280, 1399, 1400, 1452, 1492, 1498, 1499])
def test_the_size_is_found_to_the_byte_on_ethernet(largest):
    full, hole_sizes = find(hole(largest, 1500), LATER)
    assert full == 1500
    assert hole_sizes == {"passes_bytes": largest, "stalls_bytes": largest + 1}


@pytest.mark.parametrize("largest", [1492, 1500, 4352, 8000])
def test_of_jumbo_frames_it_is_found_to_a_few_bytes_and_ethernet_s_own_exactly(largest):
    _, hole_sizes = find(hole(largest, 9000), LATER)
    assert hole_sizes["passes_bytes"] <= largest < hole_sizes["stalls_bytes"]
    assert hole_sizes["stalls_bytes"] - hole_sizes["passes_bytes"] <= 8
    assert largest != ETHERNET_BYTES or hole_sizes["passes_bytes"] == ETHERNET_BYTES


def test_one_full_segment_that_passes_clears_the_path():
    outcomes = iter([Trial(1500, None), Trial(1500, False), Trial(1500, False), Trial(1500, True)])
    assert find(lambda size: next(outcomes), LATER) == (1500, None)
    assert next(outcomes, None) is None


def test_random_loss_is_never_called_a_black_hole():
    """Even where a fifth of all connections fails."""
    for seed in range(300):
        chance = random.Random(seed)
        outcomes = [True] * 8 + [False, None]

        def attempt(size, chance=chance, outcomes=outcomes):
            return Trial(size or 1500, chance.choice(outcomes))

        try:
            assert find(attempt, LATER)[1] is None
        except Unavailable:
            continue


@pytest.mark.parametrize(("passed", "why"), [(None, "small"), (False, "576")])
def test_a_path_that_passes_nothing_or_stalls_whatever_fills_packets_is_unclear(passed, why):
    with pytest.raises(Unavailable, match=why):
        find(lambda size: Trial(size or 1500, passed), LATER)


def test_a_size_that_passes_the_next_time_was_no_black_hole():
    tried = []

    def attempt(size):
        tried.append(size)
        return Trial(size or 1500, size is not None and (size <= 1400 or tried.count(size) > 1))

    with pytest.raises(Unavailable, match="lost sometimes"):
        find(attempt, LATER)


@pytest.mark.parametrize(
    ("passed", "why"),
    [(None, "even small packets"), (False, "on 1 of 1 connections full-size packets")],
)
def test_at_its_deadline_no_more_is_tried_and_what_it_knows_is_the_reason(passed, why):
    begun = []

    def attempt(size):
        begun.append(size)
        return Trial(1500, passed)

    with pytest.raises(Unavailable, match=f"{why} .*out of time"):
        find(attempt, 0.0)
    assert begun == [None]


def test_without_time_for_a_size_none_is_said_to_be_lost(monkeypatch):
    monkeypatch.setattr(black_hole, "time", living.FakeClock(now=0.0, step=2.0))
    with pytest.raises(Unavailable, match="out of time to find the size that does"):
        find(hole(1400, 1500), 5.0)


def test_connections_are_few():
    """A path without a fault takes one, a path with a fault fewer than thirty."""
    begun = []

    def attempt(size, largest=1500):
        begun.append(size)
        return hole(largest, 1500)(size)

    find(attempt, LATER)
    assert len(begun) == 1
    find(lambda size: attempt(size, 1400), LATER)
    assert len(begun) < 30


PATIENCE_SECONDS = 0.3
"""On paths where packets vanish; elsewhere an end that is kept waiting loses none."""


def assert_at_1400(sizes):
    """Checks a hole, narrowed down to some bytes: under load not to the last."""
    full, hole = sizes
    assert full == 1500
    assert hole["passes_bytes"] <= 1400 < hole["stalls_bytes"] <= hole["passes_bytes"] + 16


def ways(stack, path, patience=PATIENCE_SECONDS):
    """Returns three ways to try a path: to the session's port, from it, to a server's port."""
    with path.server.entered():
        peer = stack.enter_context(port.listen(path.server.address, black_hole.serve))
        family = socket.AF_INET6 if ":" in path.server.address else socket.AF_INET
        server = socket.create_server((path.server.address, 0), family=family, backlog=64)
        stack.enter_context(server)
    share = server.getsockname()[:2]
    return {
        "push": lambda size: black_hole.push(peer, size, patience),
        "pull": lambda size: black_hole.pull(peer, size, patience),
        "unasked": lambda size: black_hole.push_unasked(*share, size, patience),
    }


@pytest.mark.long
@pytest.mark.parametrize("way", ["push", "pull", "unasked"])
def test_a_black_hole_of_1400_bytes_is_found_to_the_byte(lab_path, way):
    with ExitStack() as stack:
        path = stack.enter_context(lab_path(0.005, mtu_bytes=1500, largest_bytes=1400))
        attempt = ways(stack, path)[way]
        stack.enter_context(path.client.entered())
        sizes = black_hole.find(attempt, LATER)
    assert_at_1400(sizes)


@pytest.mark.long
@pytest.mark.parametrize("loss_ratio", [0.0, 0.01, 0.02])
def test_a_path_that_loses_packets_of_any_size_has_none(lab_path, loss_ratio):
    with ExitStack() as stack:
        path = stack.enter_context(lab_path(0.005, mtu_bytes=1500, loss_ratio=loss_ratio))
        attempts = ways(stack, path)
        stack.enter_context(path.client.entered())
        for _ in range(5):
            for attempt in attempts.values():
                assert black_hole.find(attempt, LATER) == (1500, None)


@pytest.mark.parametrize("version", [4, 6])
def test_a_router_that_says_too_big_makes_no_black_hole(build_path, version):
    with ExitStack() as stack:
        path = stack.enter_context(build_path(routers=2, version=version, mtus={1: 1400}))
        attempts = ways(stack, path, living.GENEROUS_SECONDS)
        stack.enter_context(path.client.entered())
        for attempt in attempts.values():
            assert black_hole.find(attempt, LATER)[1] is None


def rule(end, chain, words):
    """A packet filter's rule in a namespace."""
    table = f"add table ip t; add chain ip t {chain} {{ type filter hook {chain} priority 0; }}"
    command = [*end.prefix, "nft", f"{table}; add rule ip t {chain} {words}"]
    subprocess.run(command, check=True)


@pytest.mark.long
def test_a_router_that_keeps_silent_makes_one_unless_it_lowers_the_mss(build_path):
    with ExitStack() as stack:
        path = stack.enter_context(build_path(routers=2, mtus={1: 1400}))
        for router in path.inside:
            rule(router, "output", "icmp type destination-unreachable drop")
        attempts = ways(stack, path)
        stack.enter_context(path.client.entered())
        assert_at_1400(black_hole.find(attempts["push"], LATER))
        rule(path.inside[0], "forward", "tcp flags syn tcp option maxseg size set 1360")
        for attempt in attempts.values():
            assert black_hole.find(attempt, LATER) == (1400, None)


def test_the_size_tried_is_that_of_the_packets_on_the_way(lab_path):
    with ExitStack() as stack:
        path = stack.enter_context(lab_path(0.0, mtu_bytes=1500))
        attempts = ways(stack, path, living.GENEROUS_SECONDS)
        stack.enter_context(path.client.entered())
        for attempt in attempts.values():
            assert attempt(None) == black_hole.Trial(1500, True)
            assert attempt(1234) == black_hole.Trial(1234, True)


def test_a_server_that_hangs_makes_no_black_hole():
    """Its kernel acknowledges all the same."""
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])"
    command = [sys.executable, "-uc", f"{code}; input()"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as hanging:
        at_port = int(hanging.stdout.readline())
        os.kill(hanging.pid, signal.SIGSTOP)
        patience = living.GENEROUS_SECONDS
        try:
            trial = black_hole.push_unasked("127.0.0.1", at_port, 1500, patience)
        finally:
            hanging.kill()
    assert trial == black_hole.Trial(1500, True)


def test_a_real_file_server_takes_it_and_serves_on(smbd):
    _, server = smbd
    for _ in range(3):
        patience = living.GENEROUS_SECONDS
        trial = black_hole.push_unasked(server.host, server.port, 1500, patience)
        assert trial == black_hole.Trial(1500, True)


def test_a_server_that_leaves_has_not_received_what_vanished(lab_path, monkeypatch):
    """Its reset empties our queue, which looks as if all had been acknowledged."""
    with ExitStack() as stack:
        path = stack.enter_context(lab_path(0.005, mtu_bytes=1500, largest_bytes=1400))
        with path.server.entered():
            server = stack.enter_context(socket.create_server((path.server.address, 0)))

        acknowledged, asks = black_hole._is_acknowledged, threading.Semaphore(0)

        def noted(*arguments):
            asks.release()
            return acknowledged(*arguments)

        def leave():
            connection, _ = server.accept()
            connection.recv(16)
            for _ in range(2):  # of the small ones, then of the full ones that vanish
                assert asks.acquire(timeout=living.GENEROUS_SECONDS)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()

        monkeypatch.setattr(black_hole, "_is_acknowledged", noted)
        threading.Thread(target=leave, daemon=True).start()
        stack.enter_context(path.client.entered())
        patience = living.GENEROUS_SECONDS
        trial = black_hole.push_unasked(*server.getsockname(), None, patience)
    assert trial.passed is None


def test_what_no_server_takes_unasked_is_not_sent():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(Unavailable, match="unasked"):
            black_hole.push_unasked(*server.getsockname(), None, PATIENCE_SECONDS)
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1) == b""


def test_where_nobody_can_be_met_nothing_follows():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        at_port = closed.getsockname()[1]
    peer = Endpoint("127.0.0.1", at_port, "0" * 32)
    for trial in (
        black_hole.push(peer, None, 0.1),
        black_hole.pull(peer, None, 0.1),
        black_hole.push_unasked("127.0.0.1", at_port, None, 0.1),
    ):
        assert trial.passed is None


def test_nothing_stuck_is_left_behind(lab_path, monkeypatch):
    """Neither end's kernel goes on trying for minutes."""
    acknowledged, arrived = black_hole._is_acknowledged, black_hole._has_arrived

    def impatient(connection, patience):
        """Shortens the wait for packets that vanish."""
        full = living.unacknowledged_bytes(connection) > LEAST_BYTES
        return acknowledged(connection, 0.05 if full else patience)

    monkeypatch.setattr(black_hole, "_is_acknowledged", impatient)
    monkeypatch.setattr(black_hole, "_has_arrived", lambda *of: arrived(*of[:-1], 0.05))
    with ExitStack() as stack:
        path = stack.enter_context(lab_path(0.001, mtu_bytes=1500, largest_bytes=1400))
        attempts = ways(stack, path, living.GENEROUS_SECONDS)
        with path.client.entered():
            for attempt in attempts.values():
                assert attempt(None).passed is False

        def stuck():
            sockets = []
            for end in (path.client, path.server):
                command = [*end.prefix, "ss", "-Htno", "state", "connected"]
                lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
                sockets += [line for line in lines if line.split()[2] != "0"]
            return sockets

        assert living.until(lambda: not stuck()), stuck()


@pytest.mark.parametrize(
    ("address", "size"),
    [("192.0.2.1", 40), ("2001:db8::1", 60), ("::ffff:192.0.2.1", 40), ("fe80::1%eth0", 60)],
)
def test_headers_are_those_of_the_version_on_the_wire(address, size):
    assert black_hole.overhead_bytes(address) == size
