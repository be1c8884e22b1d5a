"""Parses the trace of a copy: bins, requests, and what both hosts observed. Never fails."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Protocol, TypeVar

from probes.core import lenient
from probes.core.copy_trace import Bin, CountLook, L, Request, SocketLook, ThreadLook
from probes.core.records import Details

OWN_RATIO = 0.5
"""Most bytes at a connection's first look, over those at its last, of the copy's own."""


class _HasElapsed(Protocol):
    @property
    def elapsed_seconds(self) -> float: ...


T = TypeVar("T", bound=_HasElapsed)


@dataclass(frozen=True)
class Connection:
    """One host's view of the copy's connection."""

    looks: tuple[SocketLook, ...]
    send_buffer_bytes: float | None
    receive_buffer_bytes: float | None
    segment_bytes: float

    @property
    def min_rtt_seconds(self) -> float:
        """Shortest round trip; 0: not reported."""
        return median(self.values_of("min_rtt_seconds") or [0.0])

    def values_of(self, name: str) -> list[float]:
        """Returns the values of a figure in all looks that have it."""
        values = (getattr(each, name) for each in self.looks)
        return [each for each in values if each is not None]

    def growth(self, name: str) -> float:
        """Returns the increase of a counter over all looks; 0: not reported."""
        values = self.values_of(name)
        return values[-1] - values[0] if values else 0.0

    def growth_by_parts(self, name: str, parts: int) -> list[float]:
        """Returns the increase of a counter in each of `parts` equal times; []: too few looks."""
        pairs = [(each.elapsed_seconds, getattr(each, name)) for each in self.looks]
        rows = [(seconds, value) for seconds, value in pairs if value is not None]
        if parts < 1 or len(rows) < 3 * parts:
            return []
        first, last = rows[0][0], rows[-1][0]
        ends = [first + (last - first) * part / parts for part in range(parts + 1)]
        values = [min(rows, key=lambda row: abs(row[0] - end))[1] for end in ends]
        return [later - earlier for earlier, later in pairwise(values)]

    def total(self, name: str) -> float:
        """Returns a counter since the connection began, if it carried little before this copy."""
        values, counts = self.values_of("acknowledged_bytes"), self.values_of(name)
        if values and counts and values[0] <= OWN_RATIO * values[-1]:
            return counts[-1]
        return self.growth(name)


@dataclass(frozen=True)
class HostLooks:
    """Observations of one host during the copy."""

    connection: Connection | None
    threads: tuple[ThreadLook, ...]
    counts: tuple[CountLook, ...]


@dataclass(frozen=True)
class Trace:
    """A copy's own times and the looks of its two hosts; None: that host did not look."""

    bins: tuple[Bin, ...]
    requests: tuple[Request, ...]
    asking: HostLooks | None
    serving: HostLooks | None
    unseen: bool = False
    """Whether the bins are empty, because the program that makes the copy is hidden."""

    @property
    def lasted_seconds(self) -> float:
        """Time from the first request to the end of the last flush."""
        return self.bins[-1].elapsed_seconds


NEAR_SECONDS = 0.4
"""Greatest distance between a moment and a look at it; a watch counts every 0.25 s."""


def nearest(items: Sequence[T], seconds: float, within: float = NEAR_SECONDS) -> T | None:
    """Returns the item nearest to a moment; None: none is within reach."""
    index = bisect.bisect_left(items, seconds, key=lambda each: each.elapsed_seconds)
    near = items[max(0, index - 1) : index + 1]
    closest = min(near, key=lambda each: abs(each.elapsed_seconds - seconds), default=None)
    return closest if closest and abs(closest.elapsed_seconds - seconds) <= within else None


def read(details: Details, asking: str) -> Trace | None:
    """Parses the details of a copy; None: it has no trace.

    asking: the side that made the copy.
    """
    trace = lenient.mapping(details.get("trace"))
    bins = tuple(
        parsed for row in lenient.array(trace.get("bins")) if (parsed := _bin(row)) is not None
    )
    times = [each.elapsed_seconds for each in bins]
    falls = any(later < earlier for earlier, later in pairwise(times))
    if len(bins) < 2 or times[-1] <= 0 or falls:
        return None
    requests = (_request(row) for row in lenient.array(trace.get("requests")))
    return Trace(
        bins,
        tuple(each for each in requests if each is not None),
        looks(details, asking),
        looks(details, "server" if asking == "client" else "client"),
        trace.get("unseen") is True,
    )


def looks(details: Details, side: str) -> HostLooks | None:
    """Returns a side's observations of a copy; None: it did not look."""
    return _host(lenient.mapping(details.get("looks")).get(side))


def _bin(row: Any) -> Bin | None:
    numbers = [lenient.amount(each) for each in lenient.array(row)]
    if len(numbers) != len(Bin._fields) or None in numbers[:-1]:
        return None
    return Bin(*(each or 0.0 for each in numbers))


def _request(row: Any) -> Request | None:
    verb, *rest = lenient.array(row) or [None]
    numbers = [value for each in rest if (value := lenient.amount(each)) is not None]
    if not isinstance(verb, str) or len(numbers) != len(Request._fields) - 1:
        return None
    *times, size, in_flight = numbers
    return Request._make((verb, *times, int(size), int(in_flight)))


def _host(value: Any) -> HostLooks | None:
    host = lenient.mapping(value)
    if not host:
        return None
    connection = lenient.mapping(host.get("connection"))
    rows = _looks(SocketLook, connection)
    send, receive, segment = (
        lenient.amount(connection.get(f"{name}_bytes"))
        for name in ("send_buffer", "receive_buffer", "segment")
    )
    return HostLooks(
        Connection(rows, send, receive, segment or 0.0) if rows else None,
        _looks(ThreadLook, host.get("threads")),
        _looks(CountLook, host.get("counts")),
    )


def _looks(kind: type[L], value: object) -> tuple[L, ...]:
    """Returns the looks that columns hold, in the order of time."""
    columns = lenient.mapping(value)
    arrays = [lenient.array(columns.get(name)) for name in kind._fields]
    looks = []
    for index, when in enumerate(arrays[0]):
        seconds = lenient.amount(when)
        if seconds is not None:
            rest = (lenient.amount(e[index]) if index < len(e) else None for e in arrays[1:])
            looks.append(kind(seconds, *rest))
    return tuple(sorted(looks, key=lambda each: each.elapsed_seconds))
