"""memory/cache-size: named where a cached copy's source does not fit, silent where it does."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck.analysis import diagnose

MB = 1e6
SECONDS = 4.0
MIB = 1 << 20


@pytest.fixture
def lan(empty_world):
    """A gigabit link; both disks read 30 MB/s and write fast."""
    world = empty_world()
    world.tcp("pull", 117.6)
    world.tcp("push", 117.6)
    for side in ("client", "server"):
        world.disk(side, "read", (29.5, 30, 30.5))
        world.disk(side, "write", 500)
    return world


def missed(
    world: Any,
    name: str,
    rate: Any,
    kept: float | None = 0.3,
    read: float | None = 0.95,
    total: int | None = 128 * MIB,
    used: int | None = 40 * MIB,
    proven: bool = False,
    **more: Any,
) -> int:
    """A cached copy whose source was kept and read in these shares."""
    sender = "client" if "push" in name else "server"
    moved = (rate if isinstance(rate, (int, float)) else sorted(rate)[len(rate) // 2]) * MB
    load = {
        "device_read_bytes": None if read is None else round(read * moved * SECONDS),
        "memory_total_bytes": total,
        "memory_used_bytes": used,
    }
    told = {"side": sender, "requested": "cached", "proven": proven, "cached_ratio_before": kept}
    details = {"cache": told, **more.pop("details", {})}
    return int(world.copy(name, rate, details=details, **{sender: load}, **more))


def of(world: Any, **changes: Any) -> Any:
    return diagnose(world.report(**changes)).copies[0]


def words(copy: Any) -> tuple[Any, ...]:
    return copy.verdict.named


# -- right --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "side"), [("pull.cached", "server"), ("push.cached", "client")])
def test_a_file_larger_than_its_senders_memory_is_named_with_what_it_needs(lan, name, side):
    missed(lan, name, (29, 29.5, 30))
    found = of(lan)
    assert words(found) == ("memory", side, "cache-size")
    assert found.verdict.confidence >= 0.9
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(30e6, rel=0.05)
    assert "95 % of it comes from its disk, which reads 30 MB/s" in found.verdict.sentence
    assert found.next.component == "network"
    assert found.predicted_bytes_per_second.median == pytest.approx(117e6, rel=0.1)
    assert "153 MiB of memory or more" in found.advice[0]
    assert any("the cache kept 30 % of that" in each for each in found.evidence)


def test_a_cache_that_keeps_a_half_lets_the_network_carry_that_half(lan):
    missed(lan, "pull.cached", 46, kept=0.5, read=0.5)
    found = of(lan)
    assert words(found) == ("memory", "server", "cache-size")
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(47.8e6, rel=0.01)


def test_without_a_count_of_the_disk_the_cache_tells_and_is_trusted_less(lan):
    missed(lan, "pull.cached", (29, 30, 30.5), kept=0.0, read=None)
    found = of(lan)
    assert words(found) == ("memory", "server", "cache-size")
    assert found.verdict.confidence <= 0.8
    assert any("the rest has to come from its disk" in each for each in found.evidence)


def test_a_users_file_is_held_against_its_own_reading(lan):
    setting = {"side": "server", "verb": "read", "cache": "uncached", "pattern": "file"}
    lan.add("disk", "server", setting, 20, {"cache": {"proven": True}})
    missed(lan, "file.pull.cached", 19.5, used=100 * MIB)
    found = of(lan)
    assert words(found) == ("memory", "server", "cache-size")
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(20e6, rel=0.05)


def test_where_memory_has_the_room_the_disk_that_was_read_is_the_cap(lan):
    missed(lan, "pull.cached", (29, 29.5, 30), total=8 << 30, used=1 << 30)
    assert words(of(lan)) == ("disk", "server", "read")


def test_where_the_size_of_the_memory_is_not_told_the_disk_is_the_cap(lan):
    missed(lan, "pull.cached", (29, 29.5, 30), total=None)
    assert words(of(lan)) == ("disk", "server", "read")


# -- silent -------------------------------------------------------------------------------------


def test_what_was_proven_to_be_cached_is_not_the_disks_affair(lan):
    missed(lan, "pull.cached", 29.5, proven=True, kept=1.0)
    found = of(lan)
    assert found.verdict.component == "unknown"
    assert not {each.component for each in found.ceilings} & {"memory"}


@pytest.mark.parametrize(
    "changes",
    [
        {"kept": 0.95},  # nearly all of it was there
        {"kept": None},  # a cache that nobody can look into
        {"read": 0.1},  # the disk was hardly read
        {"proven": True},
    ],
)
def test_a_copy_that_was_served_from_ram_has_no_such_ceiling(lan, changes):
    missed(lan, "pull.cached", 115, **changes)
    found = of(lan)
    assert words(found)[:2] == ("network", "path")
    assert {each.component for each in found.ceilings} >= {"network"}
    assert not [each for each in found.ceilings if each.component == "memory"]


def test_a_disk_faster_than_the_link_makes_a_missed_cache_no_matter(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("server", "read", 400)
    world.disk("client", "write", 500)
    missed(world, "pull.cached", (113, 114, 115))
    assert words(of(world)) == ("network", "path", "link-rate")


def test_a_copy_faster_than_the_disk_refutes_it(lan):
    missed(lan, "pull.cached", (113, 114, 115))
    found = of(lan)
    assert words(found) == ("network", "path", "link-rate")
    assert any("are no ceiling of it" in each for each in found.evidence)


def test_an_uncached_copy_is_the_disks_affair(lan):
    lan.copy("pull.uncached", (28, 29, 30))
    assert words(of(lan)) == ("disk", "server", "read")


def test_without_an_agent_nobody_sees_the_servers_cache(empty_world):
    world = empty_world(agent=False)
    missed(world, "pull.cached", 29.5)
    assert of(world).verdict.component == "unknown"


def test_without_the_disks_own_rate_it_is_told_and_not_named(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 500)
    world.disk("server", "read", 30, proven=False)
    missed(world, "pull.cached", 29.5)
    found = of(world)
    assert words(found) == ("unknown", None, "inconclusive")
    assert any("What that disk gives is not known" in each for each in found.evidence)


def test_a_share_on_another_disk_of_the_client_is_not_held_against_the_measured_one(lan):
    details = {"on_folder_disk": False}
    missed(lan, "push.cached", 29.5, details=details)
    assert of(lan).verdict.component == "unknown"


def test_a_disk_that_was_measured_on_a_full_cpu_is_at_least_that(empty_world):
    world = empty_world()
    world.disk("server", "read", 30, server={"busiest_process_ratio": 0.99})
    missed(world, "pull.cached", 29.5)
    found = of(world)
    assert found.verdict.component == "unknown"
    assert [each.standing for each in found.ceilings if each.component == "memory"] == ["at-least"]
