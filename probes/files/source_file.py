"""The run's own file on a host, which exists for as long as copies and disk stages read it.

It has no name: the end of this process also removes the file. It is written and flushed, so that no
stage reads blocks that were only reserved.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Iterator

from probes.core.field_types import Count, Folder, Seconds, Size, Text
from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.files import free_space, payload, unnamed_file
from probes.files.page_cache import LIBC
from probes.system.child import end_with_parent
from probes.system.platform import os

STEP_BYTES = 4 * 1024 * 1024
SYNC_WRITE, SYNC_WRITTEN = 2, 1 | 2 | 4
"""Flags of sync_file_range(2): begin to write; wait until it is written."""


@dataclass(frozen=True)
class Setting:
    """Source file to create."""

    folder: Folder
    size_bytes: Size
    seconds: Seconds
    """Time after which writing the file ends early."""
    seed: Text
    """Seed of the payload, hex."""
    parts: Count = 1
    """See free_space.fitting_size."""


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Creates a nameless file with the run's payload for the time of the block.

    Yields its path through /proc and facts: size_bytes (as fits and was written in time, in full
    steps of 4 MiB), seconds. Errors: Refused ("usage", "permission", "space"); Unavailable where
    less than 4 MiB may be used.
    """
    fd = open_new(setting.folder)
    try:
        size_bytes = free_space.fitting_size(setting.size_bytes, setting.folder, setting.parts)
        began = time.monotonic()
        written = fill(fd, size_bytes, bytes.fromhex(setting.seed), began + setting.seconds)
        if not written:
            raise _full(setting.folder)
        facts = {"size_bytes": written, "seconds": time.monotonic() - began}
        with _visible_path(fd) as path:
            yield Endpoint(path=path, facts=facts)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full(setting.folder) from None
        raise
    finally:
        os.close(fd)


@contextmanager
def _visible_path(fd: int) -> Iterator[str]:
    """Yields a path by which other processes of this user open the file.

    It belongs to a program that only has it open: our own is closed to them (keep_private).
    """
    if sys.platform == "win32":
        yield os.name_of(fd)
        return
    parent = os.getpid()
    with subprocess.Popen(
        ["/bin/sh", "-c", "read -r _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(fd,),
        preexec_fn=lambda: end_with_parent(parent),
    ) as holder:
        yield f"/proc/{holder.pid}/fd/{fd}"


def open_new(folder: str) -> int:
    """Creates a nameless file in the folder; raises Refused with the remedy."""
    host = socket.gethostname()
    try:
        return unnamed_file.create(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise Refused("usage", f"the folder {folder} does not exist on {host}") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _full(folder) from None
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        why = os.strerror(error.errno)
        raise Refused(
            "permission", f"{folder} on {host} cannot be written ({why}); choose another folder"
        ) from None


def fill(fd: int, size_bytes: int, seed: bytes, deadline: float, start: int = 0) -> int:
    """Writes payload from the file's start until size or deadline (monotonic); returns the size.

    start: bytes that exist already. Ends early too where somebody else took the room.

    Write-back keeps up with the writing, so that the last flush has little to do: on a slow disk at
    most two steps are outstanding.
    """
    ring = payload.make_ring(seed)
    offset = start
    looked_at = start
    while offset < size_bytes:
        if offset >= looked_at:
            size_bytes = _fitting_now(fd, offset, size_bytes)
            looked_at = offset + free_space.LOOK_BYTES
        step = min(STEP_BYTES, size_bytes - offset)
        if not step:
            break
        _write_all(fd, payload.block(ring, offset, step), offset)
        sync_range(fd, offset, step, SYNC_WRITE)
        if offset > start and not sync_range(fd, offset - STEP_BYTES, STEP_BYTES, SYNC_WRITTEN):
            os.fsync(fd)
        offset += step
        if time.monotonic() >= deadline:
            break
    os.fsync(fd)
    return offset


def _fitting_now(fd: int, offset: int, size_bytes: int) -> int:
    """Returns the size that the file may reach, in full steps where that is less."""
    room = free_space.room_bytes(fd)
    if room is None or size_bytes - offset <= room:
        return size_bytes
    return offset + room // STEP_BYTES * STEP_BYTES


def _write_all(fd: int, block: memoryview, offset: int) -> None:
    done = 0
    while done < len(block):
        done += os.pwrite(fd, block[done:], offset + done)


def sync_range(fd: int, offset: int, size: int, flags: int) -> bool:
    """Returns calls sync_file_range(2); False where the system or the file system has none."""
    if not hasattr(LIBC, "sync_file_range"):
        return False
    span = (ctypes.c_int64(offset), ctypes.c_int64(size))
    return bool(LIBC.sync_file_range(fd, *span, ctypes.c_uint(flags)) == 0)


def _full(folder: str) -> Refused:
    return Refused("space", f"{folder} on {socket.gethostname()} is full; free some space")
