"""Rules of thumb for disks: what a kind of disk moves in sequence, and why."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.reports.units import range_text


@dataclass(frozen=True)
class DiskKind:
    """What disks of a kind move in sequence, bytes per second."""

    low: float
    usual: float
    high: float
    why: str
    """What sets it."""
    cause: str | None = None
    """Of component bus, where it is what the disk is plugged in by that sets it."""

    @property
    def rule(self) -> str:
        """The rule of thumb in words."""
        return f"{range_text(self.low, self.high)}: {self.why}"


def told(bytes_per_second: float) -> DiskKind:
    """A disk whose rate is given."""
    return DiskKind(bytes_per_second, bytes_per_second, bytes_per_second, "as it was given")


KINDS: dict[str, DiskKind] = {
    "hdd": DiskKind(
        *(100e6, 150e6, 260e6),
        "a 3.5-inch disc at 7200/min, from its inner edge to its outer one",
    ),
    "hdd-outer": DiskKind(
        *(180e6, 210e6, 260e6), "the outer edge of such a disc, where it is filled first"
    ),
    "hdd-inner": DiskKind(
        *(90e6, 105e6, 130e6), "its inner edge: the linear rate falls with the radius, to half"
    ),
    "hdd-laptop": DiskKind(*(50e6, 80e6, 140e6), "a 2.5-inch disc at 5400/min"),
    "ssd": DiskKind(
        *(450e6, 530e6, 560e6), "SATA at 6 Gbit/s carries 600 MB/s after 8b/10b, less its frames"
    ),
    "nvme": DiskKind(
        *(1.5e9, 3e9, 3.5e9), "4 lanes of PCI Express 3.0 carry 3.94 GB/s after 128b/130b"
    ),
    "sd": DiskKind(*(20e6, 60e6, 95e6), "UHS-I ends at 104 MB/s; writes are far slower"),
    "usb2": DiskKind(
        *(25e6, 35e6, 41e6),
        "USB at 480 Mbit/s has room for 53 MB/s in bulk packets; controllers use 8 to 10 of 13",
        "usb",
    ),
    "usb3": DiskKind(
        *(300e6, 400e6, 450e6), "USB at 5 Gbit/s carries 500 MB/s after 8b/10b", "usb"
    ),
}
"""By the word that a person gives; the usual one counts."""
