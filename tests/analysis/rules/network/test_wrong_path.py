"""Rule network/wrong-path: named where another way was measured to carry more, silent elsewhere."""

from __future__ import annotations

import pytest

from bottleneck.analysis.diagnosis import diagnose
from probes.core.records import Measured, Sample

MB = 1e6
USED = {"address": "10.0.0.2", "interface": "eth0", "server_interface": "eth0", "in_use": True}
OTHER = {"address": "10.1.0.2", "interface": "eth1", "server_interface": "eth1", "in_use": False}


def hosts(empty_world, writes=400):
    """Two hosts, the client's disk at so many MB/s, the others in nobody's way."""
    world = empty_world()
    world.disk("client", "write", writes)
    world.disk("server", "write", 400)
    for side in ("client", "server"):
        world.disk(side, "read", 500)
    return world


@pytest.fixture
def world(empty_world):
    return hosts(empty_world)


def ways(world, used, other, pulled=None):
    """TCP at a rate in MB/s, and a paths stage that moved so many each way; it has no rate."""
    for verb in ("push", "pull"):
        world.tcp(verb, (used - 0.1, used, used + 0.1))
    rows = [
        {**USED, "push_bytes_per_second": used * MB, "pull_bytes_per_second": used * MB},
        {
            **OTHER,
            "push_bytes_per_second": other * MB,
            "pull_bytes_per_second": (other if pulled is None else pulled) * MB,
        },
    ]
    samples = ((Sample(0.0, 0), Sample(2.0, 0)),)
    load = world.entries[0][1].initiator
    world.put("paths", "client", {"host": "nas"}, Measured(samples, load, load, {"ways": rows}))
    return world


@pytest.mark.parametrize("name", ["pull.cached", "push.cached"])
def test_a_copy_over_the_slower_of_two_links_is_named_with_the_way_and_its_gain(world, name):
    world.copy(name, (11.5, 11.6, 11.7))
    ways(world, 11.9, 1100.0)
    (copy,) = diagnose(world.report()).copies
    assert copy.verdict.key == ("network", "path", "wrong-path")
    assert "10.1.0.2 (eth1 to eth1)" in copy.verdict.sentence
    assert "Connect to 10.1.0.2" in copy.advice[0]
    links = [each for each in copy.ceilings if each.key == ("network", "path", "link-rate")]
    assert [each.bytes_per_second for each in links] == [1100.0 * MB]


def test_a_way_that_carries_the_same_is_none(world):
    world.copy("pull.cached", (11.5, 11.6, 11.7))
    ways(world, 11.9, 13.0)
    (copy,) = diagnose(world.report()).copies
    assert copy.verdict.key == ("network", "path", "link-rate")


def test_a_direction_that_is_no_faster_stays_the_links(world):
    world.copy("pull.cached", (11.5, 11.6, 11.7))
    world.copy("push.cached", (11.5, 11.6, 11.7))
    ways(world, 11.9, 1100.0, pulled=11.0)
    causes = {each.copy: each.verdict.cause for each in diagnose(world.report()).copies}
    assert causes == {"pull.cached": "link-rate", "push.cached": "wrong-path"}


def test_a_copy_that_a_disk_holds_is_not_the_paths_affair(empty_world):
    """The other way is faster, and would gain nothing."""
    world = hosts(empty_world, writes=25)
    world.copy("pull.cached", (24.0, 24.5, 25.0), memory=(105.0, 106.0, 107.0))
    ways(world, 111.0, 1100.0)
    (copy,) = diagnose(world.report()).copies
    assert copy.verdict.component == "disk"
