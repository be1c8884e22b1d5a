"""The client's end of a copy: a file in its folder, or memory only; checks of the content."""

from __future__ import annotations

import errno
import secrets
import time
from collections import Counter
from collections.abc import Iterator

from probes.core.records import Details
from probes.core.stage import Refused
from probes.files import free_space, page_cache, payload, served_file, source_file, unnamed_file
from probes.smb.time_bins import FLUSH, READ, WRITE, TimeBins
from probes.system.platform import os

WRITEBACK_BYTES = 8 * 1024 * 1024
MOST_DIRTY_BYTES = 4 * WRITEBACK_BYTES
"""Unwritten bytes of a pull to a slow disk: more would extend its last flush many times over."""
READ_AHEAD_BYTES = 16 * 1024 * 1024
READ_AHEAD_STEP_BYTES = 128 * 1024
"""One POSIX_FADV_WILLNEED reads no more than the device's read-ahead (mm/readahead.c)."""
CHECK_ONE_REPLY_IN = 16
CHECK_BLOCK_BYTES = 4 * 1024 * 1024
READ_AT_ONCE_BYTES = 256 * 1024
"""Bytes of one read of a file that is pushed by shorter requests: one system call for many."""


class Check:
    """Compares parts of a file with the payload."""

    def __init__(self, ring: memoryview) -> None:
        self._ring = ring
        self.intact = True
        """Whether all parts compared so far were right."""
        self.checked_bytes = 0

    def take(self, offset: int, view: memoryview) -> None:
        """Compares the part of the file at offset; at most 8 MiB."""
        self.intact = self.intact and payload.matches(self._ring, offset, view)
        self.checked_bytes += len(view)


def spread(size_bytes: int, block_bytes: int, seconds: float) -> Iterator[tuple[int, int]]:
    """Yields start and end of a file's blocks: all of them, or as many as the time allows.

    First and last come first, whatever the time; then the others in a random order, so that no
    server knows which part of a file will not be checked.
    """
    count = -(-size_bytes // block_bytes)
    inner = list(range(1, count - 1))
    secrets.SystemRandom().shuffle(inner)
    until = time.monotonic() + seconds
    for place, number in enumerate([0, count - 1][:count] + inner):
        if place > 1 and time.monotonic() > until:
            return
        yield number * block_bytes, min(size_bytes, (number + 1) * block_bytes)


class FolderSink:
    """Takes a pull into a new nameless file; the disk writes while the network still delivers."""

    def __init__(self, folder: str, times: TimeBins | None = None) -> None:
        """times: gets the time that the disk takes."""
        self._folder, self._times = folder, times or TimeBins()
        self._since_writeback = 0
        self.file_bytes = 0
        """Size of a source that is pulled repeatedly, each time appended; 0: pulled once."""
        self._times_taken: Counter[int] = Counter()
        try:
            self._fd = unnamed_file.create(folder)
        except OSError as error:
            raise _folder_refusal(folder, error) from error
        self._room = free_space.Watch(folder, free_space.space_of(self._fd)[0])

    def take(self, offset: int, view: memoryview) -> None:
        """Writes what arrived; starts write-back every WRITEBACK_BYTES, as a long copy does.

        Raises Refused ("space") where the folder's file system has less than its reserve free.
        """
        size = len(view)
        if self.file_bytes:
            self._times_taken[offset] += 1
            offset += self.file_bytes * (self._times_taken[offset] - 1)
        if self._room.due(size):
            self._room.look_at(self._fd)
        began = self._times.clock()
        try:
            done = os.pwrite(self._fd, view, offset)
            while done < size:
                done += os.pwrite(self._fd, view[done:], offset + done)
        except OSError as error:
            raise _folder_refusal(self._folder, error) from error
        self._since_writeback += size
        if self._since_writeback >= WRITEBACK_BYTES:
            self._since_writeback = 0
            served_file.start_write_back(self._fd)
            behind = offset // WRITEBACK_BYTES * WRITEBACK_BYTES - MOST_DIRTY_BYTES
            if behind >= 0:
                source_file.sync_range(self._fd, behind, WRITEBACK_BYTES, source_file.SYNC_WRITTEN)
        self._times.walls[WRITE] += self._times.clock() - began

    def finish(self) -> None:
        """Flushes the file to the disk."""
        began = self._times.clock()
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise _folder_refusal(self._folder, error) from error
        self._times.walls[FLUSH] += self._times.clock() - began

    def look(self, check: Check, size_bytes: int, seconds: float) -> None:
        """Compares the file, all of it unless that takes longer than seconds."""
        buffer = memoryview(bytearray(min(size_bytes, CHECK_BLOCK_BYTES)))
        for start, end in spread(size_bytes, CHECK_BLOCK_BYTES, seconds):
            count = os.preadv(self._fd, [buffer[: end - start]], start)
            check.take(start, buffer[:count])
            if count < end - start:
                check.intact = False

    def close(self) -> None:
        """Closes the file, which removes it."""
        os.close(self._fd)


class MemorySink:
    """Takes a pull and discards it, after comparing one reply in CHECK_ONE_REPLY_IN."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._replies = self.file_bytes = 0

    def take(self, offset: int, view: memoryview) -> None:
        """Compares one reply in CHECK_ONE_REPLY_IN."""
        if self._replies % CHECK_ONE_REPLY_IN == 0:
            self._check.take(offset, view)
        self._replies += 1

    def finish(self) -> None:
        """Does nothing."""

    def look(self, check: Check, size_bytes: int, seconds: float) -> None:
        """Does nothing: the content is discarded, and was compared on arrival."""

    def close(self) -> None:
        """Does nothing."""


class FolderSource:
    """Gives a push the client's file, read ahead so that disk and network overlap."""

    def __init__(
        self, path: str, size_bytes: int, cached: bool | None, times: TimeBins | None = None
    ) -> None:
        """Opens the file for reading and brings it into the given cache state; None: leaves it.

        times: gets the time that the disk takes. A cached file of the run that is shorter than
        size_bytes is given repeatedly. Raises ValueError for any other shorter one.
        """
        self._cached, self._times = cached, times or TimeBins()
        self._buffer = memoryview(bytearray(0))
        self._start = self._end = 0
        """Part of the copy that is in the buffer."""
        self._fd = os.open(path, os.O_RDONLY)
        length = os.fstat(self._fd).st_size
        # In whole periods, so that the payload continues seamlessly.
        again = length // payload.PERIOD_BYTES * payload.PERIOD_BYTES if cached else 0
        self._size_bytes = size_bytes = size_bytes if length >= size_bytes else again or size_bytes
        self._advised = size_bytes if cached else 0
        if length < size_bytes:
            os.close(self._fd)
            raise ValueError(f"the client's file has {length} bytes, {size_bytes} are to be pushed")
        if cached is not None:
            page_cache.set_cached(self._fd, size_bytes, cached)

    def cache(self) -> Details:
        """Returns the file's state in the page cache now, and whether it is as requested."""
        return page_cache.describe_cache(self._fd, self._size_bytes, bool(self._cached))

    def give(self, offset: int, size: int) -> memoryview:
        """Returns the file's bytes there, valid until the next call."""
        if offset < self._start or offset + size > self._end:
            remaining = self._size_bytes - offset % self._size_bytes
            self._fill(offset, max(size, min(READ_AT_ONCE_BYTES, remaining)))
        return self._buffer[offset - self._start : offset - self._start + size]

    def _fill(self, offset: int, size: int) -> None:
        began = self._times.clock()
        ahead = min(self._size_bytes, offset + READ_AHEAD_BYTES)
        while self._advised < ahead and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, self._advised, READ_AHEAD_STEP_BYTES, os.POSIX_FADV_WILLNEED)
            self._advised += READ_AHEAD_STEP_BYTES
        if len(self._buffer) < size:
            self._buffer = memoryview(bytearray(size))
        done = 0
        while done < size:
            position = (offset + done) % self._size_bytes
            part = self._buffer[done : min(size, done + self._size_bytes - position)]
            count = os.preadv(self._fd, [part], position)
            if not count:
                raise OSError(errno.EIO, "the client's file became shorter while it was read")
            done += count
        self._start, self._end = offset, offset + size
        self._times.walls[READ] += self._times.clock() - began

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


class MemorySource:
    """Gives a push its payload from memory."""

    def __init__(self, ring: memoryview, cached: bool) -> None:
        self._ring, self._cached = ring, cached

    def cache(self) -> Details:
        """Returns the state of memory: fully cached."""
        return {"proven": self._cached, "cached_ratio_before": 1.0}

    def give(self, offset: int, size: int) -> memoryview:
        """Returns the payload there."""
        return payload.block(self._ring, offset, size)

    def close(self) -> None:
        """Does nothing."""


def _folder_refusal(folder: str, error: OSError) -> Exception:
    """Returns Refused for what the user has to mend in the folder; other errors unchanged."""
    where = f"this host: folder {folder}:"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Refused("space", f"{where} not enough free space for the copy; use another folder")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Refused("permission", f"{where} no write permission; use another folder")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Refused("usage", f"{where} not found; use another folder")
    return error
