"""Files of ours across the free space of a file system, so that its disk is reached zone by zone.

A file system puts new files side by side. So between two of them space is reserved by fallocate(2),
which writes none of it. XFS: each file is made as long as its share of half of the free space, and
cut when all have their place. ext4 goes on behind the last large file, also where that is gone: a
GiB at a time is reserved and freed. Whatever ends the process ends the files: they have no name.
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
"""Where this is known to reserve space without writing it."""
RESERVED_RATIO = 0.5
"""Of what is free, that the files are spread over."""
KEPT_RATIO = 0.1
"""Of the file system, that stays free meanwhile."""
HELD_SECONDS, WALK_SECONDS = 0.5, 5.0
"""For all files: where their shares are held, and where a GiB at a time is."""
STEP_BYTES = 1 << 30
"""Reserved at once: a disc may have to look up the free blocks of each 128 MiB (ext4)."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WITHOUT = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""What files answer that reserve nothing; glibc's posix_fallocate would write instead."""


def share_bytes(fd: int, files: int) -> int:
    """What each of so many files may reserve on the file system of an open one; 0: nothing."""
    free, total = free_space.told(fd)
    return max(0, int(min(free * RESERVED_RATIO, free - total * KEPT_RATIO)) // files)


def across(
    fds: Sequence[int], size_bytes: int, walks: bool, clock: Callable[[], float] = time.monotonic
) -> list[int]:
    """Places empty files across the free space, size_bytes each; returns those that got room.

    walks: as ext4 does. A tenth of the file system stays free. Where the time or a quota ends what
    is reserved, the files lie nearer to each other; fewer come back where there is no room.
    """
    kept = free_space.told(fds[0])[1] * KEPT_RATIO
    share, seconds = share_bytes(fds[0], len(fds)), WALK_SECONDS if walks else HELD_SECONDS
    began = clock()
    placed: list[int] = []
    try:
        for number, fd in enumerate(fds):
            until = began + seconds * (number + 1) / len(fds)
            # the head lies where a whole step fits: what an allocation group has left does not
            plain = walks or clock() >= until
            at = size_bytes if plain else max(size_bytes, min(STEP_BYTES, share))
            if not _reserve(fd, 0, at, kept):
                share, at = 0, size_bytes
                if not _reserve(fd, 0, at, kept):
                    break
            placed.append(fd)
            if walks and fd == fds[-1]:
                break
            spacer, stays = (fds[number + 1], 0) if walks else (fd, size_bytes)
            while at < share and clock() < until:
                step = min(STEP_BYTES, share - at)
                share = share if _reserve(spacer, 0 if walks else at, step, kept) else 0
                at += step
                if walks or not share:
                    os.ftruncate(spacer, stays)
    finally:
        for fd in fds:
            os.ftruncate(fd, size_bytes if fd in placed else 0)
    return placed


def _reserve(fd: int, start: int, size_bytes: int, kept_bytes: float) -> bool:
    """Reserves a part of a file; False: there is no room for it beyond what is kept."""
    if free_space.told(fd)[0] - size_bytes < kept_bytes:
        return False
    span = (ctypes.c_int64(start), ctypes.c_int64(size_bytes))
    # on 32 bits the plain name takes offsets of 32 bits
    reserve = getattr(LIBC, "fallocate64", None) or LIBC.fallocate
    if reserve(fd, 0, *span) == 0:
        return True
    number = ctypes.get_errno()
    if number in WITHOUT:
        # where nothing is reserved the file lies where the file system puts what is written
        return start == 0
    if number in FULL:
        return False
    raise OSError(number, os.strerror(number))
