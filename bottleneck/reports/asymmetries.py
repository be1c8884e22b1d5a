"""The tables of what differs on one path: both directions, both sources, beginning and rest."""

from __future__ import annotations

from bottleneck.reports.safe import safe
from bottleneck.reports.table import Row, Table, first, written
from bottleneck.reports.units import rate_text, seconds_text, times_text

MECHANISMS = {
    "flush": "the last flush",
    "unexplained": "not explained",
    "writeback": "RAM, then the disk",
    "shaper": "a burst of a shaper",
    "mount-cache": "the mount's cache",
    "slow-start": "slow start",
}


def _direction(row: Row) -> tuple[str | None, ...]:
    return (
        f"{row['cache']} {_by(row)}",
        rate_text(row["push_bytes_per_second"]),
        rate_text(row["pull_bytes_per_second"]),
        _slower(row),
        _held(row),
    )


def _cache(row: Row) -> tuple[str | None, ...]:
    return (
        f"{safe(row['copy'], 40)} {_by(row)}",
        rate_text(row["cached_bytes_per_second"]),
        rate_text(row["uncached_bytes_per_second"]),
        _slower(row),
        _held(row),
    )


def _start(row: Row) -> tuple[str | None, ...]:
    return (
        f"{safe(row['copy'], 40)} {_by(row)}",
        rate_text(row["first_bytes_per_second"]),
        seconds_text(row["until_seconds"]),
        written(rate_text, row["rest_bytes_per_second"]) or "the flush",
        MECHANISMS[row["mechanism"]] if row["significant"] else "in the noise",
    )


def _by(row: Row) -> str:
    if row["dialect"] == "native":
        return "mount"
    by = " by server" if row["initiator"] == "server" else ""
    return f"{safe(row['dialect'], 16)}{by}"


def _slower(row: Row) -> str:
    if not row["significant"]:
        return "in the noise"
    return f"{row['slower']} {times_text(row['ratio'])}"


def _held(row: Row) -> str | None:
    """What holds the slower one, in few words."""
    if row["component"] is None:
        return MECHANISMS.get(row["mechanism"])
    return f"{row['side']} {row['component']} {row['cause']}"


TABLES = {
    "direction": Table(
        "Push and pull",
        ("", "push", "pull", "slower", "held by"),
        _direction,
        frozenset({1, 2}),
        first(2),
    ),
    "cache": Table(
        "From RAM and from the disk",
        ("", "cached", "uncached", "slower", "held by"),
        _cache,
        frozenset({1, 2}),
        first(2),
    ),
    "start": Table(
        "The beginning and the rest",
        ("", "at first", "until", "then", "what it is"),
        _start,
        frozenset({1, 2, 3}),
        first(4),
    ),
}
