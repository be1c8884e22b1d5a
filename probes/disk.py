"""The disk under a folder: sequential read, cached and proven uncached, and write, by fio.

A read takes the run's own file (probes/host/source_file.py holds it); a write goes to a fresh
nameless file of this step. Uncached reads are direct with four requests in flight; where there
is time for trials (5 s and more) the kernel's read-ahead is tried too and the better one taken.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Iterator

from probes.drivers import fio
from probes.host import folders, free_space, page_cache, source_file
from probes.host.counters import read_device
from probes.records import Details, Endpoint, Sample
from probes.stage import Last, Running, Unavailable

NAME = "disk"

SAMPLE_SECONDS = 0.25
WINDOW_SECONDS = 0.5
LEAST_WINDOWS = 3
GRACE_SECONDS = 6.0
"""What fio's start may take where a CPU quota slows it, and its last flush."""
TRIAL_SHARE = 0.2
"""Of the time, for each of the two trials that choose how to read."""
TRIAL_LEAST_SECONDS = 1.0
"""Shorter ones say more of the disk's first moment than of the way to read."""


@dataclass(frozen=True)
class Setting:
    """What to measure on which host."""

    verb: str
    """read, write."""
    cache: str
    """uncached, cached (reads alone; a write is always flushed to disk)."""
    folder: str
    side: str
    """The host that this is about: client, server."""
    size_bytes: int
    seconds: float
    """The measured time; fio's start comes on top of it."""
    seed: str = ""
    path: str = ""
    """The file to read where the peer names none; opened for reading only."""


@contextmanager
def respond(setting: Setting) -> Iterator[Endpoint]:
    """Nothing: a disk has one end."""
    yield Endpoint()


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Sequential throughput of the folder's disk; samples are payload read, or written and flushed.

    peer.path is the file to read. Errors: Unavailable (fio missing, no room, no file to read),
    Refused (no such folder, no right to write in it), fio.FioFailed.
    """
    if setting.verb not in ("read", "write") or setting.cache not in ("uncached", "cached"):
        raise ValueError(f"no disk stage {setting.verb} {setting.cache}")
    fio_version = fio.version()
    stack = folders.stack(setting.folder)
    if setting.verb == "write":
        fd = source_file.open_new(setting.folder)
        size_bytes = free_space.fitting(setting.size_bytes, setting.folder)
    else:
        path = peer.path or setting.path
        if not path:
            raise Unavailable("there is no source file of this run to read")
        fd = os.open(path, os.O_RDONLY)
        size_bytes = min(setting.size_bytes, os.fstat(fd).st_size)
    try:
        size_bytes = size_bytes // fio.BLOCK_BYTES * fio.BLOCK_BYTES
        if size_bytes == 0:
            raise Unavailable("the file is smaller than one block of 1 MiB")
        run = _write if setting.verb == "write" else _read
        details = yield from run(setting, fd, size_bytes)
    finally:
        os.close(fd)
    return {**details, "fio_version": fio_version, "stack": stack, "seek_seconds": None}


def _write(setting: Setting, fd: int, size_bytes: int) -> Running:
    # a file of the right size: fio would unlink it to lay it out anew
    os.ftruncate(fd, size_bytes)
    direct = takes_direct(fd)
    job = fio.Job(fd, "write", size_bytes, setting.seconds, direct)
    details = yield from _measured(setting, job)
    return {**details, "cache": None}


def _read(setting: Setting, fd: int, size_bytes: int) -> Running:
    if setting.cache == "cached":
        page_cache.warm(fd, size_bytes)
        before = page_cache.state(fd, size_bytes)
        job = fio.Job(fd, "read", size_bytes, setting.seconds, False, looping=True)
        proven = page_cache.proven(before, cached=True)
        details = yield from _measured(setting, job)
        return {**details, "cache": _cache(setting, before, proven)}
    seconds, direct, trials = setting.seconds, takes_direct(fd), {}
    trial_seconds = seconds * TRIAL_SHARE
    if direct and trial_seconds >= TRIAL_LEAST_SECONDS:
        trials = _trials(fd, size_bytes, trial_seconds)
        direct = trials["direct"] >= trials["buffered"]
        seconds -= 2 * trial_seconds
    page_cache.evict(fd)
    before = page_cache.state(fd, size_bytes)
    proven = page_cache.proven(before, cached=False)
    details = yield from _measured(setting, fio.Job(fd, "read", size_bytes, seconds, direct))
    if details["device_read_bytes"] == 0:
        # blocks that were never written: nothing reached the device, whatever the cache said
        proven = False
    if trials:
        details["trials_bytes_per_second"] = trials
    return {**details, "cache": _cache(setting, before, proven)}


def takes_direct(fd: int) -> bool:
    """Whether the file's file system lets it be read past the page cache (O_DIRECT)."""
    try:
        os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | getattr(os, "O_DIRECT", 0)))
    except OSError:
        return False
    return hasattr(os, "O_DIRECT")


def _trials(fd: int, size_bytes: int, seconds: float) -> dict[str, float]:
    """Rates of both ways to read, on the file's last half: the run proper begins at its start."""
    part = size_bytes // 4 // fio.BLOCK_BYTES * fio.BLOCK_BYTES
    found = {}
    for number, (way, direct) in enumerate((("direct", True), ("buffered", False))):
        page_cache.evict(fd)
        at = size_bytes - (number + 1) * part
        job = fio.Job(fd, "read", max(part, fio.BLOCK_BYTES), seconds, direct, at)
        with fio.running(job, time.monotonic() + seconds + GRACE_SECONDS) as run:
            found[way] = run.result().bytes_per_second
    return found


def _measured(setting: Setting, job: fio.Job) -> Running:
    """Runs the job; the window opens with its first I/O and closes with its end."""
    device = folders.folder_facts(setting.folder).device
    counted_before = read_device(device)
    deadline = time.monotonic() + job.seconds + GRACE_SECONDS
    with fio.running(job, deadline) as run:
        run.wait_for_io()
        yield Sample(0.0, 0)
        inner = [Sample(*astuple(each)) for each in run.progress(SAMPLE_SECONDS)]
        result = run.result()
    # the kernel's counts run by our clock and hold what is in flight: fio's own end is the measure
    inner = [
        each
        for each in inner
        if each.elapsed_seconds < result.elapsed_seconds and each.moved_bytes <= result.moved_bytes
    ]
    yield from inner
    last = Last(result.elapsed_seconds, result.moved_bytes)
    yield last
    counted = read_device(device)
    details: Details = {
        "direct": job.direct,
        "latency_seconds": {
            "median": result.latency_median_seconds,
            "p99": result.latency_p99_seconds,
        },
        "zones": [
            {"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": result.bytes_per_second}
        ],
        "short_ios": result.short_ios,
        "device": device,
        "device_read_bytes": None,
        "device_written_bytes": None,
    }
    if counted_before is not None and counted is not None:
        details["device_read_bytes"] = counted.read_bytes - counted_before.read_bytes
        details["device_written_bytes"] = counted.written_bytes - counted_before.written_bytes
    windows = window_rates([Sample(0.0, 0), *inner, last])
    if len(windows) >= LEAST_WINDOWS:
        details["window_rates_bytes_per_second"] = windows
    return details


def window_rates(samples: list[Sample]) -> list[float]:
    """Throughput of consecutive windows of half a second and more, bytes per second; pure."""
    rates = []
    opened = samples[0]
    for each in samples[1:]:
        elapsed = each.elapsed_seconds - opened.elapsed_seconds
        if elapsed >= WINDOW_SECONDS:
            rates.append((each.moved_bytes - opened.moved_bytes) / elapsed)
            opened = each
    return rates


def _cache(
    setting: Setting, before: page_cache.CacheState | None, proven: bool
) -> dict[str, object]:
    return {
        "side": setting.side,
        "requested": setting.cache,
        "proven": proven,
        "cached_ratio_before": None if before is None else before.cached_ratio,
    }
