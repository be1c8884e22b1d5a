"""The client's end of a copy: a file in its folder, or memory alone."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator

from probes.host import nameless, page_cache, payload
from probes.records import Details
from probes.stage import Refused

WRITEBACK_BYTES = 8 * 1024 * 1024
READ_AHEAD_BYTES = 16 * 1024 * 1024
READ_AHEAD_STEP_BYTES = 128 * 1024
"""One POSIX_FADV_WILLNEED reads no more than the device's read-ahead (mm/readahead.c)."""
CHECK_ONE_REPLY_IN = 16
UNCACHED_RATIO = 0.01
"""A file counts as uncached up to this, and as cached from 1 - this: stray read-ahead pages."""

_SYNC_FILE_RANGE_WRITE = 2  # sync_file_range(2)
_libc = ctypes.CDLL(None, use_errno=True)


class FolderSink:
    """Takes a pull into a new nameless file; the disk writes while the network still delivers."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._since_writeback = 0
        self.intact = True
        """Blocks are compared by the caller, after the window."""
        try:
            self._fd = nameless.create(folder)
        except OSError as error:
            raise _refused(folder, error) from error

    def take(self, offset: int, view: memoryview) -> None:
        """Writes what arrived; starts write-back every WRITEBACK_BYTES, as a long copy does."""
        size = len(view)
        try:
            done = os.pwrite(self._fd, view, offset)
            while done < size:
                done += os.pwrite(self._fd, view[done:], offset + done)
        except OSError as error:
            raise _refused(self._folder, error) from error
        self._since_writeback += size
        if self._since_writeback >= WRITEBACK_BYTES:
            self._since_writeback = 0
            if hasattr(_libc, "sync_file_range"):
                whole = ctypes.c_int64(0)
                _libc.sync_file_range(self._fd, whole, whole, _SYNC_FILE_RANGE_WRITE)

    def finish(self) -> None:
        """Returns when all is on the disk."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise _refused(self._folder, error) from error

    def block(self, offset: int, size: int) -> Iterator[memoryview]:
        """What was written there."""
        yield memoryview(os.pread(self._fd, size, offset))

    def close(self) -> None:
        """The file is gone with it."""
        os.close(self._fd)


class MemorySink:
    """Takes a pull and forgets it, after comparing one reply in CHECK_ONE_REPLY_IN."""

    def __init__(self, ring: memoryview) -> None:
        self._ring = ring
        self._replies = 0
        self.intact = True
        """Nothing compared so far differed."""

    def take(self, offset: int, view: memoryview) -> None:
        """Looks at what arrived, now and then."""
        if self._replies % CHECK_ONE_REPLY_IN == 0:
            self.intact = self.intact and payload.matches(self._ring, offset, view)
        self._replies += 1

    def finish(self) -> None:
        """Memory is durable enough."""

    def close(self) -> None:
        """Nothing is open."""


class FolderSource:
    """Gives a push the client's file, read ahead so that disk and network overlap."""

    def __init__(self, path: str, size_bytes: int, cached: bool) -> None:
        """Opens the file for reading and brings it to the cache state wanted.

        Raises ValueError where the file is shorter than size_bytes.
        """
        self._size_bytes, self._cached = size_bytes, cached
        self._advised = size_bytes if cached else 0
        self._buffer = memoryview(bytearray(0))
        self._fd = os.open(path, os.O_RDONLY)
        found = os.fstat(self._fd).st_size
        if found < size_bytes:
            os.close(self._fd)
            raise ValueError(f"the client's file has {found} bytes, {size_bytes} are to be pushed")
        if cached:
            page_cache.warm(self._fd, size_bytes)
        else:
            page_cache.evict(self._fd, size_bytes)

    def cache(self) -> Details:
        """What the page cache holds of the file right now, and whether that is what was wanted."""
        told = page_cache.state(self._fd, self._size_bytes)
        ratio = None if told is None else told.cached_ratio
        proven = ratio is not None and (
            ratio >= 1 - UNCACHED_RATIO if self._cached else ratio <= UNCACHED_RATIO
        )
        return {"proven": proven, "cached_ratio_before": ratio}

    def give(self, offset: int, size: int) -> memoryview:
        """The file's bytes there, valid until the next call."""
        ahead = min(self._size_bytes, offset + READ_AHEAD_BYTES)
        while self._advised < ahead:
            os.posix_fadvise(self._fd, self._advised, READ_AHEAD_STEP_BYTES, os.POSIX_FADV_WILLNEED)
            self._advised += READ_AHEAD_STEP_BYTES
        if len(self._buffer) < size:
            self._buffer = memoryview(bytearray(size))
        view = self._buffer[:size]
        done = 0
        while done < size:
            count = os.preadv(self._fd, [view[done:]], offset + done)
            if not count:
                raise OSError(errno.EIO, "the client's file became shorter while it was read")
            done += count
        return view

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


class MemorySource:
    """Gives a push its payload from memory."""

    def __init__(self, ring: memoryview, cached: bool) -> None:
        self._ring, self._cached = ring, cached

    def cache(self) -> Details:
        """Memory is as cached as can be."""
        return {"proven": self._cached, "cached_ratio_before": 1.0}

    def give(self, offset: int, size: int) -> memoryview:
        """The payload there."""
        return payload.block(self._ring, offset, size)

    def close(self) -> None:
        """Nothing is open."""


def _refused(folder: str, error: OSError) -> Exception:
    """What the user has to mend in the folder; other errors stay what they are."""
    where = f"this host: folder {folder}:"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Refused("space", f"{where} no room for the copy; make room or name another folder")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Refused("permission", f"{where} cannot be written to; name another folder")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Refused("usage", f"{where} does not exist; name another folder")
    return error
