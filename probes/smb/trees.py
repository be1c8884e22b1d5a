"""A folder of the user's with all below it: pushed into the run's folder, or pulled from the share.

Opened for reading alone. No link is followed, and no other file system entered: both are counted,
as is what cannot be read. What is pushed has names of this run, and is gone again as soon as its
folder was copied: at each moment the run's folder has as many files as the user's has.
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
from probes.smb.ends import FolderSink
from probes.smb.listing import Entry, Passed
from probes.smb.many_files import ManyFiles, Timed
from probes.smb.pipe import Pipe, fitting
from probes.smb.session import Session
from probes.smb.smbprotocol_session import Smb2Session
from probes.system.platform import descriptor, os

SAMPLE_SECONDS = 0.1
GRACE_SECONDS = 5.0
CLEANING_SECONDS = 20.0
LIST_SHARE = 0.3
"""Of the time of a pull, at most: for listing the folder, which is not measured."""
MOST_AT_ONCE = 4096
"""Files of one folder on the share, each of which this run holds open."""

T = TypeVar("T")
Timing = Generator[Sample, None, list[Timed]]


@dataclass
class Copy:
    """A copy of a tree, and how far it came."""

    tree: str
    size_bytes: int
    """At most so much is copied."""
    folder: str
    """Where a pull's bytes go."""
    seconds: float
    elapsed_seconds: float = 0.0
    moved_bytes: int = 0
    whole: bool = False
    """Everything that can be read was copied."""
    passed: Passed = field(default_factory=Passed)

    def details(self) -> Details:
        """What was copied, and what was not."""
        return {
            "bytes": self.moved_bytes,
            "seconds": self.elapsed_seconds,
            "whole": self.whole and not self.passed.cut,
            "special_files": self.passed.special,
            "unreadable_files": self.passed.unreadable,
            "first_unreadable": self.passed.first,
        }

    def listed(self, session: Session) -> list[Entry]:
        """The files of the share's folder. Raises Refused, and Unavailable over SMB1."""
        if not isinstance(session, Smb2Session):
            raise Unavailable("--tree: a folder of the share is listed over SMB 2 or 3 only")
        until = time.monotonic() + LIST_SHARE * self.seconds
        top = "" if self.tree == "." else self.tree
        return [*listing.walk(session, top, until, self.passed)]

    def pushed(self, pipe: Pipe, path: str, peer: Endpoint, asks_room: bool) -> Timing:
        """From peer.path; path: how the files on the share begin."""
        files = ManyFiles(pipe, path, {"write": fitting(pipe, "write").shape})
        files.share = f"//{peer.host}/{peer.share}" if asks_room else ""
        numbers = iter(range(10**6))

        def push(fd: int | None, until: float) -> Timed | None:
            began = time.perf_counter()
            if fd is None or len(files.kept) >= MOST_AT_ONCE:
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

        timed = yield from self._timed(pipe, files, walked(peer.path, self.passed), push)
        pipe.limit(time.monotonic() + CLEANING_SECONDS)
        files.remove()
        return timed

    def pulled(self, pipe: Pipe, listed: Iterable[Entry]) -> Timing:
        """Into a file without a name."""
        files = ManyFiles(pipe, "", {"read": fitting(pipe, "read").shape})
        with closing(FolderSink(self.folder)) as sink:

            def pull(entry: Entry, until: float) -> Timed | None:
                start = self.moved_bytes
                if not self._has_room(entry.size_bytes):
                    return None
                try:
                    return files.pull(
                        entry.path, lambda at, view: sink.take(start + at, view), None, until
                    )
                except status.ServerSaid as error:
                    if pipe.outstanding:
                        raise
                    self.passed.refused(f"{entry.path}: {status.named(error.status)}")
                    return None

            return (yield from self._timed(pipe, files, listed, pull))

    def _timed(
        self,
        pipe: Pipe,
        files: ManyFiles,
        sources: Iterable[T],
        copy: Callable[[T, float], Timed | None],
    ) -> Timing:
        """One file after the other until all are copied, or time or room are over."""
        timed: list[Timed] = []
        told, began, until = 0.0, time.perf_counter(), time.monotonic() + self.seconds
        pipe.limit(until + GRACE_SECONDS)
        yield Sample(0.0, 0)
        for each in sources:
            one = copy(each, until)
            self.elapsed_seconds = time.perf_counter() - began - files.aside_seconds
            if one is not None:
                self.moved_bytes += one.moved_bytes
                timed += [one] if one.whole else []
            if files.full or time.monotonic() > until:
                break
            if self.elapsed_seconds - told >= SAMPLE_SECONDS:
                told = self.elapsed_seconds
                yield Sample(told, self.moved_bytes)
        else:
            self.whole = True
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
    """An open file of the user's as it is pushed; what cannot be read of it by now is zeros."""

    def __init__(self, fd: int, passed: Passed) -> None:
        self._fd, self._passed = fd, passed
        self.size_bytes = os.fstat(fd).st_size

    def give(self, offset: int, size: int) -> memoryview:
        """The file's bytes there."""
        try:
            found = os.pread(self._fd, size, offset)
        except OSError as error:
            self._passed.refused(str(error.strerror))
            found = b""
        return memoryview(found.ljust(size, b"\0"))


def walked(top: str, passed: Passed) -> Iterator[int | None]:
    """Each regular file below a folder, opened for reading until the next one; None: after the last
    one of a folder."""

    def refused(error: OSError) -> None:
        passed.refused(f"{error.filename}: {error.strerror}")

    device = os.stat(top).st_dev  # noqa: PTH116 - any bytes
    for _, inner, names, at in os.fwalk(top, onerror=refused):

        def is_plain(name: str, at: int = at) -> bool:
            try:
                told = os.stat(name, dir_fd=at, follow_symlinks=False)  # noqa: PTH116 - by descriptor
            except OSError as error:
                refused(error)
                return False
            kept = stat.S_ISREG(told.st_mode) or stat.S_ISDIR(told.st_mode)
            passed.special += not kept or told.st_dev != device
            return kept and told.st_dev == device

        for name in sorted(filter(is_plain, names)):
            try:
                # O_NONBLOCK: a FIFO that took the file's place must not hold us
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
            except OSError as error:
                refused(error)
                continue
            with descriptor(fd):
                yield fd
        inner[:] = sorted(filter(is_plain, inner))
        yield None
