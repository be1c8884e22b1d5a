"""The disk with the block size, depth and pattern that the user set.

Reads go to the run's own file or, opened for reading, to a device; writes to a fresh nameless file.
Unlike with the other patterns nothing is fitted to the disk at hand.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

from probes.core.records import Details, Endpoint
from probes.core.stage import Running, Unavailable
from probes.files import free_space, page_cache, source_file
from probes.programs import fio, fio_report
from probes.storage import Setting, sequential, zones
from probes.storage.sequential import takes_direct
from probes.system.platform import os

BLOCK_BYTES = {"sequential": fio.BLOCK_BYTES, "random": 4096}


class _End(NamedTuple):
    """The open file or device to read or write."""

    fd: int
    size_bytes: int
    device: bool


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Reads or writes as the setting says; fio's own count closes the window.

    Returns jobs (one, with its rate, requests a second and latency), zones (one), direct and
    size_bytes. Errors: ValueError (no such block; a device would be written), Unavailable (no room,
    no file to read, no such device), fio.FioFailed.
    """
    if setting.device and setting.verb == "write":
        raise ValueError("a block device is opened for reading only")
    with ExitStack() as stack:
        job = _job(setting, (_fresh if setting.verb == "write" else _source)(setting, peer, stack))
        result, _ = yield from sequential.run_job(job)
    rate = result.bytes_per_second
    return {
        "jobs": [_row(job, result)],
        "direct": job.direct,
        "size_bytes": job.size_bytes,
        "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": rate}],
    }


def _job(setting: Setting, end: _End) -> fio.Job:
    size = end.size_bytes // 4096 * 4096
    if size == 0:
        raise Unavailable("the file is smaller than one block of 4 KiB")
    if not end.device and not takes_direct(end.fd):
        raise Unavailable("this file system has no direct I/O; use another --folder")
    return fio.Job(
        end.fd,
        f"rand{setting.verb}" if setting.pattern == "random" else setting.verb,
        size,
        setting.seconds,
        direct=True,
        looping=True,
        block_bytes=fio_report.check_block(setting.block_bytes or BLOCK_BYTES[setting.pattern]),
        depth=setting.depth or fio.DEPTH,
    )


def _source(setting: Setting, peer: Endpoint, stack: ExitStack) -> _End:
    if setting.device:
        device = stack.enter_context(zones.open_device(setting.device))
        return _End(device.fd, device.size_bytes, True)
    path = peer.path or setting.path
    if not path:
        raise Unavailable("no source file of this run to read")
    fd = os.open(path, os.O_RDONLY)
    stack.callback(os.close, fd)
    size_bytes = min(setting.size_bytes, os.fstat(fd).st_size)
    page_cache.evict(fd)
    return _End(fd, size_bytes, False)


def _fresh(setting: Setting, peer: Endpoint, stack: ExitStack) -> _End:
    fd = source_file.open_new(setting.folder)
    stack.callback(os.close, fd)
    size = free_space.fitting_size(setting.size_bytes, setting.folder)
    # The file gets its size here: otherwise fio would unlink it and create it again.
    os.ftruncate(fd, size)
    return _End(fd, size, False)


def _row(job: fio.Job, result: fio.Result) -> Details:
    return {
        "name": job.verb,
        "verb": job.verb,
        "bytes_per_second": result.bytes_per_second,
        "ios_per_second": result.ios / result.elapsed_seconds,
        "latency_seconds": {
            "median": result.latency_median_seconds,
            "p99": result.latency_p99_seconds,
        },
    }
