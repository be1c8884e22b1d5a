"""memory/writeback: named where a tiny dirty limit starves a disk, silent where that has work."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck.analysis import diagnose

KIB = 1 << 10
MIB = 1 << 20


@pytest.fixture
def lan(empty_world):
    """A gigabit link and disks that are faster."""
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, 117.6)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 1000)
    return world


def held(
    world: Any,
    name: str = "push.cached",
    rate: Any = 33,
    limit: int | None = 64 * KIB,
    busy: float | None = 0.1,
    waits: float | None = 0.92,
) -> int:
    """A copy to a receiver with such a dirty limit, and what its tasks waited for."""
    side = "server" if "push" in name else "client"
    load = {
        "memory_dirty_limit_bytes": limit,
        "device_busy_ratio": busy,
        "io_waiting_ratio": waits,
    }
    return int(world.copy(name, rate, **{side: load}))


def sustained(world: Any, durable: float | None, side: str = "server") -> int:
    """The receiver's disk written by a program that never flushes."""
    setting = {"side": side, "verb": "write", "cache": "uncached", "pattern": "sustained"}
    told = {} if durable is None else {"durable_bytes_per_second": durable * 1e6}
    return int(world.add("disk", side, setting, durable or 30, told))


def of(world: Any) -> Any:
    return diagnose(world.report()).copies[0]


def words(copy: Any) -> tuple[Any, ...]:
    return copy.verdict.named


@pytest.mark.parametrize(("name", "side"), [("push.cached", "server"), ("pull.cached", "client")])
def test_writers_that_wait_while_the_disk_idles_are_named_with_their_limit(lan, name, side):
    held(lan, name)
    found = of(lan)
    assert words(found) == ("memory", side, "writeback")
    assert found.verdict.confidence == pytest.approx(0.85)
    assert "no more than 64 KiB of written data may wait" in found.verdict.sentence
    assert "95.4 MiB" in found.advice[0]
    assert any("92 % of the time" in each and "10 % of it" in each for each in found.evidence)
    assert found.next.component == "network"


def test_a_limit_that_holds_for_a_part_of_the_time_is_named_with_doubt(lan):
    held(lan, rate=80, waits=0.5)
    found = of(lan)
    assert words(found) == ("memory", "server", "writeback")
    assert found.verdict.confidence == pytest.approx(0.6)


def test_what_the_disk_takes_of_a_program_that_never_flushes_is_the_ceiling(lan):
    at = sustained(lan, 33)
    held(lan, rate=(31, 32, 33), busy=None, waits=None)
    found = of(lan)
    assert words(found) == ("memory", "server", "writeback")
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(33e6)
    assert found.ceilings[0].steps == (at,)
    assert any("through the page cache 33 MB/s" in each for each in found.evidence)


def test_a_long_write_that_tells_nothing_leaves_it_to_what_was_seen(lan):
    sustained(lan, None)
    held(lan)
    assert words(of(lan)) == ("memory", "server", "writeback")


# -- silent -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"limit": None},
        {"limit": 4 << 30},
        {"limit": 20 * MIB},  # some of the kernel's own writes
        {"busy": 0.9},  # the disk has work
        {"busy": None},
        {"waits": None},
        {"waits": 0.2},
    ],
)
def test_without_its_whole_proof_it_is_not_named(lan, changes):
    held(lan, **changes)
    found = of(lan)
    assert found.verdict.component == "unknown"
    assert not [each for each in found.ceilings if each.component == "memory"]


def test_a_small_limit_before_a_slow_disk_is_the_disks_affair(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.disk("client", "read", 1000)
    world.disk("server", "write", (29, 30, 31))
    held(world, rate=(28, 29, 30))
    assert words(of(world)) == ("disk", "server", "write")


def test_a_small_limit_on_a_full_link_is_no_matter(lan):
    held(lan, rate=(113, 114, 115), waits=0.2)
    assert words(of(lan)) == ("network", "path", "link-rate")


def test_a_small_limit_that_costs_the_disk_nothing_is_no_cap(lan):
    sustained(lan, 950)
    held(lan)
    assert of(lan).verdict.component == "unknown"


def test_a_disk_that_was_measured_on_a_full_cpu_tells_no_limit(empty_world):
    world = empty_world()
    world.disk("server", "write", 1000, server={"busiest_process_ratio": 0.99})
    held(world)
    assert not [each for each in of(world).ceilings if each.component == "memory"]


def test_without_an_agent_nobody_sees_the_servers_limit(empty_world):
    world = empty_world(agent=False)
    held(world)
    assert of(world).verdict.component == "unknown"


def test_a_copy_that_was_not_made_names_nobody(lan):
    lan.skip("push.cached", "no time left")
    assert words(of(lan)) == ("unknown", None, "not-measured")
