"""A run's file on a share as the host that serves it sees it: made durable, resized, compared.

For copies that the other host starts: its program may neither flush nor look at the result.
"""

from __future__ import annotations

import contextlib
import errno
import re
import secrets
import stat
import time
from contextlib import contextmanager
from typing import Iterator

from probes.core.field_types import Folder, Seconds, Size, Text
from probes.core.records import Details
from probes.files import free_space, page_cache, payload, removal, source_file
from probes.system.platform import descriptor, os

COMPARE_BYTES = 4 << 20


def flush(path: Folder, file_name: Text) -> float:
    """Flushes the file to the disk; returns the seconds that it took.

    path: a run's folder as locate() found it; file_name: that of a run's file. Errors: ValueError,
    OSError.
    """
    with _open_file(path, file_name, os.O_RDONLY) as fd:
        began = time.monotonic()
        os.fsync(fd)
        return time.monotonic() - began


def resize(
    path: Folder,
    file_name: Text,
    size_bytes: Size,
    seed: Text,
    limit_seconds: Seconds,
    create: bool = False,
) -> int:
    """Makes the file size_bytes long: cuts it, or writes payload for up to limit_seconds.

    create: it is a new file, which this process's user owns. Flushes it and returns its size.
    Errors: ValueError, also for a file that does not begin with the run's mark; OSError;
    Unavailable where the file system has no room.
    """
    exclusive = os.O_CREAT | os.O_EXCL if create else 0
    with _open_file(path, file_name, os.O_RDWR | exclusive) as fd:
        mark = payload.mark(bytes.fromhex(seed))
        present = os.fstat(fd).st_size
        if not create and os.pread(fd, len(mark), 0) != mark:
            raise ValueError(f"{file_name} was replaced by a file that is not of this run")
        target = size_bytes
        if target > present:
            target = present + free_space.fitting_size(target - present, path)
            deadline = time.monotonic() + limit_seconds
            return source_file.fill(fd, target, bytes.fromhex(seed), deadline, present)
        os.ftruncate(fd, target)
        os.fsync(fd)
        return target


def intact(path: Folder, file_name: Text, size_bytes: Size, seed: Text) -> bool:
    """Whether the file has that size and is the payload of the seed from end to end."""
    with _open_file(path, file_name, os.O_RDONLY) as fd:
        return holds_payload(fd, size_bytes, bytes.fromhex(seed))


def holds_payload(fd: int, size_bytes: int, seed: bytes) -> bool:
    """Whether an open file has that size and is the payload of the seed from end to end."""
    same_size = os.fstat(fd).st_size == size_bytes
    return same_size and intact_part(payload.make_ring(seed), fd, size_bytes)[0]


def intact_part(
    ring: memoryview, fd: int, size_bytes: int, until: float = float("inf")
) -> tuple[bool, int]:
    """Returns whether the file has the payload, and the bytes checked: the end, then all."""
    buffer = memoryview(bytearray(COMPARE_BYTES))
    last = max(0, size_bytes - 1) // COMPARE_BYTES * COMPARE_BYTES
    checked = 0
    for offset in (last, *range(0, last, COMPARE_BYTES)):
        if time.monotonic() >= until and checked:
            break
        view = buffer[: min(COMPARE_BYTES, size_bytes - offset)]
        done = 0
        while done < len(view):
            got = os.preadv(fd, [view[done:]], offset + done)
            if not got:
                raise OSError(errno.EIO, "the copy became shorter while it was checked")
            done += got
        if not payload.matches(ring, offset, view):
            return False, checked
        checked += len(view)
    return True, checked


def start_write_back(fd: int) -> None:
    """Has the kernel begin to write dirty data, as in a long copy; does not wait."""
    source_file.sync_range(fd, 0, 0, source_file.SYNC_WRITE)


def remove(path: Folder, file_name: Text = "") -> None:
    """Deletes one of the run's files in its folder, or all but the source; the folder stays.

    Another user's file stays too: the server of the share removes it. Errors: ValueError for any
    other name, OSError where there is no such folder.
    """
    run_folder = os.path.basename(path)  # noqa: PTH119
    check_name(run_folder)
    run_names = removal.run_files(run_folder)
    with descriptor(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)) as folder:
        names = [file_name] if file_name else {*os.listdir(folder)} - {source_name(path)}
        for each in filter(run_names.fullmatch, names):
            with contextlib.suppress(OSError):
                os.unlink(each, dir_fd=folder)  # noqa: PTH108


@contextmanager
def _open_file(path: str, name: str, flags: int) -> Iterator[int]:
    run_folder = os.path.basename(path)  # noqa: PTH119
    check_name(run_folder)
    if not removal.run_files(run_folder).fullmatch(name):
        raise ValueError("not the name of a run's file")
    with descriptor(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)) as folder:
        # O_NONBLOCK: a planted FIFO must not block us
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
    with descriptor(fd):
        status = os.fstat(fd)
        # a second name would make it somebody else's file as well
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise ValueError(f"{name} in the run's folder is not a regular file of its own")
        yield fd


RUN_FOLDER = re.compile(r"bottleneck-[0-9a-f]{8,64}")


def source_name(run_folder: str) -> str:
    """Returns the name of the file that pulls read, in a run's folder of that name or path."""
    return f"source-{run_folder.rpartition('-')[2]}"


def new_name(run_folder: str) -> str:
    """Returns a random name for a file that is pushed into a run's folder."""
    return f"pushed-{run_folder.rpartition('-')[2]}-{secrets.token_hex(8)}"


def check_name(folder_name: str) -> None:
    """Checks the name of a run's folder. Errors: ValueError."""
    if not RUN_FOLDER.fullmatch(folder_name):
        raise ValueError("not the name of a run's folder")


def set_cache(
    path: Folder, requested: Text, first_bytes: Size = 0, file_name: Text = ""
) -> Details:
    """Evicts or warms the first bytes of the source in the run's folder, and proves it.

    The rest is not touched: it need not be read from a slow disk again.
    path: as locate() found it. requested: cached, uncached. first_bytes: 0 is the whole file.
    file_name: another file of the run there; empty: the source.
    Returns side, requested, proven, cached_ratio_before (None: unknown). Errors: ValueError for a
    path that is not a run's folder or a source that is not a regular file; OSError.
    """
    if requested not in ("cached", "uncached"):
        raise ValueError(f"a file cannot be made {requested}")
    with _open_file(path, file_name or source_name(path), os.O_RDONLY) as fd:
        whole_bytes = os.fstat(fd).st_size
        size_bytes = min(first_bytes or whole_bytes, whole_bytes)
        if requested == "cached":
            page_cache.warm(fd, size_bytes)
        else:
            page_cache.evict(fd, size_bytes)
        state = page_cache.state(fd, size_bytes)
    return {
        "side": "server",
        "requested": requested,
        "proven": page_cache.is_proven(state, requested == "cached"),
        "cached_ratio_before": None if state is None else state.cached_ratio,
    }
