"""Details and settings of stages, as far as rules read them.

A field's meaning is documented at the stage that reports it (probes/); its unit ends its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis.evidence.capture import Capture
from probes.core.lenient import Positive


@dataclass(frozen=True)
class Setting:
    copy: str = ""
    verb: str = ""
    """push, pull; for a disk read, write."""
    dialect: str | None = None
    security: str | None = None
    end: str | None = None
    engine: str | None = None
    over: str | None = None
    side: str | None = None
    pattern: str = "sequential"
    """Order of a disk's requests; reports of early releases have no such field."""
    cache: str | None = None
    streams: float | None = None
    request_bytes: Positive | None = None
    depth: Positive | None = None
    from_place_ratio: float | None = None
    to_place_ratio: float | None = None
    client_cpu_ratio: float | None = None
    """Use of the client's busiest core during the copy, as a person noted it."""
    server_cpu_ratio: float | None = None
    synced: bool = False
    """Whether each write was forced to the disk, as a person noted it."""


@dataclass(frozen=True)
class Sockets:
    """Figures of the kernels at the ends of one TCP connection (probes/sockets/limits.py)."""

    by: str | None = None
    """Limit of the connection, if both kernels agree."""
    sender_seen: bool = False
    receiver_seen: bool = False
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
    """State of a source in the page cache before it was read."""

    proven: bool | None = None
    cached_ratio_before: float | None = None
    cold_source: str | None = None
    """Means of an unproven uncached pull: past-cache; others in reports of earlier releases."""
    cached_bytes_per_second: Positive | None = None
    """Rate of a cached pull before and after it."""


@dataclass(frozen=True)
class Replies:
    """Arrival of the replies to a copy's requests."""

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
    """Line fitted through exchanges."""

    latency_seconds: Positive | None = None
    bandwidth_bytes_per_second: Positive | None = None
    n_half_bytes: Positive | None = None


@dataclass(frozen=True)
class Details:
    """Details of a transfer: a copy, TCP alone, requests alone, messages."""

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
    """Figures of TCP alone."""
    replies: Replies = Replies()
    mount: Mount = Mount()
    capture: Capture | None = None
    """None: the copy is not from a packet capture."""
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
        """Algorithm of encryption or signing: "aes-128-gcm"; None: the session used neither."""
        return self.encryption or self.signing


@dataclass(frozen=True)
class Others:
    """Others' bytes and requests on a device while a step ran."""

    read_bytes: float | None = None
    written_bytes: float | None = None
    reads: float = 0.0
    writes: float = 0.0


@dataclass(frozen=True)
class GroupLimits:
    group: str | None = None
    read_bytes_per_second: Positive | None = None
    write_bytes_per_second: Positive | None = None


@dataclass(frozen=True)
class Before:
    """State of a device right before it was measured."""

    busy_ratio: float | None = None


@dataclass(frozen=True)
class Syncs:
    """Seconds that a forced write waits."""

    median: Positive | None = None


@dataclass(frozen=True)
class ZoneRow:
    """A span of a device; supplied by a person, the place alone."""

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
    """Place of a file on its device (probes/storage/placed_zones.py)."""

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
    """Packet sizes that pass a path, and that vanish on it."""

    passes_bytes: Positive | None = None
    stalls_bytes: Positive | None = None


@dataclass(frozen=True)
class Way:
    """One direction of a path."""

    black_hole: Hole = Hole()


@dataclass(frozen=True)
class PathDetails:
    push: Way = Way()
    pull: Way = Way()


@dataclass(frozen=True)
class ServerSetting:
    """A setting of the file server that matters for throughput."""

    option: str = ""
    value: str = ""
    why: str = ""
    remedy: str = ""
    matters_for: str | None = None


@dataclass(frozen=True)
class OfferedAddress:
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
    """Facts that a session reported of the share and its server."""

    dialect: str | None = None
    smb_conf: tuple[ServerSetting, ...] = ()
    interfaces: tuple[OfferedAddress, ...] = ()
    connect_seconds: float | None = None
    loss_ratio: Positive | None = None
    max_read_bytes: Positive | None = None
    max_write_bytes: Positive | None = None
    copy_alone: bool = False
    """Whether the run was for one copy alone."""
    program: Program | None = None
    """Program of a watched copy; None: none was watched, or its host does not show it."""
