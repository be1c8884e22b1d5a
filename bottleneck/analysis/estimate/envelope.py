"""What an estimate starts from: figures of the path, the protocol and both ends; None: not given.

Request sizes by dialect: [MS-SMB2] 3.3.5.4 (65536 bytes up to 2.0.2; multi-credit requests from 2.1
on); SMB1 clients ask for 60 KiB, "the maximum size read that windows servers can fill"
(mount.cifs(8)), one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis import model, steps
from bottleneck.analysis.estimate.disk_kinds import DiskKind

USUAL_SHAPES: dict[str, tuple[int, int]] = {"smb1": (60 << 10, 1), "2.0.2": (64 << 10, 8)}
"""Bytes of a request and how many are outstanding; of dialects that are not here: below."""
LATER_SHAPE = (1 << 20, 8)


@dataclass(frozen=True)
class Envelope:
    """One copy, started by the client: the back of its envelope."""

    verb: str = "pull"
    cached: bool = False
    """Whether the source lies in the sender's RAM."""
    dialect: str = "3.1.1"
    link_bits_per_second: float | None = None
    link_side: str = "path"
    """Whose link it is, where one end's alone is that slow."""
    mtu_bytes: int = model.ETHERNET_MTU_BYTES
    ipv6: bool = False
    timestamps: bool = True
    vlan_tags: int = 0
    rtt_seconds: float | None = None
    window_bytes: float | None = None
    """The receive window of one connection."""
    streams: int = 1
    request_bytes: float | None = None
    depth: float | None = None
    loss_ratio: float | None = None
    """Loss events per packet."""
    read: DiskKind | None = None
    """The sender's disk."""
    write: DiskKind | None = None
    """The receiver's."""
    ram_bytes: float | None = None
    """The sender's."""
    size_bytes: float | None = None
    initiator: str = "client"

    @property
    def sender(self) -> str:
        """The side that the bytes come from."""
        return steps.sender(self.verb, self.initiator)

    @property
    def receiver(self) -> str:
        """The side that the bytes go to."""
        return steps.other(self.sender)

    @property
    def segment_bytes(self) -> int:
        """Payload of a full packet."""
        return model.payload_bytes(self.mtu_bytes, ipv6=self.ipv6, timestamps=self.timestamps)

    @property
    def link_efficiency(self) -> float:
        """Share of the link's rate that is payload."""
        return model.payload_efficiency(
            self.mtu_bytes,
            ipv6=self.ipv6,
            timestamps=self.timestamps,
            vlan_tags=self.vlan_tags,
        )

    @property
    def link_payload(self) -> float | None:
        """Payload that the link carries, bytes per second."""
        bits = self.link_bits_per_second
        return None if bits is None else bits / 8 * self.link_efficiency

    @property
    def shape(self) -> tuple[float, float]:
        """Bytes of a request and how many are outstanding: as given, else as the dialect has it."""
        size, depth = USUAL_SHAPES.get(self.dialect, LATER_SHAPE)
        return self.request_bytes or size, self.depth or depth

    @property
    def reads_disk(self) -> bool:
        """Whether the source comes from the sender's disk: it does where RAM cannot hold it."""
        return not self.cached or self.outgrows_ram

    @property
    def outgrows_ram(self) -> bool:
        """Whether the file is larger than the RAM that it would have to lie in."""
        if self.ram_bytes is None or self.size_bytes is None:
            return False
        return self.size_bytes > self.ram_bytes
