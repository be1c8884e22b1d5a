"""bus/usb and bus/pcie of disks: a full link is named and not its disk, a slow disk is.

The figures are those of real links: USB 2 gives 33 to 43 MB/s, USB 3 some 430, NVMe on one lane of
PCI Express 3 some 850, disks behind a card on one lane of PCI Express 1 some 215.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis import diagnose

MB = 1e6
USB2, USB3, USB32 = 480_000_000, 5_000_000_000, 10_000_000_000
LANE_1 = {"lanes": 1, "transfers_per_second": 2.5e9, "bytes_per_second": 2.5e8}
LANE_3 = {"lanes": 1, "transfers_per_second": 8e9, "bytes_per_second": 9.846e8}
ABLE_3 = {"able_lanes": 4, "able_transfers_per_second": 8e9, "able_bytes_per_second": 3.938e9}


@pytest.fixture
def lan(empty_world):
    """A link of 25 Gbit/s between two hosts; the disks are the test's."""
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


def pulled(world: Any, disk: float, rate: float) -> Any:
    """The diagnosis of an uncached pull from such a disk to a fast one."""
    world.disk("server", "read", (0.99 * disk, disk, 1.01 * disk))
    world.disk("client", "write", 2000)
    world.copy("pull.uncached", (0.99 * rate, rate, 1.01 * rate))
    return diagnose(world.report()).copies[0]


def words(copy: Any) -> tuple[Any, ...]:
    return copy.verdict.named


# -- right --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "rate", "advice"),
    [
        ({"usb_bits_per_second": USB2, "usb_version": "2.10"}, 38, "A USB 3 port and cable"),
        ({"usb_bits_per_second": USB2, "usb_version": "2.00"}, 34, "A USB 3 case or adapter"),
        ({"usb_bits_per_second": USB2}, 42, "A USB 3 case or adapter"),
        ({"usb_bits_per_second": USB3}, 430, "carries more than 5 Gbit/s"),
        ({"usb_bits_per_second": USB32}, 1040, "carries more than 10 Gbit/s"),
    ],
)
def test_a_disk_that_fills_its_usb_link_is_named_by_the_link(lan, link, rate, advice):
    hang(lan, "server", {"transport": "usb", **link})
    found = pulled(lan, rate, 0.97 * rate)
    assert words(found) == ("bus", "server", "usb")
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(rate * MB)
    assert "which is what its USB link" in found.verdict.sentence
    assert advice in found.advice[0]


@pytest.mark.parametrize(
    ("slot", "rate", "advice"),
    [
        ({**LANE_3, **ABLE_3}, 850, "A slot with 4 lanes at 8 GT/s"),
        (LANE_3, 860, "A slot with more than 1 lane at 8 GT/s"),
        (LANE_1, 215, "A slot with more than 1 lane at 2.5 GT/s"),
    ],
)
def test_a_disk_that_fills_its_slot_is_named_by_the_slot(lan, slot, rate, advice):
    hang(lan, "server", {"transport": "nvme", "pcie": slot})
    found = pulled(lan, rate, 0.97 * rate)
    assert words(found) == ("bus", "server", "pcie")
    assert advice in found.advice[0]


def test_a_push_to_a_usb_disk_is_capped_by_its_link(lan):
    hang(lan, "server", {"transport": "usb", "usb_bits_per_second": USB2})
    lan.disk("server", "write", (35, 36, 37))
    lan.copy("push.cached", (34, 35, 36))
    found = diagnose(lan.report()).copies[0]
    assert words(found) == ("bus", "server", "usb")
    assert "writes 36 MB/s" in found.verdict.sentence


def test_a_link_that_carried_more_the_other_way_is_not_what_is_full(lan):
    """A SATA disk in a USB 3 case that reads 455 MB/s and writes 410 by itself."""
    hang(lan, "server", {"transport": "usb", "usb_bits_per_second": USB3})
    lan.disk("server", "read", (450, 455, 460))
    lan.disk("server", "write", (405, 410, 415))
    lan.copy("push.cached", (398, 400, 402))
    assert words(diagnose(lan.report()).copies[0]) == ("disk", "server", "write")


def test_the_narrower_of_a_link_and_the_slot_above_it_counts(lan):
    hang(lan, "server", {"transport": "usb", "usb_bits_per_second": USB3, "pcie": LANE_3})
    assert words(pulled(lan, 430, 425)) == ("bus", "server", "usb")


def test_a_rate_nearer_to_the_usual_one_is_trusted_more(empty_world):
    sure = []
    for rate in (33, 38):
        world = empty_world()
        world.tcp("pull", 2900)
        hang(world, "server", {"transport": "usb", "usb_bits_per_second": USB2})
        sure.append(pulled(world, rate, rate).verdict.confidence)
    assert sure[0] < sure[1] <= 0.85


def test_a_container_has_the_hosts_own_usb(lan):
    disk = {"transport": "usb", "usb_bits_per_second": USB2}
    hang(lan, "server", disk, virtual="docker")
    assert words(pulled(lan, 38, 37)) == ("bus", "server", "usb")


# -- silent -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "rate"),
    [
        ({"usb_bits_per_second": USB2}, 20),  # a slow stick
        ({"usb_bits_per_second": USB3}, 120),  # a disc in a fast case
        ({"usb_bits_per_second": USB2}, 90),  # whatever it is, it is not on USB 2
        ({"usb_bits_per_second": 1_500_000}, 38),
        ({"pcie": LANE_3}, 550),
        ({"pcie": {**LANE_3, **ABLE_3}}, 800),  # what is missing is the disk's
        ({"pcie": {**LANE_3, "able_bytes_per_second": 9.846e8}}, 880),  # it has all its lanes
        ({"pcie": {"lanes": 1}}, 850),
        ({"pcie": "strange"}, 850),
        ({"usb_bits_per_second": "strange"}, 38),
        ({}, 38),
    ],
)
def test_a_disk_below_its_link_is_the_cap_itself(lan, link, rate):
    hang(lan, "server", link)
    found = pulled(lan, rate, 0.97 * rate)
    assert words(found) == ("disk", "server", "read")


def test_a_full_link_behind_a_slower_network_is_no_cap(empty_world):
    world = empty_world()
    world.tcp("pull", 11.8)
    hang(world, "server", {"transport": "usb", "usb_bits_per_second": USB2})
    assert words(pulled(world, 38, 11.6)) == ("network", "path", "link-rate")


def test_what_a_hypervisor_calls_usb_is_none(lan):
    hang(lan, "server", {"usb_bits_per_second": USB2}, virtual="kvm")
    assert words(pulled(lan, 38, 37)) == ("disk", "server", "read")


def test_of_several_disks_none_is_judged_by_its_link(lan):
    disk = {"usb_bits_per_second": USB2}
    hang(lan, "server", disk, disk)
    assert words(pulled(lan, 38, 37)) == ("disk", "server", "read")


def test_without_an_agent_the_link_of_the_servers_disk_is_not_known(lan):
    lan.server = None
    assert words(pulled(lan, 38, 37)) == ("disk", "server", "read")


def test_a_host_without_a_folder_has_no_disk(lan):
    lan.server = replace(lan.server, folder=None)
    assert words(pulled(lan, 38, 37)) == ("disk", "server", "read")


@pytest.mark.parametrize(
    ("inner", "cause"), [(18, ("disk", "server", "read")), (38, ("bus", "server", "usb"))]
)
def test_a_disc_that_falls_from_edge_to_edge_is_not_held_by_its_usb(lan, inner, cause):
    """The outer edge of a disc that falls may give just what the link does by chance."""
    hang(lan, "server", {"usb_bits_per_second": USB2})
    told = []
    for at in range(9):
        rate = (38**2 - (at + 0.5) / 9 * (38**2 - inner**2)) ** 0.5 * MB
        told.append({"from_ratio": at / 9, "to_ratio": (at + 1) / 9, "bytes_per_second": rate})
    setting = {"side": "server", "verb": "read", "cache": "uncached", "pattern": "zones"}
    lan.add("disk", "server", setting, 30, {"zones": told, "device": "sda1", "located": True})
    place = {"device": "sda1", "device_bytes": 10**12, "located": True, "bytes": 2**30}
    place |= {"spans": [{"from_ratio": 0.0, "to_ratio": 0.01, "bytes": 2**30}]}
    setting = {**setting, "pattern": "sequential"}
    lan.add("disk", "server", setting, 38, {"cache": {"proven": True}, "place": place})
    lan.disk("client", "write", 2000)
    lan.copy("pull.uncached", 37)
    found = diagnose(lan.report()).copies[0]
    assert words(found) == cause
