"""PCI Express links as sysfs tells them; words of pci_speed_string() in drivers/pci/probe.c."""

import pytest

from probes.host import pci


@pytest.mark.parametrize(
    ("rate", "width", "bytes_per_second"),
    [
        ("2.5 GT/s PCIe", "1", 250e6),
        ("5.0 GT/s PCIe", "4", 2e9),
        ("8.0 GT/s PCIe", "4", 3.938e9),
        ("8 GT/s", "4", 3.938e9),
        ("16.0 GT/s PCIe", "1", 1.969e9),
        ("64.0 GT/s PCIe", "1", 7.5625e9),
    ],
)
def test_the_bytes_are_those_after_coding(rate, width, bytes_per_second):
    found = pci.parse_link(rate, width, rate, width)
    assert found["bytes_per_second"] == pytest.approx(bytes_per_second, rel=1e-3)
    assert found["able_bytes_per_second"] == found["bytes_per_second"]


def test_a_narrow_slot_stands_beside_what_the_card_could():
    found = pci.parse_link("5.0 GT/s PCIe", "1", "8.0 GT/s PCIe", "8")
    assert (found["lanes"], found["able_lanes"]) == (1, 8)
    assert (found["transfers_per_second"], found["able_transfers_per_second"]) == (5e9, 8e9)


@pytest.mark.parametrize(
    ("rate", "width"),
    [("Unknown", "8"), ("Unknown speed", "8"), ("8.0 GT/s PCIe", "0"), ("8.0 GT/s PCIe", "255")]
    + [(None, None), ("133 MHz PCI-X", "1"), ("8.0 GT/s PCIe", "-1")],
)
def test_a_link_that_is_down_or_no_pci_express_is_none(rate, width):
    assert pci.parse_link(rate, width, "8.0 GT/s PCIe", "8") == {}


def test_a_slot_is_told_without_what_the_card_could():
    assert set(pci.parse_link("2.5 GT/s PCIe", "1", None, None)) == {
        "lanes",
        "transfers_per_second",
        "bytes_per_second",
    }


def test_a_folder_of_sysfs_is_read_by_the_cards_address(tmp_path):
    folder = tmp_path / "0000:03:00.0"
    folder.mkdir()
    for name, word in (
        ("current_link_speed", "2.5 GT/s PCIe"),
        ("current_link_width", "1"),
        ("max_link_speed", "5.0 GT/s PCIe"),
        ("max_link_width", "4"),
    ):
        (folder / name).write_text(word + "\n")
    found = pci.read_link("0000:03:00.0", tmp_path)
    assert (found["bytes_per_second"], found["able_bytes_per_second"]) == (250e6, 2e9)
    assert pci.read_link("0000:04:00.0", tmp_path) == {}


@pytest.mark.parametrize("address", ["", "../../etc", "usb-0000:00:14.0-1", "N/A", "tap"])
def test_what_is_no_pci_address_is_not_looked_for(address):
    assert pci.read_link(address) == {}
