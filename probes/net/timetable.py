"""What is told of the times of messages: medians, percentiles, a table; pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Dict, List, Tuple

from probes.records import Details

DECADES = tuple(10**power for power in range(7))
"""1 byte to 1 MB: the sizes that are told."""
LEAST = 5
"""Times of each median."""
LEAST_OF_P95 = 20
PERCENTILES = ((50, 2), (90, 10), (99, 100))
"""Percent, and how many times there have to be to tell it."""


@dataclass
class Times:
    """Times of one kind of exchange."""

    one: List[float] = field(default_factory=list)
    two: List[float] = field(default_factory=list)
    """Of two exchanges, the second right after the first."""

    @property
    def median(self) -> float:
        """Of one exchange, seconds."""
        return statistics.median(self.one)


def quick(times: List[float]) -> float:
    """The lowest eighth's last: what disturbs an exchange makes it longer, never shorter."""
    return sorted(times)[len(times) // 8]


def table(by_size: Dict[int, Times], by_trips: Dict[Tuple[int, int], List[float]]) -> List[Details]:
    """A row for each decade, way and count of round trips that was timed LEAST times.

    by_size: on the warm connection; by_trips: of cold ones, by size and round trips. Returns
    message_bytes, round_trips, connection ("cold", "warm"), seconds (the median), low_seconds,
    high_seconds, count, and of 20 times or more p95_seconds.
    """
    rows = []
    for size in sorted(by_size):
        if size not in DECADES:
            continue
        for (cold_size, trips), cold in sorted(by_trips.items()):
            if cold_size == size:
                rows.append(_row(size, trips, "cold", cold))
        times = by_size[size]
        rows.append(_row(size, 1, "warm", times.one))
        if len(times.two) >= LEAST:
            rows.append(_row(size, 2, "warm", times.two))
    return rows


def _row(size: int, round_trips: int, connection: str, times: List[float]) -> Details:
    row = {
        "message_bytes": size,
        "round_trips": round_trips,
        "connection": connection,
        "seconds": statistics.median(times),
        "low_seconds": min(times),
        "high_seconds": max(times),
        "count": len(times),
    }
    if len(times) >= LEAST_OF_P95:
        row["p95_seconds"] = _percentile(times, 95)
    return row


def _percentile(times: List[float], percent: int) -> float:
    """The time that so many percent of them do not exceed (nearest rank)."""
    return sorted(times)[-(-percent * len(times) // 100) - 1]


def percentiles(times: List[float]) -> Details:
    """p50_seconds, p90_seconds and p99_seconds, those that there are times enough for; count."""
    told: Details = {"count": len(times)}
    for percent, least in PERCENTILES:
        if len(times) >= least:
            told[f"p{percent}_seconds"] = _percentile(times, percent)
    return told
