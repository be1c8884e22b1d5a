"""Writes of which each is on the disk before it is acknowledged: a push where `sync always = yes`.

As smbd does it: as many at once as a client has in flight, each forced by itself, so that some
share a flush; and the file grows with every write, so each also costs the file system's own record
of the new size. Source: smb.conf(5) (sync always, strict sync), source3/modules/vfs_default.c
(pwrite and fsync in threads), fdatasync(2).
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from typing import List

from probes.records import Endpoint, Sample
from probes.stage import Last, Running
from probes.storage import growing_file
from probes.storage.setting import Setting

DEPTH = 8
"""Writes at once: what this tool and Windows clients keep in flight on a LAN."""
SAMPLE_SECONDS = 0.1

_made_durable = getattr(os, "fdatasync", os.fsync)


class _Writers:
    """Threads that append a block and force it, in turns, until the time is over."""

    def __init__(self, file: growing_file.GrowingFile, seconds: float) -> None:
        self.forced_seconds: List[float] = []
        self.whole_seconds: List[float] = []
        self.durable_bytes = 0
        self.ended = self.began = time.monotonic()
        self._file, self._until = file, self.began + seconds
        self._lock = threading.Lock()
        self._errors: List[BaseException] = []
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(DEPTH)]
        for each in self._threads:
            each.start()

    def wait(self, seconds: float) -> bool:
        """Whether all have ended within so many seconds. Errors: OSError of the disk."""
        until = time.monotonic() + seconds
        for each in self._threads:
            each.join(max(0.0, until - time.monotonic()))
        if any(each.is_alive() for each in self._threads):
            return False
        for error in self._errors:
            raise error
        return True

    def stop(self) -> None:
        """No further write is begun; returns when none uses the file any more."""
        self._until = self.began
        for each in self._threads:
            each.join()

    def _run(self) -> None:
        try:
            while time.monotonic() < self._until and not self._errors:
                with self._lock:
                    began = time.monotonic()
                    if not self._file.append():
                        return
                written = time.monotonic()
                _made_durable(self._file.fd)
                with self._lock:
                    self.ended = time.monotonic()
                    self.durable_bytes += growing_file.BLOCK_BYTES
                    self.forced_seconds.append(self.ended - written)
                    self.whole_seconds.append(self.ended - began)
        except OSError as error:
            self._errors.append(error)


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Throughput of forced writes of 1 MiB to a file of our own; samples are payload on the disk.

    Returns request_bytes, depth, sync_seconds (median, p99: of the forcing alone), latency_seconds
    (of write and forcing together), written_bytes, ended_by (time, size, room), direct, zones (one,
    the whole). Errors: those of growing_file.growing; OSError of the disk.
    """
    with growing_file.growing(setting) as file:
        yield Sample(0.0, 0)
        writers = _Writers(file, setting.seconds)
        try:
            while not writers.wait(SAMPLE_SECONDS):
                if writers.durable_bytes:
                    yield Sample(writers.ended - writers.began, writers.durable_bytes)
        finally:
            writers.stop()
        if not writers.durable_bytes:
            raise growing_file.no_room(setting)
        elapsed = writers.ended - writers.began
        yield Last(elapsed, writers.durable_bytes)
        rate = writers.durable_bytes / elapsed
        return {
            "direct": False,
            "cache": None,
            "request_bytes": growing_file.BLOCK_BYTES,
            "depth": DEPTH,
            "sync_seconds": middle_and_worst(writers.forced_seconds),
            "latency_seconds": middle_and_worst(writers.whole_seconds),
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
