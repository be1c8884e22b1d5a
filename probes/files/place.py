"""Place of a file on its disk, by the extents that its file system reports (FIEMAP)."""

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
"""Gap that passes under a disc's head in less time than a seek takes."""

ADDRESSED = frozenset(("ext2", "ext3", "ext4", "xfs", "f2fs", "ntfs3", "gfs2", "ocfs2", "nilfs2"))
"""File systems whose extents are addresses on the one device below; those of btrfs are not."""

_SYS = Path("/sys")


class Volume(NamedTuple):
    """Block device of a file system."""

    name: str
    """Kernel name."""
    size_bytes: int
    whole_name: str
    """Disk that it is a partition of; empty: it is no partition."""
    whole_bytes: int
    start_bytes: int
    """Start of the partition on that disk."""


def disk_place(fd: int, flush: bool = False) -> Optional[Details]:
    """Returns the place of an open file's data on the device under its file system.

    flush: write dirty data first, so that it has a place; only for files of our own.

    Keys: device, device_bytes (None: no block device below), size_bytes of the file, bytes of it
    that have a place there, unwritten_bytes (read as zeros without the disk; None: not all looked
    at), fragments (separate pieces), short_gaps (number of pieces within 1 MiB after the previous
    one), short_gaps_bytes (sum of those gaps), complete (False: all this is of its first 200,000
    extents), located: whether the positions are real; then from_ratio, to_ratio, centre_ratio of
    the device, 0 its first byte, the outer edge of a spinning disc; spans: at most the 32 longest
    pieces in the file's order; and whole, these ratios of the disk where the device is a partition.
    None: the file system reports no extents.
    """
    file_map = read_extents(fd, flush)
    if file_map is None:
        return None
    status = os.fstat(fd)
    filesystem, name = filesystem_and_device(status.st_dev)
    volume = _volume(name) if name else None
    real = filesystem in ADDRESSED and name is not None and not _is_scattered(name)
    return describe(file_map, status.st_size, volume, real)


def filesystem_and_device(device_number: int) -> Tuple[Optional[str], Optional[str]]:
    """Returns file system and kernel name of a file's block device, by st_dev; None: unknown."""
    number = f"{os.major(device_number)}:{os.minor(device_number)}"
    for entry in folders.mounts():
        if entry.device_number == number:
            return entry.filesystem, folders.device_of(entry)
    return None, None


def describe(file_map: FileMap, size_bytes: int, volume: Optional[Volume], real: bool) -> Details:
    """Returns the record of disk_place() from a file's extents; pure.

    real: the extents' addresses are places on the volume.
    """
    parts = pieces(file_map.extents, size_bytes)
    ends = [each.physical_bytes + each.length_bytes for each in parts]
    # an address behind the device's end belongs to something else
    located = real and volume is not None and bool(parts) and max(ends) <= volume.size_bytes
    unwritten = unwritten_bytes(file_map.extents, size_bytes) if file_map.complete else None
    record: Details = {
        "device": volume.name if volume else None,
        "device_bytes": volume.size_bytes if volume else None,
        "size_bytes": size_bytes,
        "bytes": sum(each.length_bytes for each in parts),
        "unwritten_bytes": unwritten,
        "fragments": len(parts),
        **_short_gaps(parts),
        "complete": file_map.complete,
        "located": located,
        "from_ratio": None,
        "to_ratio": None,
        "centre_ratio": None,
        "spans": [],
    }
    if volume is None or not located:
        return record
    record.update(_ratios(parts, 0, volume.size_bytes), spans=_spans(parts, volume.size_bytes))
    if volume.whole_name:
        record["whole"] = {
            "device": volume.whole_name,
            "device_bytes": volume.whole_bytes,
            **_ratios(parts, volume.start_bytes, volume.whole_bytes),
        }
    return record


def _ratios(parts: List[Extent], start_bytes: int, device_bytes: int) -> Details:
    """Returns the span and the centre, by bytes, of a file's pieces."""
    total = sum(each.length_bytes for each in parts)
    middle = sum((e.physical_bytes + e.length_bytes / 2) * e.length_bytes for e in parts)
    first = min(each.physical_bytes for each in parts)
    end = max(each.physical_bytes + each.length_bytes for each in parts)
    return {
        "from_ratio": (start_bytes + first) / device_bytes,
        "to_ratio": (start_bytes + end) / device_bytes,
        "centre_ratio": (start_bytes + middle / total) / device_bytes,
    }


def _short_gaps(parts: List[Extent]) -> Details:
    """Returns the number of short gaps between pieces, and their bytes."""
    gaps = [
        following.physical_bytes - previous.physical_bytes - previous.length_bytes
        for previous, following in zip(parts, parts[1:])
    ]
    short = [each for each in gaps if 0 <= each <= SHORT_GAP_BYTES]
    return {"short_gaps": len(short), "short_gaps_bytes": sum(short)}


def _spans(parts: List[Extent], device_bytes: int) -> List[Details]:
    longest = sorted(parts, key=lambda each: each.length_bytes, reverse=True)[:MOST_SPANS]
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
    for disk in block.devices_below(name, _SYS) if "offset_bytes" in layer else ():
        whole_bytes = (block.layer(disk, _SYS) or {}).get("bytes")
        if whole_bytes:
            return Volume(name, layer["bytes"], disk, whole_bytes, layer["offset_bytes"])
    return Volume(name, layer["bytes"], "", 0, 0)


def _is_scattered(name: str) -> bool:
    """Whether a device allocates blocks as they are written: addresses on it are no places."""
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
"""Extents of one request: 56 KiB."""
MOST_EXTENTS = 200_000
"""Limit of extents that are read; a file with more is fragmented anyway."""

WITHOUT_FIEMAP = (errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL, errno.EPERM)
"""Errors of tmpfs, FUSE, NFS, CIFS and FAT for FIEMAP."""


class Extent(NamedTuple):
    """Contiguous range of a file's bytes on the device."""

    logical_bytes: int
    """Offset in the file."""
    physical_bytes: int
    """Offset on the file system's device; meaningless where it is not placed."""
    length_bytes: int
    unwritten: bool
    """Whether it is reserved and never written: read as zeros, without the disk."""
    placed: bool
    """Whether it has an address: neither inline nor still waiting to be written."""


class FileMap(NamedTuple):
    """The extents of a file in the file's order."""

    extents: Tuple[Extent, ...]
    complete: bool
    """False: there are more than MOST_EXTENTS."""


def read_extents(fd: int, flush: bool = False, limit: int = MOST_EXTENTS) -> Optional[FileMap]:
    """Reads the extents of an open file; None: the file system reports none.

    flush: write dirty data first, so that it has a place; only for files of our own.
    Needs no privilege. Source: Documentation/filesystems/fiemap.rst.
    """
    if not sys.platform.startswith("linux"):
        return None
    extents: List[Extent] = []
    start = 0
    while len(extents) < limit:
        try:
            page, last = parse_extents(_fiemap(fd, start, FLAG_SYNC if flush else 0))
        except OSError as error:
            if error.errno in WITHOUT_FIEMAP:
                return None
            raise
        extents += page
        end = page[-1].logical_bytes + page[-1].length_bytes if page else start
        if last or end <= start:
            return FileMap(tuple(extents[:limit]), len(extents) <= limit)
        start = end
    return FileMap(tuple(extents[:limit]), False)


def parse_extents(answer: bytes) -> tuple[list[Extent], bool]:
    """Parses one answer; returns its extents, and whether the file has no further ones.

    answer: struct fiemap with its extents. Errors: ValueError where it is truncated.
    """
    if len(answer) < _HEADER.size:
        raise ValueError("the extent map is cut off")
    mapped = _HEADER.unpack_from(answer)[3]
    table = memoryview(answer)[_HEADER.size :][: mapped * _EXTENT.size]
    if len(table) < mapped * _EXTENT.size:
        raise ValueError("the extent map is cut off")
    extents = []
    last = mapped == 0
    for logical, physical, length, flags in _EXTENT.iter_unpack(table):
        extents.append(
            Extent(logical, physical, length, bool(flags & UNWRITTEN), not flags & PLACELESS)
        )
        last = last or bool(flags & LAST)
    return extents, last


def pieces(extents: Iterable[Extent], size_bytes: int) -> list[Extent]:
    """Returns the extents that a reader takes from the device, adjacent ones joined; pure.

    Without holes, unwritten extents and those without a place; cut at the file's end. Between two
    pieces the disk has to seek.
    """
    parts: list[Extent] = []
    for each in extents:
        length = min(each.length_bytes, size_bytes - each.logical_bytes)
        if length <= 0 or each.unwritten or not each.placed:
            continue
        previous = parts[-1] if parts else None
        if previous and previous.physical_bytes + previous.length_bytes == each.physical_bytes:
            parts[-1] = previous._replace(length_bytes=previous.length_bytes + length)
        else:
            parts.append(each._replace(length_bytes=length))
    return parts


def unwritten_bytes(extents: Iterable[Extent], size_bytes: int) -> int:
    """Returns the file's bytes that were never written: holes and reserved blocks; pure."""
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
