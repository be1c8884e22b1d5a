"""Usual rates are told of links and disks whose class is known."""

import json
from pathlib import Path

import pytest

from bottleneck.analysis.usual import usual_rates
from bottleneck.report import report as reports

DATA = Path(__file__).parents[1] / "data"


def names(document):
    return [each.name for each in usual_rates(reports.from_json(document))]


@pytest.fixture
def document():
    return json.loads((DATA / "report-v1-comparisons.json").read_text())


def disk_of(document):
    details = (each["outcome"].get("details") or {} for each in document["steps"])
    return next(each["layers"][-1] for each in details if "layers" in each)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({}, ["hard disk"]),
        ({"rotations_per_minute": 5425}, ["5400 rpm hard disk"]),
        ({"rotations_per_minute": 7200}, ["7200 rpm hard disk"]),
        ({"rotational": False}, ["SATA SSD"]),
        ({"usb_bits_per_second": 480_000_000}, ["disk at USB 2"]),
        ({"rotational": False, "link_bits_per_second": 3_000_000_000}, []),
        ({"rotations_per_minute": 15_000}, []),
        ({"transport": "virtio"}, []),
    ],
)
def test_a_disk_s_class_is_told_unless_it_is_virtual(document, facts, name):
    disk_of(document).update(facts)
    assert names(document) == ["link of 1 Gbit/s", *name]


def test_a_wireless_link_has_a_share_of_its_rate_and_a_virtual_one_none(document):
    document["hosts"]["client"]["interface"]["wifi"] = {"bits_per_second": 866_700_000}
    document["hosts"]["server"]["interface"]["virtual"] = True
    assert names(document)[0] == "Wi-Fi at 867 Mbit/s"
    assert "link of 1 Gbit/s" not in names(document)
