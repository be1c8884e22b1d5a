"""How a card or a disk is attached: its PCI Express link, the USB link of its adapter.

Sources: Documentation/ABI/testing/sysfs-bus-pci, pci_speed_string() in drivers/pci/probe.c;
Documentation/ABI/stable/sysfs-bus-usb and testing/sysfs-bus-usb (speed, version).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from probes.host.sysfs import there, word

DEVICES = Path("/sys/bus/pci/devices")
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
NO_WIDTH = (0, 255)
CODING = {2.5e9: 8 / 10, 5e9: 8 / 10, 64e9: 242 / 256}
"""Share of the bits that is data; 128b/130b at 8 to 32 GT/s, and 64 GT/s goes in flits."""
CODING_SINCE_8 = 128 / 130


def read_link(address: str, devices: Path = DEVICES) -> dict[str, float]:
    """The link of the card at a PCI address; empty: it has none, or it cannot be read."""
    if not ADDRESS.fullmatch(address):
        return {}
    names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    return parse_link(*(word(devices / address / name) for name in names))


def parse_link(
    rate: str | None, width: str | None, able_rate: str | None, able_width: str | None
) -> dict[str, float]:
    """A link as sysfs tells it: lanes, transfers_per_second of each, bytes_per_second in sum.

    The bytes are those after the line's coding, in one direction; packet headers take their part
    of them. The same with `able_` is what the card could. Empty: no rate or no width is told.
    """
    found = {}
    for prefix, transfers, lanes in (
        ("", parse_rate(rate), parse_width(width)),
        ("able_", parse_rate(able_rate), parse_width(able_width)),
    ):
        if transfers is not None and lanes is not None:
            coding = CODING.get(transfers, CODING_SINCE_8)
            found[f"{prefix}lanes"] = float(lanes)
            found[f"{prefix}transfers_per_second"] = transfers
            found[f"{prefix}bytes_per_second"] = transfers * coding * lanes / 8
    return found if "lanes" in found else {}


def parse_rate(text: str | None) -> float | None:
    """Transfers per second of `8.0 GT/s PCIe`, on older kernels `8 GT/s`; None: Unknown."""
    match = re.match(r"(\d+(?:\.\d+)?) GT/s", text or "")
    return float(match[1]) * 1e9 if match else None


def parse_width(text: str | None) -> int | None:
    """Lanes; None: the slot is not PCI Express, or the link is down."""
    if text is None or not text.isdecimal() or int(text) in NO_WIDTH:
        return None
    return int(text)


USB_DEVICES = Path("/sys/bus/usb/devices")
MOST_USB_LEVELS = 6


@dataclass(frozen=True)
class UsbLink:
    """How a USB device is connected."""

    bits_per_second: int
    version: Optional[str]
    """Of its descriptor: 2.10 at 480 Mbit/s is how a USB 3 device looks at a USB 2 port."""


def read_usb(parent: str, devices: Path = USB_DEVICES) -> UsbLink | None:
    """The USB link of an interface's device (1-1.4:1.0); None: it is on no USB.

    parent: its name on its bus, or the path of its folder.
    """
    try:
        folder = (devices / parent).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    for _ in range(MOST_USB_LEVELS):
        if there(folder / "bDeviceClass"):
            rate = parse_usb_rate(word(folder / "speed"))
            return None if rate is None else UsbLink(rate, word(folder / "version"))
        folder = folder.parent
    return None


def parse_usb_rate(text: str | None) -> int | None:
    """Bits per second of sysfs's speed (Mbit/s): `480`, `5000`, `1.5`; None: unknown."""
    try:
        megabits = float(text or "")
    except ValueError:
        return None
    return round(megabits * 1e6) if 0 < megabits < 1e6 else None
