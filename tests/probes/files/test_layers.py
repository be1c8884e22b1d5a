"""Layers under folders, in trees that look like /sys, and under a real folder and loop device."""

import os
from pathlib import Path

import pytest

from probes.files import block, folders, layers
from probes.system.bus import IDENTIFY_OFFSET, IDENTIFY_SATA_WORD
from tests.devices import loop_device

RECORDED = Path(__file__).parents[1] / "recorded"
MOUNTINFO = """\
23 1 253:0 / / rw,relatime - ext4 /dev/mapper/nas-media rw,sync
24 23 253:1 / /crypt rw - ext4 /dev/mapper/dm_crypt-0 rw
25 23 9:0 / /raid rw - xfs /dev/md0 rw
26 23 8:33 / /stick rw - vfat /dev/sdc1 rw
27 23 0:40 / /nfs rw - nfs4 nas.lan:/export rw,rsize=1048576
28 23 0:41 / /smb rw - cifs //nas.lan/media rw,vers=3.1.1
29 23 0:42 / /tmpfs rw - tmpfs tmpfs rw
30 23 0:43 / /sshfs rw - fuse.sshfs user@host:/ rw
31 23 0:44 / /nfs6 rw - nfs [fe80::1]:/export rw
"""


@pytest.fixture
def walk(tmp_path):
    """A walk over the tree of /sys of a recorded file."""

    def build(name, mountinfo=MOUNTINFO):
        for line in (RECORDED / f"{name}.txt").read_text().splitlines():
            path, link, target = line.partition(" -> ")
            if link:
                entry = tmp_path / path
                entry.parent.mkdir(parents=True, exist_ok=True)
                entry.symlink_to(tmp_path / target)
            elif not line.startswith("#"):
                path, _, value = line.partition(" = ")
                (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / path).write_text(value + "\n")
        return layers.Walk(folders.parse_mountinfo(mountinfo), tmp_path)

    return build


def kinds(stack):
    return [(each["name"], each["kind"]) for each in stack]


def identify(tmp_path, capabilities):
    """Writes the disk's VPD page 89h: word 76 of IDENTIFY DEVICE has the SATA generations."""
    page = bytearray(IDENTIFY_OFFSET + 512)
    start = IDENTIFY_OFFSET + 2 * IDENTIFY_SATA_WORD
    page[start : start + 2] = capabilities.to_bytes(2, "little")
    (device,) = tmp_path.glob("devices/pci*/*/ata1/host0/target0:0:0/0:0:0:0")
    (device / "vpd_pg89").write_bytes(page)


def test_a_sata_disk_under_lvm_under_ext4(walk, tmp_path):
    way = walk("sysfs_sata_lvm")
    identify(tmp_path, 0x850E)
    stack = way.folder("/")
    assert kinds(stack) == [
        ("ext4", "filesystem"),
        ("dm-0", "lvm"),
        ("sda2", "partition"),
        ("sda", "disk"),
    ]
    assert stack[1]["members"] == ["sda2"]
    assert stack[2]["offset_bytes"] == 2099200 * 512
    assert stack[3] == {
        "name": "sda",
        "kind": "disk",
        "bytes": 2000398934016,
        "rotational": True,
        "scheduler": "mq-deadline",
        "read_ahead_bytes": 131072,
        "write_cache": "write back",
        "model": "WDC WD20EFRX-68E",
        "transport": "sata",
        "link_bits_per_second": 6_000_000_000,
        "link_able_bits_per_second": 6_000_000_000,
    }
    assert [each.value for each in layers.costly(stack)] == ["sync"]


def test_a_sata_link_below_what_disk_and_port_can_is_told_one_of_a_slow_disk_is_not(walk, tmp_path):
    way = walk("sysfs_sata_lvm")
    (link,) = tmp_path.glob("devices/pci*/*/ata1/link1/ata_link/link1/sata_spd")
    link.write_text("1.5 Gbps\n")
    identify(tmp_path, 0x0002)
    assert layers.Walk([], tmp_path).device("sda")[0]["link_able_bits_per_second"] == 1_500_000_000
    identify(tmp_path, 0x850E)
    (sata,) = layers.costly(way.device("sda"))
    assert (sata.option, sata.value) == ("SATA link of sda", "1.5 Gbit/s")
    assert "150 MB/s" in sata.why and sata.remedy


def test_an_nvme_disk_under_encryption_has_the_slots_lanes_beside_its_own(walk):
    stack = walk("sysfs_nvme_luks").folder("/crypt")
    assert kinds(stack)[1:] == [
        ("dm-1", "dm-crypt"),
        ("nvme0n1p3", "partition"),
        ("nvme0n1", "disk"),
    ]
    disk = stack[3]
    assert (disk["transport"], disk["rotational"]) == ("nvme", False)
    assert (disk["pcie"]["lanes"], disk["pcie"]["able_lanes"]) == (2, 4)
    (link,) = layers.costly(stack)
    assert link.value == "x2 at 8 GT/s, the disk supports x4 at 8 GT/s"
    assert "1969 of" in link.why


def test_a_raid_that_lost_a_disk_is_told_with_its_members_and_its_rebuild(walk):
    stack = walk("sysfs_md_raid5").folder("/raid")
    assert kinds(stack)[1:] == [("md0", "md"), ("sda", "disk"), ("sdb", "disk")]
    raid = stack[1]
    assert (raid["raid_level"], raid["members"], raid["degraded_disks"]) == (
        "raid5",
        ["sda", "sdb"],
        1,
    )
    assert raid["sync_bytes_per_second"] == 98304 * 1024
    assert [each["link_bits_per_second"] for each in stack[2:]] == [12e9, 6e9]
    assert [each.value for each in layers.costly(stack)] == [
        "degraded by 1",
        "recover at 101 MB/s",
        "off",
    ]
    assert all(each.remedy and each.tested for each in layers.costly(stack))


def test_a_usb_3_stick_at_a_usb_2_port_costs_and_its_bridges_word_for_a_cache_does_not(walk):
    stack = walk("sysfs_usb_stick").folder("/stick")
    disk = stack[-1]
    assert (disk["usb_bits_per_second"], disk["usb_version"]) == (480_000_000, "2.10")
    assert disk["transport"] == "usb"
    (usb,) = layers.costly(stack)
    assert (usb.option, usb.value, usb.tested) == ("USB of sdc", "480 Mbit/s", True)
    assert usb.remedy


@pytest.mark.parametrize(
    ("folder", "kind", "facts"),
    [
        ("/nfs", "network", {"host": "nas.lan"}),
        ("/nfs6", "network", {"host": "fe80::1"}),
        ("/smb", "network", {"host": "nas.lan"}),
        ("/tmpfs", "memory", {}),
        ("/sshfs", "fuse", {}),
    ],
)
def test_what_is_no_disk_is_named(folder, kind, facts, tmp_path):
    (layer,) = layers.Walk(folders.parse_mountinfo(MOUNTINFO), tmp_path).folder(folder)
    assert layer["kind"] == kind
    assert {key: layer[key] for key in ("host",) if key in layer} == facts


def test_an_overlay_shows_what_its_upper_folder_lies_on(walk, tmp_path):
    upper = tmp_path / "upper"
    upper.mkdir()
    overlay = f"40 23 0:50 / /over rw - overlay overlay rw,lowerdir=/l,upperdir={upper}\n"
    stack = walk("sysfs_sata_lvm", MOUNTINFO + overlay).folder("/over")
    assert [each["name"] for each in stack] == ["overlay", "ext4", "dm-0", "sda2", "sda"]


def test_a_circle_of_loop_devices_and_folders_ends(walk, tmp_path):
    way = walk("sysfs_sata_lvm", "23 1 7:0 / / rw - ext4 /dev/loop0 rw\n")
    (tmp_path / "class/block/loop0/loop").mkdir(parents=True)
    (tmp_path / "class/block/loop0/loop/backing_file").write_text(f"{tmp_path}/image\n")
    (tmp_path / "image").touch()
    (tmp_path / "dev/block/7:0").symlink_to(tmp_path / "class/block/loop0")
    assert kinds(way.folder("/")) == [("ext4", "filesystem"), ("loop0", "loop")]


def test_a_loop_devices_file_that_may_not_be_looked_up_ends_the_walk(walk, tmp_path):
    """The lookup fails as in another user's folder; here because the name is too long."""
    way = walk("sysfs_sata_lvm", "23 1 7:0 / / rw - ext4 /dev/loop0 rw\n")
    (tmp_path / "class/block/loop0/loop").mkdir(parents=True)
    (tmp_path / "class/block/loop0/loop/backing_file").write_text("/" + 300 * "x")
    (tmp_path / "dev/block/7:0").symlink_to(tmp_path / "class/block/loop0")
    assert kinds(way.folder("/")) == [("ext4", "filesystem"), ("loop0", "loop")]


def test_nothing_known_is_no_layer_and_no_error(tmp_path):
    assert layers.Walk([], tmp_path).folder("/") == []
    assert layers.device_layers("no-such-device") == []
    assert layers.device_layers("/no/such/node") == []
    assert layers.device_layers("../../etc") == []


def test_a_real_folders_layers_begin_as_its_stack_does(tmp_path):
    stack = layers.layers(str(tmp_path))
    assert [each["name"] for each in stack[:2]] == folders.stack(str(tmp_path))[:2]


def test_smart_is_asked_of_disks_alone_and_only_where_wanted(walk, tmp_path, monkeypatch):
    walk("sysfs_sata_lvm")
    real = layers.Walk
    monkeypatch.setattr(layers, "Walk", lambda mounts: real(mounts, tmp_path))
    monkeypatch.setattr(block, "read_smart", lambda name: {"passed": True, "of": name})
    stack = layers.device_layers("dm-0", ask_smart=True)
    assert [each.get("smart") for each in stack] == [None, None, {"passed": True, "of": "sda"}]
    assert not any("smart" in each for each in layers.device_layers("dm-0"))


def test_a_real_loop_device_shows_the_folder_of_its_file(tmp_path):
    image = tmp_path / "image"
    image.write_bytes(b"")
    os.truncate(image, 1 << 20)
    with loop_device(image) as node:
        stack = layers.device_layers(str(node))
    assert (stack[0]["kind"], stack[0]["bytes"]) == ("loop", 1 << 20)
    assert stack[0]["backing_file"] == str(image)
    assert stack[1:] == layers.layers(str(tmp_path))


DISK = {
    "name": "sda",
    "kind": "disk",
    "rotational": True,
    "transport": "sata",
    "write_cache": "write back",
    "link_bits_per_second": 6_000_000_000,
    "link_able_bits_per_second": 6_000_000_000,
}


def costly(*stack):
    return [(each.option, each.value) for each in layers.costly(stack)]


def test_a_usual_stack_costs_nothing():
    options = "rw,relatime,errors=remount-ro,async"
    filesystem = {"name": "ext4", "kind": "filesystem", "mount_options": options}
    raid = {"name": "md0", "kind": "md", "degraded_disks": 0, "sync_action": "idle"}
    assert costly(filesystem, raid, DISK) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"write_cache": "write through", "transport": "usb"},
        {"write_cache": "write through", "transport": "virtio"},
        {"write_cache": "write through", "rotational": False},
        {"write_cache": "write through", "transport": None},
        {"usb_bits_per_second": 5_000_000_000},
        {"smart": {}},
        {"smart": {"passed": True, "pending_sectors": 3}},
        {"link_able_bits_per_second": None, "link_bits_per_second": 1_500_000_000},
    ],
)
def test_what_does_not_surely_cost_is_not_told(changed):
    assert costly({**DISK, **changed}) == []


def test_mount_options_are_whole_words():
    layer = {"name": "ext4", "kind": "filesystem", "mount_options": "rw,dirsync,nosync,syncfs"}
    assert costly(layer) == [("mount option of ext4", "dirsync")]


def test_a_mirror_that_lost_a_disk_computes_nothing():
    mirror = {"name": "md0", "kind": "md", "raid_level": "raid1", "degraded_disks": 1}
    (each,) = layers.costly([mirror])
    assert "fewer disks" in each.why


@pytest.mark.parametrize("value", [None, "x", True, -1, float("nan"), [], {}])
def test_hostile_values_cost_nothing(value):
    keys = ("usb_bits_per_second", "link_bits_per_second", "pcie", "smart", "degraded_disks")
    for kind in ("disk", "md"):
        layer = dict.fromkeys(keys, value)
        assert costly({**layer, "kind": kind, "transport": "nvme", "sync_action": "idle"}) == []
