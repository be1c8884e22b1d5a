"""What a folder lies on: file system, mount, block device, room."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import NamedTuple

from probes.records import FolderFacts

SYS = Path("/sys")
STACK_LAYERS = 8
"""More layers of device mapper and RAID than anyone builds."""


class MountEntry(NamedTuple):
    """One line of /proc/PID/mountinfo."""

    device_number: str
    """major:minor."""
    point: str
    filesystem: str
    source: str
    options: str
    """The mount's own, then the file system's."""
    root: str = "/"
    """The folder of the file system that the mount shows; another than / under a bind mount."""


def parse_mountinfo(text: str) -> list[MountEntry]:
    """The mounts of /proc/PID/mountinfo (proc(5)); lines that are none are left out."""
    entries = []
    for line in text.splitlines():
        mount, _, rest = line.partition(" - ")
        fields, tail = mount.split(), rest.split()
        if len(fields) < 6 or len(tail) < 2:
            continue
        super_options = tail[2] if len(tail) > 2 else ""
        options = ",".join(dict.fromkeys(",".join((fields[5], super_options)).split(",")))
        entries.append(
            MountEntry(
                fields[2],
                _unescaped(fields[4]),
                tail[0],
                _unescaped(tail[1]),
                options.strip(","),
                _unescaped(fields[3]),
            )
        )
    return entries


def mount_of(path: str, entries: list[MountEntry]) -> MountEntry | None:
    """The mount that shows an absolute, resolved path: the longest, of equal ones the last."""
    best = None
    for entry in entries:
        prefix = entry.point.rstrip("/") + "/"
        if not (path + "/").startswith(prefix):
            continue
        if best is None or len(entry.point) >= len(best.point):
            best = entry
    return best


def device_of(entry: MountEntry, sys_folder: Path = SYS) -> str | None:
    """Kernel name of the block device below a mount; None: no block device.

    btrfs and others show an anonymous device number: there the source's node is asked.
    """
    numbers = [entry.device_number]
    if entry.device_number.startswith("0:") and entry.source.startswith("/dev/"):
        try:
            node = Path(entry.source).stat()
            numbers.append(f"{os.major(node.st_rdev)}:{os.minor(node.st_rdev)}")
        except OSError:
            return None
    for number in numbers:
        link = sys_folder / "dev/block" / number
        if link.exists():
            return link.resolve().name
    return _named_in_diskstats(numbers[-1])


def rotational_of(device: str) -> bool | None:
    """Whether the kernel takes the device (or the disk that it is a part of) for a spinning one."""
    node = Path("/sys/class/block") / device
    if not node.exists():
        return None
    for queue in (node / "queue", node.resolve().parent / "queue"):
        try:
            return (queue / "rotational").read_text().strip() == "1"
        except OSError:
            continue
    return None


def folder_facts(path: str) -> FolderFacts:
    """Facts of an existing folder; what the system does not tell is None."""
    resolved = os.path.realpath(path)
    entry = _mount_of(resolved)
    device = device_of(entry) if entry else None
    total_bytes = free_bytes = None
    # a folder that went away keeps its other facts
    with contextlib.suppress(OSError):
        told = os.statvfs(resolved)
        total_bytes, free_bytes = told.f_blocks * told.f_frsize, told.f_bavail * told.f_frsize
    return FolderFacts(
        path=path,
        filesystem=entry.filesystem if entry else None,
        mount_options=entry.options if entry else None,
        device=device,
        rotational=rotational_of(device) if device else None,
        total_bytes=total_bytes,
        free_bytes=free_bytes,
    )


def stack(path: str) -> list[str]:
    """The folder's file system and the devices below it, top first: ["ext4", "dm-0", "sda2"]."""
    entry = _mount_of(os.path.realpath(path))
    if entry is None:
        return []
    words = [entry.filesystem]
    device = device_of(entry)
    below = [device] if device else []
    while below and len(words) < STACK_LAYERS:
        name = below.pop(0)
        words.append(name)
        slaves = Path("/sys/class/block") / name / "slaves"
        if slaves.is_dir():
            below.extend(sorted(slave.name for slave in slaves.iterdir()))
    if device is not None and rotational_of(device):
        words.append("rotational")
    return words


def mounts() -> list[MountEntry]:
    """All mounts that this process sees; empty: /proc is not there."""
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return parse_mountinfo(text)


def _mount_of(resolved: str) -> MountEntry | None:
    return mount_of(resolved, mounts())


def _named_in_diskstats(number: str) -> str | None:
    """A device's name where /sys is not there or shows nothing of it."""
    try:
        text = Path("/proc/diskstats").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 2 and ":".join(fields[:2]) == number:
            return fields[2]
    return None


def _unescaped(field: str) -> str:
    """Octal escapes of mountinfo (\\040 is a blank) undone."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)
