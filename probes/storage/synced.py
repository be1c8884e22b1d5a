"""Writes of which each is on the disk before the next: a push where `sync always = yes`.

As smbd does it, the file grows with every write, so each also costs the file system's own record
of the new size. Source: smb.conf(5) (sync always, strict sync), fdatasync(2).
"""

from __future__ import annotations

import os
import statistics
import time

from probes.records import Endpoint, Sample
from probes.stage import Last, Running
from probes.storage import growing_file
from probes.storage.setting import Setting

SAMPLE_SECONDS = 0.1

_made_durable = getattr(os, "fdatasync", os.fsync)


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Throughput of forced writes of 1 MiB to a file of our own; samples are payload on the disk.

    Returns request_bytes, sync_seconds (median, p99: of the forcing alone), latency_seconds (of
    write and forcing together), written_bytes, ended_by (time, size, room), direct, zones (one,
    the whole). Errors: those of growing_file.growing; OSError of the disk.
    """
    with growing_file.growing(setting) as file:
        forced, whole = [], []
        yield Sample(0.0, 0)
        began = now = told = time.monotonic()
        while now - began < setting.seconds and file.append():
            written = time.monotonic()
            _made_durable(file.fd)
            before, now = now, time.monotonic()
            forced.append(now - written)
            whole.append(now - before)
            if now - told >= SAMPLE_SECONDS:
                told = now
                yield Sample(now - began, file.written_bytes)
                # whoever takes the sample takes time that the disk did not have
                now = time.monotonic()
        if not forced:
            raise growing_file.no_room(setting)
        elapsed = now - began
        yield Last(elapsed, file.written_bytes)
        rate = file.written_bytes / elapsed
        return {
            "direct": False,
            "cache": None,
            "request_bytes": growing_file.BLOCK_BYTES,
            "sync_seconds": middle_and_worst(forced),
            "latency_seconds": middle_and_worst(whole),
            "written_bytes": file.written_bytes,
            "ended_by": file.ended_by,
            "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": rate}],
        }


def middle_and_worst(seconds: list[float]) -> dict[str, float]:
    """Median and 99th percentile (nearest rank) of some durations; pure."""
    ordered = sorted(seconds)
    return {
        "median": statistics.median(ordered),
        "p99": ordered[-(-len(ordered) * 99 // 100) - 1],
    }
