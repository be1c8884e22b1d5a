"""bus/usb and bus/pcie of disks: a full link is named and not its disk, a slow disk is.

The figures are those of real links: USB 2 gives 33 to 43 MB/s, USB 3 some 430, NVMe on one lane of
PCI Express 3 some 850, disks behind a card on one lane of PCI Express 1 some 215.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

MB = 1e6
USB2, USB3, USB32 = 480_000_000, 5_000_000_000, 10_000_000_000
LANE_1 = {"lanes": 1, "transfers_per_second": 2.5e9, "bytes_per_second": 2.5e8}
LANE_3 = {"lanes": 1, "transfers_per_second": 8e9, "bytes_per_second": 9.846e8}
ABLE_3 = {"able_lanes": 4, "able_transfers_per_second": 8e9, "able_bytes_per_second": 3.938e9}


@pytest.fixture
def lan(empty_world):
    world = empty_world()
    world.tcp("pull", 2900)
    world.tcp("push", 2900)
    return world


def hang(world: Any, side: str, *disks: dict[str, Any], **changes: Any) -> None:
    """Puts a side's folder on ext4 on these disks."""
    filesystem = {"name": "ext4", "kind": "filesystem"}
    layers = (filesystem, *({"name": "sda", "kind": "disk", **each} for each in disks))
    facts = getattr(world, side)
    setattr(world, side, replace(facts, folder=replace(facts.folder, layers=layers), **changes))


def add_pull(world: Any, disk: float, rate: float) -> None:
    """Adds an uncached pull from a disk of a rate to a fast one."""
    world.disk("server", "read", (0.99 * disk, disk, 1.01 * disk))
    world.disk("client", "write", 2000)
    world.copy("pull.uncached", (0.99 * rate, rate, 1.01 * rate))


ON_USB2 = {"transport": "usb", "usb_bits_per_second": USB2}
ON_USB3 = {"transport": "usb", "usb_bits_per_second": USB3}
FULL = {
    "USB 2 that could be 3": ("usb", {**ON_USB2, "usb_version": "2.10"}, 38),
    "USB 2": ("usb", {**ON_USB2, "usb_version": "2.00"}, 34),
    "USB 2 of an unknown version": ("usb", ON_USB2, 42),
    "USB 3": ("usb", ON_USB3, 430),
    "USB 3.2": ("usb", {"usb_bits_per_second": USB32}, 1040),
    "the narrower of a link and the slot above it": ("usb", {**ON_USB3, "pcie": LANE_3}, 430),
    "a slot of one lane that could be four": ("pcie", {"pcie": {**LANE_3, **ABLE_3}}, 850),
    "a slot of one lane": ("pcie", {"pcie": LANE_3}, 860),
    "an old one": ("pcie", {"pcie": LANE_1}, 215),
}


@pytest.mark.parametrize(("cause", "link", "rate"), FULL.values(), ids=FULL)
def test_a_disk_that_fills_its_link_is_named_by_the_link(lan, cause, link, rate, expect):
    hang(lan, "server", link)
    add_pull(lan, rate, 0.97 * rate)
    expect(lan, f"bus/server/{cause}")


def test_a_push_to_a_usb_disk_is_capped_by_its_link(lan, expect):
    hang(lan, "server", ON_USB2)
    lan.disk("server", "write", (35, 36, 37))
    lan.copy("push.cached", (34, 35, 36))
    expect(lan, "bus/server/usb")


def test_a_link_that_carried_more_the_other_way_is_not_what_is_full(lan, expect):
    """A SATA disk in a USB 3 case that reads 455 MB/s and writes 410 by itself."""
    hang(lan, "server", ON_USB3)
    lan.disk("server", "read", (450, 455, 460))
    lan.disk("server", "write", (405, 410, 415))
    lan.copy("push.cached", (398, 400, 402))
    expect(lan, "disk/server/write")


@pytest.mark.parametrize("kernel", ["docker", "kvm"])
def test_a_container_has_the_hosts_own_usb_and_a_guest_has_not(lan, kernel, expect):
    hang(lan, "server", ON_USB2, virtual=kernel)
    add_pull(lan, 33, 33)
    expect(lan, "bus/server/usb" if kernel == "docker" else "disk/server/read")


# -- silent -------------------------------------------------------------------------------------

BELOW = {
    "a slow stick": ({"usb_bits_per_second": USB2}, 20),
    "a disc in a fast case": ({"usb_bits_per_second": USB3}, 120),
    "whatever it is, it is not on USB 2": ({"usb_bits_per_second": USB2}, 90),
    "USB 1": ({"usb_bits_per_second": 1_500_000}, 38),
    "a slot with room": ({"pcie": LANE_3}, 550),
    "what is missing is the disk's": ({"pcie": {**LANE_3, **ABLE_3}}, 800),
    "it has all its lanes": ({"pcie": {**LANE_3, "able_bytes_per_second": 9.846e8}}, 880),
    "not told what its slot carries": ({"pcie": {"lanes": 1}}, 850),
    "a strange slot": ({"pcie": "strange"}, 850),
    "a strange USB": ({"usb_bits_per_second": "strange"}, 38),
    "no link": ({}, 38),
}


@pytest.mark.parametrize(("link", "rate"), BELOW.values(), ids=BELOW)
def test_a_disk_below_its_link_is_the_cap_itself(lan, link, rate, expect):
    hang(lan, "server", link)
    add_pull(lan, rate, 0.97 * rate)
    expect(lan, "disk/server/read")


def test_a_full_link_behind_a_slower_network_is_no_cap(empty_world, expect):
    world = empty_world()
    world.tcp("pull", 11.8)
    hang(world, "server", ON_USB2)
    add_pull(world, 38, 11.6)
    expect(world, "network/path/link-rate")


@pytest.mark.parametrize("case", ["two disks", "no folder", "no agent"])
def test_where_the_one_disk_is_not_known_none_is_judged_by_its_link(lan, case, expect):
    hang(lan, "server", ON_USB2, ON_USB2)
    if case != "two disks":
        lan.server = replace(lan.server, folder=None) if case == "no folder" else None
    add_pull(lan, 38, 37)
    expect(lan, "disk/server/read")


@pytest.mark.parametrize(("inner", "cap"), [(18, "disk/server/read"), (38, "bus/server/usb")])
def test_a_disc_that_falls_from_edge_to_edge_is_not_held_by_its_usb(lan, inner, cap, expect):
    """The outer edge of a disc that falls may give just what the link does by chance."""
    hang(lan, "server", ON_USB2)
    zones = []
    for n in range(9):
        rate = (38**2 - (n + 0.5) / 9 * (38**2 - inner**2)) ** 0.5 * MB
        zones.append({"from_ratio": n / 9, "to_ratio": (n + 1) / 9, "bytes_per_second": rate})
    setting = {"side": "server", "verb": "read", "cache": "uncached", "pattern": "zones"}
    lan.add("disk", "server", setting, 30, {"zones": zones, "device": "sda1", "located": True})
    place = {"device": "sda1", "device_bytes": 10**12, "located": True, "bytes": 2**30}
    place |= {"spans": [{"from_ratio": 0.0, "to_ratio": 0.01, "bytes": 2**30}]}
    setting = {**setting, "pattern": "sequential"}
    lan.add("disk", "server", setting, 38, {"cache": {"proven": True}, "place": place})
    lan.disk("client", "write", 2000)
    lan.copy("pull.uncached", 37)
    expect(lan, cap)
