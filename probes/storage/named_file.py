"""A file of the user's, read once from its start: what the disk gives at the place where it lies.

Opened for reading only, and where that is allowed so that not even the time of its last access
changes. It is not put out of the page cache: direct reads pass the cache by. They are made by
threads of this process: fio opens its file anew and would change the time of its last access.
"""

from __future__ import annotations

import contextlib
import mmap
import socket
import stat
import time
from contextlib import contextmanager
from typing import Generator, Iterator, List, Optional

from probes.core.meaning import Count, Folder, Name
from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last, Running, Unavailable
from probes.files import folders, page_cache, place
from probes.storage import Setting, others, sequential
from probes.storage.sequential import cache_details
from probes.storage.written import Workers, middle_and_worst
from probes.system.platform import descriptor, os

SAMPLE_SECONDS = 0.25
GRACE_SECONDS = 6.0
"""For the requests that are under way when the time is over."""
MADE_UP = frozenset(
    ("proc", "sysfs", "debugfs", "tracefs", "securityfs", "configfs", "cgroup", "cgroup2")
)
"""File systems whose files the kernel makes up as they are read."""


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Sequential throughput of setting.path, at most its size and time; samples are payload read.

    Returns place (None: the file system tells no extents), cache (proven: all came from the
    device), direct, file_bytes, latency_seconds, what the device did, zones (one, the whole).
    Errors: Unavailable with a sentence (no such file, no right, no regular file, smaller than
    1 MiB), direct_reads.Shorter, OSError of the disk.
    """
    with opened(setting.path) as fd:
        status = os.fstat(fd)
        size_bytes = min(setting.size_bytes, status.st_size) // BLOCK_BYTES * BLOCK_BYTES
        if size_bytes == 0:
            raise Unavailable(f"{setting.path} is smaller than 1 MiB: too small to measure a rate")
        device = _device_below(setting.path, status.st_dev)
        direct = setting.cache == "uncached" and page_cache.pass_by(fd)
        if setting.cache == "cached":
            page_cache.warm(fd, size_bytes)
        held = page_cache.state(fd, size_bytes)
        before = others.look(device)
        yield Sample(0.0, 0)
        run = Pass(fd, size_bytes, setting.seconds, DEPTH if direct else 1)
        samples = yield from watched(run, setting.seconds + GRACE_SECONDS)
        # What was still on its way to the disk has a place by now: direct reads had to wait for it.
        lies = place.place(fd)
    counted = others.around(device, before, others.look(device), read_bytes=run.moved_bytes)
    rate = run.moved_bytes / run.elapsed_seconds
    return {
        **counted,
        "device": device,
        "direct": direct,
        "file_bytes": status.st_size,
        "place": lies,
        "cache": cache_details(
            setting,
            getattr(held, "cached_ratio", None),
            _proven(setting, counted["device_read_bytes"], run.moved_bytes, held),
        ),
        "latency_seconds": middle_and_worst(run.latencies_seconds),
        "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": rate}],
        **sequential.window_details(samples),
    }


def _device_below(path: str, number: int) -> Optional[str]:
    """Kernel name of the disk below a file; Unavailable where the kernel makes its content up."""
    filesystem, device = place.under(number)
    if filesystem in MADE_UP:
        raise Unavailable(f"{path} is not on a disk: the kernel generates it ({filesystem})")
    return device


def watched(run: Pass, left_seconds: float) -> Generator[Sample, None, List[Sample]]:
    """Yields and returns the samples of a pass; stops it, also where it takes longer than that."""
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
def opened(path: str) -> Iterator[int]:
    """A regular file, open for reading; closed when left.

    What the name leads to is looked at before it is opened: opening alone makes a FIFO wait, a
    tape rewind. Errors: Unavailable with a sentence.
    """
    host = socket.gethostname()
    if not path:
        raise Unavailable("no file given")
    found = -1
    try:
        # O_PATH opens nothing: the same file is what is opened after the look
        found = os.open(path, getattr(os, "O_PATH", os.O_NONBLOCK) | os.O_CLOEXEC)
        kind = os.fstat(found).st_mode
        if not stat.S_ISREG(kind):
            raise Unavailable(f"{path} on {host} is {_called(kind)}: only a regular file is read")
        seen = f"/proc/self/fd/{found}"
        fd = _for_reading(seen if os.path.exists(seen) else path)  # noqa: PTH110
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Unavailable(f"{path} on {host} cannot be read: {why}") from None
    finally:
        if found >= 0:
            os.close(found)
    with descriptor(fd):
        yield fd


def _for_reading(path: str) -> int:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    # the file's owner and root may read it without leaving a trace
    with contextlib.suppress(PermissionError):
        return os.open(path, flags | getattr(os, "O_NOATIME", 0))
    return os.open(path, flags)


def _proven(
    setting: Setting,
    device_read_bytes: int | None,
    moved_bytes: int,
    held: page_cache.CacheState | None,
) -> bool:
    """Whether all came from where it was to: the device read as much, or the cache held nothing."""
    if setting.cache == "cached":
        return page_cache.proven(held, cached=True)
    if device_read_bytes is not None:
        return device_read_bytes >= moved_bytes
    return page_cache.proven(held, cached=False)


def _called(kind: int) -> str:
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
"""For a request that is on its way when somebody gives up."""
DEPTH = 4
"""Requests in flight of direct I/O, as fio has them here."""


class Shorter(RuntimeError):
    """The file lost bytes while it was read."""


class Pass(Workers):
    """A pass that is under way: requests are sent off until the bytes or the time are over."""

    def __init__(self, fd: int, size_bytes: int, seconds: float, depth: int = DEPTH) -> None:
        """size_bytes: whole blocks, from the file's start. depth: 1 for reads through the cache."""
        self.latencies_seconds: List[float] = []
        self._fd, self._size_bytes, self._next_bytes = fd, size_bytes, 0
        super().__init__(depth, seconds)

    def _work(self) -> None:
        # a mapping of its own: direct I/O wants memory at the start of a page
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
                got = os.preadv(self._fd, [rest], offset + done)
            if got == 0 or os.fstat(self._fd).st_size < offset + BLOCK_BYTES:
                raise Shorter("the file became shorter while it was read")
            done += got


def look(folder: Folder, parts: List[Name], first_bytes: Count) -> Details:
    """path, size_bytes, cached_ratio (None: cannot be told) and device of a file below a folder.

    first_bytes: what a copy of it may read, and so all of it that the ratio speaks of.
    parts: the names on the way, as a share shows them: where there is none of that very spelling,
    the only one that differs by case alone is taken. device: kernel name of what it lies on. The
    file is opened for reading, and its time of access stays where its owner asks. Errors:
    Unavailable with the reason.
    """
    path = folder
    for part in parts:
        path = os.path.join(path, _spelled(path, part))  # noqa: PTH118 - names may be any bytes
    with opened(path) as fd:
        size_bytes = os.fstat(fd).st_size
        told = page_cache.state(fd, min(size_bytes, first_bytes))
    return {
        "path": path,
        "size_bytes": size_bytes,
        "cached_ratio": None if told is None else told.cached_ratio,
        "device": folders.folder_facts(os.path.dirname(path)).device,  # noqa: PTH120 - any bytes
    }


def _spelled(folder: str, name: str) -> str:
    """The name as the folder has it."""
    if os.path.lexists(os.path.join(folder, name)):  # noqa: PTH118 - any bytes
        return name
    try:
        alike = [each for each in os.listdir(folder) if each.casefold() == name.casefold()]
    except OSError:
        alike = []
    found: Optional[str] = alike[0] if len(alike) == 1 else None
    return found or name
