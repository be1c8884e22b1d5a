"""memory/swap: named where a host waits for its own memory, silent where it puts some aside."""

from __future__ import annotations

from typing import Any

import pytest

MIB = 1 << 20
NOBODY = "unknown/inconclusive"


@pytest.fixture
def lan(two_hosts):
    return two_hosts(disk=500)


def swapping_host(**changes: Any) -> dict[str, Any]:
    """A host of 1 GiB, all of it in use, that moves 20 MiB a second to swap and back."""
    fields: dict[str, Any] = {
        "memory_total_bytes": 1024 * MIB,
        "memory_used_bytes": 980 * MIB,
        "swapped_out_bytes": 40 * MIB,
        "swapped_in_bytes": 40 * MIB,
        "memory_waiting_ratio": 0.8,
    }
    return {**fields, **changes}


@pytest.mark.parametrize(("side", "waits"), [("client", 0.8), ("server", 0.8), ("server", 0.5)])
def test_a_host_that_waits_for_its_own_memory_is_named(lan, side, waits, expect):
    """One that waits less is trusted less."""
    lan.copy("pull.cached", (38, 40, 42), **{side: swapping_host(memory_waiting_ratio=waits)})
    expect(lan, f"memory/{side}/swap")


# -- silent -------------------------------------------------------------------------------------

NO_SHORTAGE = {
    "it was put aside": {"memory_used_bytes": 300 * MIB},
    "not told how much there is": {"memory_total_bytes": None},
    "hardly any": {"swapped_out_bytes": 2 * MIB, "swapped_in_bytes": MIB},
    "only out: nobody asks for it": {"swapped_in_bytes": 0},
    "not told how much goes": {"swapped_out_bytes": None},
    "it hardly waits": {"memory_waiting_ratio": 0.05},
    "not told whether it waits": {"memory_waiting_ratio": None},
}


@pytest.mark.parametrize("changes", NO_SHORTAGE.values(), ids=NO_SHORTAGE)
def test_without_a_shortage_that_it_waits_for_it_is_not_named(lan, changes, expect):
    lan.copy("pull.cached", (38, 40, 42), server=swapping_host(**changes))
    expect(lan, NOBODY)


def test_a_host_that_swaps_behind_a_full_link_is_not_the_cap(lan, expect):
    lan.copy("pull.cached", (113, 114, 115), server=swapping_host())
    expect(lan, "network/path/link-rate")


SHARED = "disk/server/contention"
BOTH_WAYS = {"read_bytes": 40 * MIB, "written_bytes": 40 * MIB}
DISKS = {
    "swap is what else it does": ("memory/server/swap", BOTH_WAYS, swapping_host()),
    "most of it is somebody else's": (SHARED, {"read_bytes": 200 * MIB}, swapping_host()),
    "nothing is swapped": (SHARED, {"read_bytes": 80 * MIB}, {}),
    "no shortage": (SHARED, {"read_bytes": 80 * MIB}, swapping_host(memory_used_bytes=300 * MIB)),
    "not told what comes": (SHARED, {"read_bytes": 80 * MIB}, swapping_host(swapped_in_bytes=None)),
    "swap goes elsewhere": ("disk/server/read", None, swapping_host()),
}


@pytest.mark.parametrize(("cap", "others", "load"), DISKS.values(), ids=DISKS)
def test_swap_on_the_copys_own_disk_is_what_else_that_disk_does(lan, cap, others, load, expect):
    lan.forget("disk", side="server", verb="read")
    setting = {"side": "server", "verb": "read", "cache": "uncached", "folder": "/srv"}
    details = {"cache": {"proven": True}, "others": others}
    lan.add("disk", "server", setting, (38, 40, 42), details, server=load)
    lan.copy("pull.uncached", (37, 39, 41))
    expect(lan, cap)
