"""Space of a folder's file system that a run may use: a tenth, at most 2 GiB, stays free."""

from __future__ import annotations

import socket
from typing import Optional, Union

from probes.core.field_types import Folder
from probes.core.stage import Refused, Unavailable
from probes.system.platform import os

GIB = 1024**3
MIB = 1024**2
LEAST_BYTES, SMALL_BYTES, LEAST_SHARE_BYTES = MIB, 16 * MIB, 16 * MIB
"""Least size of a file that shows anything of a disk; size of a file that may take half of the
room; least size on a share for copies to last long enough."""
HELD_PARTS = 4
"""Divisor of the usable space for a file that stays for all of a run: copies need room too."""
LOOK_BYTES = 64 * MIB
"""Bytes written between two looks at the room: others write too."""
METADATA_PART = 256
"""Divisor for the metadata in the space beyond the reserve: a block of pointers for 1024 blocks
(ext2), a checksum of 4 bytes for 4 KiB (btrfs)."""


def reserve_bytes(total_bytes: int) -> int:
    """Returns the bytes of a file system that stay free: a tenth of it, and at most 2 GiB."""
    return min(-(-total_bytes // 10), 2 * GIB)


def beyond_reserve_bytes(free_bytes: int, total_bytes: int) -> int:
    """Returns the bytes of payload that may be written, by the free bytes; at least 0; pure."""
    beyond = max(0, free_bytes - reserve_bytes(total_bytes))
    return beyond - -(-beyond // METADATA_PART)


def credible_room(free_bytes: int, total_bytes: int) -> tuple[int, int]:
    """Returns both figures, or 0 of 0 (not reported) where more is free than there is."""
    return (free_bytes, total_bytes) if free_bytes <= total_bytes else (0, 0)


def usable_bytes(folder: Folder) -> int:
    """Returns the bytes that this user may write into folder, less the reserve; at least 0."""
    return beyond_reserve_bytes(*space_of(folder))


def fitting_size(size_bytes: int, folder: str, parts: int = 1) -> int:
    """Returns size_bytes, or as many full MiB as fit; Unavailable where not even 1 MiB fits.

    parts: divisor of the usable space, as other files of the run need room beside it.
    """
    return fitting_size_in(size_bytes, folder, *space_of(folder), parts)


def fitting_size_in(
    size_bytes: int, folder: str, free_bytes: int, total_bytes: int, parts: int = 1
) -> int:
    """Returns fitting_size() by a file system's figures; 0 of 0 (some FUSE) is no answer."""
    if not total_bytes:
        return size_bytes
    usable = beyond_reserve_bytes(free_bytes, total_bytes)
    if usable < min(size_bytes, LEAST_BYTES):
        raise Unavailable(f"{folder}: {no_room(free_bytes, total_bytes, LEAST_BYTES)}")
    usable = max(usable // parts, min(usable // 2, SMALL_BYTES), min(usable, LEAST_BYTES))
    return size_bytes if size_bytes <= usable else usable // MIB * MIB


def no_room(free_bytes: int, total_bytes: int, needed_bytes: int) -> str:
    """Returns the message that a file does not fit, with all figures and the remedy."""
    lacking = -(-(reserve_bytes(total_bytes) + needed_bytes - free_bytes) // MIB)
    free, reserve = (f"{round(e / MIB, 1):g} MiB" for e in (free_bytes, reserve_bytes(total_bytes)))
    return (
        f"not enough free space: {free} are free, {reserve} stay free (a tenth, at most 2 GiB), "
        f"and a test file needs {needed_bytes // MIB} MiB; free at least {lacking} MiB more or use "
        "another folder"
    )


def room_bytes(fd: int) -> Optional[int]:
    """Returns the bytes that may still be written to an open file; None: not reported."""
    free, total = space_of(fd)
    return beyond_reserve_bytes(free, total) if total else None


class Watch:
    """Check of the room while a file of ours grows: others may fill the disk meanwhile."""

    def __init__(self, folder: str, free_bytes: Optional[int] = None) -> None:
        """Takes the folder for messages; free_bytes before the file has grown; None: unknown."""
        self._folder = folder
        self._free_bytes = free_bytes
        self._unseen_bytes = 0
        self._wrote_bytes = 0

    def due(self, wrote_bytes: int) -> bool:
        """Whether another look is due after the bytes written since the last call."""
        self._wrote_bytes += wrote_bytes
        self._unseen_bytes += wrote_bytes
        if self._unseen_bytes < LOOK_BYTES:
            return False
        self._unseen_bytes = 0
        return True

    def look(self, free_bytes: int, total_bytes: int) -> None:
        """Raises Refused ("space") where less than the reserve is free. 0 of 0 is no answer.

        Others are blamed only for space that this file did not take.
        """
        reserve = reserve_bytes(total_bytes)
        if not total_bytes or free_bytes >= reserve:
            if self._free_bytes is None:
                self._free_bytes = free_bytes
            return
        own_bytes = self._wrote_bytes + self._wrote_bytes // METADATA_PART + LEAST_BYTES
        others = self._free_bytes is not None and self._free_bytes - free_bytes > own_bytes
        remedy = "free some space" if others else "free some space or use a smaller --size"
        raise Refused(
            "space",
            f"{self._folder} ({socket.gethostname()}): free space fell to {free_bytes // MIB} MiB"
            f"{' (other processes use it)' if others else ''}, and {reserve // MIB} MiB always"
            f" stay free; {remedy}",
        )

    def look_at(self, file: Union[int, str], wrote_bytes: Optional[int] = None) -> None:
        """Calls look() with the file system of an open file or a path.

        wrote_bytes: total written, where due() is not called.
        """
        if wrote_bytes is not None:
            self._wrote_bytes = wrote_bytes
        self.look(*space_of(file))


def space_of(place: Union[int, str, os.PathLike[str]]) -> tuple[int, int]:
    """Returns the bytes free for this user and the total of the file system of a path or file."""
    answer = os.statvfs(place)
    return answer.f_bavail * answer.f_frsize, answer.f_blocks * answer.f_frsize
