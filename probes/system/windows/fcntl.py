"""flock(2) and lockf(3) on a few bytes far behind any content; a lock goes with its process."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import errno
import msvcrt
import os

LOCK_EX, LOCK_NB = 2, 4
_FAR = 1 << 30


def flock(fd: int, how: int) -> None:
    """Locks a file. Errors: BlockingIOError, somebody else has it."""
    lockf(fd, how)


def lockf(fd: int, how: int, size: int = 1, start: int = _FAR) -> None:
    """Locks for one reader or writer at a time. Errors: BlockingIOError, somebody else has it."""
    position = os.lseek(fd, 0, os.SEEK_CUR)
    os.lseek(fd, start, os.SEEK_SET)
    try:
        if how & LOCK_NB:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, size)
            return
        while True:
            try:
                msvcrt.locking(fd, msvcrt.LK_LOCK, size)
                return
            except OSError as error:
                if error.errno != errno.EDEADLK:
                    raise
    except PermissionError:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    finally:
        os.lseek(fd, position, os.SEEK_SET)
