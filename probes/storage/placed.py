"""Zones of a disk that may not be read or written itself: files of ours, spread over free space.

probes/files/spread.py places them; where each lies is read from its extents. Where the file system
tells no places, or a place says nothing, there is one file, and a word why.
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
from probes.storage import Setting, curve, others
from probes.storage.curve import settled
from probes.storage.sequential import cache_details, takes_direct
from probes.system.platform import os

LEAST_BLOCKS = 4
"""Of a file: less is the disk's first moment alone."""
MOST_OF_SHARE = 0.5
"""A file takes so much of its share of the room, so that there is something between two."""
MOST_SPREAD = 4.0
"""Times its size; a file in pieces that lie farther apart tells of no place."""
ELSEWHERE = ("network", "fuse", "memory")
"""Kinds of layers whose places are not known here."""
SCATTERED = ("thin", "vdo")
"""Volumes that give out blocks as they are written."""


class Placed(NamedTuple):
    """A file of ours, written, and where it lies."""

    fd: int
    place: Details | None
    """None: not known, it stands for the whole disk."""
    job: fio.Job
    """That wrote it."""
    result: fio.Result

    @property
    def centre_ratio(self) -> float:
        """Where its middle lies."""
        return 0.0 if self.place is None else float(self.place["centre_ratio"])


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Each zone's rate of writing, flushed, or of reading proven uncached; samples as of zones.

    Details as of zones, and where there is one place one_place, the reason: ssd, network, fuse,
    memory, untold (the file system or the volume tells none), other (no ext4, no xfs), discard (a
    mount option), full (a tenth has to stay free). Errors: Unavailable
    (no room), Refused (no such folder, no right to write in it), fio.FioFailed.
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
        found = fds if why else spread.across(fds, size, walks=filesystem == "ext4")
        if not found:
            raise Unavailable(_no_room(setting))
        measured = _write if setting.verb == "write" else _read
        details = yield from measured(setting, found, size, device)
        return {**details, "one_place": why} if why else details


def _size_bytes(setting: Setting, fds: Sequence[int]) -> int:
    """Of each file, whole blocks. Errors: Unavailable where that is too little."""
    size = free_space.fitting(setting.size_bytes, setting.folder)
    if len(fds) > 1:
        size //= setting.zones
        least = LEAST_BLOCKS * fio.BLOCK_BYTES
        share = spread.share_bytes(fds[0], len(fds))
        size = min(size, max(least, int(share * MOST_OF_SHARE)))
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
    """Why the places of files say nothing (empty: they do), and the file system.

    One block of ours shows it.
    """
    below = layers.layers(setting.folder)
    top = below[0] if below else {}
    kind, filesystem = top.get("kind"), str(top.get("filesystem"))
    if kind in ELSEWHERE:
        return str(kind), filesystem
    if device is not None and folders.rotational_of(device) is False:
        return "ssd", filesystem
    ring = payload.ring(bytes.fromhex(setting.seed) or b"zones")
    os.pwrite(fd, payload.block(ring, 0, fio.BLOCK_BYTES), 0)
    told = place.place(fd, flush=True)
    os.ftruncate(fd, 0)
    thin = any(each.get("target") in SCATTERED for each in below)
    if told is None or not told["located"] or thin:
        return "untold", filesystem
    if filesystem not in spread.FILESYSTEMS:
        return "other", filesystem
    # what was reserved would be discarded while the disk is measured
    discards = "discard" in str(top.get("mount_options")).split(",")
    return "discard" if discards else "", filesystem


Look = Tuple[fio.Job, fio.Result]


def _write(setting: Setting, fds: Sequence[int], size: int, device: str | None) -> Running:
    jobs = _writes(setting, fds, size)
    results, before, after = yield from curve.measured(jobs, device)
    files = _located(jobs, results)
    looks = _looks(files, [(file.job, file.result) for file in files])
    # the drive takes the first blocks while its head still jumps: nothing is taken off
    rows = yield from _rows(files, looks, None)
    written_bytes = sum(result.moved_bytes for result in results)
    return {
        **others.around(device, before, after, written_bytes=written_bytes),
        **curve.details(rows, None),
        **_common(files, jobs[0].direct),
        "cache": None,
    }


def _read(setting: Setting, fds: Sequence[int], size: int, device: str | None) -> Running:
    writes = _writes(setting, fds, size)
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
    looks = _looks(files, list(zip(jobs, results)))
    rows = yield from _rows(files, looks, small.median_seconds)
    moved_bytes = sum(result.moved_bytes for result in results)
    counted = others.around(device, before, after, moved_bytes)
    reached = counted["device_read_bytes"] is None or counted["device_read_bytes"] >= moved_bytes
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


def _looks(files: Sequence[Placed], once: Sequence[Look]) -> list[list[Look]]:
    """Each file's looks: where one disagrees with its neighbours, past the page cache, two more."""
    looks = [[each] for each in once]
    if not once[0][0].direct:
        return looks
    places, rates = [file.centre_ratio for file in files], [one.bytes_per_second for _, one in once]
    again = [looks[number] for number in curve.disagreeing(places, rates) * curve.AGAIN]
    more = [each[0][0] for each in again]
    if more:
        with fio.running(more, curve.deadline(more)) as run:
            for each, job, result in zip(again, more, run.results()):
                each.append((job, result))
    return looks


def _writes(setting: Setting, fds: Sequence[int], size: int) -> list[fio.Job]:
    """One job a file, in a drawn order, so that a rate that drifts makes no curve."""
    _, each_seconds = curve.timetable(setting.seconds * len(fds) / setting.zones, len(fds), most=1)
    for fd in fds:
        os.ftruncate(fd, size)  # as long as it will be: fio would lay it out anew
    direct = takes_direct(fds[0])
    jobs = [fio.Job(fd, "write", size, each_seconds, direct) for fd in fds]
    random.Random(setting.seed).shuffle(jobs)
    return jobs


def _located(jobs: Sequence[fio.Job], results: Sequence[fio.Result]) -> list[Placed]:
    """The written files from the outer edge on; a single one may have no known place."""
    found = []
    for job, result in zip(jobs, results):
        told = place.place(job.fd, flush=True)
        known = told if told is not None and told["located"] else None
        if result.moved_bytes >= fio.BLOCK_BYTES and (known or len(jobs) == 1):
            found.append(Placed(job.fd, known, job, result))
    if not found:
        raise Unavailable("none of the files that were written has a known location on the disk")
    compact = [file for file in found if file.place and _spread_ratio(file.place) < MOST_SPREAD]
    return sorted(compact or found, key=lambda file: file.centre_ratio)


def _spread_ratio(told: Details) -> float:
    """How far a file's pieces lie apart, as a multiple of its size."""
    span = float(told["to_ratio"] - told["from_ratio"]) * float(told["device_bytes"])
    return span / float(told["bytes"])


def _rows(
    files: Sequence[Placed], looks: Sequence[Sequence[Look]], jump_seconds: float | None
) -> Generator[Sample, None, list[Details]]:
    """A row for each place that has files, those that lie side by side are one; yields samples."""
    each = [[settled(job, result, jump_seconds) for job, result in one] for one in looks]
    yield from curve.samples([one for found in each for one in found])
    groups: list[list[int]] = []
    for number, file in enumerate(files):
        here, last = file.place, files[groups[-1][-1]].place if groups else None
        near = here and last and MOST_OF_SHARE * (last["to_ratio"] - last["from_ratio"])
        if here and last and here["from_ratio"] - last["to_ratio"] < near:
            groups[-1].append(number)
        else:
            groups.append([number])
    rows = []
    for numbers in groups:
        places = [told for told in (files[number].place for number in numbers) if told]
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
        known = [one for one in acknowledged if one is not None]
        if looks[numbers[0]][0][0].part == "write" and known:
            row["acknowledged_bytes_per_second"] = statistics.median(known)
        rows.append(row)
    return rows


def _common(files: Sequence[Placed], direct: bool) -> Details:
    told = files[0].place
    where = {} if told is None else {key: told[key] for key in ("device", "device_bytes")}
    return {"direct": direct, "located": told is not None, **where}


def _evicted(fd: int, size: int) -> page_cache.CacheState | None:
    page_cache.evict(fd)
    return page_cache.state(fd, size)
