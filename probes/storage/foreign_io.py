"""Measures others' I/O on a block device: its counts around a window, and in a quiet time before.

A partition is judged by its whole disk: I/O in the disk's other partitions takes time of the same
head.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NamedTuple, Optional

from probes.core.records import Details
from probes.core.stage import Unavailable
from probes.system.proc import DeviceCounts
from probes.system.reader import reader

QUIET_SECONDS = 0.3
PAGE_BYTES = 4096
USUAL_REQUEST_BYTES = 512 * 1024
"""Largest request to a disk where the kernel does not report it."""

SYS_BLOCK = Path("/sys/class/block")


class Look(NamedTuple):
    """The counts of a device at one moment, and of the whole disk that it is a part of."""

    clock_seconds: float
    device: Optional[DeviceCounts]
    disk: Optional[DeviceCounts]


def whole_disk(device: str) -> str:
    """Returns the kernel name of a partition's disk; for any other device its own."""
    node = SYS_BLOCK / device
    return node.resolve().parent.name if (node / "partition").exists() else device


def look(device: str | None) -> Look:
    """Reads the counts of a device; device: its kernel name, None: there is none."""
    device_counts = disk_counts = None
    if device is not None:
        # Some systems have no such counts.
        with contextlib.suppress(Unavailable):
            counts = reader().devices()
            device_counts, disk_counts = counts.get(device), counts.get(whole_disk(device))
    return Look(time.monotonic(), device_counts, disk_counts)


def quiet(device: str | None, seconds: float = QUIET_SECONDS) -> Details | None:
    """Measures the disk's I/O while nothing of this stage runs; None where it has no counts.

    Returns seconds, reads, writes, read_bytes, written_bytes, busy_ratio (share of the time with
    I/O in flight).
    """
    start = look(device)
    if start.disk is None:
        return None
    time.sleep(seconds)
    end = look(device)
    if end.disk is None:
        return None
    elapsed = end.clock_seconds - start.clock_seconds
    return {"seconds": elapsed, **_counts_between(start.disk, end.disk, elapsed)}


def counts(
    device: str | None, start: Look, end: Look, read_bytes: int = 0, written_bytes: int = 0
) -> Details:
    """Returns the details of a window in which we read and wrote so much payload.

    These are device_read_bytes and device_written_bytes (by anybody; None where the device has no
    counts) and, where it has them, others: read_bytes, written_bytes, reads and writes beyond our
    own (never below 0), busy_ratio (share of the window with I/O in flight, ours included: the
    kernel does not separate it). Our own requests are not counted: they are assumed to be as large
    as the disk allows, and others' to be no smaller than a page.
    """
    details: Details = {"device_read_bytes": None, "device_written_bytes": None}
    if start.device is not None and end.device is not None:
        details["device_read_bytes"] = end.device.read_bytes - start.device.read_bytes
        details["device_written_bytes"] = end.device.written_bytes - start.device.written_bytes
    if device is None or start.disk is None or end.disk is None:
        return details
    totals = _counts_between(start.disk, end.disk, end.clock_seconds - start.clock_seconds)
    request_bytes = largest_request_bytes(device)
    others: Details = {}
    for ours, size, count in (
        (read_bytes, "read_bytes", "reads"),
        (written_bytes, "written_bytes", "writes"),
    ):
        others[size] = max(0, totals[size] - ours)
        beyond = totals[count] - -(-ours // request_bytes)
        others[count] = max(0, min(beyond, others[size] // PAGE_BYTES))
    return {**details, "others": {**others, "busy_ratio": totals["busy_ratio"]}}


def largest_request_bytes(device: str) -> int:
    """Returns the largest request that the kernel sends (limits of its queue: blk-settings.c)."""
    queue = SYS_BLOCK / whole_disk(device) / "queue"
    limits = (_number(queue / "max_sectors_kb", 1024), _number(queue / "max_segments", PAGE_BYTES))
    return min((each for each in limits if each), default=USUAL_REQUEST_BYTES)


def _number(path: Path, unit_bytes: int) -> int:
    """Reads a size from a file of /sys; 0: it has none."""
    try:
        return int(path.read_text()) * unit_bytes
    except (OSError, ValueError):
        return 0


def _counts_between(start: DeviceCounts, end: DeviceCounts, elapsed_seconds: float) -> Details:
    busy_seconds = end.busy_seconds - start.busy_seconds
    return {
        "reads": end.reads - start.reads,
        "writes": end.writes - start.writes,
        "read_bytes": end.read_bytes - start.read_bytes,
        "written_bytes": end.written_bytes - start.written_bytes,
        "busy_ratio": min(1.0, busy_seconds / elapsed_seconds) if elapsed_seconds > 0 else 0.0,
    }
