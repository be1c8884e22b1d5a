"""The details and the settings of stages, as far as rules read them.

What a field means is said where a stage tells it (probes/); its unit is its name's end.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.core.lenient import Positive


@dataclass(frozen=True)
class Setting:
    """What a step was to measure."""

    copy: str = ""
    verb: str = ""
    """push, pull; of a disk read, write."""
    dialect: str | None = None
    security: str | None = None
    end: str | None = None
    engine: str | None = None
    over: str | None = None
    side: str | None = None
    pattern: str = "sequential"
    """As all disk steps were before there were others."""
    cache: str | None = None
    streams: float | None = None
    request_bytes: Positive | None = None
    depth: Positive | None = None
    from_place_ratio: float | None = None
    to_place_ratio: float | None = None
    client_cpu_ratio: float | None = None
    """Share of the client's busiest core during the copy, as a person noted it."""
    server_cpu_ratio: float | None = None
    synced: bool = False
    """Whether each write was forced to the disk, as a person noted it."""


@dataclass(frozen=True)
class Sockets:
    """What the kernels told of one TCP connection (probes/sockets/limits.py)."""

    by: str | None = None
    """Who limits it, where they agree."""
    sender_seen: bool = False
    receiver_seen: bool = False
    silent_ratio: float = 1.0
    """Of the time that a receiver was looked at, in which nothing came."""
    congestion_control: str | None = None
    process: str | None = None
    rtt_seconds_median: Positive | None = None
    min_rtt_seconds: Positive | None = None
    segment_bytes: Positive | None = None
    in_flight_bytes_median: Positive | None = None
    in_flight_bytes_high: Positive | None = None
    congestion_window_bytes_median: Positive | None = None
    peer_window_bytes_median: Positive | None = None
    own_window_bytes_median: Positive | None = None
    send_buffer_bytes: float | None = None
    receive_buffer_bytes: float | None = None
    unread_bytes_median: float | None = None
    unsent_bytes_median: float | None = None
    loss_ratio: float | None = None
    receive_window_limited_ratio: float = 0.0
    send_queue_full_ratio: float = 0.0
    full_ratio: float = 0.0
    retransmitted_segments: float = 0.0
    retransmitted_bytes: float = 0.0
    out_of_order_segments: float = 0.0
    rto_seconds: float = 0.0


@dataclass(frozen=True)
class Cache:
    """Where a source was before it was read."""

    proven: bool | None = None
    cached_ratio_before: float | None = None
    cold_source: str | None = None
    """How an unproven uncached pull was read: past-cache; others in reports of earlier releases."""
    cached_bytes_per_second: Positive | None = None
    """What a cached pull reached before and after it."""


@dataclass(frozen=True)
class Replies:
    """How the replies to a copy's requests came."""

    silent_ratio: float = 0.0
    bursts: Positive | None = None
    burst_count_median: float | None = None
    burst_seconds_median: Positive | None = None
    burst_seconds_low: Positive | None = None
    burst_seconds_high: Positive | None = None


@dataclass(frozen=True)
class Mount:
    """The mount under a copy of the operating system."""

    filesystem: str = ""
    options: str = ""


@dataclass(frozen=True)
class Cell:
    """One shape of requests."""

    request_bytes: Positive | None = None
    depth: Positive | None = None
    bytes_per_second: Positive | None = None
    request_seconds_median: Positive | None = None


@dataclass(frozen=True)
class Exchange:
    """Messages of a size and their answers."""

    message_bytes: float | None = None
    round_trips: float | None = None
    seconds: Positive | None = None


@dataclass(frozen=True)
class Fit:
    """The line through them."""

    latency_seconds: Positive | None = None
    bandwidth_bytes_per_second: Positive | None = None
    n_half_bytes: Positive | None = None


@dataclass(frozen=True)
class Details:
    """What a transfer told: a copy, TCP alone, requests alone, messages."""

    hash_ok: bool | None = None
    peer_is_target: bool | None = None
    client: str | None = None
    signing: str | None = None
    encryption: str | None = None
    engine_server: str | None = None
    congestion_control: str | None = None
    on_folder_disk: bool | None = None
    flushed: bool | None = None
    command: bool | None = None
    """Whether a command of the user's made the copy through a mount."""
    failed_runs: tuple[str, ...] = ()
    cache: Cache = Cache()
    sockets: Sockets = Sockets()
    limits: Sockets | None = None
    """Of TCP alone."""
    replies: Replies = Replies()
    mount: Mount = Mount()
    fit: Fit = Fit()
    table: tuple[Exchange, ...] = ()
    cells: tuple[Cell, ...] = ()
    rtt_seconds: Positive | None = None
    rtt_low_seconds: Positive | None = None
    request_seconds_median: Positive | None = None
    request_bytes: Positive | None = None
    depth: Positive | None = None
    in_flight_bytes: Positive | None = None
    requests: float = 0.0
    credit_stalls: float = 0.0
    acknowledged_bytes_per_second: Positive | None = None
    flush_seconds: float | None = None
    flushing_seconds: float | None = None
    flushes: float | None = None

    @property
    def algorithm(self) -> str | None:
        """What a session signed or encrypted with: "aes-128-gcm"; None: it did neither."""
        return self.encryption or self.signing


@dataclass(frozen=True)
class Others:
    """What others moved on a device while a step ran."""

    read_bytes: float | None = None
    written_bytes: float | None = None
    reads: float = 0.0
    writes: float = 0.0


@dataclass(frozen=True)
class GroupLimits:
    """What a control group may move on a device."""

    group: str | None = None
    read_bytes_per_second: Positive | None = None
    write_bytes_per_second: Positive | None = None


@dataclass(frozen=True)
class Before:
    """A device right before it was measured."""

    busy_ratio: float | None = None


@dataclass(frozen=True)
class Syncs:
    """What a forced write waits."""

    median: Positive | None = None


@dataclass(frozen=True)
class ZoneRow:
    """A span of a device; as a person tells it, the place alone."""

    at_ratio: float | None = None
    from_ratio: float | None = None
    to_ratio: float | None = None
    bytes_per_second: Positive | None = None
    low_bytes_per_second: Positive | None = None
    high_bytes_per_second: Positive | None = None


@dataclass(frozen=True)
class SpanRow:
    """A part of a file, at its place on a device."""

    from_ratio: float | None = None
    to_ratio: float | None = None
    bytes: float | None = None


@dataclass(frozen=True)
class Whole:
    """The whole disk below a partition."""

    device: str | None = None
    device_bytes: Positive | None = None
    from_ratio: float | None = None


@dataclass(frozen=True)
class PlaceDetails:
    """Where a file lies (probes/storage/placed.py)."""

    located: bool = False
    device: str | None = None
    bytes: Positive | None = None
    fragments: Positive | None = None
    unwritten_bytes: float = 0.0
    short_gaps: float = 0.0
    short_gaps_bytes: float = 0.0
    device_bytes: Positive | None = None
    from_ratio: float | None = None
    centre_ratio: float | None = None
    spans: tuple[SpanRow, ...] = ()
    whole: Whole = Whole()


@dataclass(frozen=True)
class DiskDetails:
    """What a step of the disk told."""

    device: str | None = None
    place: PlaceDetails = PlaceDetails()
    zones: tuple[ZoneRow, ...] = ()
    cache: Cache = Cache()
    others: Others = Others()
    before: Before = Before()
    limits: GroupLimits = GroupLimits()
    seek_seconds: Positive | None = None
    request_bytes: Positive | None = None
    sync_seconds: Syncs = Syncs()
    durable_bytes_per_second: Positive | None = None


@dataclass(frozen=True)
class Hole:
    """What passes a path, and what vanishes on it."""

    passes_bytes: Positive | None = None
    stalls_bytes: Positive | None = None


@dataclass(frozen=True)
class Way:
    """One direction of a path."""

    black_hole: Hole = Hole()


@dataclass(frozen=True)
class PathDetails:
    """What the path stage told."""

    push: Way = Way()
    pull: Way = Way()


@dataclass(frozen=True)
class ServerSetting:
    """A line of the file server's configuration that matters for throughput."""

    option: str = ""
    value: str = ""
    why: str = ""
    remedy: str = ""
    matters_for: str | None = None


@dataclass(frozen=True)
class Offered:
    """An address that the server offers to SMB's multichannel (MS-SMB2 2.2.32.5)."""

    address: str = ""
    reached_from: str = ""
    """The client's own address in packets there; empty: not known."""


@dataclass(frozen=True)
class Folder:
    """A folder that a copy reads or writes."""

    folder: str = ""
    filesystem: str | None = None


@dataclass(frozen=True)
class Program:
    """The program whose copy was watched."""

    name: str | None = None
    process: float | None = None
    connections: float | None = None
    reads: Folder | None = None
    writes: Folder | None = None


@dataclass(frozen=True)
class Target:
    """What a session told of the share and its server."""

    dialect: str | None = None
    smb_conf: tuple[ServerSetting, ...] = ()
    interfaces: tuple[Offered, ...] = ()
    connect_seconds: float | None = None
    loss_ratio: Positive | None = None
    max_read_bytes: Positive | None = None
    max_write_bytes: Positive | None = None
    copy_alone: bool = False
    """Whether nothing but one copy was asked for."""
    program: Program | None = None
    """Program of a watched copy; None: none was watched, or its host does not show it."""
