"""How much a folder's file system can lend to a run, leaving its users enough.

A tenth of it stays free, 2 GiB of a large one.
"""

from __future__ import annotations

import socket
from typing import Optional, Union

from probes.core.meaning import Folder
from probes.core.stage import Refused, Unavailable
from probes.system.platform import os

GIB = 1024**3
MIB = 1024**2
LEAST_BYTES, SMALL_BYTES, LEAST_SHARE_BYTES = MIB, 16 * MIB, 16 * MIB
"""A smaller file says nothing about a disk; what a file has where that is half of the room; what
copies need on a share to last long enough to show anything."""
HELD_PARTS = 4
"""Of what may be used, a file that a run holds all the time takes one in so many: its copies are
made beside it, and often beside another such file."""
LOOK_BYTES = 64 * MIB
"""After so much was written the room is looked at again: others write too."""
METADATA_PART = 256
"""Of what lies beyond the reserve, the part that a file system may need to keep book of the rest:
a block of pointers for 1024 blocks (ext2), a checksum of 4 bytes for 4 KiB (btrfs)."""


def reserve_bytes(total_bytes: int) -> int:
    """Bytes of a file system that stay free: a tenth of it, and at most 2 GiB."""
    return min(-(-total_bytes // 10), 2 * GIB)


def beyond_reserve_bytes(free_bytes: int, total_bytes: int) -> int:
    """Bytes of payload that may be written where so much is free; never negative; pure."""
    beyond = max(0, free_bytes - reserve_bytes(total_bytes))
    return beyond - -(-beyond // METADATA_PART)


def credible_room(free_bytes: int, total_bytes: int) -> tuple[int, int]:
    """Returns both figures, or 0 of 0 (untold) where more is free than there is."""
    return (free_bytes, total_bytes) if free_bytes <= total_bytes else (0, 0)


def usable_bytes(folder: Folder) -> int:
    """Bytes that this user may write into folder, less the reserve; never negative."""
    return beyond_reserve_bytes(*told(folder))


def fitting(size_bytes: int, folder: str, parts: int = 1) -> int:
    """size_bytes, or as many whole MiB as fit; Unavailable where not even 1 MiB may be used.

    parts: of what may be used one part at most, as other files of the run need room beside it.
    """
    return fitting_in(size_bytes, folder, *told(folder), parts)


def fitting_in(
    size_bytes: int, folder: str, free_bytes: int, total_bytes: int, parts: int = 1
) -> int:
    """The same of a file system that told this of itself; 0 of 0 (some FUSE) is no answer."""
    if not total_bytes:
        return size_bytes
    usable = beyond_reserve_bytes(free_bytes, total_bytes)
    if usable < min(size_bytes, LEAST_BYTES):
        raise Unavailable(f"{folder}: {no_room(free_bytes, total_bytes, LEAST_BYTES)}")
    usable = max(usable // parts, min(usable // 2, SMALL_BYTES), min(usable, LEAST_BYTES))
    return size_bytes if size_bytes <= usable else usable // MIB * MIB


def no_room(free_bytes: int, total_bytes: int, needed_bytes: int) -> str:
    """That a file does not fit, with all figures and what to do."""
    lacking = -(-(reserve_bytes(total_bytes) + needed_bytes - free_bytes) // MIB)
    free, reserve = (
        f"{round(each / MIB, 1):g} MiB" for each in (free_bytes, reserve_bytes(total_bytes))
    )
    return (
        f"not enough free space: {free} are free, {reserve} stay free (a tenth, at most 2 GiB), "
        f"and a test file needs {needed_bytes // MIB} MiB; free at least {lacking} MiB more or use "
        "another folder"
    )


def room_bytes(fd: int) -> Optional[int]:
    """Bytes that may still be written to an open file; None: its file system does not tell."""
    free, total = told(fd)
    return beyond_reserve_bytes(free, total) if total else None


class Watch:
    """Looks at the room again while a file of ours grows: others may fill the disk meanwhile."""

    def __init__(self, folder: str, free_bytes: Optional[int] = None) -> None:
        """folder: for the message. free_bytes: before the file has grown; None: not known."""
        self._folder = folder
        self._free_bytes = free_bytes
        self._unseen_bytes = 0
        self._wrote_bytes = 0

    def due(self, wrote_bytes: int) -> bool:
        """Whether, with what was written since the last call, it is time for another look."""
        self._wrote_bytes += wrote_bytes
        self._unseen_bytes += wrote_bytes
        if self._unseen_bytes < LOOK_BYTES:
            return False
        self._unseen_bytes = 0
        return True

    def look(self, free_bytes: int, total_bytes: int) -> None:
        """Refused ("space") where less than the reserve is free by now. 0 of 0 is no answer.

        Somebody else is blamed for no more than what this file did not take.
        """
        reserve = reserve_bytes(total_bytes)
        if not total_bytes or free_bytes >= reserve:
            if self._free_bytes is None:
                self._free_bytes = free_bytes
            return
        own = self._wrote_bytes + self._wrote_bytes // METADATA_PART + LEAST_BYTES
        others = self._free_bytes is not None and self._free_bytes - free_bytes > own
        remedy = "free some space" if others else "free some space or use a smaller --size"
        raise Refused(
            "space",
            f"{self._folder} ({socket.gethostname()}): free space fell to {free_bytes // MIB} MiB"
            f"{' (other processes use it)' if others else ''}, and {reserve // MIB} MiB always"
            f" stay free; {remedy}",
        )

    def look_at(self, file: Union[int, str], wrote_bytes: Optional[int] = None) -> None:
        """The same of the file system of an open file or a path, asked now.

        wrote_bytes: in all, where nobody calls due().
        """
        if wrote_bytes is not None:
            self._wrote_bytes = wrote_bytes
        self.look(*told(file))


def told(place: Union[int, str, os.PathLike[str]]) -> tuple[int, int]:
    """Bytes that are free for this user, and all bytes, of what a path or open file lies on."""
    answer = os.statvfs(place)
    return answer.f_bavail * answer.f_frsize, answer.f_blocks * answer.f_frsize
