"""Input of an estimate: figures of the path, the protocol and both ends; None: not supplied.

Request sizes by dialect: [MS-SMB2] 3.3.5.4 (65536 bytes up to 2.0.2; multi-credit requests from 2.1
on); SMB1 clients ask for 60 KiB, "the maximum size read that windows servers can fill"
(mount.cifs(8)), one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis import model, steps
from bottleneck.analysis.evidence.details import Fit
from bottleneck.analysis.socket_buffers import RECEIVE, Kind
from bottleneck.text.units import range_text

USUAL_SHAPES: dict[str, tuple[int, int]] = {"smb1": (60 << 10, 1), "2.0.2": (64 << 10, 8)}
"""Bytes of a request and number outstanding, by dialect; others have LATER_SHAPE."""
LATER_SHAPE = (1 << 20, 8)


@dataclass(frozen=True)
class DiskKind:
    """Sequential rates of a kind of disk, bytes per second."""

    low: float
    usual: float
    high: float
    why: str
    """Reason for these rates."""
    cause: str | None = None
    """Cause of component bus, if the disk's connection sets the rate."""

    @property
    def rule(self) -> str:
        """The range and its reason."""
        return f"{range_text(self.low, self.high)}: {self.why}"


def disk_of(bytes_per_second: float) -> DiskKind:
    """Makes the kind of a disk whose rate is given."""
    return DiskKind(bytes_per_second, bytes_per_second, bytes_per_second, "as given")


KINDS: dict[str, DiskKind] = {
    "hdd": DiskKind(100e6, 150e6, 260e6, "a 3.5-inch hard disk at 7200/min, inner to outer tracks"),
    "hdd-outer": DiskKind(
        180e6, 210e6, 260e6, "the outer tracks of such a disk, which are filled first"
    ),
    "hdd-inner": DiskKind(
        90e6, 105e6, 130e6, "the inner tracks of such a disk, at about half the rate"
    ),
    "hdd-laptop": DiskKind(50e6, 80e6, 140e6, "a 2.5-inch hard disk at 5400/min"),
    "ssd": DiskKind(450e6, 530e6, 560e6, "SATA at 6 Gbit/s carries 600 MB/s, less its framing"),
    "nvme": DiskKind(1.5e9, 3e9, 3.5e9, "4 lanes of PCI Express 3.0 carry 3.94 GB/s"),
    "sd": DiskKind(20e6, 60e6, 95e6, "UHS-I ends at 104 MB/s; writes are far slower"),
    "usb2": DiskKind(
        25e6, 35e6, 41e6, "USB at 480 Mbit/s carries at most 53 MB/s in bulk packets", "usb"
    ),
    "usb3": DiskKind(300e6, 400e6, 450e6, "USB at 5 Gbit/s carries 500 MB/s", "usb"),
}
"""Kinds of disks by the word that a person gives; the estimate takes the usual rate."""


@dataclass(frozen=True)
class Window:
    """Window or buffer of one end of a connection: its limit of the bytes in flight."""

    size_bytes: float
    kind: Kind = RECEIVE
    is_kernels: bool = False
    """Whether it is the kernel's maximum for a socket."""


@dataclass(frozen=True)
class Envelope:
    """Figures of one copy for an estimate."""

    verb: str = "pull"
    cached: bool = False
    """Whether the source is in the sender's cache."""
    dialect: str = "3.1.1"
    link_bits_per_second: float | None = None
    link_side: str = "path"
    """Side of the link, if only one end's is that slow."""
    mtu_bytes: int = model.ETHERNET_MTU_BYTES
    ipv6: bool = False
    vlan_tags: int = 0
    rtt_seconds: float | None = None
    windows: tuple[Window, ...] = ()
    """Windows and buffers of one connection."""
    streams: int = 1
    request_bytes: float | None = None
    depth: float | None = None
    assumes_requests: bool = True
    """Whether the dialect's usual requests replace those that were not supplied."""
    response_seconds: float | None = None
    """Measured time of a request and its response; None: the RTT, and the data on the link."""
    fit: Fit = Fit()
    """Line fitted through times by message size."""
    loss_ratio: float | None = None
    """Loss events per packet."""
    read: DiskKind | None = None
    """The sender's disk."""
    write: DiskKind | None = None
    """The receiver's disk."""
    ram_bytes: float | None = None
    """The sender's memory."""
    size_bytes: float | None = None
    initiator: str = "client"

    @property
    def sender(self) -> str:
        return steps.sender(self.verb, self.initiator)

    @property
    def receiver(self) -> str:
        return steps.other(self.sender)

    @property
    def segment_bytes(self) -> int:
        """Payload of a full packet."""
        return model.payload_bytes(self.mtu_bytes, ipv6=self.ipv6)

    @property
    def link_efficiency(self) -> float:
        """Share of the link's rate that is payload."""
        return model.payload_efficiency(self.mtu_bytes, ipv6=self.ipv6, vlan_tags=self.vlan_tags)

    @property
    def link_payload(self) -> float | None:
        """Payload that the link carries, bytes per second."""
        bits = self.link_bits_per_second
        return None if bits is None else bits / 8 * self.link_efficiency

    @property
    def window_bytes(self) -> float | None:
        """Receive window of one connection."""
        return next((each.size_bytes for each in self.windows if each.kind is RECEIVE), None)

    @property
    def shape(self) -> tuple[float, float]:
        """Bytes of a request and number outstanding: as supplied, else the dialect's usual."""
        size, depth = USUAL_SHAPES.get(self.dialect, LATER_SHAPE)
        return self.request_bytes or size, self.depth or depth

    @property
    def reads_disk(self) -> bool:
        """Whether the source comes from the sender's disk, as it does if RAM cannot hold it."""
        is_known = self.ram_bytes is not None and self.size_bytes is not None
        return not self.cached or (is_known and (self.size_bytes or 0) > (self.ram_bytes or 0))
