"""The disk zone by zone, from its outer edge to its inner, and the time of a seek.

A block device is read at the centre of each of its equal spans, past the page cache. Where there
is none to read, and for writing, files are placed in the folder (probes/storage/placed_zones.py).
"""

from __future__ import annotations

import errno
import socket
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, NamedTuple, Sequence

from probes.core.field_types import Device
from probes.core.records import Details, Endpoint, Moved
from probes.core.stage import Running, Unavailable
from probes.files import folders
from probes.files.layers import kernel_name
from probes.programs import fio
from probes.storage import Setting, curve, foreign_io, placed_zones
from probes.storage.curve import subtract_seek
from probes.storage.sequential import cache_details
from probes.system.platform import descriptor, os
from probes.system.proc import is_visible

PASS_STEP = 1 / 8
"""Part of a zone between the starts of two passes: none reads again what a cache may hold."""
LARGEST_BYTES = 4 << 30
"""Size of one job at most."""
LEAST_BELOW_RATIO = 0.1
"""Part of the bytes that the disks below must have read; else they came from memory or nothing."""


class Zone(NamedTuple):
    """A span of a device and the places to read in it, in bytes from the device's start."""

    start_bytes: int
    end_bytes: int
    jobs: tuple[tuple[int, int], ...]
    """Offset and size of each pass."""


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Measures each zone's sequential rate, then single small reads; samples are zones' payload.

    The samples' time is that of the jobs laid end to end, without the first seek of each and
    without fio's pauses. Errors: ValueError (a device to be written, no zones), Unavailable (no
    such device, no right to it, nothing in it), fio.FioFailed.
    """
    if setting.zones < 1:
        raise ValueError("a disk has at least one zone")
    if not setting.device:
        return placed_zones.measure(setting, peer)
    if setting.verb != "read":
        raise ValueError("a block device is opened for reading only")
    return _device(setting)


def _device(setting: Setting) -> Running:
    with open_device(setting.device) as device:
        share = setting.seconds * (1 - curve.RANDOM_SHARE)
        rounds, each_seconds = curve.timetable(share, setting.zones)
        zones = spans(device.size_bytes, setting.zones, rounds)
        if zones is None:
            raise Unavailable(
                f"{setting.device} on {socket.gethostname()} is too small for {setting.zones} zones"
            )
        below = _read_below(device.name)
        small = curve.measure_random(
            [device.fd], device.size_bytes, True, setting.seconds * curve.RANDOM_SHARE
        )
        # Checked before the zones are read, which takes seconds.
        _refuse_nothing(setting.device, small.read_bytes, below, _read_below(device.name))
        jobs = _jobs(device.fd, zones, each_seconds)
        numbers = list(range(len(zones))) * rounds
        results, start, _ = yield from curve.run_jobs(jobs, device.name)
        each = [subtract_seek(*pair, small.median_seconds) for pair in zip(jobs, results)]
        again = curve.doubtful_zones([one.bytes_per_second for one in each]) if rounds == 1 else []
        if again:
            # Somebody else's write may have slowed one short read: a weak zone is slow each time.
            retries = _once_more(device.fd, [zones[number] for number in again], each_seconds)
            with fio.run_jobs(retries, curve.deadline(retries)) as run:
                outcomes = run.results()
            numbers += again * curve.AGAIN
            results += outcomes
            each += [subtract_seek(*pair, small.median_seconds) for pair in zip(retries, outcomes)]
        yield from curve.samples(each)
        moved_bytes = sum(one.moved_bytes for one in each)
        _refuse_nothing(setting.device, moved_bytes, below, _read_below(device.name))
        counted = foreign_io.counts(device.name, start, foreign_io.look(device.name), moved_bytes)
    looks = list(zip(numbers, each, results))
    rows = [
        _row(zone, device.size_bytes, [(one, read) for i, one, read in looks if i == number])
        for number, zone in enumerate(zones)
    ]
    return {
        **counted,
        **curve.details(rows, small),
        "direct": True,
        "located": True,
        "device": device.name,
        "device_bytes": device.size_bytes,
        "cache": cache_details(
            setting, None, (counted["device_read_bytes"] or 0) >= moved_bytes > 0
        ),
    }


def _row(zone: Zone, device_bytes: int, looks: Sequence[tuple[Moved, fio.Result]]) -> Details:
    return {
        "from_ratio": zone.start_bytes / device_bytes,
        "to_ratio": zone.end_bytes / device_bytes,
        "offset_bytes": zone.jobs[0][0],
        **curve.row([each for each, _ in looks], [read for _, read in looks]),
    }


def spans(device_bytes: int, zones: int, passes: int) -> list[Zone] | None:
    """Returns equal spans of a device, each read at its centre; None: too small ones; pure.

    Each pass begins an eighth of the span after the previous one, so that the middle one begins
    at the centre.
    """
    parts = []
    for number in range(zones):
        start, end = (device_bytes * edge // zones for edge in (number, number + 1))
        span = end - start
        room = span * PASS_STEP if passes > 1 else span / 2
        size = int(min(room, LARGEST_BYTES)) // fio.BLOCK_BYTES * fio.BLOCK_BYTES
        if size == 0:
            return None
        centre = start + span / 2
        first = centre - span * PASS_STEP * (passes // 2)
        offsets = (int(first + span * PASS_STEP * each) for each in range(passes))
        aligned = (offset // fio.BLOCK_BYTES * fio.BLOCK_BYTES for offset in offsets)
        parts.append(Zone(start, end, tuple((offset, size) for offset in aligned)))
    return parts


def _jobs(fd: int, zones: Sequence[Zone], seconds: float) -> list[fio.Job]:
    """Returns a job for each zone, pass by pass: a burst of others' I/O slows a zone only once."""
    return [
        fio.Job(fd, "read", size, seconds, True, offset)
        for each in range(len(zones[0].jobs))
        for offset, size in (zone.jobs[each] for zone in zones)
    ]


def _once_more(fd: int, zones: Sequence[Zone], seconds: float) -> list[fio.Job]:
    """Returns jobs that read each zone at other places, before and behind its centre."""
    jobs = []
    for way in range(curve.AGAIN):
        for zone in zones:
            offset, size = zone.jobs[0]
            step = int((zone.end_bytes - zone.start_bytes) * PASS_STEP)
            shifted = offset + (step if way % 2 else -step)
            shifted = shifted // fio.BLOCK_BYTES * fio.BLOCK_BYTES
            jobs.append(
                fio.Job(fd, "read", min(size, zone.end_bytes - shifted), seconds, True, shifted)
            )
    return jobs


def _read_below(device: str | None) -> int | None:
    """Returns the bytes read by the disks right below a loop or mapped device; None: unknown."""
    if device is None:
        return None
    node = foreign_io.SYS_BLOCK / device
    below = sorted(each.name for each in node.glob("slaves/*"))
    for backing in node.glob("loop/backing_file"):
        file = Path(backing.read_text().rstrip("\n"))
        # A deleted or nameless file cannot be looked up by a name.
        under = folders.folder_facts(str(file)).device if is_visible(file) else None
        below = [under] if under else []
    counts = [foreign_io.look(each).device for each in below]
    known_bytes = [each.read_bytes for each in counts if each is not None]
    return sum(known_bytes) if known_bytes and len(known_bytes) == len(counts) else None


def _refuse_nothing(node: str, moved_bytes: int, start: int | None, end: int | None) -> None:
    """Raises Unavailable where the disks below read hardly any of moved_bytes."""
    if start is None or end is None or end - start >= moved_bytes * LEAST_BELOW_RATIO:
        return
    raise Unavailable(
        f"{node} on {socket.gethostname()} was read, but the disk below it was not: its "
        "content was never written or is in memory, so its rate is not a disk's"
    )


class OpenDevice(NamedTuple):
    """A block device that is open for reading."""

    fd: int
    name: str | None
    """Kernel name; None: unknown."""
    size_bytes: int


@contextmanager
def open_device(node: str) -> Iterator[OpenDevice]:
    """Opens the device of a node for reading, and closes it.

    Errors: Unavailable with a sentence: no such node, no block device, no right to read it, no
    medium in it.
    """
    host = socket.gethostname()
    try:
        # Checked before it is opened: opening alone starts a watchdog or rewinds a tape.
        if not stat.S_ISBLK(Path(node).stat().st_mode):
            raise Unavailable(f"{node} on {host} is not a block device")
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(_explain(node, host, error)) from None
    with descriptor(fd):
        if not stat.S_ISBLK(os.fstat(fd).st_mode):
            raise Unavailable(f"{node} on {host} is not a block device")
        size_bytes = os.lseek(fd, 0, os.SEEK_END)
        if size_bytes == 0:
            raise Unavailable(f"{node} on {host} has no size: no medium in it")
        yield OpenDevice(fd, kernel_name(f"/proc/self/fd/{fd}") or None, size_bytes)


def readable(node: Device) -> bool:
    """Whether this user may read the device of a node; it is opened for that, and closed."""
    try:
        with open_device(node):
            return True
    except Unavailable:
        return False


def _explain(node: str, host: str, error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENODEV, errno.ELOOP):
        return f"{node} on {host}: device not found"
    if error.errno == errno.EPERM and os.geteuid() == 0:
        why = "a container's device rules forbid it"
        return f"{node} on {host} cannot be opened, even by root: {why}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"{node} on {host} cannot be read by this user; run the agent there as root or "
            "as a member of the group disk"
        )
    if error.errno == errno.ENOMEDIUM:
        return f"no medium in {node} on {host}"
    return f"{node} on {host} cannot be opened: {os.strerror(error.errno or 0)}"
