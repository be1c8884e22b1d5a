"""Files copied one after the other through a pipe, as Explorer, cp and smbclient do it.

CREATE, WRITE or READ, CLOSE, each waiting for the one before; what is longer than a request goes in
several at once. The frames are our own: a library's own round trip would be measured with it.

The handle that creates a file has DELETE_ON_CLOSE and stays open; what is measured closes another
one. So the removal lies outside of a file's time, and a broken connection removes everything.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from probes.core.stage import Refused
from probes.files import free_space
from probes.smb import status, transfer
from probes.smb.frames import Broken
from probes.smb.pipe import FILE, NO_RECALL, OPEN_LINK, Created, Pipe, Reply, Verb

DEPTH = 16
"""Requests in flight where nothing is measured."""
MARK_BYTES = 32
"""Length of the random mark that proves a file where its server tells no lasting identity."""
TOO_MANY_OPENED_FILES = 0xC000011F


@dataclass(frozen=True)
class Timed:
    """One file that was measured."""

    seconds: float
    round_trips: int
    """Times that everything sent was waited for."""
    moved_bytes: int
    whole: bool
    """Not where the time was over."""


class ManyFiles:
    """Files <path>-0-..., <path>-1-... of this run's, and files that are read and no more."""

    def __init__(self, pipe: Pipe, path: str, shapes: Mapping[Verb, tuple[int, int]]) -> None:
        """shapes: request size and depth by the pipe's verb."""
        self.pipe, self._path, self.shapes = pipe, path, shapes
        # Behind the number: Samba compares each name with all others, from its beginning.
        run = path.rpartition("\\")[0].rpartition("-")[2]
        self._end = f"{secrets.token_hex(4)}-{run}"
        self.kept: dict[int, Created] = {}
        self.full = False
        """The server opens no more files for us."""
        self.aside_seconds = 0.0
        """For the handles that keep the files, which no other client opens."""
        self.share = ""
        """Asked for the room that it has left, by this name; empty: it is not."""
        self._unseen_bytes = 0
        """That were written since it was asked."""

    def push(
        self, number: int, size_bytes: int, source: transfer.Source, until: float = math.inf
    ) -> Timed | None:
        """A new file: CREATE, WRITE, CLOSE; None where the server opens no more of them.

        until: of time.monotonic(); then no more of it is sent.
        """
        began = time.perf_counter()
        self._create(number)
        self._settle(self._keep)
        created = time.perf_counter()
        if self.full:
            return None
        self.pipe.open(number, self.name(number), write=True)
        writers: list[Created] = []
        self._settle(lambda reply: writers.append(self.pipe.opened(reply.body)))
        if self.full:
            self.pipe.close(number, self.kept.pop(number).id)
            self.pipe.wait()
            return None
        if size_bytes and not self._is_same_file(number, writers[0], size_bytes):
            text = f"{self.name(number)} was replaced by another file during the run"
            raise Refused("replaced", f"{text}, to which nothing was written")
        opened = time.perf_counter()
        self.aside_seconds += opened - created
        self.pipe.turn(writers[0].id)
        room = transfer.ShareRoom(self.pipe, writers[0].id, self.share) if self.share else None
        unflushed = size_bytes + 1
        writes = transfer.push(
            self.pipe, size_bytes, *self.shapes["write"], source, unflushed, room
        )
        moved = self._moved(writes, until)
        self._unseen_bytes += moved
        if room is not None and self._unseen_bytes >= free_space.LOOK_BYTES:
            self._unseen_bytes = 0
            room.ask()
            room.take(self.pipe.wait().body)
        self._close(number, writers[0])
        seconds = created - began + time.perf_counter() - opened
        return Timed(seconds, 2 + bool(moved), moved, moved == size_bytes)

    def _is_same_file(self, number: int, opened: Created, size_bytes: int) -> bool:
        """Whether a handle that was opened by name is of the file that was created here.

        By their identities; where the server tells none that last, by a mark that is written
        through the one and read through the other.
        """
        kept = self.kept[number]
        others = (each.identity for at, each in self.kept.items() if at != number)
        if kept.identity and kept.identity == opened.identity and kept.identity not in others:
            return True
        mark = secrets.token_bytes(min(MARK_BYTES, size_bytes))
        self.pipe.turn(kept.id)
        self.pipe.write(0, memoryview(mark))
        self.pipe.wait()
        self.pipe.turn(opened.id)
        return self.pipe.begins_with(mark)

    def pull(
        self, path: str, sink: transfer.Sink, size_bytes: int | None = None, until: float = math.inf
    ) -> Timed:
        """A file that lies there: CREATE, READ, CLOSE. A link is opened itself.

        size_bytes: that it has to have. Raises ServerSaid where it cannot be opened.
        """
        began = time.perf_counter()
        self.pipe.open(0, path, write=False, options=FILE | OPEN_LINK | NO_RECALL)
        opened = self.pipe.opened(self.pipe.wait().body)
        if size_bytes not in (None, opened.size_bytes):
            text = f"a file of {size_bytes} bytes has {opened.size_bytes} on the share"
            raise Broken(text)
        self.pipe.turn(opened.id)
        whole = iter([(0, opened.size_bytes)] if opened.size_bytes else ())
        reads = transfer.fetched(self.pipe, whole, *self.shapes["read"], sink)
        moved = self._moved(reads, until)
        self._close(0, opened)
        seconds = time.perf_counter() - began
        return Timed(seconds, 2 + bool(moved), moved, moved == opened.size_bytes)

    def remove(self) -> None:
        """Empties the files and closes what keeps them, many at once: the server deletes them."""
        kept, self.kept = self.kept, {}
        self._pipelined(kept, lambda at: self.pipe.empty(at, kept[at].id), lambda reply: None)
        self._pipelined(kept, lambda at: self.pipe.close(at, kept[at].id), lambda reply: None)
        self.pipe.created -= {each.id for each in kept.values()}

    def name(self, number: int) -> str:
        """Path on the share of one of this run's."""
        return f"{self._path}-{number}-{self._end}"

    def _create(self, number: int) -> None:
        self.pipe.create(number, self.name(number))

    def make(self, numbers: range, write: Callable[[int], None]) -> None:
        """New files, many at once; write: sends a file's content to the one that is turned to."""
        self._pipelined(numbers, self._create, self._keep)

        def fill(number: int) -> None:
            self.pipe.turn(self.kept[number].id)
            write(number)

        self._pipelined([at for at in numbers if at in self.kept], fill, lambda reply: None)

    def _pipelined(
        self, numbers: Iterable[int], send: Callable[[int], None], took: Callable[[Reply], None]
    ) -> None:
        """Sends for each number with up to DEPTH in flight, and waits for every reply."""
        for number in numbers:
            while self.pipe.outstanding >= DEPTH or not self.pipe.affords(1):
                self._settle(took)
            send(number)
        while self.pipe.outstanding:
            self._settle(took)

    def _settle(self, took: Callable[[Reply], None]) -> None:
        try:
            took(self.pipe.wait())
        except status.ServerSaid as error:
            if error.status != TOO_MANY_OPENED_FILES:
                raise
            self.full = True

    def _keep(self, reply: Reply) -> None:
        file = self.kept[reply.offset] = self.pipe.opened(reply.body)
        self.pipe.created.add(file.id)

    def _moved(self, moves: Iterator[int], until: float) -> int:
        """What moved until the time was over; what is under way then still arrives."""
        moved = 0
        for so_far in moves:
            moved = so_far
            if time.monotonic() > until:
                break
        while self.pipe.outstanding:
            moved += self.pipe.wait().moved_bytes
        return moved

    def _close(self, number: int, file: Created) -> None:
        self.pipe.close(number, file.id)
        self.pipe.wait()
