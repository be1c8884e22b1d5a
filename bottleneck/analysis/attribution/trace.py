"""Parses the trace of a copy: bins, requests, and what both hosts observed. Never fails."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Protocol, TypeVar

from bottleneck.analysis.evidence.views import amount, view
from probes.core.records import Details

KINDS = ("reply", "send", "read", "write", "flush")
"""What the moving thread waits in; probes/smb/time_bins.py says what each is."""
OWN_RATIO = 0.5
"""Of what a connection had carried when the copy was first looked at."""


class _Timed(Protocol):
    @property
    def elapsed_seconds(self) -> float: ...


T = TypeVar("T", bound=_Timed)


@dataclass(frozen=True)
class Bin:
    """One interval of the copy's time, as added up by the moving thread."""

    elapsed_seconds: float
    """Its end."""
    walls: dict[str, float]
    """Seconds by KINDS."""
    run_seconds: float
    """Since the copy began, as is the wait for a core."""
    wait_seconds: float


@dataclass(frozen=True)
class Request:
    """One request of the copy."""

    verb: str
    sent_seconds: float
    last_seconds: float
    """When the last byte of its reply was read."""
    in_flight_bytes: float


@dataclass(frozen=True)
class SocketLook:
    """One look at the copy's connection at one host; None: its kernel does not tell."""

    elapsed_seconds: float
    unread_bytes: float | None = None
    unsent_bytes: float | None = None
    in_flight_bytes: float | None = None
    peer_window_bytes: float | None = None
    own_window_bytes: float | None = None
    rtt_seconds: float | None = None
    min_rtt_seconds: float | None = None
    receive_rtt_seconds: float | None = None
    queued_bytes: float | None = None
    acknowledged_bytes: float | None = None
    received_bytes: float | None = None
    retransmitted_bytes: float | None = None
    out_of_order_segments: float | None = None
    backoffs: float | None = None
    since_acknowledged_seconds: float | None = None
    since_received_seconds: float | None = None


@dataclass(frozen=True)
class ThreadLook:
    """One look at the file server's threads."""

    elapsed_seconds: float
    running: float | None = None
    disk: float | None = None
    busiest_ratio: float | None = None
    all_ratio: float | None = None
    run_seconds: float | None = None
    wait_seconds: float | None = None


@dataclass(frozen=True)
class Count:
    """Counters of a host at one moment."""

    elapsed_seconds: float
    device_written_bytes: float | None = None
    device_flushes: float | None = None
    io_waiting_cores: float | None = None
    busiest_core_ratio: float | None = None


@dataclass(frozen=True)
class Connection:
    """The copy's connection at one host."""

    looks: tuple[SocketLook, ...]
    send_buffer_bytes: float | None
    receive_buffer_bytes: float | None
    segment_bytes: float

    @property
    def min_rtt_seconds(self) -> float:
        """The shortest round trip; 0: not reported."""
        return median(self.values_of("min_rtt_seconds") or [0.0])

    def values_of(self, name: str) -> list[float]:
        """Values of a figure over all looks that have it."""
        values = (getattr(each, name) for each in self.looks)
        return [each for each in values if each is not None]

    def growth(self, name: str) -> float:
        """Increase of a counter over all looks; 0: not reported."""
        values = self.values_of(name)
        return values[-1] - values[0] if values else 0.0

    def growth_by_parts(self, name: str, parts: int) -> list[float]:
        """Increase of a counter in each of so many equal times; empty: too few looks."""
        known = [(each.elapsed_seconds, getattr(each, name)) for each in self.looks]
        rows = [(at, value) for at, value in known if value is not None]
        if parts < 1 or len(rows) < 3 * parts:
            return []
        first, last = rows[0][0], rows[-1][0]
        ends = [first + (last - first) * part / parts for part in range(parts + 1)]
        values = [min(rows, key=lambda row: abs(row[0] - end))[1] for end in ends]
        return [after - before for before, after in pairwise(values)]

    def total(self, name: str) -> float:
        """Counter since the connection began, if it carried little before this copy."""
        values, counts = self.values_of("acknowledged_bytes"), self.values_of(name)
        if values and counts and values[0] <= OWN_RATIO * values[-1]:
            return counts[-1]
        return self.growth(name)


@dataclass(frozen=True)
class HostLooks:
    """Observations of one host during the copy."""

    connection: Connection | None
    threads: tuple[ThreadLook, ...]
    counts: tuple[Count, ...]


@dataclass(frozen=True)
class Trace:
    """A copy's own times and the looks of its two hosts; None: that host did not look."""

    bins: tuple[Bin, ...]
    requests: tuple[Request, ...]
    asking: HostLooks | None
    serving: HostLooks | None
    unseen: bool = False
    """Whether the bins say nothing: the program that makes the copy was not to be seen."""

    @property
    def lasted_seconds(self) -> float:
        """From the first request to the end of the last flush."""
        return self.bins[-1].elapsed_seconds


NEAR_SECONDS = 0.4
"""Farther from a moment nothing was seen of it; a watch counts each 0.25 s."""


def nearest(items: Sequence[T], seconds: float, within: float = NEAR_SECONDS) -> T | None:
    """Returns the item nearest to a moment; None: none is within reach."""
    at = bisect.bisect_left(items, seconds, key=lambda each: each.elapsed_seconds)
    near = items[max(0, at - 1) : at + 1]
    found = min(near, key=lambda each: abs(each.elapsed_seconds - seconds), default=None)
    return found if found and abs(found.elapsed_seconds - seconds) <= within else None


def read(details: Details, asking: str) -> Trace | None:
    """Parses the details of a copy; None: it has no trace.

    asking: the side that made the copy.
    """
    own = _object(details.get("trace"))
    bins = tuple(found for row in _array(own.get("bins")) if (found := _bin(row)) is not None)
    falls = any(after.elapsed_seconds < before.elapsed_seconds for before, after in pairwise(bins))
    if len(bins) < 2 or bins[-1].elapsed_seconds <= 0 or falls:
        return None
    requests = (_request(row) for row in _array(own.get("requests")))
    serving = "server" if asking == "client" else "client"
    return Trace(
        bins,
        tuple(each for each in requests if each is not None),
        looks(details, asking),
        looks(details, serving),
        own.get("unseen") is True,
    )


def looks(details: Details, side: str) -> HostLooks | None:
    """What a side observed of a copy; None: it did not look."""
    return _host(_object(details.get("looks")).get(side))


def _bin(row: Any) -> Bin | None:
    found = [amount(each) for each in _array(row)]
    if len(found) != 1 + len(KINDS) + 2 or None in found[:-1]:
        return None
    end, *walls, run, wait = (each or 0.0 for each in found)
    return Bin(end, dict(zip(KINDS, walls, strict=True)), run, wait)


def _request(row: Any) -> Request | None:
    verb, *rest = _array(row) or [None]
    found = [value for each in rest if (value := amount(each)) is not None]
    if not isinstance(verb, str) or len(found) != 5:
        return None
    sent, _, last, _, in_flight = found
    return Request(verb, sent, last, in_flight)


def _host(value: Any) -> HostLooks | None:
    told = _object(value)
    if not told:
        return None
    own = _object(told.get("connection"))
    rows = _rows(SocketLook, own)
    send, receive = (amount(own.get(f"{name}_buffer_bytes")) for name in ("send", "receive"))
    connection = Connection(rows, send, receive, amount(own.get("segment_bytes")) or 0.0)
    return HostLooks(
        connection if rows else None,
        _rows(ThreadLook, told.get("threads")),
        _rows(Count, told.get("counts")),
    )


def _rows(kind: type[T], value: Any) -> tuple[T, ...]:
    """Columns as records, in the order of their times."""
    columns = {name: _array(each) for name, each in _object(value).items()}
    rows = (
        {name: each[at] for name, each in columns.items() if at < len(each)}
        for at in range(len(columns.get("elapsed_seconds", ())))
    )
    found = [view(kind, row) for row in rows if amount(row["elapsed_seconds"]) is not None]
    return tuple(sorted(found, key=lambda each: each.elapsed_seconds))


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _array(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
