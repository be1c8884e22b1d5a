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


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("480", 480_000_000),
        ("5000", 5_000_000_000),
        ("10000", 10_000_000_000),
        ("12", 12_000_000),
        ("1.5", 1_500_000),
        ("unknown", None),
        ("", None),
        ("-1", None),
        ("nan", None),
        (None, None),
    ],
)
def test_the_rate_is_in_mbit_a_second(text, rate):
    assert pci.parse_usb_rate(text) == rate


@pytest.fixture
def devices(tmp_path):
    """A USB 3 adapter behind a USB 2 hub, named as the bus does; beside it a PCI card."""
    adapter = tmp_path / "pci0000:00/0000:00:14.0/usb1/1-1/1-1.4"
    (adapter / "1-1.4:1.0/net/enx0").mkdir(parents=True)
    for name, word in (("speed", "480"), ("version", " 2.10"), ("bDeviceClass", "00")):
        (adapter / name).write_text(word + "\n")
    (tmp_path / "pci0000:00/0000:03:00.0/net/enp3s0").mkdir(parents=True)
    names = tmp_path / "devices"
    names.mkdir()
    (names / "1-1.4:1.0").symlink_to(adapter / "1-1.4:1.0")
    return names


def test_the_device_above_the_interface_tells_the_link(devices):
    assert pci.read_usb("1-1.4:1.0", devices) == pci.UsbLink(480_000_000, "2.10")


def test_a_folders_path_will_do(devices):
    path = devices / "1-1.4:1.0" / "net" / "enx0"
    assert pci.read_usb(str(path), devices) == pci.UsbLink(480_000_000, "2.10")


@pytest.mark.parametrize("parent", ["", "0000:03:00.0", "virtio2", "1-9:1.0"])
def test_what_is_on_no_usb_has_none(devices, parent):
    assert pci.read_usb(parent, devices) is None


def test_a_pci_cards_folder_has_no_usb_above_it(devices):
    card = devices.parent / "pci0000:00/0000:03:00.0"
    assert pci.read_usb(str(card), devices) is None
