"""Where the blocks of a file lie, as its file system tells: the extents of FIEMAP."""

from __future__ import annotations

import errno
import os
import struct
import sys
from typing import Iterable, List, NamedTuple, Optional, Tuple

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


def read(fd: int, flush: bool = False, most: int = MOST_EXTENTS) -> Optional[FileMap]:
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
            page, last = parse(_asked(fd, start, FLAG_SYNC if flush else 0))
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


def parse(answer: bytes) -> tuple[list[Extent], bool]:
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


def fragments(extents: Iterable[Extent], size_bytes: int) -> int:
    """In how many physically separate pieces the file's written data lie; 0: none on the disk."""
    return len(pieces(extents, size_bytes))


def unwritten_bytes(extents: Iterable[Extent], size_bytes: int) -> int:
    """Bytes of the file that were never written: holes and reserved blocks, read as zeros; pure."""
    written = sum(
        max(0, min(each.length_bytes, size_bytes - each.logical_bytes))
        for each in extents
        if not each.unwritten
    )
    return max(0, size_bytes - written)


def _asked(fd: int, start: int, flags: int) -> bytes:
    import fcntl

    size_bytes = max(0, os.fstat(fd).st_size - start)
    buffer = bytearray(_HEADER.size + PAGE_EXTENTS * _EXTENT.size)
    # to the file's end and no further: what is reserved behind it does not matter
    _HEADER.pack_into(buffer, 0, start, max(size_bytes, 1), flags, 0, PAGE_EXTENTS, 0)
    fcntl.ioctl(fd, FS_IOC_FIEMAP, buffer, True)
    return bytes(buffer)
