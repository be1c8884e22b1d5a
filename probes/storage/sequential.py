"""Sequential read, cached and proven uncached, of the run's own file, and write of a fresh one.

A read takes the run's own file (probes/files/source_file.py keeps it); a write goes to a fresh
nameless file of this step. Uncached reads are direct with four requests in flight; where there
is time for trials (5 s and more) the kernel's read-ahead is tried too, and the faster one used.
"""

from __future__ import annotations

import getpass
import socket
import time
from typing import Generator

from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last, Running, Unavailable
from probes.files import folders, free_space, page_cache, place, source_file
from probes.programs import fio
from probes.storage import Setting, foreign_io
from probes.system.platform import descriptor, os

TRIAL_SHARE = 0.2
"""Share of the time for each of the two trials that choose how to read."""
TRIAL_LEAST_SECONDS = 1.0
"""Shortest trial: a shorter one shows the start of the I/O rather than the way to read."""


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Measures sequential I/O in the folder; samples are payload read, or written and flushed.

    peer.path is the file to read. Errors: Unavailable (no room, no file to read), Refused (no such
    folder, no right to write in it), fio.FioFailed.
    """
    size_bytes = setting.size_bytes
    if setting.verb == "write":
        fd = source_file.open_new(setting.folder)
    else:
        path = peer.path or setting.path
        if not path:
            raise Unavailable("no source file of this run to read")
        try:
            fd = os.open(path, os.O_RDONLY)
        except PermissionError:
            who = f"{getpass.getuser()} on {socket.gethostname()}"
            raise Unavailable(f"{who} may not read the share's files there") from None
        size_bytes = min(size_bytes, os.fstat(fd).st_size)
    with descriptor(fd):
        if setting.verb == "write":
            size_bytes = free_space.fitting_size(size_bytes, setting.folder)
        size_bytes = size_bytes // fio.BLOCK_BYTES * fio.BLOCK_BYTES
        if size_bytes == 0:
            raise Unavailable("the file is smaller than one block of 1 MiB")
        run = _write if setting.verb == "write" else _read
        device = folders.folder_facts(setting.folder).device
        details = yield from run(setting, fd, size_bytes, device)
        moved_bytes = details.pop("moved_bytes")
        cache = details["cache"]
        if cache and setting.cache == "uncached" and cache["cached_ratio_before"] is None:
            # Another user's file: only the device's count shows where the bytes came from.
            cache["proven"] = (details["device_read_bytes"] or 0) >= moved_bytes
        details["place"] = place.disk_place(fd, flush=setting.verb == "write")
    return details


def _write(setting: Setting, fd: int, size_bytes: int, device: str | None) -> Running:
    # The file gets its size here: otherwise fio would unlink it and create it again.
    os.ftruncate(fd, size_bytes)
    job = fio.Job(fd, "write", size_bytes, setting.seconds, takes_direct(fd))
    details = yield from measure_job(job, device)
    return {**details, "cache": None}


def _read(setting: Setting, fd: int, size_bytes: int, device: str | None) -> Running:
    if setting.cache == "cached":
        page_cache.warm(fd, size_bytes)
        state = page_cache.state(fd, size_bytes)
        job = fio.Job(fd, "read", size_bytes, setting.seconds, False, looping=True)
        proven = page_cache.is_proven(state, cached=True)
        details = yield from measure_job(job, device)
        ratio = getattr(state, "cached_ratio", None)
        return {**details, "cache": cache_details(setting, ratio, proven)}
    seconds, direct, trials = setting.seconds, takes_direct(fd), {}
    trial_seconds = seconds * TRIAL_SHARE
    if direct and trial_seconds >= TRIAL_LEAST_SECONDS:
        trials = _trials(fd, size_bytes, trial_seconds)
        direct = trials["direct"] >= trials["buffered"]
        seconds -= 2 * trial_seconds
    page_cache.evict(fd)
    state = page_cache.state(fd, size_bytes)
    proven = page_cache.is_proven(state, cached=False)
    details = yield from measure_job(fio.Job(fd, "read", size_bytes, seconds, direct), device)
    if details["device_read_bytes"] == 0:
        # Unwritten blocks: nothing was read from the device, whatever the cache's state was.
        proven = False
    if trials:
        details["trials_bytes_per_second"] = trials
    ratio = getattr(state, "cached_ratio", None)
    return {**details, "cache": cache_details(setting, ratio, proven)}


def _trials(fd: int, size_bytes: int, seconds: float) -> dict[str, float]:
    """Measures both ways to read on the file's last half: the run itself begins at its start."""
    part_bytes = size_bytes // 4 // fio.BLOCK_BYTES * fio.BLOCK_BYTES
    rates = {}
    for number, (way, direct) in enumerate((("direct", True), ("buffered", False))):
        page_cache.evict(fd)
        offset = size_bytes - (number + 1) * part_bytes
        job = fio.Job(fd, "read", max(part_bytes, fio.BLOCK_BYTES), seconds, direct, offset)
        with fio.run_jobs([job], time.monotonic() + seconds + GRACE_SECONDS) as run:
            rates[way] = run.results()[0].bytes_per_second
    return rates


def cache_details(setting: Setting, ratio: float | None, proven: bool) -> Details:
    """Returns the details' cache: the request, whether it is proven, the ratio cached before."""
    return {
        "side": setting.side,
        "requested": setting.cache,
        "proven": proven,
        "cached_ratio_before": ratio,
    }


SAMPLE_SECONDS = 0.25
WINDOW_SECONDS = 0.5
WINDOW_BYTES = 8 * fio.BLOCK_BYTES
LEAST_WINDOWS = 3
GRACE_SECONDS = 6.0
"""Additional time for fio's start under a CPU quota, and for its last flush."""


def takes_direct(fd: int) -> bool:
    """Whether the file's file system supports direct I/O (O_DIRECT)."""
    try:
        os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | getattr(os, "O_DIRECT", 0)))
    except OSError:
        return False
    return hasattr(os, "O_DIRECT")


def run_job(job: fio.Job) -> Generator[Sample, None, tuple[fio.Result, list[Sample]]]:
    """Runs the job; yields its samples, and returns them too. Errors: fio.FioFailed."""
    with fio.run_jobs([job], time.monotonic() + job.seconds + GRACE_SECONDS) as run:
        run.wait_for_io()
        yield Sample(0.0, 0)
        inner = list(run.progress(SAMPLE_SECONDS))
        (result,) = run.results()
    # fio's own end is used: the kernel's counts include what is still in flight.
    elapsed, moved_bytes = result.elapsed_seconds, result.moved_bytes
    inner = [e for e in inner if e.elapsed_seconds < elapsed and e.moved_bytes <= moved_bytes]
    last = Last(elapsed, moved_bytes)
    yield from (*inner, last)
    return result, [Sample(0.0, 0), *inner, last]


def measure_job(job: fio.Job, device: str | None) -> Running:
    """Runs the job; the window opens with its first I/O and closes with its end.

    device: the block device below, by its kernel name. Returns direct, latency_seconds, zones
    (one, the whole), moved_bytes, the device's counts, and window_rates_bytes_per_second where the
    run was long enough. Errors: fio.FioFailed.
    """
    start = foreign_io.look(device)
    result, samples = yield from run_job(job)
    name = "written_bytes" if job.direction == "write" else "read_bytes"
    return {
        "direct": job.direct,
        "latency_seconds": {
            "median": result.latency_median_seconds,
            "p99": result.latency_p99_seconds,
        },
        "zones": [
            {"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": result.bytes_per_second}
        ],
        "moved_bytes": result.moved_bytes,
        **foreign_io.counts(device, start, foreign_io.look(device), **{name: result.moved_bytes}),
        **window_details(samples),
    }


def window_details(samples: list[Sample]) -> Details:
    """Returns window_rates_bytes_per_second, where the run was long enough; pure."""
    windows = window_rates(samples)
    return {"window_rates_bytes_per_second": windows} if len(windows) >= LEAST_WINDOWS else {}


def window_rates(samples: list[Sample]) -> list[float]:
    """Returns the rates of consecutive windows of half a second and more, bytes per second; pure.

    A window of a slow device stays open until WINDOW_BYTES came: it counts whole blocks.
    """
    rates = []
    opened = samples[0]
    for each in samples[1:]:
        elapsed = each.elapsed_seconds - opened.elapsed_seconds
        moved_bytes = each.moved_bytes - opened.moved_bytes
        if elapsed >= WINDOW_SECONDS and moved_bytes >= WINDOW_BYTES:
            rates.append(moved_bytes / elapsed)
            opened = each
    return rates
