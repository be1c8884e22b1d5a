"""Writing for long: what was acknowledged, what the disk kept up with, what forcing writes costs.

Sources of a knee: the kernel's dirty limit (Documentation/admin-guide/sysctl/vm.rst), the cache of
a RAID controller, the SLC part of an SSD.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.noise import SINGLE_RATIO, factor
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_text, seconds_text, size_text
from probes.records import SIDES

KNEE_TOLERANCE_RATIO = 0.35
"""Pages that are written meanwhile move the knee: it lies at the dirty limit or a bit beyond."""
WAYS = {
    "acknowledged": "acknowledged, until the knee",
    "sustained": "after the knee",
    "durable": "flushed once, at the end",
    "synced": "each write forced",
}


@dataclass(frozen=True)
class _Way:
    """One way to write, and its rate in bytes per second."""

    way: str
    bytes_per_second: float
    found: Found


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each side's disk that was written for long or with each write forced."""
    for side in SIDES:
        ways = tuple(_ways(report, side))
        if len(ways) < 2:
            continue
        best = max(ways, key=lambda each: each.bytes_per_second)
        least = min(ways, key=lambda each: each.bytes_per_second)
        ratio = factor(best.bytes_per_second, least.bytes_per_second)
        yield Comparison(
            about="sustained",
            sentence=" ".join(_sentences(side, ways)),
            rows=tuple(_row(side, each) for each in ways),
            ratio=ratio,
            significant=ratio > SINGLE_RATIO,
            steps=tuple(dict.fromkeys(each.found.index for each in ways)),
        )


def _ways(report: Report, side: str) -> Iterator[_Way]:
    sustained, synced, durable = (
        max(
            disk_zones.disk_steps(report, side, "write", pattern),
            key=lambda each: each.rate.median,
            default=None,
        )
        for pattern in ("sustained", "synced", "sequential")
    )
    if sustained is None and synced is None:
        return
    for way in ("acknowledged", "sustained"):
        rate = _told(sustained, f"{way}_bytes_per_second")
        if rate is not None and sustained is not None:
            yield _Way(way, rate, sustained)
    if durable is not None:
        yield _Way("durable", durable.rate.median, durable)
    if synced is not None:
        yield _Way("synced", synced.rate.median, synced)


def _told(found: Found | None, *path: str) -> float | None:
    return None if found is None else steps.positive(found.outcome.details, *path)


def _sentences(side: str, ways: tuple[_Way, ...]) -> Iterator[str]:
    known = {each.way: each for each in ways}
    fast, kept = known.get("acknowledged"), known.get("sustained")
    durable, synced = known.get("durable"), known.get("synced")
    disk = f"the {side}'s disk"
    if fast is not None:
        knee = _told(fast.found, "knee_bytes")
        flush = _told(fast.found, "flush_seconds")
        late = "" if flush is None else f"; the flush at the end took {seconds_text(flush)}"
        if knee is not None and kept is not None:
            yield (
                f"Writes to {disk} were acknowledged at {rate_text(fast.bytes_per_second)} for "
                f"{size_text(knee)}, then at {rate_text(kept.bytes_per_second)}"
                f"{_why(fast.found, knee)}{late}."
            )
        else:
            yield (
                f"Writes to {disk} were acknowledged at {rate_text(fast.bytes_per_second)} "
                f"throughout{late}."
            )
    if synced is not None:
        size = _told(synced.found, "request_bytes")
        each = "each write" if size is None else f"each {size_text(size)}"
        wait = _told(synced.found, "sync_seconds", "median")
        waits = "" if wait is None else f" ({seconds_text(wait)} of waiting each)"
        against = ""
        if durable is not None:
            against = f", against {rate_text(durable.bytes_per_second)} flushed once at the end"
        rate = rate_text(synced.bytes_per_second)
        yield f"With {each} forced to {disk} before the next it takes {rate}{waits}{against}."


def _why(found: Found, knee: float) -> str:
    """What the knee looks like: the kernel's own limit, or a cache below it."""
    limit = _told(found, "dirty_limit_bytes")
    if limit is None:
        return ""
    if limit * (1 - KNEE_TOLERANCE_RATIO) <= knee <= limit * (1 + KNEE_TOLERANCE_RATIO):
        return f": that is where the kernel's dirty limit ({size_text(limit)}) lies"
    if knee > limit:
        return (
            f", far beyond the kernel's dirty limit ({size_text(limit)}): a cache in the disk or "
            "its controller is full from there on"
        )
    return (
        f", before the kernel's dirty limit ({size_text(limit)}): a limit of a container, or a "
        "cache in the disk"
    )


def _row(side: str, each: _Way) -> dict[str, Any]:
    own = each.way in ("acknowledged", "sustained")
    return {
        "side": side,
        "way": each.way,
        "bytes_per_second": each.bytes_per_second,
        "request_bytes": _told(each.found, "request_bytes") if each.way == "synced" else None,
        "wait_seconds": _told(each.found, "sync_seconds", "median"),
        "knee_bytes": _told(each.found, "knee_bytes") if own else None,
        "dirty_limit_bytes": _told(each.found, "dirty_limit_bytes") if own else None,
        "flush_seconds": _told(each.found, "flush_seconds") if own else None,
    }
