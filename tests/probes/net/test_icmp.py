"""ICMP messages as the kernel hands them over: what they say, and nothing from what they do not."""

from __future__ import annotations

import os
import socket
import struct
import subprocess

import pytest

from probes.core.stage import Unavailable
from probes.net import icmp
from probes.net.icmp import Report, Trace, datagrams, parse, path_mtu, trace
from tests import living

ROUTER = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton("192.0.2.1"))
ROUTER_V6 = struct.pack(
    "=HHI16sI", socket.AF_INET6, 0, 0, socket.inet_pton(socket.AF_INET6, "2001:db8::1"), 0
)


def cmsg(level, name, *error, offender=ROUTER):
    return [(level, name, struct.pack("=IBBBBII", *error) + offender)]


# errno, origin (2 ICMP, 3 ICMPv6), type, code, pad, info (an MTU), data
@pytest.mark.parametrize(
    ("control", "saying"),
    [
        (cmsg(0, 11, 113, 2, 11, 0, 0, 0, 0), Report(7, "time-exceeded", "192.0.2.1")),
        (cmsg(0, 11, 111, 2, 3, 3, 0, 0, 0), Report(7, "port-unreachable", "192.0.2.1")),
        (cmsg(0, 11, 90, 2, 3, 4, 0, 1400, 0), Report(7, "too-big", "192.0.2.1")),
        (cmsg(0, 11, 113, 2, 3, 13, 0, 0, 0), Report(7, "unreachable", "192.0.2.1")),
        (
            cmsg(41, 25, 113, 3, 3, 0, 0, 0, 0, offender=ROUTER_V6),
            Report(7, "time-exceeded", "2001:db8::1"),
        ),
        (
            cmsg(41, 25, 111, 3, 1, 4, 0, 0, 0, offender=ROUTER_V6),
            Report(7, "port-unreachable", "2001:db8::1"),
        ),
        (
            cmsg(41, 25, 90, 3, 2, 0, 0, 1280, 0, offender=ROUTER_V6),
            Report(7, "too-big", "2001:db8::1"),
        ),
        # the kernel's own error: no ICMP message
        (cmsg(0, 11, 90, 1, 0, 0, 0, 1500, 0), None),
        (cmsg(0, 11, 113, 2, 11, 0, 0, 0, 0, offender=b""), Report(7, "time-exceeded", None)),
        ([(0, 11, b"\0" * 7)], None),
        ([(0, 8, b"\0" * 40)], None),
        ([], None),
    ],
)
def test_each_message_is_told_by_its_kind_its_sender_and_its_mtu(control, saying):
    assert parse(control, 7) == saying


def test_a_system_without_an_error_queue_is_a_reason(monkeypatch):
    monkeypatch.setattr("probes.net.icmp.LINUX_OPTIONS", False)
    with pytest.raises(Unavailable, match="root"):
        datagrams("127.0.0.1")


def trace_all(host, at_port):
    """Traces the path to a host, and waits as long as it takes."""
    return trace(host, at_port, 0.0005, living.GENEROUS_SECONDS)


@pytest.fixture
def patient(monkeypatch):
    """Waits for each answer as long as it takes; those listed, (kind, address), end all waiting."""
    listed, heard, sayings = set(), set(), icmp.read_reports

    def enough(sender, until):
        if listed and heard >= listed:
            return
        for said in sayings(sender, until):
            yield said
            heard.add((said.kind, said.address))
            if listed and heard >= listed:
                return

    monkeypatch.setattr(icmp, "read_reports", enough)
    monkeypatch.setattr(icmp, "LEAST_PATIENCE_SECONDS", living.GENEROUS_SECONDS)
    monkeypatch.setattr(icmp, "LEAST_MTU_PATIENCE_SECONDS", living.GENEROUS_SECONDS)
    return listed


def open_port(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family)


def traced_over(path):
    """Traces the path from a lab's client to an open port of its server."""
    with path.server.entered():
        server = open_port(path.server.address)
    with server, path.client.entered():
        return trace_all(path.server.address, server.getsockname()[1])


@pytest.mark.parametrize("version", [4, 6])
def test_every_router_of_a_path_is_named_in_order_and_the_host_last(build_path, version, patient):
    with build_path(routers=2, version=version) as path:
        route = traced_over(path)
    expected = [path.routers[0][0], path.routers[1][0], path.server.address]
    assert [hop["address"] for hop in route.hops()] == expected
    assert [hop["ttl"] for hop in route.hops()] == [1, 2, 3] and route.end == 3
    assert all(hop["rtt_seconds"] > 0 for hop in route.hops())


def rule(end, chain, words):
    """A packet filter's rule in a namespace."""
    table = f"add table ip t; add chain ip t c {{ type filter hook {chain} priority 0; }}"
    command = [*end.prefix, "nft", f"{table}; add rule ip t c {words}"]
    subprocess.run(command, check=True)


def test_a_router_that_does_not_answer_is_said_to_be_silent(build_path, patient):
    with build_path(routers=2) as path:
        rule(path.inside[0], "output", "icmp type time-exceeded drop")
        patient |= {
            ("time-exceeded", path.routers[1][0]),
            ("port-unreachable", path.server.address),
        }
        route = traced_over(path)
    assert route.hops()[0] == {"ttl": 1, "address": None, "rtt_seconds": None}
    assert route.hops()[1]["address"] == path.routers[1][0]
    assert route.end == 3


def test_a_host_that_drops_datagrams_is_found_by_its_open_port(build_path, patient):
    with build_path(routers=1) as path:
        rule(path.server, "input", "meta l4proto udp drop")
        patient.add(("time-exceeded", path.routers[0][0]))
        route = traced_over(path)
    expected = [path.routers[0][0], path.server.address]
    assert [hop["address"] for hop in route.hops()] == expected
    assert route.end == 2


def test_a_router_that_sends_datagrams_back_is_the_last_one_and_not_the_host(build_path, patient):
    with build_path(routers=1) as path:
        rule(path.inside[0], "forward", "meta l4proto udp reject with icmp type admin-prohibited")
        with path.client.entered():
            route = trace_all(path.server.address, 9)
    assert [hop["address"] for hop in route.hops()] == [path.routers[0][0]]
    assert route.end is None


def test_this_host_itself_is_one_hop_away(patient):
    with open_port("127.0.0.1") as server:
        route = trace_all("127.0.0.1", server.getsockname()[1])
    assert [hop["address"] for hop in route.hops()] == ["127.0.0.1"]
    assert route.end == 1


def test_nobody_needs_to_be_root():
    program = """
import os, socket
from probes.net.icmp import trace
os.setgid(65534), os.setuid(65534)
server = socket.create_server(("127.0.0.1", 0))
print(trace("127.0.0.1", server.getsockname()[1], 0.0001, 60.0).end)
"""
    if os.geteuid() != 0:
        pytest.skip("NOT RUN: is as good as the other tests where nobody is root")
    run = ["python3", "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_answers_from_beyond_the_host_are_of_the_host_too():
    answers = Trace()
    answers.take(4, Report(0, "port-unreachable", "10.0.0.9"), 0.1)
    answers.take(1, Report(0, "time-exceeded", "10.0.0.1"), 0.1)
    answers.take(2, Report(0, "port-unreachable", "10.0.0.9"), 0.1)
    assert answers.end == 2
    assert [hop["address"] for hop in answers.hops()] == ["10.0.0.1", "10.0.0.9"]


@pytest.mark.parametrize("version", [4, 6])
def test_a_router_before_a_narrower_link_says_so_and_the_kernel_knows(build_path, version, patient):
    with build_path(routers=2, version=version, mtus={1: 1400}) as path, path.client.entered():
        mtu = path_mtu(path.server.address, 0.001, living.GENEROUS_SECONDS)
    assert mtu == {"path_mtu_bytes": 1400, "path_mtu_confirmed": True}


def test_links_that_grow_narrower_twice_are_followed(build_path, patient):
    with build_path(routers=2, mtus={1: 1450, 2: 1380}) as path, path.client.entered():
        mtu = path_mtu(path.server.address, 0.001, living.GENEROUS_SECONDS)
    assert mtu == {"path_mtu_bytes": 1380, "path_mtu_confirmed": True}


def test_where_packets_vanish_silently_nothing_is_confirmed(lab_path):
    with lab_path(0.001, mtu_bytes=1500, largest_bytes=1400) as path, path.client.entered():
        mtu = path_mtu(path.server.address, 0.002, living.GENEROUS_SECONDS)
    assert mtu == {"path_mtu_bytes": 1500, "path_mtu_confirmed": False}


@pytest.mark.parametrize(("host", "size"), [("127.0.0.1", 65535), ("::1", 65536)])
def test_the_way_to_this_host_itself_has_the_largest_packets(host, size, patient):
    mtu = path_mtu(host, 0.001, living.GENEROUS_SECONDS)
    assert mtu == {"path_mtu_bytes": size, "path_mtu_confirmed": True}
