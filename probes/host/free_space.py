"""How much a folder's file system can lend to a run, leaving its users enough.

A tenth of it stays free, and never less than 2 GiB: what is smaller takes no file of ours at all.
"""

from __future__ import annotations

import os
import socket
from typing import Optional, Union

from probes.stage import Refused, Unavailable

GIB = 1024**3
MIB = 1024**2
LEAST_BYTES = 4 * MIB
"""A file smaller than this says nothing about a disk."""
LOOK_BYTES = 64 * MIB
"""After so much was written the room is looked at again: others write too."""
METADATA_PART = 256
"""Of what lies beyond the reserve, the part that a file system may need to keep book of the rest:
a block of pointers for 1024 blocks (ext2), a checksum of 4 bytes for 4 KiB (btrfs)."""


def reserve_bytes(total_bytes: int) -> int:
    """Bytes of a file system that stay free: a tenth of it, and at least 2 GiB."""
    return max(-(-total_bytes // 10), 2 * GIB)


def beyond_reserve_bytes(free_bytes: int, total_bytes: int) -> int:
    """Bytes of payload that may be written where so much is free; never negative; pure."""
    beyond = max(0, free_bytes - reserve_bytes(total_bytes))
    return beyond - -(-beyond // METADATA_PART)


def usable_bytes(folder: str) -> int:
    """Bytes that this user may write into folder, less the reserve; never negative."""
    return beyond_reserve_bytes(*_told(os.statvfs(folder)))


def fitting(size_bytes: int, folder: str) -> int:
    """size_bytes, or as many whole MiB as fit; Unavailable where not even 4 MiB may be used."""
    return fitting_in(size_bytes, folder, *_told(os.statvfs(folder)))


def fitting_in(size_bytes: int, folder: str, free_bytes: int, total_bytes: int) -> int:
    """The same of a file system that told this of itself; 0 of 0 (some FUSE) is no answer."""
    if not total_bytes:
        return size_bytes
    usable = beyond_reserve_bytes(free_bytes, total_bytes)
    if usable < min(size_bytes, LEAST_BYTES):
        raise Unavailable(
            f"{folder} has no room for a test file: {usable // MIB} MiB may be used"
            f" beside the {reserve_bytes(total_bytes) // MIB} MiB that stay free (a tenth, and at"
            " least 2 GiB); make room or choose another folder"
        )
    return size_bytes if size_bytes <= usable else usable // MIB * MIB


def room_bytes(fd: int) -> Optional[int]:
    """Bytes that may still be written to an open file; None: its file system does not tell."""
    free, total = _told(os.statvfs(fd))
    return beyond_reserve_bytes(free, total) if total else None


class Watch:
    """Looks at the room again while a file grows: somebody else may fill the disk meanwhile."""

    def __init__(self, folder: str) -> None:
        """folder: for the message."""
        self._folder = folder
        self._unseen_bytes = 0

    def due(self, wrote_bytes: int) -> bool:
        """Whether, with what was written since the last call, it is time for another look."""
        self._unseen_bytes += wrote_bytes
        if self._unseen_bytes < LOOK_BYTES:
            return False
        self._unseen_bytes = 0
        return True

    def look(self, free_bytes: int, total_bytes: int) -> None:
        """Refused ("space") where less than the reserve is free by now. 0 of 0 is no answer."""
        reserve = reserve_bytes(total_bytes)
        if total_bytes and free_bytes < reserve:
            raise Refused(
                "space",
                f"{self._folder} ({socket.gethostname()}) has no room by now, somebody else fills"
                f" it: {free_bytes // MIB} MiB are free and {reserve // MIB} MiB stay free;"
                " make room there",
            )

    def look_at(self, file: Union[int, str]) -> None:
        """The same of the file system of an open file or a path, asked now."""
        self.look(*_told(os.statvfs(file)))


def _told(answer: os.statvfs_result) -> tuple[int, int]:
    """Bytes that are free for this user, and all bytes."""
    return answer.f_bavail * answer.f_frsize, answer.f_blocks * answer.f_frsize
