"""Rates of disks' links as the kernel prints them."""

import pytest

from probes.host import disk_bus


@pytest.mark.parametrize(
    ("text", "rate"),
    [("6.0 Gbps", 6e9), ("1.5 Gbps", 1.5e9), ("<unknown>", None), (None, None), ("6.0", None)],
)
def test_a_sata_links_rate(text, rate):
    assert disk_bus.sata_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [("12.0 Gbit", 12e9), ("22.5 Gbit", 22.5e9), ("Unknown", None), ("Phy disabled", None)],
)
def test_a_sas_phys_rate(text, rate):
    assert disk_bus.sas_rate(text) == rate


@pytest.mark.parametrize(
    ("caps", "rate"),
    [("e730ff45", 6e9), ("40141f05", 1.5e9), ("c0241f05", 3e9), ("0", None), ("x", None)]
    + [(None, None)],
)
def test_what_an_ahci_port_can(caps, rate):
    assert disk_bus.port_rate(caps) == rate


@pytest.mark.parametrize(
    ("word", "rate"),
    [(0x850E, 6e9), (0x0706, 3e9), (0x0002, 1.5e9), (0, None), (0xFFFF, None)],
)
def test_what_a_sata_disk_can(word, rate):
    page = bytes(212) + word.to_bytes(2, "little") + bytes(300)
    assert disk_bus.disk_rate(page) == rate


def test_a_page_that_was_cut_short_tells_no_rate():
    assert disk_bus.disk_rate(b"") is None
    assert disk_bus.disk_rate(bytes(213)) is None


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
    found = disk_bus.facts(subsystem / "nvme0n1")
    assert (found["transport"], found["paths"], found["model"]) == (
        "nvme",
        2,
        "INTEL SSDPE2KE016T8",
    )
    assert found["pcie"]["lanes"] == 2
