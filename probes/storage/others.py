"""What a block device does beside us: its counts around a window, and in a quiet look before.

A partition is judged by its whole disk: what goes on in the disk's other partitions takes the same
head's time.
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
"""What a disk takes in one request where the kernel does not tell."""

SYS_BLOCK = Path("/sys/class/block")


class Look(NamedTuple):
    """The device under a folder at one moment, and the whole disk that it is a part of."""

    clock_seconds: float
    own: Optional[DeviceCounts]
    whole: Optional[DeviceCounts]


def whole_disk(device: str) -> str:
    """Kernel name of the disk that a partition belongs to; of anything else its own."""
    node = SYS_BLOCK / device
    return node.resolve().parent.name if (node / "partition").exists() else device


def look(device: str | None) -> Look:
    """The counts of a device now; device: its kernel name, None: there is none."""
    own = whole = None
    if device is not None:
        # a host that tells nothing counts nothing
        with contextlib.suppress(Unavailable):
            told = reader().devices()
            own, whole = told.get(device), told.get(whole_disk(device))
    return Look(time.monotonic(), own, whole)


def quiet(device: str | None, seconds: float = QUIET_SECONDS) -> Details | None:
    """What the disk does while nothing of this stage runs; None where it counts nothing.

    Returns seconds, reads, writes, read_bytes, written_bytes, busy_ratio (share of the time with
    I/O in flight).
    """
    before = look(device)
    if before.whole is None:
        return None
    time.sleep(seconds)
    after = look(device)
    if after.whole is None:
        return None
    elapsed = after.clock_seconds - before.clock_seconds
    return {"seconds": elapsed, **_between(before.whole, after.whole, elapsed)}


def around(
    device: str | None, before: Look, after: Look, read_bytes: int = 0, written_bytes: int = 0
) -> Details:
    """The details of a window in which we read and wrote so much payload.

    Returns device_read_bytes and device_written_bytes (by anybody; None where the device counts
    nothing) and, where it counts, others: read_bytes, written_bytes, reads and writes beyond our
    own (never below 0), busy_ratio (share of the window with I/O in flight, ours included: the
    kernel does not part it). Our own requests are not counted apart: they are taken to be as large
    as the disk allows, and others' to be no smaller than a page.
    """
    found: Details = {"device_read_bytes": None, "device_written_bytes": None}
    if before.own is not None and after.own is not None:
        found["device_read_bytes"] = after.own.read_bytes - before.own.read_bytes
        found["device_written_bytes"] = after.own.written_bytes - before.own.written_bytes
    if device is None or before.whole is None or after.whole is None:
        return found
    elapsed = after.clock_seconds - before.clock_seconds
    all_of_it = _between(before.whole, after.whole, elapsed)
    request_bytes = largest_request_bytes(device)
    others: Details = {}
    for ours, size, count in (
        (read_bytes, "read_bytes", "reads"),
        (written_bytes, "written_bytes", "writes"),
    ):
        others[size] = max(0, all_of_it[size] - ours)
        beyond = all_of_it[count] - -(-ours // request_bytes)
        others[count] = max(0, min(beyond, others[size] // PAGE_BYTES))
    return {**found, "others": {**others, "busy_ratio": all_of_it["busy_ratio"]}}


def largest_request_bytes(device: str) -> int:
    """What the kernel sends the disk in one request (limits of its queue: blk-settings.c)."""
    queue = SYS_BLOCK / whole_disk(device) / "queue"
    told = (_number(queue / "max_sectors_kb", 1024), _number(queue / "max_segments", PAGE_BYTES))
    return min((each for each in told if each), default=USUAL_REQUEST_BYTES)


def _number(path: Path, unit_bytes: int) -> int:
    """The bytes that a file of /sys tells; 0: it does not."""
    try:
        return int(path.read_text()) * unit_bytes
    except (OSError, ValueError):
        return 0


def _between(before: DeviceCounts, after: DeviceCounts, elapsed_seconds: float) -> Details:
    busy_seconds = after.busy_seconds - before.busy_seconds
    return {
        "reads": after.reads - before.reads,
        "writes": after.writes - before.writes,
        "read_bytes": after.read_bytes - before.read_bytes,
        "written_bytes": after.written_bytes - before.written_bytes,
        "busy_ratio": min(1.0, busy_seconds / elapsed_seconds) if elapsed_seconds > 0 else 0.0,
    }
