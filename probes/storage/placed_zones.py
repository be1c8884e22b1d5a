"""Zones of a disk whose device is not accessible: files of ours, spread over free space.

probes/files/spread.py places them; their extents show where each lies. Where the file system
reports no extents, or they mean nothing, there is one file, and the reason.
"""

from __future__ import annotations

import contextlib
import random
import socket
import statistics
from typing import Generator, NamedTuple, Sequence, Tuple

from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Running, Unavailable
from probes.files import (
    folders,
    free_space,
    layers,
    page_cache,
    payload,
    place,
    source_file,
    spread,
)
from probes.programs import fio
from probes.storage import Setting, curve, foreign_io
from probes.storage.curve import subtract_seek
from probes.storage.sequential import cache_details, takes_direct
from probes.system.platform import os

LEAST_BLOCKS = 4
"""Blocks of a file: fewer show only the start of the I/O."""
MOST_OF_SHARE = 0.5
"""Part of its share of the free space that a file takes at most, so that files lie apart."""
MOST_SPREAD = 4.0
"""Largest span of a file's pieces as a multiple of its size: wider ones show no place."""
ELSEWHERE = ("network", "fuse", "memory")
"""Kinds of layers without a known place on a disk."""
SCATTERED = ("thin", "vdo")
"""Volumes that allocate blocks as they are written."""


class PlacedFile(NamedTuple):
    """A file that was written, and its place on the disk."""

    fd: int
    place: Details | None
    """Its place; None: unknown, it represents the whole disk."""
    job: fio.Job
    result: fio.Result

    @property
    def centre_ratio(self) -> float:
        """Place of its middle, as a ratio of the disk."""
        return 0.0 if self.place is None else float(self.place["centre_ratio"])


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Measures each zone's rate of flushed writes, or of proven uncached reads; samples as zones.

    Details as of zones, and where there is a single place one_place, the reason: ssd, network,
    fuse, memory, untold (the file system or the volume reports none), other (no ext4, no xfs),
    discard (a mount option), full (a tenth has to stay free). Errors: Unavailable (no room),
    Refused (no such folder, no right to write in it), fio.FioFailed.
    """
    device = folders.folder_facts(setting.folder).device
    with contextlib.ExitStack() as stack:
        fds: list[int] = []

        def opened() -> int:
            fds.append(source_file.open_new(setting.folder))
            stack.callback(os.close, fds[-1])
            return fds[-1]

        why, filesystem = _one_place(opened(), setting, device)
        if not why and spread.share_bytes(fds[0], setting.zones) < LEAST_BLOCKS * fio.BLOCK_BYTES:
            why = "full"
        for _ in range(0 if why else setting.zones - 1):
            opened()
        size = _size_bytes(setting, fds)
        placed_fds = fds if why else spread.across(fds, size, walks=filesystem == "ext4")
        if not placed_fds:
            raise Unavailable(_no_room(setting))
        run = _write if setting.verb == "write" else _read
        details = yield from run(setting, placed_fds, size, device)
        return {**details, "one_place": why} if why else details


def _size_bytes(setting: Setting, fds: Sequence[int]) -> int:
    """Returns the size of each file, whole blocks. Errors: Unavailable where it is too small."""
    size = free_space.fitting_size(setting.size_bytes, setting.folder)
    if len(fds) > 1:
        size //= setting.zones
        smallest = LEAST_BLOCKS * fio.BLOCK_BYTES
        share = spread.share_bytes(fds[0], len(fds))
        size = min(size, max(smallest, int(share * MOST_OF_SHARE)))
    size = size // fio.BLOCK_BYTES * fio.BLOCK_BYTES
    if size < LEAST_BLOCKS * fio.BLOCK_BYTES:
        raise Unavailable(_no_room(setting))
    return size


def _no_room(setting: Setting) -> str:
    return (
        f"{setting.folder} on {socket.gethostname()}: {setting.zones} zones need a file of "
        f"{LEAST_BLOCKS} MiB each, and --size or the free space allows less"
    )


def _one_place(fd: int, setting: Setting, device: str | None) -> tuple[str, str]:
    """Returns why the places of files mean nothing (empty: they do), and the file system.

    One block is written to find out.
    """
    below = layers.layers(setting.folder)
    top = below[0] if below else {}
    kind, filesystem = top.get("kind"), str(top.get("filesystem"))
    if kind in ELSEWHERE:
        return str(kind), filesystem
    if device is not None and folders.rotational_of(device) is False:
        return "ssd", filesystem
    ring = payload.make_ring(bytes.fromhex(setting.seed) or b"zones")
    os.pwrite(fd, payload.block(ring, 0, fio.BLOCK_BYTES), 0)
    extents = place.disk_place(fd, flush=True)
    os.ftruncate(fd, 0)
    thin = any(each.get("target") in SCATTERED for each in below)
    if extents is None or not extents["located"] or thin:
        return "untold", filesystem
    if filesystem not in spread.FILESYSTEMS:
        return "other", filesystem
    # The reserved space would be discarded while the disk is measured.
    discards = "discard" in str(top.get("mount_options")).split(",")
    return "discard" if discards else "", filesystem


Look = Tuple[fio.Job, fio.Result]


def _write(setting: Setting, fds: Sequence[int], size: int, device: str | None) -> Running:
    jobs = _writes(setting, fds, size)
    results, start, end = yield from curve.run_jobs(jobs, device)
    files = _locate(jobs, results)
    looks = _looks(files, [(file.job, file.result) for file in files])
    # The drive's cache takes the first blocks during the seek: nothing is subtracted.
    rows = yield from _rows(files, looks, None)
    written_bytes = sum(result.moved_bytes for result in results)
    return {
        **foreign_io.counts(device, start, end, written_bytes=written_bytes),
        **curve.details(rows, None),
        **_common(files, jobs[0].direct),
        "cache": None,
    }


def _read(setting: Setting, fds: Sequence[int], size: int, device: str | None) -> Running:
    writes = _writes(setting, fds, size)
    with fio.run_jobs(writes, curve.deadline(writes)) as run:
        files = _locate(writes, run.results())
    direct = takes_direct(files[0].fd)
    # Each file was written from its start on; the rest of it is a hole.
    sizes = [file.result.moved_bytes // fio.BLOCK_BYTES * fio.BLOCK_BYTES for file in files]
    cold = [_evict(file.fd, size) for file, size in zip(files, sizes)]
    small = curve.measure_random(
        [file.fd for file in files], min(sizes), direct, setting.seconds * curve.RANDOM_SHARE
    )
    if not direct:
        cold = [_evict(file.fd, size) for file, size in zip(files, sizes)]
    _, seconds = curve.timetable(setting.seconds * (1 - curve.RANDOM_SHARE), len(files), limit=1)
    jobs = [fio.Job(file.fd, "read", size, seconds, direct) for file, size in zip(files, sizes)]
    results, start, end = yield from curve.run_jobs(jobs, device)
    looks = _looks(files, list(zip(jobs, results)))
    rows = yield from _rows(files, looks, small.median_seconds)
    moved_bytes = sum(result.moved_bytes for result in results)
    counted = foreign_io.counts(device, start, end, moved_bytes)
    reached = counted["device_read_bytes"] is None or counted["device_read_bytes"] >= moved_bytes
    return {
        **counted,
        **curve.details(rows, small),
        **_common(files, direct),
        "cache": cache_details(
            setting,
            max((one.cached_ratio for one in cold if one is not None), default=None),
            reached and all(page_cache.is_proven(one, cached=False) for one in cold),
        ),
    }


def _looks(files: Sequence[PlacedFile], once: Sequence[Look]) -> list[list[Look]]:
    """Returns each file's jobs and results, with two more reads of one that is doubted."""
    looks = [[each] for each in once]
    if not once[0][0].direct:
        return looks
    places, rates = [file.centre_ratio for file in files], [one.bytes_per_second for _, one in once]
    again = [looks[number] for number in curve.disagreeing_zones(places, rates) * curve.AGAIN]
    jobs = [each[0][0] for each in again]
    if jobs:
        with fio.run_jobs(jobs, curve.deadline(jobs)) as run:
            for each, job, result in zip(again, jobs, run.results()):
                each.append((job, result))
    return looks


def _writes(setting: Setting, fds: Sequence[int], size: int) -> list[fio.Job]:
    """Returns one job a file, in random order, so that a drifting rate makes no curve."""
    _, each_seconds = curve.timetable(setting.seconds * len(fds) / setting.zones, len(fds), limit=1)
    for fd in fds:
        os.ftruncate(fd, size)  # its final size: otherwise fio would create it again
    direct = takes_direct(fds[0])
    jobs = [fio.Job(fd, "write", size, each_seconds, direct) for fd in fds]
    random.Random(setting.seed).shuffle(jobs)
    return jobs


def _locate(jobs: Sequence[fio.Job], results: Sequence[fio.Result]) -> list[PlacedFile]:
    """Returns the written files from the outer edge on; a single one may have no known place."""
    files = []
    for job, result in zip(jobs, results):
        extents = place.disk_place(job.fd, flush=True)
        location = extents if extents is not None and extents["located"] else None
        if result.moved_bytes >= fio.BLOCK_BYTES and (location or len(jobs) == 1):
            files.append(PlacedFile(job.fd, location, job, result))
    if not files:
        raise Unavailable("none of the files that were written has a known location on the disk")
    compact = [file for file in files if file.place and _spread_ratio(file.place) < MOST_SPREAD]
    return sorted(compact or files, key=lambda file: file.centre_ratio)


def _spread_ratio(extents: Details) -> float:
    """Returns the span of a file's pieces as a multiple of its size."""
    span = float(extents["to_ratio"] - extents["from_ratio"]) * float(extents["device_bytes"])
    return span / float(extents["bytes"])


def _rows(
    files: Sequence[PlacedFile], looks: Sequence[Sequence[Look]], jump_seconds: float | None
) -> Generator[Sample, None, list[Details]]:
    """Yields samples; returns a row for each place, where adjacent files are one."""
    each = [[subtract_seek(job, result, jump_seconds) for job, result in one] for one in looks]
    yield from curve.samples([one for parts in each for one in parts])
    groups: list[list[int]] = []
    for number, file in enumerate(files):
        current, last = file.place, files[groups[-1][-1]].place if groups else None
        widest_gap = current and last and MOST_OF_SHARE * (last["to_ratio"] - last["from_ratio"])
        if current and last and current["from_ratio"] - last["to_ratio"] < widest_gap:
            groups[-1].append(number)
        else:
            groups.append([number])
    rows = []
    for numbers in groups:
        places = [extents for extents in (files[number].place for number in numbers) if extents]
        results = [result for number in numbers for _, result in looks[number]]
        start = min((one["from_ratio"] for one in places), default=0.0)
        row: Details = {
            "from_ratio": start,
            "to_ratio": max((one["to_ratio"] for one in places), default=1.0),
            "offset_bytes": round(start * places[0]["device_bytes"]) if places else None,
            "files": len(numbers),
            "fragments": max((one["fragments"] for one in places), default=None),
            **curve.row([one for number in numbers for one in each[number]], results),
        }
        acknowledged = [one.acknowledged_bytes_per_second for one in results]
        known_rates = [one for one in acknowledged if one is not None]
        if looks[numbers[0]][0][0].direction == "write" and known_rates:
            row["acknowledged_bytes_per_second"] = statistics.median(known_rates)
        rows.append(row)
    return rows


def _common(files: Sequence[PlacedFile], direct: bool) -> Details:
    location = files[0].place
    where = {} if location is None else {key: location[key] for key in ("device", "device_bytes")}
    return {"direct": direct, "located": location is not None, **where}


def _evict(fd: int, size: int) -> page_cache.CacheState | None:
    page_cache.evict(fd)
    return page_cache.state(fd, size)
