"""Layers of Windows, from what PowerShell prints; all of them labelled untested."""

import json
from pathlib import Path

import pytest

from probes.host import costly_layers, windows_disks

TEXT = Path(__file__).with_name("recorded").joinpath("powershell_disks.json").read_text()


def test_a_volume_its_partition_and_its_disk_are_layers():
    volume, partition, disk = windows_disks.parse(TEXT)
    assert (volume["kind"], volume["filesystem"]) == ("filesystem", "NTFS")
    assert (partition["kind"], partition["offset_bytes"]) == ("partition", 16777216)
    assert disk == {
        "name": "PhysicalDrive1",
        "kind": "disk",
        "tested": False,
        "model": "WDC WD20EFRX-68EUZN0",
        "rotational": True,
        "transport": "sata",
        "smart": {"passed": False},
        "bytes": 2000398934016,
    }
    (told,) = costly_layers.costly([volume, partition, disk])
    assert (told.option, told.tested) == ("health of PhysicalDrive1", False)


@pytest.mark.parametrize(
    ("media", "spindle", "rotational"),
    [(3, 0, True), (4, 0, False), ("SSD", 4294967295, False), ("Unspecified", 7200, True)]
    + [("Unspecified", 4294967295, None), (0, 0, None), (None, None, None)],
)
def test_a_disk_of_which_nothing_is_told_is_neither_spinning_nor_solid(media, spindle, rotational):
    told = json.loads(TEXT)
    told["disk"].update(MediaType=media, SpindleSpeed=spindle)
    assert windows_disks.parse(json.dumps(told))[2].get("rotational") == rotational


@pytest.mark.parametrize(
    ("bus", "transport"), [(17, "nvme"), ("NVMe", "nvme"), (7, "usb"), (0, None), ("Unknown", None)]
)
def test_the_bus_is_told_by_its_number_or_its_name(bus, transport):
    told = json.loads(TEXT)
    told["disk"]["BusType"] = bus
    assert windows_disks.parse(json.dumps(told))[2].get("transport") == transport


def test_a_volume_of_storage_spaces_has_no_physical_disk():
    told = json.loads(TEXT)
    told["disk"] = None
    assert [each["kind"] for each in windows_disks.parse(json.dumps(told))] == [
        "filesystem",
        "partition",
    ]


@pytest.mark.parametrize("text", ["", "[]", "Get-Partition : not found", '{"disk": [1]}', "{}"])
def test_what_is_no_answer_has_no_layers(text):
    assert windows_disks.parse(text) == []


def test_a_share_is_named_by_its_server():
    (layer,) = windows_disks.layers("\\\\nas\\media\\films")
    assert (layer["kind"], layer["host"]) == ("network", "nas")
