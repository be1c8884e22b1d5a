"""Copies files one after the other through a pipe, as Explorer, cp and smbclient do.

CREATE, WRITE or READ, CLOSE, each waiting for the previous one; a file that is longer than a
request goes in several at once. The frames are our own: a library would add its own round trips.

The handle that creates a file has DELETE_ON_CLOSE and stays open; the measured CLOSE is that of a
second one. So a file's time excludes its removal, and a broken connection removes everything.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import free_space
from probes.smb import status, transfer
from probes.smb.frames import SmbError
from probes.smb.pipe import FILE, NO_RECALL, OPEN_LINK, CreatedFile, Pipe, Reply, Verb

DEPTH = 16
"""Requests in flight where nothing is measured."""
MARK_BYTES = 32
"""Length of the random mark that identifies a file where the server has no lasting identity."""
TOO_MANY_OPENED_FILES = 0xC000011F


def refuse_recycle_bin(peer: Endpoint) -> None:
    """Raises Unavailable where the share has a bin: of many files it would keep each one's name."""
    if peer.facts.get("bin"):
        text = f"the recycle bin ({peer.facts['bin']}) would keep each small file's name"
        raise Unavailable(f"{text}; exclude bottleneck-* from it, or use another share")


@dataclass(frozen=True)
class TimedFile:
    """One file that was measured."""

    seconds: float
    round_trips: int
    """Waits for the replies to everything sent."""
    moved_bytes: int
    is_complete: bool
    """Whether all of it was copied before the time was over."""


class ManyFiles:
    """Files <path>-0-..., <path>-1-... of this run, and files of others that are only read."""

    def __init__(self, pipe: Pipe, path: str, shapes: Mapping[Verb, tuple[int, int]]) -> None:
        """shapes: request size and depth by the pipe's verb."""
        self.pipe, self._path, self.shapes = pipe, path, shapes
        # After the number: Samba compares each name with all others, from the beginning.
        run = path.rpartition("\\")[0].rpartition("-")[2]
        self._end = f"{secrets.token_hex(4)}-{run}"
        self.handles: dict[int, CreatedFile] = {}
        self.full = False
        """Whether the server opens no more files for this session."""
        self.aside_seconds = 0.0
        """Time for the handles that keep the files, which other clients do not open."""
        self.share = ""
        """Name of the share whose free space is checked; empty: it is not."""
        self._unseen_bytes = 0
        """Bytes written since the last check."""

    def push(
        self, number: int, size_bytes: int, source: transfer.Source, until: float = math.inf
    ) -> TimedFile | None:
        """Copies a new file: CREATE, WRITE, CLOSE; None where the server opens no more of them.

        until: of time.monotonic(); no more of it is sent after that.
        """
        began = time.perf_counter()
        self._create(number)
        self._settle(self._keep)
        created = time.perf_counter()
        if self.full:
            return None
        self.pipe.send_create(number, self.name(number), write=True)
        writers: list[CreatedFile] = []
        self._settle(lambda reply: writers.append(self.pipe.parse_created(reply.body)))
        if self.full:
            self.pipe.close(number, self.handles.pop(number).id)
            self.pipe.wait()
            return None
        if size_bytes and not self._is_same_file(number, writers[0], size_bytes):
            text = f"{self.name(number)} was replaced by another file during the run"
            raise Refused("replaced", f"{text}, to which nothing was written")
        opened = time.perf_counter()
        self.aside_seconds += opened - created
        self.pipe.turn(writers[0].id)
        room = transfer.ShareRoom(self.pipe, writers[0].id, self.share) if self.share else None
        writes = transfer.push(
            self.pipe, size_bytes, *self.shapes["write"], source, size_bytes + 1, room
        )
        moved_bytes = self._await_moves(writes, until)
        self._unseen_bytes += moved_bytes
        if room is not None and self._unseen_bytes >= free_space.LOOK_BYTES:
            self._unseen_bytes = 0
            room.ask()
            room.take(self.pipe.wait().body)
        self._close(number, writers[0])
        seconds = created - began + time.perf_counter() - opened
        return TimedFile(seconds, 2 + bool(moved_bytes), moved_bytes, moved_bytes == size_bytes)

    def _is_same_file(self, number: int, opened: CreatedFile, size_bytes: int) -> bool:
        """Whether a handle that was opened by name is of the file that was created here.

        By their identities; where the server has none that last, by a mark that is written
        through the one and read through the other.
        """
        first = self.handles[number]
        others = (each.identity for index, each in self.handles.items() if index != number)
        if first.identity and first.identity == opened.identity and first.identity not in others:
            return True
        mark = secrets.token_bytes(min(MARK_BYTES, size_bytes))
        self.pipe.turn(first.id)
        self.pipe.write(0, memoryview(mark))
        self.pipe.wait()
        self.pipe.turn(opened.id)
        return self.pipe.begins_with(mark)

    def pull(
        self, path: str, sink: transfer.Sink, size_bytes: int | None = None, until: float = math.inf
    ) -> TimedFile:
        """Reads an existing file: CREATE, READ, CLOSE. A link is opened itself.

        size_bytes: its required size. Raises ServerSaid where it cannot be opened.
        """
        began = time.perf_counter()
        self.pipe.send_create(0, path, write=False, options=FILE | OPEN_LINK | NO_RECALL)
        opened = self.pipe.parse_created(self.pipe.wait().body)
        if size_bytes not in (None, opened.size_bytes):
            raise SmbError(f"a file of {size_bytes} bytes has {opened.size_bytes} on the share")
        self.pipe.turn(opened.id)
        ranges = iter([(0, opened.size_bytes)] if opened.size_bytes else ())
        reads = transfer.fetch(self.pipe, ranges, *self.shapes["read"], sink)
        moved_bytes = self._await_moves(reads, until)
        self._close(0, opened)
        seconds = time.perf_counter() - began
        return TimedFile(
            seconds, 2 + bool(moved_bytes), moved_bytes, moved_bytes == opened.size_bytes
        )

    def move_to(self, pipe: Pipe) -> None:
        """Goes on through a later pipe of the same session, in which the files are still open."""
        pipe.created |= {each.id for each in self.handles.values()}
        self.pipe = pipe

    def look_up(self, number: int) -> float:
        """Opens and closes a file of this run by its name; returns the seconds."""
        began = time.perf_counter()
        self.pipe.send_create(number, self.name(number), write=False)
        self._close(number, self.pipe.parse_created(self.pipe.wait().body))
        return time.perf_counter() - began

    def remove(self, first: int = 0) -> None:
        """Empties the files and closes their handles, many at once: the server deletes them.

        first: the lowest number of those to remove.
        """
        files = {number: file for number, file in self.handles.items() if number >= first}
        for number in files:
            del self.handles[number]
        self._pipeline(files, lambda n: self.pipe.empty(n, files[n].id), lambda reply: None)
        self._pipeline(files, lambda n: self.pipe.close(n, files[n].id), lambda reply: None)
        self.pipe.created -= {each.id for each in files.values()}

    def name(self, number: int) -> str:
        """Returns the path on the share of a file of this run."""
        return f"{self._path}-{number}-{self._end}"

    def _create(self, number: int) -> None:
        self.pipe.create(number, self.name(number))

    def make(self, numbers: range, write: Callable[[int], None]) -> None:
        """Creates files, many at once; write: sends the content of a file, which is turned to."""
        self._pipeline(numbers, self._create, self._keep)

        def fill(number: int) -> None:
            self.pipe.turn(self.handles[number].id)
            write(number)

        self._pipeline([n for n in numbers if n in self.handles], fill, lambda reply: None)

    def _pipeline(
        self, numbers: Iterable[int], send: Callable[[int], None], handle: Callable[[Reply], None]
    ) -> None:
        """Sends for each number with up to DEPTH in flight, and waits for every reply."""
        for number in numbers:
            while self.pipe.in_flight >= DEPTH or not self.pipe.affords(1):
                self._settle(handle)
            send(number)
        while self.pipe.in_flight:
            self._settle(handle)

    def _settle(self, handle: Callable[[Reply], None]) -> None:
        try:
            handle(self.pipe.wait())
        except status.ServerSaid as error:
            if error.status != TOO_MANY_OPENED_FILES:
                raise
            self.full = True

    def _keep(self, reply: Reply) -> None:
        file = self.handles[reply.offset] = self.pipe.parse_created(reply.body)
        self.pipe.created.add(file.id)

    def _await_moves(self, moves: Iterator[int], until: float) -> int:
        """Returns the bytes moved until the time was over, requests in flight included."""
        moved_bytes = 0
        for total in moves:
            moved_bytes = total
            if time.monotonic() > until:
                break
        while self.pipe.in_flight:
            moved_bytes += self.pipe.wait().moved_bytes
        return moved_bytes

    def _close(self, number: int, file: CreatedFile) -> None:
        self.pipe.close(number, file.id)
        self.pipe.wait()
