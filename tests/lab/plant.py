"""Plants of a lab world: caps of two hosts and of the link between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from platter import Disc

ETHERNET_MTU_BYTES = 1500


def payload_ratio(mtu_bytes: int) -> float:
    """TCP payload of a full frame with time stamps, over the bytes that a shaper counts.

    It counts the Ethernet header (14 bytes) but neither preamble, FCS nor gap: a shaped link
    carries a little more payload than the cable of the same name (1448/1538).
    """
    return (mtu_bytes - 52) / (mtu_bytes + 14)


PAYLOAD_RATIO = payload_ratio(ETHERNET_MTU_BYTES)


@dataclass(frozen=True)
class Spinning:
    """A host's disk that is a spinning disc, and what lies on it."""

    disc: Disc
    room: tuple[float, float] = (0.0, 0.2)
    """The only part of it in which there is room for files, from and to, as ratios."""
    fragments: bool = False
    """Whether the share holds a file in many pieces."""


@dataclass(frozen=True)
class Caps:
    """Caps of one host; None: whatever the machine gives."""

    disk_read_bytes_per_second: int | None = None
    disk_write_bytes_per_second: int | None = None
    spinning: Spinning | None = None
    """Instead of a disk that is as fast as the machine's own; the two rates are not for it."""
    quota_ratio: float | None = None
    """CPU time that the host may use, as a share of its one core."""
    sends_bits_per_second: int | None = None
    """Shaped rate of what the host sends, Ethernet headers included."""
    foreign_bits_per_second: int | None = None
    """Somebody else's traffic that the host sends to the other one, by UDP."""
    foreign_streams: int | None = None
    """TCP streams that somebody else sends to the other host: they take what they get."""
    falls_bits_per_second: int | None = None
    """Shaped rate of what the host sends once it is late, where that is shaped at all."""
    foreign_reader: bool = False
    """Whether somebody else reads the host's disk all the time."""
    hog_share_ratio: float | None = None
    """Share of the core that a neighbour's busy loop takes while the host itself wants all."""
    sysctls: tuple[tuple[str, str], ...] = ()
    """Kernel settings of the host's own network, by name ("net.ipv4.tcp_rmem") and value."""
    congestion_control: str = "cubic"
    """Algorithm of hosts, whatever this machine's own is."""
    congestion_window_segments: int | None = None
    """The most that its window ever has; None: what the congestion control finds."""
    memory_bytes: int | None = None
    """Memory that the host's processes may use, the page cache of their files included."""
    largest_bytes: int | None = None
    """Length of its IP packets that pass a path with a round trip; longer ones vanish."""
    dirty_bytes: int | None = None
    """Bytes of written data that may wait for the host's disk; None: the machine's own limit."""


@dataclass(frozen=True)
class Plant:
    """Two hosts; a copy's rate can be no higher than the lowest cap that it touches."""

    client: Caps = field(default_factory=Caps)
    server: Caps = field(default_factory=Caps)
    round_trip_seconds: float | None = None
    """Seconds that the path adds; it then carries the lower of both shaped rates."""
    samba_options: tuple[str, ...] = ()
    """Lines for the [global] section of the server's smb.conf."""
    mtu_bytes: int | None = None
    """MTU of a path with a round trip; None: packets as long as can be, for less CPU time."""
    loss_ratio: float = 0.0
    """Share of the packets that such a path loses, in each direction."""
    queue_bytes: int | None = None
    """Bytes that wait before its rate, each way, until it drops; None: no end."""
    slow_crypto: bool = False
    """Whether the file server does without the CPU's instructions for AES, GCM and SHA."""
    beside: bool = False
    """Whether a second, faster link joins the hosts, by addresses that nobody named."""
    late_seconds: float = 0.0
    """Seconds of the world until neighbours and traffic of others begin, or a link falls."""
    stop_seconds: float = 0.0
    """Seconds that the file server stands still again and again; 0: never."""

    def payload_bytes_per_second(self, verb: str) -> float | None:
        """Shaped payload rate of a push (the client sends) or a pull; None: not shaped, or not
        alike all the time."""
        sender = self.client if verb == "push" else self.server
        if sender.sends_bits_per_second is None or sender.falls_bits_per_second is not None:
            return None
        free = sender.sends_bits_per_second - (sender.foreign_bits_per_second or 0)
        return free / 8 * payload_ratio(self.mtu_bytes or ETHERNET_MTU_BYTES)
