"""A run's file on a share as the host that serves it sees it: made durable, resized, compared.

For copies that the other host starts: its program may neither flush nor look at what arrived.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import time
from contextlib import contextmanager
from typing import Iterator

from probes.host import free_space, locate, payload, source_file

COMPARE_BYTES = 4 << 20
SYNC_FILE_RANGE_WRITE = 2
"""sync_file_range(2)."""

_libc = ctypes.CDLL(None, use_errno=True)


def flush(path: str, file_name: str) -> float:
    """Returns when the file's content is on the disk: the seconds that it took.

    path: a run's folder as locate() found it; file_name: that of a run's file. Errors: ValueError,
    OSError.
    """
    with _opened(path, file_name, os.O_RDONLY) as fd:
        began = time.monotonic()
        os.fsync(fd)
        return time.monotonic() - began


def resize(
    path: str,
    file_name: str,
    size_bytes: int,
    seed: str,
    limit_seconds: float,
    create: bool = False,
) -> int:
    """Makes the file size_bytes long: cut, or continued with the payload for so many seconds.

    create: it may be a new one, which this process's user owns. Returns the size that it has then;
    it is flushed. Errors: ValueError, OSError, Unavailable where the file system has no room.
    """
    with _opened(path, file_name, os.O_RDWR | (os.O_CREAT if create else 0)) as fd:
        present = os.fstat(fd).st_size
        wanted = size_bytes
        if wanted > present:
            wanted = present + free_space.fitting(wanted - present, path)
            until = time.monotonic() + limit_seconds
            return source_file.fill(fd, wanted, bytes.fromhex(seed), until, present)
        os.ftruncate(fd, wanted)
        os.fsync(fd)
        return wanted


def intact(path: str, file_name: str, size_bytes: int, seed: str) -> bool:
    """Whether the file has that size and is the payload of the seed from end to end."""
    with _opened(path, file_name, os.O_RDONLY) as fd:
        return holds_payload(fd, size_bytes, bytes.fromhex(seed))


def holds_payload(fd: int, size_bytes: int, seed: bytes) -> bool:
    """Whether an open file has that size and is the payload of the seed from end to end."""
    if os.fstat(fd).st_size != size_bytes:
        return False
    ring = payload.ring(seed)
    buffer = memoryview(bytearray(COMPARE_BYTES))
    offset = 0
    while offset < size_bytes:
        got = os.preadv(fd, [buffer[: size_bytes - offset]], offset)
        if got == 0 or not payload.matches(ring, offset, buffer[:got]):
            return False
        offset += got
    return True


def start_write_back(fd: int) -> None:
    """Has the kernel begin to write what is dirty, as it does in a long copy; does not wait."""
    if hasattr(_libc, "sync_file_range"):
        whole = ctypes.c_int64(0)
        _libc.sync_file_range(fd, whole, whole, ctypes.c_uint(SYNC_FILE_RANGE_WRITE))


def remove(path: str, file_name: str = "") -> None:
    """Deletes one of the run's own files in its folder, or all of them; the folder stays.

    What another user owns stays too: the server of the share removes it. Errors: ValueError for
    any other name, OSError where there is no such folder.
    """
    locate.check_name(os.path.basename(path))  # noqa: PTH119
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for each in filter(
            locate.RUN_FILE.fullmatch, [file_name] if file_name else os.listdir(folder)
        ):
            with contextlib.suppress(OSError):
                os.unlink(each, dir_fd=folder)  # noqa: PTH108
    finally:
        os.close(folder)


@contextmanager
def _opened(path: str, name: str, flags: int) -> Iterator[int]:
    locate.check_name(os.path.basename(path))  # noqa: PTH119
    if not locate.RUN_FILE.fullmatch(name):
        raise ValueError("not the name of a run's file")
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        # O_NONBLOCK: a planted FIFO must not hold us
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        told = os.fstat(fd)
        # a second name would make it somebody else's file as well
        if not stat.S_ISREG(told.st_mode) or told.st_nlink > 1:
            raise ValueError(f"{name} in the run's folder is not a regular file of its own")
        yield fd
    finally:
        os.close(fd)
