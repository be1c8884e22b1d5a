"""Files of ours across the free space of a file system, so that its disk is reached zone by zone.

A file system puts new files side by side. So each is first made as long as its share of half of the
free space, by fallocate(2), which reserves blocks and writes none; when all have their place, each
is cut to what is to be measured. Whatever ends the process ends the files: they have no name.
"""

from __future__ import annotations

import ctypes
import errno
import time
from typing import Callable, Sequence

from probes.files import free_space
from probes.files.page_cache import LIBC
from probes.system.platform import os

RESERVED_RATIO = 0.5
"""Of what is free, for as long as the files are placed."""
KEPT_RATIO = 0.1
"""Of the file system, that stays free meanwhile."""
PLACING_SECONDS = 0.5
STEP_BYTES = 1 << 30
"""Reserved at once: a disc may have to look up the free blocks of each 128 MiB (ext4)."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WITHOUT = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""What file systems answer that reserve nothing; glibc's posix_fallocate would write instead."""


def share_bytes(fd: int, files: int) -> int:
    """What each of so many files may reserve on the file system of an open one."""
    free, total = free_space.told(fd)
    return int(min(free * RESERVED_RATIO, free - total * KEPT_RATIO)) // files


def across(
    fds: Sequence[int], size_bytes: int, clock: Callable[[], float] = time.monotonic
) -> list[int]:
    """Places empty files across the free space, size_bytes each; returns those that got room.

    Half of the free space is reserved for at most about half a second, and a tenth of the file
    system stays free: what does not fit in either ends it, and the files left lie side by side.
    Fewer come back where a quota or the room ends. Source: fallocate(2).
    """
    kept = free_space.told(fds[0])[1] * KEPT_RATIO
    share = share_bytes(fds[0], len(fds))
    until = clock() + PLACING_SECONDS
    placed: list[int] = []
    try:
        for fd in fds:
            at = max(size_bytes, min(STEP_BYTES, share))
            if clock() >= until or not _reserve(fd, 0, at, kept):
                at = size_bytes
                if not _reserve(fd, 0, at, kept):
                    break
            placed.append(fd)
            while at < share and clock() < until:
                step = min(STEP_BYTES, share - at)
                if not _reserve(fd, at, step, kept):
                    break
                at += step
    finally:
        for fd in fds:
            os.ftruncate(fd, size_bytes if fd in placed else 0)
    return placed


def _reserve(fd: int, start: int, size_bytes: int, kept_bytes: float) -> bool:
    """Reserves a part of a file; False: there is no room for it beyond what is kept."""
    if free_space.told(fd)[0] - size_bytes < kept_bytes:
        return False
    span = (ctypes.c_int64(start), ctypes.c_int64(size_bytes))
    if LIBC.fallocate(fd, 0, *span) == 0:
        return True
    number = ctypes.get_errno()
    if number in WITHOUT:
        # where nothing is reserved the file lies where the file system puts what is written
        return start == 0
    if number in FULL:
        return False
    raise OSError(number, os.strerror(number))
