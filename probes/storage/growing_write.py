"""Writes to a nameless file that grows block by block, as in a push to a file server.

Synced: each block is on the disk before it is acknowledged, as with `sync always = yes`. smbd
writes as many at once as a client has in flight and forces each one, so that some share a flush;
the file grows with every write, so each also costs the file system's update of the size. Source:
smb.conf(5) (sync always, strict sync), source3/modules/vfs_default.c (pwrite and fsync in threads),
fdatasync(2).

Sustained: a program that never flushes: when its writes are acknowledged, and when they are on the
disk. The page cache accepts writes up to the kernel's limit of dirty memory; a disk's or a RAID's
cache may take more. When one of them is full the rate falls: the knee.
"""

from __future__ import annotations

import errno
import math
import statistics
import threading
import time
from contextlib import contextmanager
from typing import Generator, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from probes.core.records import Endpoint, Sample
from probes.core.stage import Last, Running, Unavailable
from probes.files import free_space, payload, source_file
from probes.files.source_file import SYNC_WRITE, SYNC_WRITTEN, sync_range
from probes.host.memory import read_pressure
from probes.storage import Setting
from probes.system.platform import descriptor, os

BLOCK_BYTES = 1024 * 1024
"""Size of a write: SMB clients' usual request since 2.1."""


class GrowingFile:
    """An open file to which payload is appended."""

    def __init__(self, fd: int, most_bytes: int, seed: bytes) -> None:
        self.fd = fd
        self.written_bytes = 0
        self.ended_by = "time"
        """Reason for the end: time, size (as requested) or room (the rest stays free)."""
        self._most_bytes = most_bytes
        self._bounded_by = "size"
        self._looked_at = 0
        self._ring = payload.make_ring(seed)

    def append(self) -> bool:
        """Writes the next block of payload to the page cache; False: the limit is reached."""
        if self.written_bytes >= self._looked_at:
            self._look()
        if self.written_bytes + BLOCK_BYTES > self._most_bytes:
            self.ended_by = self._bounded_by
            return False
        try:
            self._write(payload.block(self._ring, self.written_bytes, BLOCK_BYTES))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self.ended_by = "room"
            return False
        self.written_bytes += BLOCK_BYTES
        return True

    def _look(self) -> None:
        """Lowers the limit to the free space, which others use too."""
        self._looked_at += free_space.LOOK_BYTES
        room = free_space.room_bytes(self.fd)
        if room is not None and self.written_bytes + room < self._most_bytes:
            self._most_bytes = self.written_bytes + room
            self._bounded_by = "room"

    def _write(self, block: memoryview) -> None:
        done = 0
        while done < len(block):
            done += os.pwrite(self.fd, block[done:], self.written_bytes + done)


@contextmanager
def create_growing_file(setting: Setting) -> Iterator[GrowingFile]:
    """Creates an empty file in the setting's folder, for at most its size, and removes it.

    Errors: Refused (no such folder, no right to write there); Unavailable where less than 4 MiB
    may be used.
    """
    fd = source_file.open_new(setting.folder)
    with descriptor(fd):
        size_bytes = free_space.fitting_size(setting.size_bytes, setting.folder)
        if size_bytes < BLOCK_BYTES:
            raise Unavailable("the file is smaller than one block of 1 MiB")
        yield GrowingFile(fd, size_bytes, bytes.fromhex(setting.seed))


def no_room(setting: Setting) -> Unavailable:
    """Returns the error for a folder where not one block could be written."""
    return Unavailable(f"{setting.folder} is full; free some space or choose another folder")


DEPTH = 8
"""Writes in flight, as this tool and Windows clients have on a LAN."""
SYNCED_SAMPLE_SECONDS = 0.1

_force = getattr(os, "fdatasync", os.fsync)


class Workers:
    """Threads that share work until it is done or the time is over; a subclass does the work."""

    def __init__(self, count: int, seconds: float) -> None:
        self.moved_bytes = 0
        self.ended = self.began = time.monotonic()
        self.lock = threading.Lock()
        self._until = self.began + seconds
        self._error: Optional[Exception] = None
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]
        for each in self._threads:
            each.start()

    @property
    def elapsed_seconds(self) -> float:
        """Seconds until the last request was done."""
        return self.ended - self.began

    def is_over(self) -> bool:
        """Whether no further request is to begin."""
        return self._error is not None or time.monotonic() >= self._until

    def wait(self, seconds: float) -> bool:
        """Whether all have ended within so many seconds. Errors: those of the work."""
        until = time.monotonic() + seconds
        for each in self._threads:
            each.join(max(0.0, until - time.monotonic()))
        if any(each.is_alive() for each in self._threads):
            return False
        if self._error is not None:
            raise self._error
        return True

    def stop(self, seconds: Optional[float] = None) -> None:
        """Stops new requests and joins the threads; seconds: limit of the wait for each."""
        self._until = self.began
        for each in self._threads:
            each.join(seconds)

    def _run(self) -> None:
        try:
            self._work()
        except (OSError, RuntimeError) as error:
            self._error = self._error or error

    def _work(self) -> None:
        raise NotImplementedError


class _Writers(Workers):
    """Threads that append a block and force it to the disk, in turns."""

    def __init__(self, file: GrowingFile, seconds: float) -> None:
        self.forced_seconds: List[float] = []
        self.whole_seconds: List[float] = []
        self._file = file
        super().__init__(DEPTH, seconds)

    def _work(self) -> None:
        while not self.is_over():
            with self.lock:
                began = time.monotonic()
                if not self._file.append():
                    return
            written = time.monotonic()
            _force(self._file.fd)
            with self.lock:
                self.ended = time.monotonic()
                self.moved_bytes += BLOCK_BYTES
                self.forced_seconds.append(self.ended - written)
                self.whole_seconds.append(self.ended - began)


def measure_synced(setting: Setting, peer: Endpoint) -> Running:
    """Measures forced writes of 1 MiB to a file of our own; samples are payload on the disk.

    Returns request_bytes, depth, sync_seconds (median, p99: of fdatasync alone), latency_seconds
    (of write and fdatasync), written_bytes, ended_by (time, size, room), direct, zones (one, the
    whole). Errors: those of growing; OSError of the disk.
    """
    with create_growing_file(setting) as file:
        yield Sample(0.0, 0)
        writers = _Writers(file, setting.seconds)
        try:
            while not writers.wait(SYNCED_SAMPLE_SECONDS):
                if writers.moved_bytes:
                    yield Sample(writers.elapsed_seconds, writers.moved_bytes)
        finally:
            writers.stop()
        if not writers.moved_bytes:
            raise no_room(setting)
        elapsed = writers.elapsed_seconds
        yield Last(elapsed, writers.moved_bytes)
        rate = writers.moved_bytes / elapsed
        return {
            "direct": False,
            "cache": None,
            "request_bytes": BLOCK_BYTES,
            "depth": DEPTH,
            "sync_seconds": middle_and_worst(writers.forced_seconds),
            "latency_seconds": middle_and_worst(writers.whole_seconds),
            "written_bytes": file.written_bytes,
            "ended_by": file.ended_by,
            "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": rate}],
        }


def middle_and_worst(seconds: list[float]) -> dict[str, float]:
    """Returns median and 99th percentile (nearest rank) of some durations; pure."""
    ordered = sorted(seconds)
    return {"median": statistics.median(ordered), "p99": ordered[-(-len(ordered) * 99 // 100) - 1]}


LEAST_WINDOWS = 4
"""Windows on either side of the knee: fewer are a passing disturbance."""
LEAST_RATIO = 1.5
"""Ratio of the rates before and after a knee: a cache is at least that much faster."""
LEAST_SIGMAS = 6.0
"""Difference in standard errors: the best of many cuts through pure noise has up to four."""

Window = Tuple[float, int]
"""Seconds of one part of a run, and the bytes written in it."""


class Knee(NamedTuple):
    """A change of rate."""

    at_bytes: int
    """Bytes written before it."""
    before_bytes_per_second: float
    after_bytes_per_second: float


def find(windows: Sequence[Window]) -> Optional[Knee]:
    """Finds the knee: two constant rates, the second lower, that fit the windows best; pure.

    By least squares, each window weighted by its duration. None where no cut leaves a second
    rate that is lower by a third, and by six standard errors of the two means.
    """
    spans = [each for each in windows if each[0] > 0]
    best: Optional[Tuple[float, int]] = None
    for cut in range(LEAST_WINDOWS, len(spans) - LEAST_WINDOWS + 1):
        high, low = _mean(spans[:cut]), _mean(spans[cut:])
        if high <= low:
            continue
        residual = _residual(spans[:cut], high) + _residual(spans[cut:], low)
        if best is None or residual < best[0]:
            best = residual, cut
    if best is None:
        return None
    first, second = spans[: best[1]], spans[best[1] :]
    high, low = _mean(first), _mean(second)
    doubt = math.hypot(_standard_error(first, high), _standard_error(second, low))
    if high < LEAST_RATIO * low or high - low < LEAST_SIGMAS * doubt:
        return None
    return Knee(sum(size for _, size in first), high, low)


def _mean(spans: Sequence[Window]) -> float:
    return sum(size for _, size in spans) / sum(seconds for seconds, _ in spans)


def _residual(spans: Sequence[Window], rate: float) -> float:
    return sum(seconds * (size / seconds - rate) ** 2 for seconds, size in spans)


def _standard_error(spans: Sequence[Window], rate: float) -> float:
    variance = _residual(spans, rate) / sum(seconds for seconds, _ in spans)
    return math.sqrt(variance / (len(spans) - 1))


WINDOWS = 100
"""Parts of the time whose rates are compared; none is shorter than LEAST_WINDOW_SECONDS."""
LEAST_WINDOW_SECONDS = 0.1
FLUSH_SECONDS = 10.0
"""Limit of the flush; what is not on the disk by then is abandoned with the file."""
FLUSH_STEP_BYTES = 16 * 1024 * 1024
FLUSH_AHEAD_STEPS = 4
"""Steps under write-back while the first of them is awaited."""
SAMPLE_SECONDS = 0.25


def measure_sustained(setting: Setting, peer: Endpoint) -> Running:
    """Measures buffered writes for the setting's time, then the flush.

    Samples are payload on the disk: none comes while the page cache accepts the writes. Returns
    acknowledged_bytes_per_second: until the knee, or until the end where there is none;
    sustained_bytes_per_second: after it; knee_bytes: written before it (both None: no knee);
    durable_bytes_per_second: until all was flushed; written_bytes; flush_seconds (None: not done
    within 10 s); dirty_limit_bytes at the start (None: the system does not tell); request_bytes,
    ended_by (time, size, room), direct, zones (one, the whole).

    Errors: those of growing; OSError of the disk; RuntimeError where nothing reached the disk.
    """
    with create_growing_file(setting) as file:
        limit_bytes = read_pressure(None).dirty_limit_bytes
        yield Sample(0.0, 0)
        began = time.monotonic()
        windows = _write(file, began, setting.seconds)
        if not file.written_bytes:
            raise no_room(setting)
        written = time.monotonic()
        flushed_bytes = yield from _flush(file, began, written + FLUSH_SECONDS)
        ended = time.monotonic()
        if not flushed_bytes:
            raise RuntimeError(f"nothing of what was written reached the disk in {FLUSH_SECONDS} s")
        yield Last(ended - began, flushed_bytes)
    knee = find(windows)
    durable = flushed_bytes / (ended - began)
    overall = file.written_bytes / (written - began)
    return {
        "direct": False,
        "cache": None,
        "request_bytes": BLOCK_BYTES,
        "acknowledged_bytes_per_second": knee.before_bytes_per_second if knee else overall,
        "sustained_bytes_per_second": knee.after_bytes_per_second if knee else None,
        "knee_bytes": knee.at_bytes if knee else None,
        "durable_bytes_per_second": durable,
        "written_bytes": file.written_bytes,
        "flush_seconds": ended - written if flushed_bytes == file.written_bytes else None,
        "dirty_limit_bytes": limit_bytes,
        "ended_by": file.ended_by,
        "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": durable}],
    }


def _write(file: GrowingFile, began: float, seconds: float) -> List[Tuple[float, int]]:
    """Appends until the time is over; returns the windows, each some blocks long."""
    windows = []
    window_seconds = max(LEAST_WINDOW_SECONDS, seconds / WINDOWS)
    now, opened, opened_bytes = began, began, 0
    while now - began < seconds and file.append():
        now = time.monotonic()
        if now - opened >= window_seconds:
            windows.append((now - opened, file.written_bytes - opened_bytes))
            opened, opened_bytes = now, file.written_bytes
    return windows


def _flush(file: GrowingFile, began: float, until: float) -> Generator[Sample, None, int]:
    """Flushes in the file's order; yields samples, returns the bytes that are on the disk.

    In steps, so that it can be aborted: a fsync(2) of gigabytes on a slow disk cannot.
    """
    sampled_at = time.monotonic()
    for offset in range(0, file.written_bytes, FLUSH_STEP_BYTES):
        sync_range(file.fd, offset, FLUSH_AHEAD_STEPS * FLUSH_STEP_BYTES, SYNC_WRITE)
        if not sync_range(file.fd, offset, FLUSH_STEP_BYTES, SYNC_WRITTEN):
            break
        now = time.monotonic()
        flushed_bytes = min(offset + FLUSH_STEP_BYTES, file.written_bytes)
        if now >= until and flushed_bytes < file.written_bytes:
            return flushed_bytes
        if now - sampled_at >= SAMPLE_SECONDS:
            sampled_at = now
            yield Sample(now - began, flushed_bytes)
    os.fsync(file.fd)
    return file.written_bytes
