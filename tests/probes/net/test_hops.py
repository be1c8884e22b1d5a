"""The routers of a path are found in their order, without privileges; silence is told as such."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

from probes.net.hops import Trace, trace
from probes.net.icmp import Saying


def listening(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family)


@pytest.mark.parametrize("version", [4, 6])
def test_every_router_of_a_path_is_named_in_order_and_the_host_last(routed, version):
    with routed(routers=2, version=version) as path:
        with path.server.entered():
            server = listening(path.server.address)
        with server, path.client.entered():
            found = trace(path.server.address, server.getsockname()[1], 0.0005, 1.0)
    expected = [path.routers[0][0], path.routers[1][0], path.server.address]
    assert [hop["address"] for hop in found.hops()] == expected
    assert [hop["ttl"] for hop in found.hops()] == [1, 2, 3] and found.end == 3
    assert all(0 < hop["rtt_seconds"] < 1 for hop in found.hops())


def rule(end, chain, words):
    """A packet filter's rule in a namespace."""
    table = f"add table ip t; add chain ip t c {{ type filter hook {chain} priority 0; }}"
    command = [*end.prefix, "nft", f"{table}; add rule ip t c {words}"]
    subprocess.run(command, check=True)


def test_a_router_that_does_not_answer_is_said_to_be_silent(routed):
    with routed(routers=2) as path:
        rule(path.inside[0], "output", "icmp type time-exceeded drop")
        with path.server.entered():
            server = listening(path.server.address)
        with server, path.client.entered():
            found = trace(path.server.address, server.getsockname()[1], 0.0005, 1.0)
    assert found.hops()[0] == {"ttl": 1, "address": None, "rtt_seconds": None}
    assert found.hops()[1]["address"] == path.routers[1][0]
    assert found.end == 3


def test_a_host_that_drops_datagrams_is_found_by_its_open_port(routed):
    with routed(routers=1) as path:
        rule(path.server, "input", "meta l4proto udp drop")
        with path.server.entered():
            server = listening(path.server.address)
        with server, path.client.entered():
            found = trace(path.server.address, server.getsockname()[1], 0.0005, 1.0)
    expected = [path.routers[0][0], path.server.address]
    assert [hop["address"] for hop in found.hops()] == expected
    assert found.end == 2


def test_a_router_that_sends_datagrams_back_is_the_last_one_and_not_the_host(routed):
    with routed(routers=1) as path:
        rule(path.inside[0], "forward", "meta l4proto udp reject with icmp type admin-prohibited")
        with path.server.entered():
            closed = listening(path.server.address)
            closed.close()
        with path.client.entered():
            found = trace(path.server.address, 9, 0.0005, 1.0)
    assert [hop["address"] for hop in found.hops()] == [path.routers[0][0]]
    assert found.end is None


def test_this_host_itself_is_one_hop_away():
    with listening("127.0.0.1") as server:
        found = trace("127.0.0.1", server.getsockname()[1], 0.0001, 1.0)
    assert [hop["address"] for hop in found.hops()] == ["127.0.0.1"]
    assert found.end == 1


def test_nobody_needs_to_be_root():
    program = """
import os, socket
from probes.net.hops import trace
os.setgid(65534), os.setuid(65534)
server = socket.create_server(("127.0.0.1", 0))
print(trace("127.0.0.1", server.getsockname()[1], 0.0001, 1.0).end)
"""
    if os.geteuid() != 0:
        pytest.skip("NOT RUN: is as good as the other tests where nobody is root")
    run = ["python3", "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_answers_from_beyond_the_host_are_of_the_host_too():
    found = Trace()
    found.take(4, Saying(0, "port-unreachable", "10.0.0.9", None), 0.1)
    found.take(1, Saying(0, "time-exceeded", "10.0.0.1", None), 0.1)
    found.take(2, Saying(0, "port-unreachable", "10.0.0.9", None), 0.1)
    assert found.end == 2
    assert [hop["address"] for hop in found.hops()] == ["10.0.0.1", "10.0.0.9"]
