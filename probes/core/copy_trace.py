"""The records of a copy's time, its connection and its hosts, from the probe to the page; pure.

A row is an array on the wire; a report stores looks by column, one for each field. A value is None
where the kernel does not report it. Times are seconds from the start of the copy.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Type, TypeVar


class Bin(NamedTuple):
    """One interval of the time of the thread that moves the bytes (probes/smb/time_bins.py)."""

    elapsed_seconds: float
    """End of the interval."""
    reply: float
    """Seconds of the interval spent waiting for a reply's first byte; each of KINDS is seconds."""
    send: float
    """Seconds spent sending a long message."""
    read: float
    write: float
    """Seconds spent writing the client's file."""
    flush: float
    run_seconds: float
    """Time on a core since the copy began."""
    wait_seconds: Optional[float]
    """Time spent waiting for a core since the copy began."""


IDLE = Bin(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
KINDS = Bin._fields[1:6]
"""Names of the waits of the moving thread, fields of Bin."""


class Request(NamedTuple):
    """One request of a copy that was answered in full."""

    verb: str
    sent_seconds: float
    """Time at which the request was begun; signing and encryption follow."""
    first_seconds: float
    """Time at which the first byte of its reply was read."""
    last_seconds: float
    size_bytes: int
    in_flight_bytes: int
    """Bytes requested and not yet answered when its reply came, its own included."""


class SocketLook(NamedTuple):
    """One look at a copy's TCP connection at one host; bytes and segments since it began."""

    elapsed_seconds: float
    unread_bytes: Optional[float] = None
    unsent_bytes: Optional[float] = None
    in_flight_bytes: Optional[float] = None
    """Bytes sent and not yet acknowledged."""
    peer_window_bytes: Optional[float] = None
    own_window_bytes: Optional[float] = None
    rtt_seconds: Optional[float] = None
    min_rtt_seconds: Optional[float] = None
    receive_rtt_seconds: Optional[float] = None
    queued_bytes: Optional[float] = None
    """Used part of the socket's send buffer (SK_MEMINFO_WMEM_QUEUED)."""
    acknowledged_bytes: Optional[float] = None
    received_bytes: Optional[float] = None
    retransmitted_bytes: Optional[float] = None
    congestion_window_bytes: Optional[float] = None
    out_of_order_segments: Optional[float] = None
    backoffs: Optional[float] = None
    since_acknowledged_seconds: Optional[float] = None
    since_received_seconds: Optional[float] = None


class ThreadLook(NamedTuple):
    """One look at all threads of the file server, or of the program that makes the copy."""

    elapsed_seconds: float
    running: Optional[float] = None
    """1.0 where any thread runs, else 0.0."""
    disk: Optional[float] = None
    """1.0 where any thread waits for a disk, else 0.0."""
    busiest_ratio: Optional[float] = None
    """Time that the busiest thread ran or waited for a core, as a share of the time around."""
    all_ratio: Optional[float] = None
    """Sum of that share over all threads."""
    run_seconds: Optional[float] = None
    """Time that all threads together ran since the first look."""
    wait_seconds: Optional[float] = None


class CountLook(NamedTuple):
    """One look at a host's counters."""

    elapsed_seconds: float
    device_written_bytes: Optional[float] = None
    """Bytes that the device wrote since the first look; flushes count from there too."""
    device_flushes: Optional[float] = None
    io_waiting_cores: Optional[float] = None
    """Cores that idled while a task of theirs waited for a disk, since the previous look."""
    busiest_core_ratio: Optional[float] = None
    """Busy share of the busiest core since the previous look."""


class ProgramLook(NamedTuple):
    """One look at the I/O of the programs that make a copy: bytes since the first look."""

    elapsed_seconds: float
    read_bytes: Optional[float] = None
    written_bytes: Optional[float] = None
    disk_read_bytes: Optional[float] = None
    disk_written_bytes: Optional[float] = None


L = TypeVar("L", SocketLook, ThreadLook, CountLook)


def columns(kind: Type[L], looks: Sequence[L]) -> Dict[str, List[Optional[float]]]:
    """Returns a list of values for each field."""
    return {name: [look[index] for look in looks] for index, name in enumerate(kind._fields)}
