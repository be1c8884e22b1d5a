"""A nameless file that grows by one block after the other, as a push to a file server makes it."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import Iterator

from probes.host import free_space, payload, source_file
from probes.stage import Unavailable
from probes.storage.setting import Setting

BLOCK_BYTES = 1024 * 1024
"""What SMB clients send in one request since 2.1."""


class GrowingFile:
    """An open file and what was appended to it."""

    def __init__(self, fd: int, most_bytes: int, seed: bytes) -> None:
        self.fd = fd
        self.written_bytes = 0
        self.ended_by = "time"
        """Why no more went into it: size (what was asked for), room (the rest stays free)."""
        self._most_bytes = most_bytes
        self._bounded_by = "size"
        self._looked_at = 0
        self._ring = payload.ring(seed)

    def append(self) -> bool:
        """Writes the next block of payload to the page cache; False: there shall be no more."""
        if self.written_bytes >= self._looked_at:
            self._look()
        if self.written_bytes + BLOCK_BYTES > self._most_bytes:
            self.ended_by = self._bounded_by
            return False
        try:
            self._write(payload.block(self._ring, self.written_bytes, BLOCK_BYTES))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self.ended_by = "room"
            return False
        self.written_bytes += BLOCK_BYTES
        return True

    def _look(self) -> None:
        """Whether the room is still there: others write too."""
        self._looked_at += free_space.LOOK_BYTES
        room = free_space.room_bytes(self.fd)
        if room is not None and self.written_bytes + room < self._most_bytes:
            self._most_bytes = self.written_bytes + room
            self._bounded_by = "room"

    def _write(self, block: memoryview) -> None:
        done = 0
        while done < len(block):
            done += os.pwrite(self.fd, block[done:], self.written_bytes + done)


@contextmanager
def growing(setting: Setting) -> Iterator[GrowingFile]:
    """An empty file in the setting's folder, for at most its size; gone when left.

    Errors: Refused (no such folder, no right to write there); Unavailable where less than 4 MiB
    may be used.
    """
    fd = source_file.open_new(setting.folder)
    try:
        size_bytes = free_space.fitting(setting.size_bytes, setting.folder)
        if size_bytes < BLOCK_BYTES:
            raise Unavailable("the file is smaller than one block of 1 MiB")
        yield GrowingFile(fd, size_bytes, bytes.fromhex(setting.seed))
    finally:
        os.close(fd)


def no_room(setting: Setting) -> Unavailable:
    """What to raise where not one block could be written."""
    return Unavailable(f"{setting.folder} is full: make room there or choose another folder")
