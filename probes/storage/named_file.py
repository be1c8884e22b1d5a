"""Reads a file of the user's once from its start: the disk's rate at the place where it lies.

It is opened for reading only and, where that is allowed, without changing its access time. It stays
in the page cache, which direct reads bypass. Threads of this process read: fio opens its file
itself and would change the access time.
"""

from __future__ import annotations

import contextlib
import mmap
import socket
import stat
import time
from contextlib import contextmanager
from typing import Generator, Iterator, List, Optional

from probes.core.field_types import Count, Folder, Name
from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last, Running, Unavailable
from probes.files import folders, page_cache, place
from probes.storage import Setting, foreign_io, sequential
from probes.storage.growing_write import Workers, middle_and_worst
from probes.storage.sequential import cache_details
from probes.system.platform import descriptor, os

SAMPLE_SECONDS = 0.25
GRACE_SECONDS = 6.0
"""Additional time for the requests in flight when the time is over."""
MADE_UP = frozenset(
    ("proc", "sysfs", "debugfs", "tracefs", "securityfs", "configfs", "cgroup", "cgroup2")
)
"""File systems whose files the kernel generates as they are read."""


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Measures sequential reads of setting.path, up to its size and time; samples are payload read.

    Returns place (None: the file system reports no extents), cache (proven: all came from the
    device), direct, file_bytes, latency_seconds, the device's counts, zones (one, the whole).
    Errors: Unavailable with a sentence (no such file, no right, no regular file, smaller than
    1 MiB), direct_reads.Shorter, OSError of the disk.
    """
    with open_file(setting.path) as fd:
        status = os.fstat(fd)
        size_bytes = min(setting.size_bytes, status.st_size) // BLOCK_BYTES * BLOCK_BYTES
        if size_bytes == 0:
            raise Unavailable(f"{setting.path} is smaller than 1 MiB: too small to measure a rate")
        device = _device_below(setting.path, status.st_dev)
        direct = setting.cache == "uncached" and page_cache.pass_by(fd)
        if setting.cache == "cached":
            page_cache.warm(fd, size_bytes)
        state = page_cache.state(fd, size_bytes)
        start = foreign_io.look(device)
        yield Sample(0.0, 0)
        run = Pass(fd, size_bytes, setting.seconds, DEPTH if direct else 1)
        samples = yield from sample_pass(run, setting.seconds + GRACE_SECONDS)
        # Dirty blocks have a place by now: direct reads had to wait until they were written.
        location = place.disk_place(fd)
    counted = foreign_io.counts(device, start, foreign_io.look(device), read_bytes=run.moved_bytes)
    rate = run.moved_bytes / run.elapsed_seconds
    return {
        **counted,
        "device": device,
        "direct": direct,
        "file_bytes": status.st_size,
        "place": location,
        "cache": cache_details(
            setting,
            getattr(state, "cached_ratio", None),
            _is_proven(setting, counted["device_read_bytes"], run.moved_bytes, state),
        ),
        "latency_seconds": middle_and_worst(run.latencies_seconds),
        "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": rate}],
        **sequential.window_details(samples),
    }


def _device_below(path: str, number: int) -> Optional[str]:
    """Returns the disk's kernel name below a file; Unavailable where the kernel generates it."""
    filesystem, device = place.filesystem_and_device(number)
    if filesystem in MADE_UP:
        raise Unavailable(f"{path} is not on a disk: the kernel generates it ({filesystem})")
    return device


def sample_pass(run: Pass, left_seconds: float) -> Generator[Sample, None, List[Sample]]:
    """Yields and returns the samples of a pass; raises RuntimeError after left_seconds."""
    samples = [Sample(0.0, 0)]
    try:
        while not run.wait(SAMPLE_SECONDS):
            left_seconds -= SAMPLE_SECONDS
            if left_seconds < 0:
                raise RuntimeError("the disk did not answer in time")
            samples.append(Sample(run.elapsed_seconds, run.moved_bytes))
            yield samples[-1]
    finally:
        run.stop(JOIN_SECONDS)
    samples.append(Last(run.elapsed_seconds, run.moved_bytes))
    yield samples[-1]
    return samples


@contextmanager
def open_file(path: str) -> Iterator[int]:
    """Opens a regular file for reading; yields its descriptor.

    The kind of file is checked before it is opened: opening alone makes a FIFO wait, a tape rewind.
    Errors: Unavailable with a sentence.
    """
    host = socket.gethostname()
    if not path:
        raise Unavailable("no file given")
    path_fd = -1
    try:
        # O_PATH opens no device, and pins the file that is opened after the check.
        path_fd = os.open(path, getattr(os, "O_PATH", os.O_NONBLOCK) | os.O_CLOEXEC)
        kind = os.fstat(path_fd).st_mode
        if not stat.S_ISREG(kind):
            raise Unavailable(f"{path} on {host} is {_describe(kind)}: only a regular file is read")
        fd_path = f"/proc/self/fd/{path_fd}"
        fd = _open_for_reading(fd_path if os.path.exists(fd_path) else path)  # noqa: PTH110
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Unavailable(f"{path} on {host} cannot be read: {why}") from None
    finally:
        if path_fd >= 0:
            os.close(path_fd)
    with descriptor(fd):
        yield fd


def _open_for_reading(path: str) -> int:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    # Only the file's owner and root may read it without changing its access time.
    with contextlib.suppress(PermissionError):
        return os.open(path, flags | getattr(os, "O_NOATIME", 0))
    return os.open(path, flags)


def _is_proven(
    setting: Setting,
    device_read_bytes: int | None,
    moved_bytes: int,
    state: page_cache.CacheState | None,
) -> bool:
    """Whether all came from the requested source, by the device's count or the cache's state."""
    if setting.cache == "cached":
        return page_cache.is_proven(state, cached=True)
    if device_read_bytes is not None:
        return device_read_bytes >= moved_bytes
    return page_cache.is_proven(state, cached=False)


def _describe(kind: int) -> str:
    names = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISBLK, "a block device"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((name for test, name in names if test(kind)), "not a file")


BLOCK_BYTES = 1024 * 1024
JOIN_SECONDS = 5.0
"""Wait for the requests in flight when a pass is stopped."""
DEPTH = 4
"""Requests in flight of direct I/O, as in this tool's fio jobs."""


class Shorter(RuntimeError):
    """The file became shorter while it was read."""


class Pass(Workers):
    """A running pass: threads send requests until the bytes or the time are over."""

    def __init__(self, fd: int, size_bytes: int, seconds: float, depth: int = DEPTH) -> None:
        """size_bytes: whole blocks, from the file's start. depth: 1 for reads through the cache."""
        self.latencies_seconds: List[float] = []
        self._fd, self._size_bytes, self._next_bytes = fd, size_bytes, 0
        super().__init__(depth, seconds)

    def _work(self) -> None:
        # Direct I/O needs page-aligned memory.
        with mmap.mmap(-1, BLOCK_BYTES) as memory, memoryview(memory) as view:
            while True:
                with self.lock:
                    offset, sent = self._next_bytes, time.monotonic()
                    if offset >= self._size_bytes or self.is_over():
                        return
                    self._next_bytes += BLOCK_BYTES
                self._take(view, offset)
                with self.lock:
                    self.ended = time.monotonic()
                    self.moved_bytes += BLOCK_BYTES
                    self.latencies_seconds.append(self.ended - sent)

    def _take(self, view: memoryview, offset: int) -> None:
        done = 0
        while done < BLOCK_BYTES:
            with view[done:] as rest:
                count = os.preadv(self._fd, [rest], offset + done)
            if count == 0 or os.fstat(self._fd).st_size < offset + BLOCK_BYTES:
                raise Shorter("the file became shorter while it was read")
            done += count


def look(folder: Folder, parts: List[Name], first_bytes: Count) -> Details:
    """Returns path, size_bytes, cached_ratio (None: unknown) and device of a file below a folder.

    first_bytes: the part of it that a copy may read, which cached_ratio describes. parts: the names
    of the path as a share shows them: where none has that spelling, the only one that differs by
    case is used. device: kernel name. The file is opened for reading, without changing its access
    time where this user owns it. Errors: Unavailable with the reason.
    """
    path = folder
    for part in parts:
        path = os.path.join(path, _find_spelling(path, part))  # noqa: PTH118 - names may be any bytes
    with open_file(path) as fd:
        size_bytes = os.fstat(fd).st_size
        state = page_cache.state(fd, min(size_bytes, first_bytes))
    return {
        "path": path,
        "size_bytes": size_bytes,
        "cached_ratio": None if state is None else state.cached_ratio,
        "device": folders.folder_facts(os.path.dirname(path)).device,  # noqa: PTH120 - any bytes
    }


def _find_spelling(folder: str, name: str) -> str:
    if os.path.lexists(os.path.join(folder, name)):  # noqa: PTH118 - any bytes
        return name
    try:
        matches = [each for each in os.listdir(folder) if each.casefold() == name.casefold()]
    except OSError:
        matches = []
    only: Optional[str] = matches[0] if len(matches) == 1 else None
    return only or name
