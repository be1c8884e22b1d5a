"""The path MTU is what a router says, and confirmed only by the far host's own answer."""

from __future__ import annotations

import time

import pytest

from probes.net.path_mtu import path_mtu


@pytest.mark.parametrize("version", [4, 6])
def test_a_router_before_a_narrower_link_says_so_and_the_kernel_knows(routed, version):
    with routed(routers=2, version=version, mtus={1: 1400}) as path, path.client.entered():
        found = path_mtu(path.server.address, 0.001, 2.0)
    assert found == {"path_mtu_bytes": 1400, "path_mtu_confirmed": True}


def test_links_that_grow_narrower_twice_are_followed(routed):
    with routed(routers=2, mtus={1: 1450, 2: 1380}) as path, path.client.entered():
        found = path_mtu(path.server.address, 0.001, 2.0)
    assert found == {"path_mtu_bytes": 1380, "path_mtu_confirmed": True}


def test_where_packets_vanish_silently_nothing_is_confirmed(faulty_path):
    with faulty_path(0.001, mtu_bytes=1500, largest_bytes=1400) as path, path.client.entered():
        began = time.monotonic()
        found = path_mtu(path.server.address, 0.002, 1.0)
        assert time.monotonic() - began < 1.5
    assert found == {"path_mtu_bytes": 1500, "path_mtu_confirmed": False}


@pytest.mark.parametrize(("host", "size"), [("127.0.0.1", 65535), ("::1", 65536)])
def test_the_way_to_this_host_itself_has_the_largest_packets(host, size):
    found = path_mtu(host, 0.001, 2.0)
    assert found == {"path_mtu_bytes": size, "path_mtu_confirmed": True}
