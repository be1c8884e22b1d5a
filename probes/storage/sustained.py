"""Writing as a program that never flushes does: what is acknowledged, and when it is on the disk.

The page cache takes what comes until the kernel's limit of dirty memory; a disk's or a RAID's own
cache may take more. Where one of them is full the rate falls: the knee.
"""

from __future__ import annotations

import math
import os
import time
from typing import Generator, List, NamedTuple, Optional, Sequence, Tuple

from probes.host.memory import read_dirty_limit
from probes.host.source_file import SYNC_WRITE, SYNC_WRITTEN, sync_range
from probes.records import Endpoint, Sample
from probes.stage import Last, Running
from probes.storage import growing_file
from probes.storage.setting import Setting

LEAST_WINDOWS = 4
"""On either side of the knee: fewer are a hiccup."""
LEAST_RATIO = 1.5
"""A cache is at least so much faster than what lies behind it."""
LEAST_SIGMAS = 6.0
"""The best of many places to cut pure noise in two differs by up to four."""

Window = Tuple[float, int]
"""Seconds of one stretch of a run, and the bytes that were taken in it."""


class Knee(NamedTuple):
    """A change of rate."""

    at_bytes: int
    """Taken before it."""
    before_bytes_per_second: float
    after_bytes_per_second: float


def find(windows: Sequence[Window]) -> Optional[Knee]:
    """Where two constant rates, the second lower, fit the windows best; pure.

    By least squares, each window weighing as long as it took. None where no cut leaves a second
    rate that is lower by a third, and by six standard errors of the two means.
    """
    spans = [each for each in windows if each[0] > 0]
    best: Optional[Tuple[float, int]] = None
    for cut in range(LEAST_WINDOWS, len(spans) - LEAST_WINDOWS + 1):
        before, after = _mean(spans[:cut]), _mean(spans[cut:])
        if before <= after:
            continue
        residual = _residual(spans[:cut], before) + _residual(spans[cut:], after)
        if best is None or residual < best[0]:
            best = residual, cut
    if best is None:
        return None
    first, second = spans[: best[1]], spans[best[1] :]
    before, after = _mean(first), _mean(second)
    doubt = math.hypot(_error(first, before), _error(second, after))
    if before < LEAST_RATIO * after or before - after < LEAST_SIGMAS * doubt:
        return None
    return Knee(sum(size for _, size in first), before, after)


def _mean(spans: Sequence[Window]) -> float:
    return sum(size for _, size in spans) / sum(seconds for seconds, _ in spans)


def _residual(spans: Sequence[Window], rate: float) -> float:
    return sum(seconds * (size / seconds - rate) ** 2 for seconds, size in spans)


def _error(spans: Sequence[Window], rate: float) -> float:
    """Standard error of the mean."""
    variance = _residual(spans, rate) / sum(seconds for seconds, _ in spans)
    return math.sqrt(variance / (len(spans) - 1))


WINDOWS = 100
"""In which the time is looked at; none is shorter than LEAST_WINDOW_SECONDS."""
LEAST_WINDOW_SECONDS = 0.1
FLUSH_SECONDS = 10.0
"""For the flush; what is not on the disk by then is given up with the file."""
FLUSH_STEP_BYTES = 16 * 1024 * 1024
FLUSH_AHEAD_STEPS = 4
"""On their way to the disk while the first of them is waited for."""
SAMPLE_SECONDS = 0.25


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Buffered writes for the setting's time, then the flush; samples are payload on the disk.

    So none comes while the page cache takes what is written. Returns
    acknowledged_bytes_per_second: until the knee, or until the end where there is none;
    sustained_bytes_per_second: after it; knee_bytes: written before it (both None: none seen);
    durable_bytes_per_second: until all was flushed; write_seconds, written_bytes, flushed_bytes;
    flush_seconds (None: not done within 10 s, and flushed_bytes is less); dirty_limit_bytes and
    dirty_background_bytes when it began (None: the system does not tell);
    acknowledged_windows: [{seconds, bytes}], the series that the knee is found in; request_bytes,
    ended_by (time, size, room), direct, zones (one, the whole).

    Errors: those of growing_file.growing; OSError of the disk, at the latest of its flush;
    RuntimeError where nothing reached the disk.
    """
    with growing_file.growing(setting) as file:
        limit = read_dirty_limit()
        yield Sample(0.0, 0)
        began = time.monotonic()
        windows = _write(file, began, setting.seconds)
        if not file.written_bytes:
            raise growing_file.no_room(setting)
        written = time.monotonic()
        flushed_bytes = yield from _flush(file, began, written + FLUSH_SECONDS)
        ended = time.monotonic()
        if not flushed_bytes:
            raise RuntimeError(f"nothing of what was written reached the disk in {FLUSH_SECONDS} s")
        yield Last(ended - began, flushed_bytes)
    found = find(windows)
    durable = flushed_bytes / (ended - began)
    whole = file.written_bytes / (written - began)
    return {
        "direct": False,
        "cache": None,
        "request_bytes": growing_file.BLOCK_BYTES,
        "acknowledged_bytes_per_second": found.before_bytes_per_second if found else whole,
        "sustained_bytes_per_second": found.after_bytes_per_second if found else None,
        "knee_bytes": found.at_bytes if found else None,
        "durable_bytes_per_second": durable,
        "write_seconds": written - began,
        "written_bytes": file.written_bytes,
        "flushed_bytes": flushed_bytes,
        "flush_seconds": ended - written if flushed_bytes == file.written_bytes else None,
        "dirty_limit_bytes": limit.limit_bytes if limit else None,
        "dirty_background_bytes": limit.background_bytes if limit else None,
        "acknowledged_windows": [{"seconds": each[0], "bytes": each[1]} for each in windows],
        "ended_by": file.ended_by,
        "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": durable}],
    }


def _write(file: growing_file.GrowingFile, began: float, seconds: float) -> List[Tuple[float, int]]:
    """Appends until the time is over; the windows that it took, each some blocks long."""
    windows = []
    window_seconds = max(LEAST_WINDOW_SECONDS, seconds / WINDOWS)
    now, opened, opened_bytes = began, began, 0
    while now - began < seconds and file.append():
        now = time.monotonic()
        if now - opened >= window_seconds:
            windows.append((now - opened, file.written_bytes - opened_bytes))
            opened, opened_bytes = now, file.written_bytes
    return windows


def _flush(
    file: growing_file.GrowingFile, began: float, until: float
) -> Generator[Sample, None, int]:
    """Has it written in the file's order; yields samples, returns the bytes that are on the disk.

    In steps, so that it can be given up: a fsync(2) of gigabytes on a slow disk cannot be ended.
    """
    told = time.monotonic()
    for offset in range(0, file.written_bytes, FLUSH_STEP_BYTES):
        sync_range(file.fd, offset, FLUSH_AHEAD_STEPS * FLUSH_STEP_BYTES, SYNC_WRITE)
        if not sync_range(file.fd, offset, FLUSH_STEP_BYTES, SYNC_WRITTEN):
            break
        now = time.monotonic()
        flushed_bytes = min(offset + FLUSH_STEP_BYTES, file.written_bytes)
        if now >= until and flushed_bytes < file.written_bytes:
            return flushed_bytes
        if now - told >= SAMPLE_SECONDS:
            told = now
            yield Sample(now - began, flushed_bytes)
    os.fsync(file.fd)
    return file.written_bytes
