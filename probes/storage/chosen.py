"""The disk as somebody chose to use it: block size, depth and pattern, or an fio job file.

Reads go to the run's own file or, opened for reading, to a device; writes to fresh nameless files.
Unlike the other patterns nothing is fitted to the disk at hand: it is what was asked for.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import List, NamedTuple, Sequence

from probes.drivers import fio, fio_jobs
from probes.drivers.fio_jobs import UserJob
from probes.host import free_space, page_cache, source_file
from probes.host.system import os
from probes.records import Details, Endpoint, Sample
from probes.stage import Last, Running, Unavailable
from probes.storage import Setting, zones
from probes.storage.sequential import GRACE_SECONDS, SAMPLE_SECONDS, takes_direct

BLOCK_BYTES = {"sequential": fio.BLOCK_BYTES, "random": 4096}
FILL_SECONDS = 20.0
"""To write the files that a job both reads and writes."""


class _Ends(NamedTuple):
    """What jobs work on."""

    fd: int
    size_bytes: int
    device: bool


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Carries out the setting's job file, or the one job that its pattern makes.

    The samples are what all jobs moved; fio's own count closes the window. Returns jobs (each with
    its rate, requests a second and latency), zones (the whole), direct and size_bytes. Errors:
    ValueError (a job that is not allowed; one that would write to a device), Unavailable (no room,
    no file to read, no such device), fio.FioFailed.
    """
    wanted = fio_jobs.read(setting.job) if setting.job else [_of_pattern(setting)]
    if setting.device and any(each.writes for each in wanted):
        raise ValueError("a block device is opened for reading only")
    with ExitStack() as stack:
        source = _source(setting, peer, wanted, stack)
        jobs, owners = _jobs(setting, wanted, source, stack)
        seconds = fio_jobs.total_seconds(wanted, setting.seconds)
        with fio.running(jobs, time.monotonic() + seconds + GRACE_SECONDS) as run:
            run.wait_for_io()
            yield Sample(0.0, 0)
            inner = list(run.progress(SAMPLE_SECONDS)) if len(jobs) == 1 else []
            results = run.results()
    elapsed = max(_ends_at(jobs, results))
    moved = sum(each.moved_bytes for each in results)
    yield from (e for e in inner if e.elapsed_seconds < elapsed and e.moved_bytes <= moved)
    yield Last(elapsed, moved)
    return {
        "jobs": [
            _row(each, [found for owner, found in zip(owners, results) if owner is each])
            for each in wanted
        ],
        "direct": jobs[0].direct,
        "size_bytes": max(each.size_bytes for each in jobs),
        "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": moved / elapsed}],
    }


def _of_pattern(setting: Setting) -> UserJob:
    """What --pattern, --block-size and --depth come to, as a job of fio's."""
    block = fio_jobs.check_block(setting.block_bytes or BLOCK_BYTES[setting.pattern])
    verb = f"rand{setting.verb}" if setting.pattern == "random" else setting.verb
    depth = setting.depth or fio.DEPTH
    options = (f"bs={block}", f"iodepth={depth}", "ioengine=libaio", "direct=1", "norandommap=1")
    more = ("end_fsync=1", "refill_buffers=1") if setting.verb == "write" else ()
    return UserJob(verb, verb, seconds=setting.seconds, looping=True, options=(*options, *more))


def _source(
    setting: Setting, peer: Endpoint, wanted: Sequence[UserJob], stack: ExitStack
) -> _Ends | None:
    """What is only read; None: nothing is."""
    if setting.device:
        device = stack.enter_context(zones.opened(setting.device))
        return _Ends(device.fd, device.size_bytes, True)
    if all(each.writes for each in wanted):
        return None
    path = peer.path or setting.path
    if not path:
        raise Unavailable("no source file of this run to read")
    fd = os.open(path, os.O_RDONLY)
    stack.callback(os.close, fd)
    size_bytes = min(setting.size_bytes, os.fstat(fd).st_size)
    page_cache.evict(fd)
    return _Ends(fd, size_bytes, False)


def _jobs(
    setting: Setting, wanted: Sequence[UserJob], source: _Ends | None, stack: ExitStack
) -> tuple[List[fio.Job], List[UserJob]]:
    """fio's jobs, and of which section each is."""
    made: List[fio.Job] = []
    owners: List[UserJob] = []
    writers = sum(each.writes for each in wanted)
    for each in wanted:
        ends = _fresh(setting, each, writers, stack) if each.writes else source
        assert ends is not None
        size = min(each.size_bytes or ends.size_bytes, ends.size_bytes) // 4096 * 4096
        if size == 0:
            raise Unavailable("the file is smaller than one block of 4 KiB")
        direct = "direct=1" in each.options
        if direct and not ends.device and not takes_direct(ends.fd):
            raise Unavailable("this file system has no direct I/O; use another --folder")
        job = fio.Job(
            ends.fd,
            each.verb,
            size,
            min(each.seconds or setting.seconds, setting.seconds),
            direct,
            looping=each.looping,
            options=_options(each, ends),
            depth=_number(each, "iodepth"),
            together=not each.waits,
        )
        for copy in range(each.copies):
            made.append(replace(job, together=True) if copy else job)
            owners.append(each)
    return made, owners


def _fresh(setting: Setting, job: UserJob, writers: int, stack: ExitStack) -> _Ends:
    """A file of its own for a job that writes; what it reads of that is there."""
    fd = source_file.open_new(setting.folder)
    stack.callback(os.close, fd)
    # What the setting says is what an agent has counted: all files together have no more.
    most = setting.size_bytes // writers
    size = free_space.fitting(min(job.size_bytes or most, most), setting.folder, writers)
    if job.verb in ("rw", "randrw"):
        until = time.monotonic() + FILL_SECONDS / writers
        size = source_file.fill(fd, size, bytes.fromhex(setting.seed), until)
        page_cache.evict(fd)
    else:
        # a file of the right size: fio would unlink it to lay it out anew
        os.ftruncate(fd, size)
    return _Ends(fd, size, False)


def _options(job: UserJob, ends: _Ends) -> tuple[str, ...]:
    """What fio(1) takes for granted is said: our own jobs have it otherwise."""
    usual = {"ioengine": "psync", "invalidate": "0" if ends.device else "1"}
    if job.writes:
        usual["fallocate"] = "none"
    given = {each.partition("=")[0] for each in job.options}
    return (*job.options, *(f"{key}={word}" for key, word in usual.items() if key not in given))


def _number(job: UserJob, key: str) -> int:
    found = [each.partition("=")[2] for each in job.options if each.startswith(f"{key}=")]
    return int(found[-1]) if found and found[-1].isdigit() else 1


def _ends_at(jobs: Sequence[fio.Job], results: Sequence[fio.Result]) -> List[float]:
    """When each job ended, laid end to end where it waited for those before it."""
    found: List[float] = []
    began = 0.0
    for job, result in zip(jobs, results):
        if not job.together:
            began = max(found, default=0.0)
        found.append(began + result.elapsed_seconds)
    return found


def _row(job: UserJob, results: Sequence[fio.Result]) -> Details:
    """A section's figures, of all its clones."""
    seconds = max(each.elapsed_seconds for each in results)
    return {
        "name": job.name,
        "verb": job.verb,
        "bytes_per_second": sum(each.moved_bytes for each in results) / seconds,
        "ios_per_second": sum(each.ios for each in results) / seconds,
        "latency_seconds": {
            "median": results[0].latency_median_seconds,
            "p99": results[0].latency_p99_seconds,
        },
    }
