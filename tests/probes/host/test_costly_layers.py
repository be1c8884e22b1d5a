"""What costs is told once, with a remedy; what may be otherwise is not told."""

import pytest

from probes.host import layers

DISK = {
    "name": "sda",
    "kind": "disk",
    "rotational": True,
    "transport": "sata",
    "write_cache": "write back",
    "link_bits_per_second": 6_000_000_000,
    "link_able_bits_per_second": 6_000_000_000,
}


def told(*stack):
    return [(each.option, each.value) for each in layers.costly(stack)]


def test_a_usual_stack_costs_nothing():
    options = "rw,relatime,errors=remount-ro,async"
    filesystem = {"name": "ext4", "kind": "filesystem", "mount_options": options}
    raid = {"name": "md0", "kind": "md", "degraded_disks": 0, "sync_action": "idle"}
    assert told(filesystem, raid, DISK) == []


@pytest.mark.parametrize(
    ("changed", "option"),
    [
        ({"write_cache": "write through"}, "write cache of sda"),
        ({"link_bits_per_second": 3_000_000_000}, "SATA link of sda"),
        ({"usb_bits_per_second": 480_000_000}, "USB of sda"),
        ({"usb_bits_per_second": 12_000_000}, "USB of sda"),
        ({"smart": {"passed": False}}, "health of sda"),
    ],
)
def test_each_fact_that_costs_is_told_with_a_remedy(changed, option):
    (each,) = layers.costly([{**DISK, **changed}])
    assert each.option == option
    assert each.value and each.why and each.remedy and each.tested


@pytest.mark.parametrize(
    "changed",
    [
        {"write_cache": "write through", "transport": "usb"},
        {"write_cache": "write through", "transport": "virtio"},
        {"write_cache": "write through", "rotational": False},
        {"write_cache": "write through", "transport": None},
        {"usb_bits_per_second": 5_000_000_000},
        {"smart": {"asleep": True}},
        {"smart": {"passed": True, "pending_sectors": 3}},
        {"link_able_bits_per_second": None, "link_bits_per_second": 1_500_000_000},
    ],
)
def test_what_does_not_surely_cost_is_not_told(changed):
    assert told({**DISK, **changed}) == []


def test_mount_options_are_whole_words():
    layer = {"name": "ext4", "kind": "filesystem", "mount_options": "rw,dirsync,nosync,syncfs"}
    assert told(layer) == [("mount option of ext4", "dirsync")]


def test_a_mirror_that_lost_a_disk_computes_nothing():
    mirror = {"name": "md0", "kind": "md", "raid_level": "raid1", "degraded_disks": 1}
    (each,) = layers.costly([mirror])
    assert "fewer disks" in each.why


@pytest.mark.parametrize("value", [None, "x", True, -1, float("nan"), [], {}])
def test_hostile_values_cost_nothing(value):
    keys = ("usb_bits_per_second", "link_bits_per_second", "pcie", "smart", "degraded_disks")
    for kind in ("disk", "md"):
        layer = dict.fromkeys(keys, value)
        assert told({**layer, "kind": kind, "transport": "nvme", "sync_action": "idle"}) == []
