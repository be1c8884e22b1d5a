"""Places files across the free space of a file system, so that they reach its disk zone by zone.

A file system puts new files side by side. So between two of them space is reserved by fallocate(2),
which writes none of it. XFS: each file gets its share of half of the free space, and is cut when
all have their place. ext4 goes on behind the last large file, even a removed one: a GiB at a time
is reserved and freed. The end of the process ends the files: they have no name.
Source: fs/ext4/mballoc.c (s_mb_last_group), fs/xfs/libxfs/xfs_alloc.c.
"""

from __future__ import annotations

import ctypes
import errno
import time
from typing import Callable, Sequence

from probes.files import free_space
from probes.files.page_cache import LIBC
from probes.system.platform import os

FILESYSTEMS = ("ext4", "xfs")
"""File systems on which fallocate(2) reserves space without writing it."""
RESERVED_RATIO = 0.5
"""Share of the free space over which the files are spread."""
KEPT_RATIO = 0.1
"""Share of the file system that stays free meanwhile."""
HELD_SECONDS, WALK_SECONDS = 0.5, 5.0
"""Time for all files where their shares stay reserved, and where a GiB at a time is."""
STEP_BYTES = 1 << 30
"""Bytes reserved at once: a disc may have to look up the free blocks of each 128 MiB (ext4)."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WITHOUT = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""Errors of file systems without reservation; glibc's posix_fallocate would write instead."""


def share_bytes(fd: int, files: int) -> int:
    """Returns the bytes that each of some files may reserve on an open one's file system."""
    free, total = free_space.space_of(fd)
    return max(0, int(min(free * RESERVED_RATIO, free - total * KEPT_RATIO)) // files)


def across(
    fds: Sequence[int], size_bytes: int, walks: bool, clock: Callable[[], float] = time.monotonic
) -> list[int]:
    """Places empty files across the free space, size_bytes each; returns those with room.

    walks: the ext4 way. A tenth of the file system stays free. Where time or a quota ends the
    reservation, the files lie closer together; fewer are returned where there is no room.
    """
    kept_bytes = free_space.space_of(fds[0])[1] * KEPT_RATIO
    share, seconds = share_bytes(fds[0], len(fds)), WALK_SECONDS if walks else HELD_SECONDS
    began = clock()
    placed: list[int] = []
    try:
        for number, fd in enumerate(fds):
            deadline = began + seconds * (number + 1) / len(fds)
            # the file begins where a full step fits, not in an allocation group's remainder
            plain = walks or clock() >= deadline
            end = size_bytes if plain else max(size_bytes, min(STEP_BYTES, share))
            if not _reserve(fd, 0, end, kept_bytes):
                share, end = 0, size_bytes
                if not _reserve(fd, 0, end, kept_bytes):
                    break
            placed.append(fd)
            if walks and fd == fds[-1]:
                break
            spacer, stays = (fds[number + 1], 0) if walks else (fd, size_bytes)
            while end < share and clock() < deadline:
                step = min(STEP_BYTES, share - end)
                share = share if _reserve(spacer, 0 if walks else end, step, kept_bytes) else 0
                end += step
                if walks or not share:
                    os.ftruncate(spacer, stays)
    finally:
        for fd in fds:
            os.ftruncate(fd, size_bytes if fd in placed else 0)
    return placed


def _reserve(fd: int, start: int, size_bytes: int, kept_bytes: float) -> bool:
    """Reserves a part of a file; False: there is no room for it beyond kept_bytes."""
    if free_space.space_of(fd)[0] - size_bytes < kept_bytes:
        return False
    span = (ctypes.c_int64(start), ctypes.c_int64(size_bytes))
    # on 32 bits the plain name takes offsets of 32 bits
    reserve = getattr(LIBC, "fallocate64", None) or LIBC.fallocate
    if reserve(fd, 0, *span) == 0:
        return True
    number = ctypes.get_errno()
    if number in WITHOUT:
        # without a reservation the file system places the file when it is written
        return start == 0
    if number in FULL:
        return False
    raise OSError(number, os.strerror(number))
