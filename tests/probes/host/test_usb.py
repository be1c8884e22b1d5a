"""USB links as sysfs tells them, in a tree that looks like /sys/bus/usb/devices."""

import pytest

from probes.host import usb


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
    assert usb.parse_rate(text) == rate


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
    assert usb.read_link("1-1.4:1.0", devices) == usb.UsbLink(480_000_000, "2.10")


def test_a_folders_path_will_do(devices):
    path = devices / "1-1.4:1.0" / "net" / "enx0"
    assert usb.read_link(str(path), devices) == usb.UsbLink(480_000_000, "2.10")


@pytest.mark.parametrize("parent", ["", "0000:03:00.0", "virtio2", "1-9:1.0"])
def test_what_is_on_no_usb_has_none(devices, parent):
    assert usb.read_link(parent, devices) is None


def test_a_pci_cards_folder_has_no_usb_above_it(devices):
    card = devices.parent / "pci0000:00/0000:03:00.0"
    assert usb.read_link(str(card), devices) is None
