"""Puts a file into the page cache or out of it, and proves it.

posix_fadvise(DONTNEED) works for any reader of a file, but drops only clean pages: fsync comes
first. On tmpfs nothing can be dropped: the page cache is the file, and state() says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import sys
import time
from dataclasses import dataclass
from typing import Any

from probes.core.records import Details
from probes.system.platform import os

CACHESTAT = 451
"""System call number on every architecture but alpha; Linux 6.5 (mm/filemap.c)."""

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
STEP_BYTES = 1024 * 1024
MINCORE_STEP_BYTES = 256 * 1024 * 1024
FOLIO_BYTES = 4 << 20
"""A multiple of every size that the page cache's folios have, and they are aligned to it."""
DOUBT_RATIO = 0.001
STRAY_RATIO = 0.01
"""Tolerated share where read-ahead may have cached a few pages of an open file."""
EVICT_TRIES = 3
EVICT_PAUSE_SECONDS = 0.01
EVICT_SECONDS = 2.0


OTHER_CACHES = (0x2FC12FC1, 0x65735546)
"""ZFS (its ARC) and FUSE (its daemon, or the device below) hold data that the page cache does not
show. statfs(2)."""


@dataclass(frozen=True)
class CacheState:
    """Share of a file in the page cache."""

    cached_ratio: float
    """Cached pages over the pages of the file."""
    dirty_bytes: int | None
    """Bytes dirty or under write-back; None: the kernel is too old (mincore)."""


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]  # noqa: RUF012


class _Counts(ctypes.Structure):
    _fields_ = [  # noqa: RUF012
        (name, ctypes.c_uint64)
        for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    ]


LIBC: Any = None if sys.platform == "win32" else ctypes.CDLL(None, use_errno=True)
"""C library, for calls that Python lacks."""


def evict(fd: int, first_bytes: int = 0) -> None:
    """Writes the file's dirty pages and drops its first bytes from the page cache; 0: all of it.

    Waits up to 2 s for pages that are still being read ahead. No error where it has no effect
    (tmpfs, a system without posix_fadvise): state() shows it.
    """
    size_bytes = first_bytes or os.fstat(fd).st_size
    # A large folio that extends beyond the end would stay in full (mm/truncate.c).
    reach = -(-first_bytes // FOLIO_BYTES) * FOLIO_BYTES
    until = time.monotonic() + EVICT_SECONDS
    without_effect = 0
    while without_effect < EVICT_TRIES:
        # a file system that is read-only or has no fsync has no dirty pages of ours
        with contextlib.suppress(OSError):
            os.fsync(fd)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, 0, reach, os.POSIX_FADV_DONTNEED)
        cache = state(fd, size_bytes)
        if cache is None or cache.cached_ratio == 0 or time.monotonic() >= until:
            return
        without_effect = without_effect + 1 if cache.cached_ratio == 1 else 0
        time.sleep(EVICT_PAUSE_SECONDS)


def pass_by(fd: int) -> bool:
    """Has the descriptor's reads and writes bypass the page cache; False: not possible.

    They have to be of full pages then, at page starts in memory. Source: O_DIRECT of open(2),
    F_NOCACHE of macOS' fcntl(2), FILE_FLAG_NO_BUFFERING of Windows.
    """
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            os.pass_cache(fd)
            return True
        import fcntl

        if hasattr(os, "O_DIRECT"):
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_DIRECT)
            return True
        if hasattr(fcntl, "F_NOCACHE"):
            fcntl.fcntl(fd, fcntl.F_NOCACHE, 1)
            return True
    return False


def warm(fd: int, size_bytes: int) -> None:
    """Reads the first size_bytes of the file through the page cache."""
    buffer = bytearray(STEP_BYTES)
    view = memoryview(buffer)
    offset = 0
    while offset < size_bytes:
        got = os.preadv(fd, [view[: size_bytes - offset]], offset)
        if got == 0:
            return
        offset += got


def set_cached(fd: int, size_bytes: int, cached: bool) -> None:
    """Puts a file of that size into the page cache, or out of it."""
    if cached:
        warm(fd, size_bytes)
    else:
        evict(fd, size_bytes)


def describe_cache(fd: int, size_bytes: int, cached: bool) -> Details:
    """Returns the cached share of a file to be copied, and whether it is as requested."""
    cache = state(fd, size_bytes)
    return {
        "proven": is_proven(cache, cached, STRAY_RATIO),
        "cached_ratio_before": None if cache is None else cache.cached_ratio,
    }


def state(fd: int, size_bytes: int) -> CacheState | None:
    """Returns the cached and dirty part of the first size_bytes; None: not reported.

    cachestat(2) needs Linux 6.5 and, unless root, ownership of the file or the right to write it.
    On older kernels mincore(2), which is exact for owner and root alone. None too on file systems
    that cache elsewhere.
    """
    pages = -(-size_bytes // PAGE_BYTES)
    if pages == 0:
        return None
    counts = _Counts()
    span = _Range(0, size_bytes)
    if not sys.platform.startswith("linux") or _filesystem_number(fd) in OTHER_CACHES:
        return None
    if LIBC.syscall(CACHESTAT, fd, ctypes.byref(span), ctypes.byref(counts), 0) == 0:
        dirty = (counts.dirty + counts.writeback) * PAGE_BYTES
        return CacheState(min(1.0, counts.cached / pages), dirty)
    if ctypes.get_errno() == errno.ENOSYS and os.geteuid() in (0, os.fstat(fd).st_uid):
        cached = _resident_pages(fd, size_bytes)
        return None if cached is None else CacheState(min(1.0, cached / pages), None)
    return None


def is_proven(cache: CacheState | None, cached: bool, doubt_ratio: float = DOUBT_RATIO) -> bool:
    """Whether the cache had as requested all of the file, or none of it.

    doubt_ratio: tolerated share of the file in the other state.
    """
    if cache is None:
        return False
    ratio = cache.cached_ratio
    return ratio >= 1 - doubt_ratio if cached else ratio <= doubt_ratio


def _filesystem_number(fd: int) -> int | None:
    """Returns f_type of fstatfs(2), its first word; None: unknown."""
    words = (ctypes.c_long * 64)()
    return words[0] & 0xFFFFFFFF if LIBC.fstatfs(fd, words) == 0 else None


def _resident_pages(fd: int, size_bytes: int) -> int | None:
    """Returns the pages of the file in memory by mincore(2); None: it cannot be mapped."""
    shared, readable = 1, 1
    LIBC.mmap.restype = ctypes.c_void_p
    resident = 0
    for offset in range(0, size_bytes, MINCORE_STEP_BYTES):
        length = min(MINCORE_STEP_BYTES, size_bytes - offset)
        address = LIBC.mmap(
            None, ctypes.c_size_t(length), readable, shared, fd, ctypes.c_long(offset)
        )
        if address is None or address == ctypes.c_void_p(-1).value:
            return None
        vector = (ctypes.c_ubyte * -(-length // PAGE_BYTES))()
        try:
            if LIBC.mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), vector) != 0:
                return None
        finally:
            LIBC.munmap(ctypes.c_void_p(address), ctypes.c_size_t(length))
        resident += sum(flags & 1 for flags in bytes(vector))
    return resident
