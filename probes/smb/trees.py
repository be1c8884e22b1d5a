"""Copies a folder of the user's with all below it: into the run's folder, or from the share.

It is opened for reading only. No link is followed, and no other file system entered: both are
counted, as are unreadable files. Pushed files have names of this run, and are removed as soon as
their folder is copied: the run's folder never has more files than the user's.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TypeVar

from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last, Unavailable
from probes.smb import listing, status
from probes.smb.client_end import FolderSink
from probes.smb.listing import Entry, SkippedFiles
from probes.smb.many_files import ManyFiles, TimedFile
from probes.smb.pipe import Pipe, plan_flight
from probes.smb.session import Session
from probes.smb.smbprotocol_session import Smb2Session
from probes.system.platform import descriptor, os

SAMPLE_SECONDS = 0.1
GRACE_SECONDS = 5.0
CLEANING_SECONDS = 20.0
LIST_SHARE = 0.3
"""Longest share of a pull's time for listing the folder, which is not measured."""
MOST_AT_ONCE = 4096
"""Files of one folder on the share, each of which this run keeps open."""

T = TypeVar("T")
Timing = Generator[Sample, None, list[TimedFile]]


@dataclass
class Copy:
    """A copy of a tree, and its progress."""

    tree: str
    size_bytes: int
    """Most bytes to copy."""
    folder: str
    """This host's folder for a pull's bytes."""
    seconds: float
    elapsed_seconds: float = 0.0
    moved_bytes: int = 0
    is_complete: bool = False
    """Whether all readable files were copied."""
    passed: SkippedFiles = field(default_factory=SkippedFiles)

    def details(self) -> Details:
        """Returns the counts of what was copied, and what was not."""
        return {
            "bytes": self.moved_bytes,
            "seconds": self.elapsed_seconds,
            "whole": self.is_complete and not self.passed.cut,
            "special_files": self.passed.special,
            "unreadable_files": self.passed.unreadable,
            "first_unreadable": self.passed.first,
        }

    def list_files(self, session: Session) -> list[Entry]:
        """Lists the files of the share's folder. Raises Refused, and Unavailable over SMB1."""
        if not isinstance(session, Smb2Session):
            raise Unavailable("--tree: a folder of the share is listed over SMB 2 or 3 only")
        until = time.monotonic() + LIST_SHARE * self.seconds
        return [*listing.walk(session, "" if self.tree == "." else self.tree, until, self.passed)]

    def push_files(self, pipe: Pipe, path: str, peer: Endpoint, asks_room: bool) -> Timing:
        """Pushes the files below peer.path; path: prefix of the files on the share."""
        files = ManyFiles(pipe, path, {"write": plan_flight(pipe, "write").shape})
        files.share = f"//{peer.host}/{peer.share}" if asks_room else ""
        numbers = iter(range(10**6))

        def push(fd: int | None, until: float) -> TimedFile | None:
            began = time.perf_counter()
            if fd is None or len(files.handles) >= MOST_AT_ONCE:
                pipe.limit(time.monotonic() + CLEANING_SECONDS)
                files.remove()
                pipe.limit(until + GRACE_SECONDS)
                files.aside_seconds += time.perf_counter() - began
            if fd is None:
                return None
            source = _Source(fd, self.passed)
            if not self._has_room(source.size_bytes):
                return None
            return files.push(next(numbers), source.size_bytes, source.give, until)

        timed = yield from self._copy_files(pipe, files, walk(peer.path, self.passed), push)
        pipe.limit(time.monotonic() + CLEANING_SECONDS)
        files.remove()
        return timed

    def pull_files(self, pipe: Pipe, entries: Iterable[Entry]) -> Timing:
        """Pulls files into one file without a name."""
        files = ManyFiles(pipe, "", {"read": plan_flight(pipe, "read").shape})
        with closing(FolderSink(self.folder)) as sink:

            def pull(entry: Entry, until: float) -> TimedFile | None:
                start = self.moved_bytes
                if not self._has_room(entry.size_bytes):
                    return None
                try:
                    return files.pull(
                        entry.path, lambda place, view: sink.take(start + place, view), None, until
                    )
                except status.ServerSaid as error:
                    if pipe.in_flight:
                        raise
                    self.passed.add_unreadable(f"{entry.path}: {status.describe(error.status)}")
                    return None

            return (yield from self._copy_files(pipe, files, entries, pull))

    def _copy_files(
        self,
        pipe: Pipe,
        files: ManyFiles,
        sources: Iterable[T],
        copy: Callable[[T, float], TimedFile | None],
    ) -> Timing:
        """Copies one file after the other until all are done, or time or room are used up."""
        timed: list[TimedFile] = []
        sampled, began, until = 0.0, time.perf_counter(), time.monotonic() + self.seconds
        pipe.limit(until + GRACE_SECONDS)
        yield Sample(0.0, 0)
        for each in sources:
            one = copy(each, until)
            self.elapsed_seconds = time.perf_counter() - began - files.aside_seconds
            if one is not None:
                self.moved_bytes += one.moved_bytes
                timed += [one] if one.is_complete else []
            if files.full or time.monotonic() > until:
                break
            if self.elapsed_seconds - sampled >= SAMPLE_SECONDS:
                sampled = self.elapsed_seconds
                yield Sample(sampled, self.moved_bytes)
        else:
            self.is_complete = True
        if not timed:
            why = f" ({self.passed.first})" if self.passed.first else ""
            raise Unavailable(f"--tree {self.tree}: no file was copied{why}")
        yield Last(self.elapsed_seconds, self.moved_bytes)
        return timed

    def _has_room(self, size_bytes: int) -> bool:
        fits = self.moved_bytes + size_bytes <= self.size_bytes
        self.passed.cut = self.passed.cut or not fits
        return fits


class _Source:
    """An open file of the user's to push; zeros replace what can no longer be read of it."""

    def __init__(self, fd: int, passed: SkippedFiles) -> None:
        self._fd, self._passed = fd, passed
        self.size_bytes = os.fstat(fd).st_size

    def give(self, offset: int, size: int) -> memoryview:
        """Returns the file's bytes there."""
        try:
            content = os.pread(self._fd, size, offset)
        except OSError as error:
            self._passed.add_unreadable(str(error.strerror))
            content = b""
        return memoryview(content.ljust(size, b"\0"))


def walk(top: str, passed: SkippedFiles) -> Iterator[int | None]:
    """Yields each regular file below a folder, open for reading until the next one; None after the
    last one of each folder."""

    def skip_folder(error: OSError) -> None:
        passed.add_unreadable(f"{error.filename}: {error.strerror}")

    device = os.stat(top).st_dev  # noqa: PTH116 - any bytes
    for _, inner, names, top_fd in os.fwalk(top, onerror=skip_folder):

        def is_plain(name: str, top_fd: int = top_fd) -> bool:
            try:
                status = os.stat(name, dir_fd=top_fd, follow_symlinks=False)  # noqa: PTH116
            except OSError as error:
                skip_folder(error)
                return False
            is_known = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
            passed.special += not is_known or status.st_dev != device
            return is_known and status.st_dev == device

        for name in sorted(filter(is_plain, names)):
            try:
                # O_NONBLOCK: a FIFO that replaced the file must not block.
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=top_fd)
            except OSError as error:
                skip_folder(error)
                continue
            with descriptor(fd):
                yield fd
        inner[:] = sorted(filter(is_plain, inner))
        yield None
