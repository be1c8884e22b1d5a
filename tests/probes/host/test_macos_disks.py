"""Layers of macOS, from diskutil's property lists; all of them labelled untested."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="arg-type"

from pathlib import Path

import pytest

from probes.host import macos_disks

RECORDED = Path(__file__).with_name("recorded")


def info(name):
    return macos_disks.parse((RECORDED / name).read_bytes())


def test_an_apfs_volume_lies_in_a_partition_of_a_solid_state_disk():
    volume = info("diskutil_volume.plist")
    store = macos_disks.physical_store(volume)
    assert macos_disks.whole_disk(store) == "disk0"
    found = macos_disks.layers_of(volume, store, info("diskutil_disk.plist"))
    assert [(each["name"], each["kind"]) for each in found] == [
        ("apfs", "filesystem"),
        ("disk0s2", "partition"),
        ("disk0", "disk"),
    ]
    assert found[2] == {
        "name": "disk0",
        "kind": "disk",
        "bytes": 1000555581440,
        "model": "APPLE SSD AP1024Z",
        "rotational": False,
        "transport": "nvme",
        "smart": {"passed": True},
        "tested": False,
    }
    assert not any(each["tested"] for each in found)


def test_a_volume_on_a_plain_partition_is_its_own_partition():
    volume = {"FilesystemType": "hfs", "DeviceIdentifier": "disk4s2", "ParentWholeDisk": "disk4"}
    disk = {"DeviceIdentifier": "disk4", "BusProtocol": "USB", "SMARTStatus": "Not Supported"}
    found = macos_disks.layers_of(volume, macos_disks.physical_store(volume), disk)
    assert [each["name"] for each in found] == ["hfs", "disk4s2", "disk4"]
    assert found[2]["transport"] == "usb"
    assert "rotational" not in found[2] and "smart" not in found[2]


def test_a_share_is_a_network_layer_alone():
    (layer,) = macos_disks.layers_of({"FilesystemType": "smbfs"}, None, {})
    assert layer["kind"] == "network"


@pytest.mark.parametrize(
    "text", [b"", b"Could not find disk: disk9", b"<plist><dict>", b"<plist><array/></plist>"]
)
def test_what_is_no_property_list_tells_nothing(text):
    assert macos_disks.parse(text) == {}


def test_a_disk_that_is_not_there_is_an_error_document():
    text = b"<plist version='1.0'><dict><key>Error</key><true/></dict></plist>"
    assert macos_disks.parse(text) == {}
    assert macos_disks.layers_of({}, None, {}) == []


@pytest.mark.parametrize(
    ("name", "disk"),
    [("disk0s2", "disk0"), ("disk3s1s1", "disk3"), ("disk10", "disk10"), ("x", ""), ("", "")],
)
def test_a_whole_disk_is_in_the_name_of_its_parts(name, disk):
    assert macos_disks.whole_disk(name) == disk
