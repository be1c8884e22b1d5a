"""What is planted in a lab world: caps of two hosts and of the link between them."""

from __future__ import annotations

from dataclasses import dataclass, field

PAYLOAD_RATIO = 1448 / 1514
"""TCP payload of a full frame at MTU 1500 with time stamps, over the bytes that tbf counts.

tbf counts the Ethernet header (14 bytes) but neither preamble, FCS nor gap: a shaped link carries
a little more payload than the cable of the same name (1448/1538).
"""


@dataclass(frozen=True)
class Caps:
    """Caps of one host; None: whatever the machine gives."""

    disk_read_bytes_per_second: int | None = None
    disk_write_bytes_per_second: int | None = None
    quota_ratio: float | None = None
    """CPU time that the host may use, as a share of its one core."""
    sends_bits_per_second: int | None = None
    """Shaped rate of what the host sends, Ethernet headers included."""
    foreign_bits_per_second: int | None = None
    """Somebody else's traffic that the host sends to the other one, by UDP."""
    hog_share_ratio: float | None = None
    """Share of the core that a neighbour's busy loop takes while the host itself wants all."""


@dataclass(frozen=True)
class Plant:
    """Two hosts; a copy's rate can be no higher than the lowest cap that it touches."""

    client: Caps = field(default_factory=Caps)
    server: Caps = field(default_factory=Caps)
    round_trip_seconds: float | None = None
    """What the path adds to the round trip; it then carries the lower of both shaped rates."""
    samba_options: tuple[str, ...] = ()
    """Lines for the [global] section of the server's smb.conf."""

    def payload_bytes_per_second(self, verb: str) -> float | None:
        """Shaped payload rate of a push (the client sends) or a pull; None: not shaped."""
        sender = self.client if verb == "push" else self.server
        if sender.sends_bits_per_second is None:
            return None
        free = sender.sends_bits_per_second - (sender.foreign_bits_per_second or 0)
        return free / 8 * PAYLOAD_RATIO
