"""The disk zone by zone, from its outer edge to its inner, and what a jump between them costs.

A block device is read at the centre of each of its equal spans, past the page cache. Where there
is none to read, and for writing, files are placed in the folder (probes/storage/placed.py).
"""

from __future__ import annotations

import errno
import socket
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, NamedTuple, Sequence

from probes.core.meaning import Device
from probes.core.records import Details, Endpoint
from probes.core.stage import Running, Unavailable
from probes.files import folders
from probes.files.layers import kernel_name
from probes.programs import fio
from probes.storage import Setting, curve, others, placed
from probes.storage.curve import Settled, settled
from probes.storage.sequential import cache_details
from probes.system.platform import descriptor, os
from probes.system.proc import is_visible

PASS_STEP = 1 / 8
"""Of a zone between the passes' beginnings: none reads again what a cache may hold."""
LARGEST_BYTES = 4 << 30
"""Of one job."""
LEAST_BELOW_RATIO = 0.1
"""Of what was read, from the disks below the device; less comes from memory or from nothing."""


class Zone(NamedTuple):
    """A span of a device and where it is read, in bytes from the device's start."""

    start_bytes: int
    end_bytes: int
    jobs: tuple[tuple[int, int], ...]
    """Offset and size of each pass."""


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Each zone's sequential throughput, then single small reads; samples are the zones' payload.

    The samples' time is that of the jobs laid end to end, without the first jump of each and
    without fio's pauses. Errors: ValueError (a device to be written, no zones), Unavailable (no
    such device, no right to it, nothing in it), fio.FioFailed.
    """
    if setting.zones < 1:
        raise ValueError("a disk has at least one zone")
    if not setting.device:
        return placed.measure(setting, peer)
    if setting.verb != "read":
        raise ValueError("a block device is opened for reading only")
    return _device(setting)


def _device(setting: Setting) -> Running:
    with opened(setting.device) as device:
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
        # Reading all zones to find that out would take seconds.
        _refuse_nothing(setting.device, small.read_bytes, below, _read_below(device.name))
        jobs = _jobs(device.fd, zones, each_seconds)
        numbers = list(range(len(zones))) * rounds
        results, before, _ = yield from curve.measured(jobs, device.name)
        each = [settled(*pair, small.median_seconds) for pair in zip(jobs, results)]
        again = curve.doubtful([one.bytes_per_second for one in each]) if rounds == 1 else []
        if again:
            # One short look may have met somebody else's write: a weak zone is weak each time.
            more = _once_more(device.fd, [zones[number] for number in again], each_seconds)
            with fio.running(more, curve.deadline(more)) as run:
                found = run.results()
            numbers += again * curve.AGAIN
            results += found
            each += [settled(*pair, small.median_seconds) for pair in zip(more, found)]
        yield from curve.samples(each)
        moved_bytes = sum(one.moved_bytes for one in each)
        _refuse_nothing(setting.device, moved_bytes, below, _read_below(device.name))
        counted = others.around(device.name, before, others.look(device.name), moved_bytes)
    looks = list(zip(numbers, each, results))
    rows = [
        _row(zone, device.size_bytes, [(one, read) for at, one, read in looks if at == number])
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


def _row(zone: Zone, device_bytes: int, looks: Sequence[tuple[Settled, fio.Result]]) -> Details:
    """A zone's row, of all looks at it."""
    return {
        "from_ratio": zone.start_bytes / device_bytes,
        "to_ratio": zone.end_bytes / device_bytes,
        "offset_bytes": zone.jobs[0][0],
        **curve.row([each for each, _ in looks], [read for _, read in looks]),
    }


def spans(device_bytes: int, zones: int, passes: int) -> list[Zone] | None:
    """Equal spans of a device, each read at its centre; None: they would be too small; pure.

    Each pass begins an eighth of the span after the one before it, so that the middle one begins
    at the centre.
    """
    found = []
    for number in range(zones):
        start, end = (device_bytes * at // zones for at in (number, number + 1))
        span = end - start
        room = span * PASS_STEP if passes > 1 else span / 2
        size = int(min(room, LARGEST_BYTES)) // fio.BLOCK_BYTES * fio.BLOCK_BYTES
        if size == 0:
            return None
        centre = start + span / 2
        first = centre - span * PASS_STEP * (passes // 2)
        offsets = (int(first + span * PASS_STEP * each) for each in range(passes))
        aligned = (offset // fio.BLOCK_BYTES * fio.BLOCK_BYTES for offset in offsets)
        found.append(Zone(start, end, tuple((offset, size) for offset in aligned)))
    return found


def _jobs(fd: int, zones: Sequence[Zone], seconds: float) -> list[fio.Job]:
    """One job a zone and pass, in that order: a burst of others' I/O meets a zone once at most."""
    return [
        fio.Job(fd, "read", size, seconds, True, offset)
        for each in range(len(zones[0].jobs))
        for offset, size in (zone.jobs[each] for zone in zones)
    ]


def _once_more(fd: int, zones: Sequence[Zone], seconds: float) -> list[fio.Job]:
    """Jobs that read each zone at other places, before and behind its centre."""
    jobs = []
    for way in range(curve.AGAIN):
        for zone in zones:
            offset, size = zone.jobs[0]
            step = int((zone.end_bytes - zone.start_bytes) * PASS_STEP)
            moved = offset + (step if way % 2 else -step)
            moved = moved // fio.BLOCK_BYTES * fio.BLOCK_BYTES
            jobs.append(
                fio.Job(fd, "read", min(size, zone.end_bytes - moved), seconds, True, moved)
            )
    return jobs


def _read_below(device: str | None) -> int | None:
    """Bytes that the disks right below a loop or mapped device have read; None: there are none
    to be seen."""
    if device is None:
        return None
    node = others.SYS_BLOCK / device
    below = sorted(each.name for each in node.glob("slaves/*"))
    for backing in node.glob("loop/backing_file"):
        file = Path(backing.read_text().rstrip("\n"))
        # a file that was deleted, or that has no name, cannot be looked up by one
        under = folders.folder_facts(str(file)).device if is_visible(file) else None
        below = [under] if under else []
    counts = [others.look(each).own for each in below]
    told = [each.read_bytes for each in counts if each is not None]
    return sum(told) if told and len(told) == len(counts) else None


def _refuse_nothing(node: str, moved_bytes: int, before: int | None, after: int | None) -> None:
    """Errors: Unavailable where the disks below gave next to nothing of what was read."""
    if before is None or after is None or after - before >= moved_bytes * LEAST_BELOW_RATIO:
        return
    raise Unavailable(
        f"{node} on {socket.gethostname()} was read, but the disk below it was not: its "
        "content was never written or is in memory, so its rate is not a disk's"
    )


class Opened(NamedTuple):
    """A block device that is open for reading."""

    fd: int
    name: str | None
    """The kernel's; None: it does not tell."""
    size_bytes: int


@contextmanager
def opened(node: str) -> Iterator[Opened]:
    """The device of a node, open for reading; closed when left.

    Errors: Unavailable with a sentence: no such node, no block device, no right to read it, no
    medium in it.
    """
    host = socket.gethostname()
    try:
        # looked at before it is opened: opening alone starts a watchdog or rewinds a tape
        if not stat.S_ISBLK(Path(node).stat().st_mode):
            raise Unavailable(f"{node} on {host} is not a block device")
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(_why(node, host, error)) from None
    with descriptor(fd):
        told = os.fstat(fd)
        if not stat.S_ISBLK(told.st_mode):
            raise Unavailable(f"{node} on {host} is not a block device")
        size_bytes = os.lseek(fd, 0, os.SEEK_END)
        if size_bytes == 0:
            raise Unavailable(f"{node} on {host} has no size: no medium in it")
        yield Opened(fd, kernel_name(f"/proc/self/fd/{fd}") or None, size_bytes)


def readable(node: Device) -> bool:
    """Whether this user may read the device of a node; it is opened for that, and closed."""
    try:
        with opened(node):
            return True
    except Unavailable:
        return False


def _why(node: str, host: str, error: OSError) -> str:
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
