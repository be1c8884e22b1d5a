"""Bus and link by which a card or a disk is attached: PCI Express, USB, SATA, SAS, NVMe.

Sources: Documentation/ABI/testing/sysfs-bus-pci, pci_speed_string() in drivers/pci/probe.c;
Documentation/ABI/stable/sysfs-bus-usb and testing/sysfs-bus-usb (speed, version), sysfs-ata,
sysfs-class-sas_phy (drivers/scsi/scsi_transport_sas.c); ahci_host_caps in drivers/ata/libahci.c
and the AHCI specification 3.1.1 (ISS); ACS-3 IDENTIFY DEVICE word 76 in SAT's VPD page 89h.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Pattern

from probes.core.records import Details
from probes.system.proc import is_visible, word

PCI_DEVICES = Path("/sys/bus/pci/devices")
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
NO_WIDTH = ("0", "255")
CODING = {2.5e9: 8 / 10, 5e9: 8 / 10, 64e9: 242 / 256}
"""Share of the bits that is data; 128b/130b at 8 to 32 GT/s, and 64 GT/s goes in flits."""
CODING_SINCE_8 = 128 / 130
USB_DEVICES = Path("/sys/bus/usb/devices")
MOST_USB_LEVELS = 6
SATA_GENERATIONS = {1: 1_500_000_000, 2: 3_000_000_000, 3: 6_000_000_000}
"""Bits per second on the wire; 8b/10b coding leaves a tenth of them as bytes."""
CAPS_ISS_SHIFT = 20
CAPS_ISS_MASK = 0xF
IDENTIFY_OFFSET = 60
"""Offset of IDENTIFY DEVICE data in VPD page 89h, bytes."""
IDENTIFY_SATA_WORD = 76
LEAST_RPM = 0x401
"""Least value of MEDIUM ROTATION RATE that is a rate."""
_ATA = re.compile(r"ata\d+")
_SAS_PORT = re.compile(r"port-\d+:\d+(:\d+)?")
_NVME = re.compile(r"nvme\d+")
_NVME_SUBSYSTEM = re.compile(r"nvme-subsys\d+")
_USB = re.compile(r"usb\d+")
_PLAIN = (
    ("virtio", re.compile(r"virtio\d+")),
    ("mmc", re.compile(r"mmc\d+")),
    ("iscsi", re.compile(r"session\d+")),
    ("fc", re.compile(r"rport-\d+:.*")),
    ("xen", re.compile(r"vbd-\d+")),
    ("hyper-v", re.compile(r"VMBUS:.*|vmbus.*", re.IGNORECASE)),
)
"""Transports without a known rate, by a folder between the root of /sys and the disk's."""


class UsbLink(NamedTuple):
    """Rate and version of a USB device's connection."""

    usb_bits_per_second: int
    usb_version: Optional[str]
    """Version in its descriptor: 2.10 at 480 Mbit/s is a USB 3 device at a USB 2 port."""


def disk_facts(folder: Path) -> Details:
    """Returns model, transport and link of the disk at /sys/class/block/NAME, where known.

    link_bits_per_second on the wire; link_able_bits_per_second the highest rate that disk and port
    both support, where both report it; usb_bits_per_second, usb_version; pcie as of parse_pci;
    rotations_per_minute.
    """
    node = folder.resolve()
    model = word(folder / "device/model") or word(folder / "device/name")
    details: Details = {"model": model} if model else {}
    rpm = rotations(folder / "device/vpd_pgb1")
    if rpm is not None:
        details["rotations_per_minute"] = rpm
    for pattern, facts in (
        (_USB, _usb),
        (_NVME_SUBSYSTEM, _nvme),
        (_NVME, _nvme),
        (_SAS_PORT, _sas),
        (_ATA, _sata),
    ):
        on_the_way = _above(node, pattern)
        if on_the_way is not None:
            details.update(facts(node, on_the_way))
            break
    else:
        transport = next((name for name, pattern in _PLAIN if _above(node, pattern)), None)
        if transport is not None:
            details["transport"] = transport
    pcie = details.get("pcie") or pci_above(node)
    return {**details, "pcie": pcie} if pcie else details


def rotations(page: Path) -> int | None:
    """Returns a disk's rotations per minute by its VPD page B1h (SBC-4 6.6.2); None: unknown.

    Linux shows the page since 5.17; 1 is a disk that does not rotate.
    """
    try:
        rpm = int.from_bytes(page.read_bytes()[4:6], "big")
    except OSError:
        return None
    return rpm if LEAST_RPM <= rpm < 0xFFFF else None


def read_pci(address: str, devices: Path = PCI_DEVICES) -> Dict[str, float]:
    """Returns the link of the card at a PCI address; empty: it has none, or it cannot be read."""
    if not ADDRESS.fullmatch(address):
        return {}
    names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    return parse_pci(*(word(devices / address / name) for name in names))


def pci_above(node: Path) -> Dict[str, float]:
    """Returns the PCI Express link of the nearest card above a device; empty: none."""
    return next(filter(None, (read_pci(each.name, each.parent) for each in node.parents)), {})


def parse_pci(
    rate: str | None, width: str | None, able_rate: str | None, able_width: str | None
) -> Dict[str, float]:
    """Returns lanes, transfers_per_second of each, bytes_per_second in sum, from sysfs's texts.

    rate: `8.0 GT/s PCIe`, on older kernels `8 GT/s`. The bytes are those after the line's coding,
    in one direction, packet headers included. Keys with `able_` are what the card supports.
    Empty: rate or width is missing, as where a link is down.
    """
    figures = {}
    for prefix, speed, lanes in (("", rate, width), ("able_", able_rate, able_width)):
        match = re.match(r"(\d+(?:\.\d+)?) GT/s", speed or "")
        if match and lanes is not None and lanes.isdecimal() and lanes not in NO_WIDTH:
            transfers = float(match[1]) * 1e9
            coding = CODING.get(transfers, CODING_SINCE_8)
            figures[f"{prefix}lanes"] = float(lanes)
            figures[f"{prefix}transfers_per_second"] = transfers
            figures[f"{prefix}bytes_per_second"] = transfers * coding * int(lanes) / 8
    return figures if "lanes" in figures else {}


def read_usb(parent: str, devices: Path = USB_DEVICES) -> UsbLink | None:
    """Returns the USB link of an interface's device (1-1.4:1.0); None: it is not on USB.

    parent: the device's name on its bus, or the path of its folder.
    """
    try:
        folder = (devices / parent).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    for each in (folder, *folder.parents)[:MOST_USB_LEVELS]:
        if is_visible(each / "bDeviceClass"):
            rate = parse_usb_rate(word(each / "speed"))
            return None if rate is None else UsbLink(rate, word(each / "version"))
    return None


def parse_usb_rate(text: str | None) -> int | None:
    """Returns bits per second of sysfs's speed (Mbit/s): `480`, `5000`, `1.5`; None: unknown."""
    try:
        megabits = float(text or "")
    except ValueError:
        return None
    return round(megabits * 1e6) if 0 < megabits < 1e6 else None


def link_rate(text: str | None) -> int | None:
    """Returns bits per second of SATA's `6.0 Gbps` and SAS's `12.0 Gbit`; None: unknown."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) (Gbps|Gbit)", text or "")
    return round(float(match[1]) * 1e9) if match else None


def port_rate(caps: str | None) -> int | None:
    """Returns an AHCI controller's highest bits per second by ahci_host_caps; None: no AHCI."""
    try:
        return SATA_GENERATIONS.get(int(caps or "", 16) >> CAPS_ISS_SHIFT & CAPS_ISS_MASK)
    except ValueError:
        return None


def disk_rate(page: bytes) -> int | None:
    """Returns the bits per second of a disk's highest SATA generation (VPD page 89h), or None."""
    offset = IDENTIFY_OFFSET + 2 * IDENTIFY_SATA_WORD
    bits = int.from_bytes(page[offset : offset + 2], "little") if len(page) >= offset + 2 else 0
    if bits in (0, 0xFFFF):
        return None
    able = [rate for bit, rate in SATA_GENERATIONS.items() if bits >> bit & 1]
    return max(able, default=None)


def _above(node: Path, pattern: Pattern[str]) -> Path | None:
    """Returns the nearest folder above a device whose full name matches."""
    return next((each for each in node.parents if pattern.fullmatch(each.name)), None)


def _sata(node: Path, port: Path) -> Details:
    rates = _each(port.glob("link*/ata_link/link*/sata_spd"), link_rate)
    # behind a port multiplier there is a link for each disk: sysfs does not assign them
    if len(rates) != 1:
        return {"transport": "sata"} if rates else {"transport": "ata"}
    details: Details = {"transport": "sata", "link_bits_per_second": rates[0]}
    ports = _each(port.glob("host*/scsi_host/host*/ahci_host_caps"), port_rate)
    try:
        disk = disk_rate((node / "device/vpd_pg89").read_bytes())
    except OSError:
        disk = None
    if disk is not None and len(ports) == 1:
        details["link_able_bits_per_second"] = min(disk, ports[0])
    return details


def _sas(_: Path, port: Path) -> Details:
    rates = _each(port.glob("phy-*/sas_phy/phy-*/negotiated_linkrate"), link_rate)
    details: Details = {"transport": "sas"}
    return {**details, "link_bits_per_second": sum(rates)} if rates else details


def _usb(node: Path, _: Path) -> Details:
    details: Details = {"transport": "usb"}
    link = read_usb(str(node / "device"))
    if link is not None:
        details.update({key: value for key, value in link._asdict().items() if value})
    return details


def _nvme(_: Path, within: Path) -> Details:
    """Reads one controller above the disk, or, with multipath, those of its subsystem."""
    details: Details = {"transport": "nvme"}
    controllers = [within]
    if _NVME_SUBSYSTEM.fullmatch(within.name):
        names = (each for each in sorted(within.iterdir()) if _NVME.fullmatch(each.name))
        controllers = [each.resolve() for each in names]
    model = word(within / "model")
    if model:
        details["model"] = model
    links = [link for link in map(pci_above, controllers) if link]
    if links:
        details["pcie"] = min(links, key=lambda link: link["bytes_per_second"])
    return details


def _each(paths: Iterable[Path], parse: Callable[[str | None], int | None]) -> List[int]:
    return [rate for rate in (parse(word(each)) for each in sorted(paths)) if rate is not None]
