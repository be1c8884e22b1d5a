"""memory/writeback: named where a tiny dirty limit starves a disk, silent where that has work."""

from __future__ import annotations

from typing import Any

import pytest

KIB = 1 << 10
MIB = 1 << 20
HELD, NOBODY = "memory/server/writeback", "unknown/inconclusive"


@pytest.fixture
def lan(two_hosts):
    return two_hosts(disk=1000)


def throttle(
    world: Any,
    name: str = "push.cached",
    rate: Any = 33,
    limit: int | None = 64 * KIB,
    busy: float | None = 0.1,
    waits: float | None = 0.92,
) -> int:
    """A copy to a receiver with such a dirty limit, and what its tasks waited for."""
    side = "server" if "push" in name else "client"
    load = {"memory_dirty_limit_bytes": limit, "device_busy_ratio": busy, "io_waiting_ratio": waits}
    return int(world.copy(name, rate, **{side: load}))


def sustained_write(world: Any, durable: float | None, side: str = "server") -> int:
    """Adds a test of the receiver's disk by a program that never flushes."""
    setting = {"side": side, "verb": "write", "cache": "uncached", "pattern": "sustained"}
    details = {} if durable is None else {"durable_bytes_per_second": durable * 1e6}
    return int(world.add("disk", side, setting, durable or 30, details))


LIMITS = {
    "a push": (HELD, {}),
    "a pull": ("memory/client/writeback", {"name": "pull.cached"}),
    "a part of the time": (NOBODY, {"rate": 80, "waits": 0.5}),
    "no limit": (NOBODY, {"limit": None}),
    "a large one": (NOBODY, {"limit": 4 << 30}),
    "some of the kernel's own writes": (NOBODY, {"limit": 20 * MIB}),
    "the disk has work": (NOBODY, {"busy": 0.9}),
    "not told whether": (NOBODY, {"busy": None}),
    "not told who waits": (NOBODY, {"waits": None}),
    "hardly anybody waits": (NOBODY, {"waits": 0.2}),
    "a full link": ("network/path/link-rate", {"rate": (113, 114, 115), "waits": 0.2}),
}


@pytest.mark.parametrize(("cap", "changes"), LIMITS.values(), ids=LIMITS)
def test_writers_that_wait_while_the_disk_idles_are_named_with_their_limit(
    lan, cap, changes, expect
):
    throttle(lan, **changes)
    expect(lan, cap)


SUSTAINED = {
    "what a program that never flushes gets is the ceiling": pytest.param(
        HELD, 33, {"rate": (31, 32, 33), "busy": None, "waits": None}
    ),
    "where that was not told it is left to what was seen": (HELD, None, {}),
    "a limit that costs the disk nothing": (NOBODY, 950, {}),
}


@pytest.mark.parametrize(("cap", "durable", "changes"), SUSTAINED.values(), ids=SUSTAINED)
def test_a_long_write_tells_what_the_limit_lets_through(lan, cap, durable, changes, expect):
    sustained_write(lan, durable)
    throttle(lan, **changes)
    expect(lan, cap)


DISKS = {
    "a slow disk's affair": ("disk/server/write", (29, 30, 31), {}),
    "a disk that was measured on a full CPU tells none": pytest.param(
        None, 1000, {"busiest_process_ratio": 0.99}
    ),
    "without an agent nobody sees it": (None, None, {}),
}


@pytest.mark.parametrize(("cap", "rate", "load"), DISKS.values(), ids=DISKS)
def test_of_a_disk_that_is_slow_or_not_known_no_limit_is_told(empty_world, cap, rate, load, expect):
    world = empty_world(agent=rate is not None)
    if rate is not None:
        world.disk("server", "write", rate, server=load)
    throttle(world, rate=(28, 29, 30))
    expect(world, *filter(None, [cap]))
    assert not [each for each in world.ceilings() if each[0] == "memory"]
