"""Small files on a share, each kept by a handle that deletes it: nothing is left, however we end.

The handle that creates a file has DELETE_ON_CLOSE and stays open; what is measured closes another
one. So the removal lies outside of a file's time, and a broken connection removes everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from probes.host import payload
from probes.smb import status
from probes.smb.frames import Broken
from probes.smb.pipe import Created, Pipe, Reply, received

DEPTH = 16
"""Requests in flight where nothing is measured."""
TOO_MANY_OPENED_FILES = 0xC000011F


@dataclass(frozen=True)
class Timed:
    """One file that was measured."""

    seconds: float
    round_trips: int
    """Times that everything sent was waited for."""


class SmallFiles:
    """Files of file_bytes, <path>-0, <path>-1 ..., whose contents all differ."""

    def __init__(self, pipe: Pipe, path: str, file_bytes: int, ring: memoryview) -> None:
        self._pipe = pipe
        self._path, self._file_bytes, self._ring = path, file_bytes, ring
        self._kept: dict[int, Created] = {}
        self._write_bytes = pipe.prepare("write", file_bytes, DEPTH)[0]
        self._read_bytes = pipe.prepare("read", file_bytes, DEPTH)[0]
        self._buffer = memoryview(bytearray(file_bytes))
        self.full = False
        """The server opens no more files for us."""
        self.intact = True
        """Nothing that was read and compared so far differed."""

    @property
    def numbers(self) -> list[int]:
        """The files that lie there."""
        return list(self._kept)

    def make(self, files: int, until: float) -> None:
        """Makes the files from 0 on, many at once, until a moment of time.monotonic()."""
        while len(self._kept) < files and not self.full and time.monotonic() < until:
            first = len(self._kept)
            numbers = range(first, min(files, first + DEPTH))
            self._pipelined(numbers, lambda at: self._pipe.create(at, self._name(at)), self._keep)
            self._pipelined(
                [at for at in numbers if at in self._kept], self._write_kept, lambda reply: None
            )

    def push(self, number: int) -> Timed | None:
        """A new file: CREATE, WRITE, CLOSE; None where the server opens no more of them."""
        began = time.perf_counter()
        self._pipe.create(number, self._name(number))
        self._settle(self._keep)
        created = time.perf_counter() - began
        if self.full:
            return None
        self._pipe.open(number, self._name(number), write=True)
        writers: list[Created] = []
        self._settle(lambda reply: writers.append(self._pipe.opened(reply.body)))
        if self.full:
            self._pipe.close(number, self._kept.pop(number).id)
            self._pipe.wait()
            return None
        writer = writers[0]
        began = time.perf_counter()
        self._pipe.turn(writer.id)
        self._write(number)
        self._pipe.close(number, writer.id)
        self._pipe.wait()
        return Timed(created + time.perf_counter() - began, 3)

    def pull(self, number: int) -> Timed:
        """A file that was made: CREATE, READ, CLOSE; its content is compared afterwards."""
        began = time.perf_counter()
        self._pipe.open(number, self._name(number), write=False)
        opened = self._pipe.opened(self._pipe.wait().body)
        if opened.size_bytes != self._file_bytes:
            raise Broken(f"a file of {self._file_bytes} bytes has {opened.size_bytes} on the share")
        self._pipe.turn(opened.id)
        reads = self._read()
        self._pipe.close(number, opened.id)
        self._pipe.wait()
        timed = Timed(time.perf_counter() - began, 2 + reads)
        self._look(number)
        return timed

    def read_back(self) -> None:
        """Compares all files with what was sent, through the handles that keep them."""
        for number, kept in self._kept.items():
            self._pipe.turn(kept.id)
            self._read()
            self._look(number)

    def remove(self) -> None:
        """Closes what keeps the files, many at once: the server deletes them."""
        kept, self._kept = self._kept, {}
        self._pipelined(kept, lambda at: self._pipe.close(at, kept[at].id), lambda reply: None)

    def _name(self, number: int) -> str:
        return f"{self._path}-{number}"

    def _content(self, number: int) -> memoryview:
        return payload.block(self._ring, number * self._file_bytes, self._file_bytes)

    def _look(self, number: int) -> None:
        offset = number * self._file_bytes
        self.intact = self.intact and payload.matches(self._ring, offset, self._buffer)

    def _keep(self, reply: Reply) -> None:
        self._kept[reply.offset] = self._pipe.opened(reply.body)

    def _write_kept(self, number: int) -> None:
        self._pipe.turn(self._kept[number].id)
        self._write(number, wait=False)

    def _write(self, number: int, wait: bool = True) -> None:
        """The whole content, as few WRITEs as the server takes, all of them in flight."""
        content, done = self._content(number), 0
        while done < self._file_bytes:
            size = self._pipe.affords(min(self._write_bytes, self._file_bytes - done))
            if not size:
                self._pipe.wait()
                continue
            self._pipe.write(done, content[done : done + size])
            done += size
        while wait and self._pipe.outstanding:
            self._pipe.wait()

    def _read(self) -> int:
        """The whole content into the buffer; how many READs it took, one after the other."""
        parts = 0
        for start in range(0, self._file_bytes, self._read_bytes):
            view = self._buffer[start : start + self._read_bytes]
            parts += sum(1 for _ in received(self._pipe, start, view))
        return parts

    def _pipelined(
        self, numbers: Iterable[int], send: Callable[[int], None], took: Callable[[Reply], None]
    ) -> None:
        """Sends for each number with up to DEPTH in flight, and waits for every reply."""
        for number in numbers:
            while self._pipe.outstanding >= DEPTH or not self._pipe.affords(1):
                self._settle(took)
            send(number)
        while self._pipe.outstanding:
            self._settle(took)

    def _settle(self, took: Callable[[Reply], None]) -> None:
        try:
            took(self._pipe.wait())
        except status.ServerSaid as error:
            if error.status != TOO_MANY_OPENED_FILES:
                raise
            self.full = True
