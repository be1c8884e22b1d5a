"""PCI Express, USB, SATA, SAS and NVMe links as sysfs tells them."""

import pytest

from probes.system import bus


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
    link = bus.parse_pci(rate, width, rate, width)
    assert link["bytes_per_second"] == pytest.approx(bytes_per_second, rel=1e-3)
    assert link["able_bytes_per_second"] == link["bytes_per_second"]


@pytest.mark.parametrize(
    ("rate", "width"),
    [("Unknown", "8"), ("Unknown speed", "8"), ("8.0 GT/s PCIe", "0"), ("8.0 GT/s PCIe", "255")]
    + [(None, None), ("133 MHz PCI-X", "1"), ("8.0 GT/s PCIe", "-1")],
)
def test_a_link_that_is_down_or_no_pci_express_is_none(rate, width):
    assert bus.parse_pci(rate, width, "8.0 GT/s PCIe", "8") == {}


@pytest.mark.parametrize("address", ["", "../../etc", "usb-0000:00:14.0-1", "N/A", "tap"])
def test_what_is_no_pci_address_is_not_looked_for(address):
    assert bus.read_pci(address) == {}


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
    assert bus.parse_usb_rate(text) == rate


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
    assert bus.read_usb("1-1.4:1.0", devices) == bus.UsbLink(480_000_000, "2.10")


@pytest.mark.parametrize("parent", ["", "0000:03:00.0", "virtio2", "1-9:1.0"])
def test_what_is_on_no_usb_has_none(devices, parent):
    assert bus.read_usb(parent, devices) is None


@pytest.mark.parametrize(
    ("text", "rate"),
    [("6.0 Gbps", 6e9), ("1.5 Gbps", 1.5e9), ("<unknown>", None), (None, None), ("6.0", None)]
    + [("12.0 Gbit", 12e9), ("22.5 Gbit", 22.5e9), ("Unknown", None), ("Phy disabled", None)],
)
def test_a_sata_links_and_a_sas_phys_rate(text, rate):
    assert bus.link_rate(text) == rate


@pytest.mark.parametrize(
    ("caps", "rate"),
    [("e730ff45", 6e9), ("40141f05", 1.5e9), ("c0241f05", 3e9), ("0", None), ("x", None)]
    + [(None, None)],
)
def test_what_an_ahci_port_can(caps, rate):
    assert bus.port_rate(caps) == rate


@pytest.mark.parametrize(
    ("word", "rate"), [(0x850E, 6e9), (0x0706, 3e9), (0x0002, 1.5e9), (0, None), (0xFFFF, None)]
)
def test_what_a_sata_disk_can(word, rate):
    page = bytes(212) + word.to_bytes(2, "little") + bytes(300)
    assert bus.disk_rate(page) == rate


def test_a_page_that_was_cut_short_tells_no_rate():
    assert bus.disk_rate(b"") is None
    assert bus.disk_rate(bytes(213)) is None


def test_an_nvme_disk_with_two_paths_has_the_narrower_ones_link(tmp_path):
    subsystem = tmp_path / "devices/virtual/nvme-subsystem/nvme-subsys0"
    (subsystem / "nvme0n1").mkdir(parents=True)
    (subsystem / "model").write_text("INTEL SSDPE2KE016T8\n")
    for number, lanes in enumerate(("4", "2")):
        card = tmp_path / f"devices/pci0000:00/0000:0{number}:00.0"
        controller = card / f"nvme/nvme{number}"
        controller.mkdir(parents=True)
        (controller / "transport").write_text("pcie\n")
        (card / "current_link_speed").write_text("8.0 GT/s PCIe\n")
        (card / "current_link_width").write_text(f"{lanes}\n")
        (subsystem / f"nvme{number}").symlink_to(controller)
    facts = bus.disk_facts(subsystem / "nvme0n1")
    assert (facts["transport"], facts["model"]) == ("nvme", "INTEL SSDPE2KE016T8")
    assert facts["pcie"]["lanes"] == 2


@pytest.mark.parametrize(("rate", "rpm"), [(7200, 7200), (1, None), (0, None), (0xFFFF, None)])
def test_a_disc_s_rotations_are_those_of_its_page(tmp_path, rate, rpm):
    page = tmp_path / "vpd_pgb1"
    assert bus.rotations(page) is None
    page.write_bytes(bytes((0, 0xB1, 0, 0x3C)) + rate.to_bytes(2, "big") + bytes(58))
    assert bus.rotations(page) == rpm
