"""Usual rates of links and disks by their class, to be read beside a measured one.

No verdict rests on them. Sources, with a figure each: docs/usual-rates.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from bottleneck.analysis import steps
from bottleneck.analysis.hardware_limits import interfaces
from bottleneck.report.report import Report
from bottleneck.text import units
from probes.core.records import Details, InterfaceFacts

MB: Final = 1_000_000
GB: Final = 1000 * MB
USB_2_BITS_PER_SECOND = 480_000_000
MOST_LAYERS = 12


class Usual(NamedTuple):
    """Rates between which most devices of a class read or write long files."""

    name: str
    low: float
    """Bytes per second, payload."""
    high: float


LINKS = {
    10_000_000: (1.05, 1.18),
    100_000_000: (10.5, 11.8),
    1_000_000_000: (105, 118),
    2_500_000_000: (260, 295),
    5_000_000_000: (400, 590),
    10_000_000_000: (600, 1180),
}
"""MB/s by bits per second of the link."""
WIFI_RATIOS = 0.4, 0.7
"""Share of the rate to the access point that is left for TCP."""
DISK_TRANSPORTS = ("ata", "sata", "sas", "usb")
"""Transports of hard disks; a virtual disk claims to rotate, whatever it is."""
HARD_DISK = Usual("hard disk", 70 * MB, 250 * MB)
SLOW_DISK = Usual("5400 rpm hard disk", 70 * MB, 190 * MB)
FAST_DISK = Usual("7200 rpm hard disk", 120 * MB, 250 * MB)
DISKS_BY_RPM = {5400: SLOW_DISK, 7200: FAST_DISK}
RPM_RATIO = 0.1
"""Greatest difference from a class's rotations per minute: 5425 and 5900 are of 5400."""
SATA_3_BITS_PER_SECOND = 6_000_000_000
SSDS = {
    "sata": Usual("SATA SSD", 400 * MB, 560 * MB),
    "nvme": Usual("NVMe SSD", 1500 * MB, 7 * GB),
    "mmc": Usual("SD card or eMMC", 10 * MB, 250 * MB),
}
"""Disks that do not rotate, by transport."""
USB_2 = Usual("disk at USB 2", 5 * MB, 40 * MB)
USB_3 = Usual("USB 3 stick or SSD", 30 * MB, 450 * MB)


def usual_rates(report: Report) -> Iterator[Usual]:
    """Yields the usual rates of both sides' links and disks, each class once."""
    links = [_of_link(interface) for _, interface in interfaces(report)]
    disks = [_of_disk(each) for each in _disks(report)]
    yield from (each for each in dict.fromkeys(links + disks) if each is not None)


def _of_link(interface: InterfaceFacts) -> Usual | None:
    rate = steps.positive(interface.wifi, "bits_per_second")
    if rate is not None:
        low, high = (ratio * rate / 8 for ratio in WIFI_RATIOS)
        return Usual(f"Wi-Fi at {units.link_text(rate)}", low, high)
    wired = interface.rate_bits_per_second or 0
    if interface.virtual or wired not in LINKS:
        return None
    low, high = (MB * each for each in LINKS[wired])
    return Usual(f"link of {units.link_text(wired)}", low, high)


def _disks(report: Report) -> Iterator[Details]:
    """Yields the lowest layer of each disk stage that is one disk of this host."""
    for step, outcome in report.entries:
        details = getattr(outcome, "details", None)
        layers = steps.items(details, "layers")[:MOST_LAYERS] if step.stage == "disk" else ()
        disks = [each for each in layers if steps.word(each, "kind") == "disk"]
        if len(disks) == 1:
            yield disks[0]


def _of_disk(layer: Details) -> Usual | None:
    transport, rotates = steps.word(layer, "transport"), steps.flag(layer, "rotational")
    usb = steps.positive(layer, "usb_bits_per_second")
    if usb is not None and usb <= USB_2_BITS_PER_SECOND:
        return USB_2
    if rotates and transport in DISK_TRANSPORTS:
        rpm = steps.positive(layer, "rotations_per_minute")
        near = (
            each
            for usual, each in DISKS_BY_RPM.items()
            if abs((rpm or 0) - usual) < RPM_RATIO * usual
        )
        return HARD_DISK if rpm is None else next(near, None)
    if rotates is not False or transport is None:
        return None
    link = steps.positive(layer, "link_bits_per_second")
    if link is not None and link < SATA_3_BITS_PER_SECOND:
        return None
    return USB_3 if transport == "usb" else SSDS.get(transport)
