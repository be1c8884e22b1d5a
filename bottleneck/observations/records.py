"""What an observations file holds: figures with their units, as a person wrote them down.

Every figure that has a unit is text: `11 MB/s`, `11 MiB/s`, `940 Mbit/s`, `149 ms`, `64KiB`.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = "copy-bottleneck/observations/1"


@dataclass(frozen=True)
class Host:
    """One of the two hosts, as far as it was told."""

    name: str | None
    system: str | None
    link: str | None
    """Rate of its network card."""
    duplex: str | None
    mtu: int | None
    memory: str | None
    cores: int | None
    tcp_rmem: str | None
    """As net.ipv4.tcp_rmem: three sizes, the last ends the kernel's own tuning."""
    tcp_wmem: str | None
    congestion_control: str | None


@dataclass(frozen=True)
class Path:
    """Between the hosts."""

    rtt: str | None
    loss: float | None
    """Loss events per packet."""


@dataclass(frozen=True)
class Tcp:
    """TCP alone, by iperf3, ttcp or the like."""

    sender: str
    rate: str
    streams: int | None
    buffer: str | None
    window: str | None
    tool: str | None
    client: str | None
    """Which client, where several were tried."""


@dataclass(frozen=True)
class Zone:
    """A place of a disk, 0 at its outer edge and 1 at its inner one."""

    at: float
    rate: str


@dataclass(frozen=True)
class Disk:
    """A disk alone, in sequence."""

    side: str
    verb: str
    """read, write."""
    rate: str | None
    tool: str | None
    zones: tuple[Zone, ...] = ()


@dataclass(frozen=True)
class Copy:
    """A copy that was made, or is asked about."""

    copy: str
    """pull.cached, push.uncached, server.pull.cached ..."""
    rate: str | None
    """None: not told; what bounds it is told all the same."""
    dialect: str | None
    size: str | None
    request: str | None
    depth: int | None
    streams: int | None
    from_place: float | None
    """Of the source on the sender's disk, as a zone's."""
    to_place: float | None
    tool: str | None


@dataclass(frozen=True)
class Exchange:
    """Messages of one size and their small answers, one after the other on one connection."""

    message: str
    round_trips: int
    time: str
    """For all of them together."""


@dataclass(frozen=True)
class Latency:
    """Times by size of message."""

    connection: str
    """cold: a connection of its own each time, whose opening is in the time; warm."""
    table: tuple[Exchange, ...]
    tool: str | None


@dataclass(frozen=True)
class Start:
    """Which side had better start a copy, where no figures were told."""

    sender: str
    better: str
    """sender, receiver."""
    words: str | None


@dataclass(frozen=True)
class Observations:
    """One set of figures."""

    schema: str
    title: str
    date: str
    """YYYY-MM-DD: when they were taken."""
    source: str | None
    client: Host | None
    server: Host | None
    path: Path | None
    notes: tuple[str, ...] = ()
    """What the figures stand for, and what their author found."""
    tcp: tuple[Tcp, ...] = ()
    disk: tuple[Disk, ...] = ()
    copy: tuple[Copy, ...] = ()
    latency: tuple[Latency, ...] = ()
    start: tuple[Start, ...] = ()
