"""memory/swap: named where a host waits for its own memory, silent where it puts some aside."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck.analysis import diagnose

MIB = 1 << 20


@pytest.fixture
def lan(empty_world):
    """A gigabit link and disks that are faster."""
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, 117.6)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 500)
    return world


def swapping(**changes: Any) -> dict[str, Any]:
    """A host of 1 GiB, all of it in use, that moves 20 MiB a second to swap and back."""
    told: dict[str, Any] = {
        "memory_total_bytes": 1024 * MIB,
        "memory_used_bytes": 980 * MIB,
        "swapped_out_bytes": 40 * MIB,
        "swapped_in_bytes": 40 * MIB,
        "memory_waiting_ratio": 0.8,
    }
    return {**told, **changes}


def of(world: Any) -> Any:
    return diagnose(world.report()).copies[0]


def words(copy: Any) -> tuple[Any, ...]:
    return copy.verdict.named


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_host_that_waits_for_its_own_memory_is_named(lan, side):
    lan.copy("pull.cached", (38, 40, 42), **{side: swapping()})
    found = of(lan)
    assert words(found) == ("memory", side, "swap")
    assert 0.5 <= found.verdict.confidence <= 0.7
    assert "80 % of the time" in found.verdict.sentence
    assert f"1.2 GiB of memory or more for the {side}" in found.advice[0]
    assert any("moved 40 MiB to swap and 40 MiB back" in each for each in found.evidence)


def test_a_host_that_waits_less_is_trusted_less(lan):
    lan.copy("pull.cached", (38, 40, 42), server=swapping(memory_waiting_ratio=0.4))
    found = of(lan)
    assert words(found) == ("memory", "server", "swap")
    assert found.verdict.confidence <= 0.6


def test_swap_on_the_copys_own_disk_is_what_else_that_disk_does(lan):
    details = {"others": {"read_bytes": 40 * MIB, "written_bytes": 40 * MIB}}
    setting = {"side": "server", "verb": "read", "cache": "uncached", "folder": "/srv"}
    told = {"cache": {"proven": True}, **details}
    slow = world_of(lan, "read")
    slow.add("disk", "server", setting, (38, 40, 42), told, server=swapping())
    slow.copy("pull.uncached", (37, 39, 41))
    found = of(slow)
    assert words(found) == ("memory", "server", "swap")
    assert "the server swaps 21 MB/s to and from the server's disk" in found.verdict.sentence
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(40e6)


def world_of(world: Any, verb: str) -> Any:
    """The same world without that step of the server's disk."""
    world.entries = [
        (step, outcome)
        for step, outcome in world.entries
        if (step.setting.get("side"), step.setting.get("verb")) != ("server", verb)
    ]
    return world


# -- silent -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"memory_used_bytes": 300 * MIB},  # no shortage: it was put aside
        {"memory_total_bytes": None},
        {"swapped_out_bytes": 2 * MIB, "swapped_in_bytes": MIB},  # hardly any
        {"swapped_in_bytes": 0},  # only out: nobody asks for it
        {"swapped_out_bytes": None},
    ],
)
def test_without_a_shortage_it_is_not_named(lan, changes):
    lan.copy("pull.cached", (38, 40, 42), server=swapping(**changes))
    found = of(lan)
    assert found.verdict.component == "unknown"
    assert not [each for each in found.ceilings if each.component == "memory"]


@pytest.mark.parametrize("waits", [0.05, None])
def test_a_host_that_does_not_wait_is_told_and_not_named(lan, waits):
    lan.copy("pull.cached", (38, 40, 42), server=swapping(memory_waiting_ratio=waits))
    found = of(lan)
    assert found.verdict.component == "unknown"
    assert any("The copy is not known to have waited for it" in each for each in found.evidence)


def test_a_host_that_swaps_behind_a_full_link_is_not_the_cap(lan):
    lan.copy("pull.cached", (113, 114, 115), server=swapping())
    assert words(of(lan)) == ("network", "path", "link-rate")


@pytest.mark.parametrize(
    ("others", "load"),
    [
        (200 * MIB, swapping()),  # most of it is somebody else's
        (80 * MIB, {}),  # nothing is swapped
        (80 * MIB, swapping(memory_used_bytes=300 * MIB)),
        (80 * MIB, swapping(swapped_in_bytes=None)),
    ],
)
def test_somebody_elses_io_on_the_disk_is_not_swap(lan, others, load):
    setting = {"side": "server", "verb": "read", "cache": "uncached", "folder": "/srv"}
    told = {"cache": {"proven": True}, "others": {"read_bytes": others}}
    slow = world_of(lan, "read")
    slow.add("disk", "server", setting, (38, 40, 42), told, server=load)
    slow.copy("pull.uncached", (37, 39, 41))
    assert words(of(slow)) == ("disk", "server", "contention")


def test_a_disk_that_only_its_own_host_swaps_to_is_not_taken_for_shared(lan):
    setting = {"side": "server", "verb": "read", "cache": "uncached", "folder": "/srv"}
    slow = world_of(lan, "read")
    slow.add(
        "disk", "server", setting, (38, 40, 42), {"cache": {"proven": True}}, server=swapping()
    )
    slow.copy("pull.uncached", (37, 39, 41))
    assert words(of(slow)) == ("disk", "server", "read")


def test_a_copy_that_was_not_made_names_nobody(lan):
    lan.skip("push.cached", "no time left")
    assert words(of(lan)) == ("unknown", None, "not-measured")
