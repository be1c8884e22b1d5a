"""Where on its disk a file lies, by the extents that its file system tells (FIEMAP)."""

from __future__ import annotations

import errno
import struct
import sys
from pathlib import Path
from typing import Iterable, List, NamedTuple, Optional, Tuple

from probes.core.records import Details
from probes.files import block, folders
from probes.system.platform import os

MOST_SPANS = 32
SHORT_GAP_BYTES = 1 << 20
"""A disc lets so much pass under its head in less time than it takes to go elsewhere."""

ADDRESSED = frozenset(("ext2", "ext3", "ext4", "xfs", "f2fs", "ntfs3", "gfs2", "ocfs2", "nilfs2"))
"""File systems whose extents are addresses on the one device below; those of btrfs are not."""

_SYS = Path("/sys")


class Volume(NamedTuple):
    """The block device that a file system lies on."""

    name: str
    """Kernel's."""
    size_bytes: int
    whole_name: str
    """The disk that it is a partition of; empty: it is none."""
    whole_bytes: int
    start_bytes: int
    """Where the partition begins on that disk."""


def place(fd: int, flush: bool = False) -> Optional[Details]:
    """Where an open file's data lie on the device under its file system.

    flush: write what is dirty first, so that it has a place; for files of our own alone.

    Keys: device, device_bytes (None: no block device below), size_bytes of the file, bytes of it
    that have a place there, unwritten_bytes (read as zeros without the disk; None: not all looked
    at), fragments (separate pieces), short_gaps (how many of them follow within 1 MiB after the
    one before), short_gaps_bytes (what lies between those), complete (False: all this is of its
    first 200,000 extents), located: whether the positions are real; then from_ratio, to_ratio,
    centre_ratio of the device, 0 its first byte, the outer edge of a spinning disc; spans: at most
    the 32 longest pieces in the file's order; and whole, the same of the disk where the device is
    a partition.
    None where the file system tells no extents.
    """
    told = read_extents(fd, flush)
    if told is None:
        return None
    status = os.fstat(fd)
    filesystem, name = under(status.st_dev)
    volume = _volume(name) if name else None
    real = filesystem in ADDRESSED and name is not None and not _is_scattered(name)
    return describe(told, status.st_size, volume, real)


def under(device_number: int) -> Tuple[Optional[str], Optional[str]]:
    """File system and kernel name of the block device of a file, by its st_dev; None: not known."""
    number = f"{os.major(device_number)}:{os.minor(device_number)}"
    for entry in folders.mounts():
        if entry.device_number == number:
            return entry.filesystem, folders.device_of(entry)
    return None, None


def describe(told: FileMap, size_bytes: int, volume: Optional[Volume], real: bool) -> Details:
    """The record of place() from what was read; pure.

    real: the extents' addresses are places on the volume.
    """
    found = pieces(told.extents, size_bytes)
    ends = [each.physical_bytes + each.length_bytes for each in found]
    # an address behind the device's end belongs to something else
    located = real and volume is not None and bool(found) and max(ends) <= volume.size_bytes
    unwritten = unwritten_bytes(told.extents, size_bytes) if told.complete else None
    record: Details = {
        "device": volume.name if volume else None,
        "device_bytes": volume.size_bytes if volume else None,
        "size_bytes": size_bytes,
        "bytes": sum(each.length_bytes for each in found),
        "unwritten_bytes": unwritten,
        "fragments": len(found),
        **_short_gaps(found),
        "complete": told.complete,
        "located": located,
        "from_ratio": None,
        "to_ratio": None,
        "centre_ratio": None,
        "spans": [],
    }
    if volume is None or not located:
        return record
    record.update(_ratios(found, 0, volume.size_bytes), spans=_spans(found, volume.size_bytes))
    if volume.whole_name:
        record["whole"] = {
            "device": volume.whole_name,
            "device_bytes": volume.whole_bytes,
            **_ratios(found, volume.start_bytes, volume.whole_bytes),
        }
    return record


def _ratios(found: List[Extent], start_bytes: int, device_bytes: int) -> Details:
    """The span and the centre, by bytes, of a file's pieces."""
    total = sum(each.length_bytes for each in found)
    middle = sum(
        (each.physical_bytes + each.length_bytes / 2) * each.length_bytes for each in found
    )
    first = min(each.physical_bytes for each in found)
    end = max(each.physical_bytes + each.length_bytes for each in found)
    return {
        "from_ratio": (start_bytes + first) / device_bytes,
        "to_ratio": (start_bytes + end) / device_bytes,
        "centre_ratio": (start_bytes + middle / total) / device_bytes,
    }


def _short_gaps(found: List[Extent]) -> Details:
    """How many pieces follow shortly after the one before, and what lies between."""
    gaps = [
        after.physical_bytes - before.physical_bytes - before.length_bytes
        for before, after in zip(found, found[1:])
    ]
    short = [each for each in gaps if 0 <= each <= SHORT_GAP_BYTES]
    return {"short_gaps": len(short), "short_gaps_bytes": sum(short)}


def _spans(found: List[Extent], device_bytes: int) -> List[Details]:
    longest = sorted(found, key=lambda each: each.length_bytes, reverse=True)[:MOST_SPANS]
    return [
        {
            "from_ratio": each.physical_bytes / device_bytes,
            "to_ratio": (each.physical_bytes + each.length_bytes) / device_bytes,
            "bytes": each.length_bytes,
        }
        for each in sorted(longest)
    ]


def _volume(name: str) -> Optional[Volume]:
    layer = block.layer(name, _SYS) or {}
    if not layer.get("bytes"):
        return None
    for disk in block.below(name, _SYS) if "offset_bytes" in layer else ():
        whole_bytes = (block.layer(disk, _SYS) or {}).get("bytes")
        if whole_bytes:
            return Volume(name, layer["bytes"], disk, whole_bytes, layer["offset_bytes"])
    return Volume(name, layer["bytes"], "", 0, 0)


def _is_scattered(name: str) -> bool:
    """Whether a device gives out blocks as they are written: addresses on it are no places."""
    return (block.layer(name, _SYS) or {}).get("target") in ("thin", "vdo")


FS_IOC_FIEMAP = 0xC020660B
"""_IOWR('f', 11, struct fiemap), include/uapi/linux/fs.h."""
FLAG_SYNC = 0x1
_HEADER = struct.Struct("=QQLLLL")
"""fm_start, fm_length, fm_flags, fm_mapped_extents, fm_extent_count, fm_reserved."""
_EXTENT = struct.Struct("=QQQ16xL12x")
"""fe_logical, fe_physical, fe_length, fe_flags."""

LAST, UNKNOWN, DELAYED, INLINE, TAIL, UNWRITTEN = 0x1, 0x2, 0x4, 0x200, 0x400, 0x800
PLACELESS = UNKNOWN | DELAYED | INLINE | TAIL
"""Data that is not in blocks of its own (yet): its physical address means nothing."""

PAGE_EXTENTS = 1024
"""Asked for at once: 56 KiB."""
MOST_EXTENTS = 200_000
"""A file in more pieces than this is in pieces; what lies behind is not looked at."""

WITHOUT_FIEMAP = (errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL, errno.EPERM)
"""What tmpfs, FUSE, NFS, CIFS and FAT answer."""


class Extent(NamedTuple):
    """A run of a file's bytes that lie one behind the other."""

    logical_bytes: int
    """Where it begins in the file."""
    physical_bytes: int
    """Where it begins on the file system's device; meaningless where it is not placed."""
    length_bytes: int
    unwritten: bool
    """Reserved, never written: read as zeros, without the disk."""
    placed: bool
    """Whether it has an address: neither inline nor still waiting to be written."""


class FileMap(NamedTuple):
    """The extents of a file in the file's order."""

    extents: Tuple[Extent, ...]
    complete: bool
    """False: there are more than MOST_EXTENTS."""


def read_extents(fd: int, flush: bool = False, most: int = MOST_EXTENTS) -> Optional[FileMap]:
    """The extents of an open file; None where the file system tells none.

    flush: have what is dirty written first, so that it has a place; only for files of our own.
    Needs no privilege. Source: Documentation/filesystems/fiemap.rst.
    """
    if not sys.platform.startswith("linux"):
        return None
    found: List[Extent] = []
    start = 0
    while len(found) < most:
        try:
            page, last = parse_extents(_fiemap(fd, start, FLAG_SYNC if flush else 0))
        except OSError as error:
            if error.errno in WITHOUT_FIEMAP:
                return None
            raise
        found += page
        end = page[-1].logical_bytes + page[-1].length_bytes if page else start
        if last or end <= start:
            return FileMap(tuple(found[:most]), len(found) <= most)
        start = end
    return FileMap(tuple(found[:most]), False)


def parse_extents(answer: bytes) -> tuple[list[Extent], bool]:
    """The extents of one answer, and whether the file's last is among them (or there is none).

    answer: struct fiemap with its extents. Errors: ValueError where it is cut off.
    """
    if len(answer) < _HEADER.size:
        raise ValueError("the extent map is cut off")
    mapped = _HEADER.unpack_from(answer)[3]
    table = memoryview(answer)[_HEADER.size :][: mapped * _EXTENT.size]
    if len(table) < mapped * _EXTENT.size:
        raise ValueError("the extent map is cut off")
    found = []
    last = mapped == 0
    for logical, physical, length, flags in _EXTENT.iter_unpack(table):
        found.append(
            Extent(logical, physical, length, bool(flags & UNWRITTEN), not flags & PLACELESS)
        )
        last = last or bool(flags & LAST)
    return found, last


def pieces(extents: Iterable[Extent], size_bytes: int) -> list[Extent]:
    """What a reader of the file takes from the device, joined where it lies side by side; pure.

    Neither holes nor unwritten extents nor those without a place; cut at the file's end. Between
    two pieces the disk has to go elsewhere.
    """
    found: list[Extent] = []
    for each in extents:
        length = min(each.length_bytes, size_bytes - each.logical_bytes)
        if length <= 0 or each.unwritten or not each.placed:
            continue
        before = found[-1] if found else None
        if before and before.physical_bytes + before.length_bytes == each.physical_bytes:
            found[-1] = before._replace(length_bytes=before.length_bytes + length)
        else:
            found.append(each._replace(length_bytes=length))
    return found


def unwritten_bytes(extents: Iterable[Extent], size_bytes: int) -> int:
    """Bytes of the file that were never written: holes and reserved blocks, read as zeros; pure."""
    written = sum(
        max(0, min(each.length_bytes, size_bytes - each.logical_bytes))
        for each in extents
        if not each.unwritten
    )
    return max(0, size_bytes - written)


def _fiemap(fd: int, start: int, flags: int) -> bytes:
    import fcntl

    size_bytes = max(0, os.fstat(fd).st_size - start)
    buffer = bytearray(_HEADER.size + PAGE_EXTENTS * _EXTENT.size)
    # to the file's end and no further: what is reserved behind it does not matter
    _HEADER.pack_into(buffer, 0, start, max(size_bytes, 1), flags, 0, PAGE_EXTENTS, 0)
    fcntl.ioctl(fd, FS_IOC_FIEMAP, buffer, True)
    return bytes(buffer)
