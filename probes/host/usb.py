"""The USB link of an adapter: found by walking up from its interface to the USB device.

Source: Documentation/ABI/stable/sysfs-bus-usb and testing/sysfs-bus-usb (speed, version).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from probes.host.sysfs import there, word

DEVICES = Path("/sys/bus/usb/devices")
MOST_LEVELS = 6


@dataclass(frozen=True)
class UsbLink:
    """How a USB device is connected."""

    bits_per_second: int
    version: Optional[str]
    """Of its descriptor: 2.10 at 480 Mbit/s is how a USB 3 device looks at a USB 2 port."""


def read_link(parent: str, devices: Path = DEVICES) -> UsbLink | None:
    """The USB link of an interface's device (1-1.4:1.0); None: it is on no USB.

    parent: its name on its bus, or the path of its folder.
    """
    try:
        folder = (devices / parent).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    for _ in range(MOST_LEVELS):
        if there(folder / "bDeviceClass"):
            rate = parse_rate(word(folder / "speed"))
            return None if rate is None else UsbLink(rate, word(folder / "version"))
        folder = folder.parent
    return None


def parse_rate(text: str | None) -> int | None:
    """Bits per second of sysfs's speed (Mbit/s): `480`, `5000`, `1.5`; None: unknown."""
    try:
        megabits = float(text or "")
    except ValueError:
        return None
    return round(megabits * 1e6) if 0 < megabits < 1e6 else None
