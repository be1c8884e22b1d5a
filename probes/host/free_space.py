"""How much a folder's file system can lend to a run, leaving its users enough."""

from __future__ import annotations

import os

from probes.stage import Unavailable

GIB = 1024**3
MIB = 1024**2
LEAST_BYTES = 4 * MIB
"""A file smaller than this says nothing about a disk."""


def reserve_bytes(total_bytes: int) -> int:
    """Bytes of a file system that stay free: a tenth, or 2 GiB where that is no quarter of it."""
    return max(total_bytes // 10, min(2 * GIB, total_bytes // 4))


def usable_bytes(folder: str) -> int:
    """Bytes that this user may write into folder, less the reserve; never negative."""
    told = os.statvfs(folder)
    return max(0, told.f_bavail * told.f_frsize - reserve_bytes(told.f_blocks * told.f_frsize))


def fitting(size_bytes: int, folder: str) -> int:
    """size_bytes, or as many whole MiB as fit; Unavailable where not even 4 MiB may be used."""
    usable = usable_bytes(folder)
    if usable < min(size_bytes, LEAST_BYTES):
        raise Unavailable(
            f"{folder} has no room for a test file: {usable // MIB} MiB may be used"
            " without touching the reserve that stays free; make room or choose another folder"
        )
    if size_bytes <= usable:
        return size_bytes
    return usable // MIB * MIB
