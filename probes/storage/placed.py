"""Zones of a disk that may not be read itself: files of ours in its folder, placed and located.

A file system puts them where it likes, mostly side by side: ext4 continues where the last large
file ended (mballoc.c, stream allocation), XFS stays in the folder's allocation group. Where each
lies is read from its extents, and those that lie in the same zone are its passes. So there are
fewer zones than were asked for, often a single one.
"""

from __future__ import annotations

import contextlib
import socket
from typing import NamedTuple, Sequence

from probes.core.records import Details, Endpoint
from probes.core.stage import Running, Unavailable
from probes.files import folders, free_space, page_cache, payload, place, source_file
from probes.programs import fio
from probes.storage import Setting, curve, others
from probes.storage.curve import Settled, settled
from probes.storage.sequential import cache_details, takes_direct
from probes.system.platform import os

LEAST_BLOCKS = 4
"""Of a file: less is the disk's first moment alone."""


class Placed(NamedTuple):
    """A file of ours, written, and where it lies."""

    fd: int
    place: Details
    job: fio.Job
    """That wrote it."""
    result: fio.Result


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Each zone's rate of writing, flushed, or of reading proven uncached; samples as of zones.

    Errors: Unavailable (no room; the file system tells no places), Refused (no such folder, no
    right to write in it), fio.FioFailed.
    """
    device = folders.folder_facts(setting.folder).device
    size = free_space.fitting(setting.size_bytes, setting.folder) // setting.zones
    size = size // fio.BLOCK_BYTES * fio.BLOCK_BYTES
    if size < LEAST_BLOCKS * fio.BLOCK_BYTES:
        raise Unavailable(
            f"{setting.folder} on {socket.gethostname()}: {setting.zones} zones need a file "
            f"of {LEAST_BLOCKS} MiB each, and --size or the free space allows less"
        )
    with contextlib.ExitStack() as stack:
        fds = []
        for _ in range(setting.zones):
            fds.append(source_file.open_new(setting.folder))
            stack.callback(os.close, fds[-1])
        _refuse_unlocated(fds[0], setting)
        if setting.verb == "write":
            return (yield from _write(setting, fds, size, device))
        return (yield from _read(setting, fds, size, device))


def _write(setting: Setting, fds: Sequence[int], size: int, device: str | None) -> Running:
    jobs = _writes(setting, fds, size, setting.seconds)
    results, before, after = yield from curve.measured(jobs, device)
    files = _located(jobs, results)
    # the drive takes the first blocks while its head still jumps: nothing is taken off
    each = [settled(file.job, file.result, None) for file in files]
    yield from curve.samples(each)
    written_bytes = sum(result.moved_bytes for result in results)
    rows = _rows(files, each, [file.result for file in files], setting.zones)
    return {
        **others.around(device, before, after, written_bytes=written_bytes),
        **curve.details(rows, None),
        **_common(files, jobs[0].direct),
        "cache": None,
    }


def _read(setting: Setting, fds: Sequence[int], size: int, device: str | None) -> Running:
    writes = _writes(setting, fds, size, setting.seconds)
    with fio.running(writes, curve.deadline(writes)) as run:
        files = _located(writes, run.results())
    direct = takes_direct(files[0].fd)
    # what was moved was written from the start on; behind it a file has a hole
    sizes = [file.result.moved_bytes // fio.BLOCK_BYTES * fio.BLOCK_BYTES for file in files]
    cold = [_evicted(file.fd, size) for file, size in zip(files, sizes)]
    small = curve.measure_random(
        [file.fd for file in files], min(sizes), direct, setting.seconds * curve.RANDOM_SHARE
    )
    if not direct:
        cold = [_evicted(file.fd, size) for file, size in zip(files, sizes)]
    _, seconds = curve.timetable(setting.seconds * (1 - curve.RANDOM_SHARE), len(files), most=1)
    jobs = [fio.Job(file.fd, "read", size, seconds, direct) for file, size in zip(files, sizes)]
    results, before, after = yield from curve.measured(jobs, device)
    each = [settled(job, result, small.median_seconds) for job, result in zip(jobs, results)]
    yield from curve.samples(each)
    moved_bytes = sum(result.moved_bytes for result in results)
    counted = others.around(device, before, after, moved_bytes)
    reached = counted["device_read_bytes"] is None or counted["device_read_bytes"] >= moved_bytes
    rows = _rows(files, each, results, setting.zones)
    return {
        **counted,
        **curve.details(rows, small),
        **_common(files, direct),
        "cache": cache_details(
            setting,
            max((one.cached_ratio for one in cold if one is not None), default=None),
            reached and all(page_cache.proven(one, cached=False) for one in cold),
        ),
    }


def _writes(setting: Setting, fds: Sequence[int], size: int, seconds: float) -> list[fio.Job]:
    """One job a file; each is made as long as it will be: fio would lay it out anew."""
    _, each_seconds = curve.timetable(seconds, len(fds), most=1)
    for fd in fds:
        os.ftruncate(fd, size)
    direct = takes_direct(fds[0])
    return [fio.Job(fd, "write", size, each_seconds, direct) for fd in fds]


def _refuse_unlocated(fd: int, setting: Setting) -> None:
    """Errors: Unavailable where the file system tells no places; one block shows it."""
    ring = payload.ring(bytes.fromhex(setting.seed) or b"zones")
    os.pwrite(fd, payload.block(ring, 0, fio.BLOCK_BYTES), 0)
    told = place.place(fd, flush=True)
    if told is None or not told["located"]:
        raise Unavailable(
            f"the file system of {setting.folder} on {socket.gethostname()} does not report "
            "the location of files on disk, so its zones cannot be measured; use --device"
        )


def _located(jobs: Sequence[fio.Job], results: Sequence[fio.Result]) -> list[Placed]:
    """The written files that have a place, from the outer edge on."""
    found = []
    for job, result in zip(jobs, results):
        told = place.place(job.fd, flush=True)
        if told is not None and told["located"] and result.moved_bytes >= fio.BLOCK_BYTES:
            found.append(Placed(job.fd, told, job, result))
    if not found:
        raise Unavailable("none of the files that were written has a known location on the disk")
    return sorted(found, key=lambda file: float(file.place["centre_ratio"]))


def _rows(
    files: Sequence[Placed], each: Sequence[Settled], results: Sequence[fio.Result], zones: int
) -> list[Details]:
    """A row for each zone that has files."""
    found: dict[int, list[int]] = {}
    for number, file in enumerate(files):
        zone = min(int(file.place["centre_ratio"] * zones), zones - 1)
        found.setdefault(zone, []).append(number)
    rows = []
    for numbers in found.values():
        places = [files[number].place for number in numbers]
        start = min(one["from_ratio"] for one in places)
        rows.append(
            {
                "from_ratio": start,
                "to_ratio": max(one["to_ratio"] for one in places),
                "offset_bytes": round(start * places[0]["device_bytes"]),
                "files": len(numbers),
                "fragments": max(one["fragments"] for one in places),
                **curve.row(
                    [each[number] for number in numbers], [results[number] for number in numbers]
                ),
            }
        )
    return rows


def _common(files: Sequence[Placed], direct: bool) -> Details:
    return {
        "direct": direct,
        "located": True,
        "device": files[0].place["device"],
        "device_bytes": files[0].place["device_bytes"],
    }


def _evicted(fd: int, size: int) -> page_cache.CacheState | None:
    page_cache.evict(fd)
    return page_cache.state(fd, size)
