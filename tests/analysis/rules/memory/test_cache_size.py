"""memory/cache-size: named where a cached copy's source does not fit, silent where it does."""

from __future__ import annotations

from typing import Any

import pytest

MB = 1e6
SECONDS = 4.0
MIB = 1 << 20


@pytest.fixture
def lan(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.tcp("push", 117.6)
    for side in ("client", "server"):
        world.disk(side, "read", (29.5, 30, 30.5))
        world.disk(side, "write", 500)
    return world


def missed_copy(
    world: Any,
    name: str,
    rate: Any,
    cached: float | None = 0.3,
    read: float | None = 0.95,
    total: int | None = 128 * MIB,
    used: int | None = 40 * MIB,
    proven: bool = False,
    **extra: Any,
) -> int:
    """Adds a cached copy whose source was kept in memory and read from disk in these shares."""
    sender = "client" if "push" in name else "server"
    level = (rate if isinstance(rate, (int, float)) else sorted(rate)[len(rate) // 2]) * MB
    load = {
        "device_read_bytes": None if read is None else round(read * level * SECONDS),
        "memory_total_bytes": total,
        "memory_used_bytes": used,
    }
    proof = {"side": sender, "requested": "cached", "proven": proven, "cached_ratio_before": cached}
    details = {"cache": proof, **extra.pop("details", {})}
    return int(world.copy(name, rate, details=details, **{sender: load}, **extra))


SIZE = "memory/server/cache-size"
MISSED = {
    "larger than the server's memory": (SIZE, "pull.cached", (29, 29.5, 30), {}),
    "larger than the client's": pytest.param(
        "memory/client/cache-size", "push.cached", (29, 29.5, 30), {}
    ),
    "half of it: the network carries that half": pytest.param(
        SIZE, "pull.cached", 46, {"cached": 0.5, "read": 0.5}
    ),
    "without a count of the disk the cache tells and is trusted less": pytest.param(
        SIZE, "pull.cached", (29, 30, 30.5), {"cached": 0.0, "read": None}
    ),
    "where memory has the room the disk that was read is the cap": pytest.param(
        "disk/server/read", "pull.cached", (29, 29.5, 30), {"total": 8 << 30, "used": 1 << 30}
    ),
    "where the size of the memory is not told the disk is": pytest.param(
        "disk/server/read", "pull.cached", (29, 29.5, 30), {"total": None}
    ),
    "what was proven to be cached is not the disk's affair": pytest.param(
        "unknown/inconclusive", "pull.cached", 29.5, {"proven": True, "cached": 1.0}
    ),
    "a copy faster than the disk refutes it": pytest.param(
        "network/path/link-rate", "pull.cached", (113, 114, 115), {}
    ),
    "another disk of the client than the measured one": pytest.param(
        "unknown/inconclusive", "push.cached", 29.5, {"details": {"on_folder_disk": False}}
    ),
}


@pytest.mark.parametrize(("cap", "name", "rate", "changes"), MISSED.values(), ids=MISSED)
def test_a_file_that_its_senders_memory_does_not_hold_is_named(
    lan, cap, name, rate, changes, expect
):
    missed_copy(lan, name, rate, **changes)
    expect(lan, cap)


def test_a_users_file_is_held_against_its_own_reading(lan, expect):
    setting = {"side": "server", "verb": "read", "cache": "uncached", "pattern": "file"}
    lan.add("disk", "server", setting, 20, {"cache": {"proven": True}})
    missed_copy(lan, "file.pull.cached", 19.5, used=100 * MIB)
    expect(lan, SIZE)


# -- silent -------------------------------------------------------------------------------------

SERVED = {
    "nearly all of it was there": {"cached": 0.95},
    "a cache that nobody can look into": {"cached": None},
    "the disk was hardly read": {"read": 0.1},
    "proven": {"proven": True},
}


@pytest.mark.parametrize("changes", SERVED.values(), ids=SERVED)
def test_a_copy_that_was_served_from_ram_has_no_such_ceiling(lan, changes, expect):
    missed_copy(lan, "pull.cached", 115, **changes)
    expect(lan, "network/path/link-rate")
    assert not [each for each in lan.ceilings() if each[0] == "memory"]


def test_a_disk_faster_than_the_link_makes_a_missed_cache_no_matter(two_hosts, expect):
    world = two_hosts()
    missed_copy(world, "pull.cached", (113, 114, 115))
    expect(world, "network/path/link-rate")


def test_an_uncached_copy_is_the_disks_affair(lan, expect):
    lan.copy("pull.uncached", (28, 29, 30))
    expect(lan, "disk/server/read")


DISKS = {
    "nobody sees the server's cache": (False, None, {}),
    "without the disk's own rate it is told and not named": (True, False, {}),
    "measured on a full CPU it is at least that": (True, True, {"busiest_process_ratio": 0.99}),
}


@pytest.mark.parametrize(("agent", "proven", "load"), DISKS.values(), ids=DISKS)
def test_what_is_not_known_well_enough_names_nobody(empty_world, agent, proven, load, expect):
    world = empty_world(agent=agent)
    if proven is not None:
        world.disk("server", "read", 30, proven=proven, server=load)
    missed_copy(world, "pull.cached", 29.5)
    expect(world, "unknown/inconclusive")
