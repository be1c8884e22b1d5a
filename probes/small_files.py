"""Many small files, one after the other: what one of them costs, in seconds and round trips.

As Explorer, cp and smbclient do it: CREATE, WRITE or READ, CLOSE, each waiting for the one before.
The frames are our own, on the pipe: a library's own round trip would be measured with it.

The handle that creates a file has DELETE_ON_CLOSE and stays open; what is measured closes another
one. So the removal lies outside of a file's time, and a broken connection removes everything. Runs
on the client alone (Python 3.11).
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass

from probes.host import payload
from probes.meaning import Count, Seconds, Size, Text
from probes.records import Endpoint, Sample
from probes.smb import status
from probes.smb.frames import Broken
from probes.smb.login import open_session
from probes.smb.pipe import Created, Pipe, Reply, received, round_trips
from probes.smb.run_folder import joined
from probes.stage import Known, Last, Running, Stage, Turn, Unavailable, no_agent

STAGE = Stage(
    "small-files",
    measures="the time per small file",
    usual_seconds=1.8,
    needs=("share",),
    calls="called",
    unpaced=True,
    writes=True,
)
USUAL_SECONDS = 1.5
FILES, FILE_BYTES = 500, 16 * 1024

VERBS = ("push", "pull")
SAMPLE_SECONDS = 0.1
ECHO_SHARE = 0.1
MAKING_SHARE = 0.4
"""Of a pull's time: for making the files, which is not measured."""
LEAST_FILES = 3
GRACE_SECONDS = 5.0
CLEANING_SECONDS = 20.0


@dataclass(frozen=True)
class Setting:
    """Which way, how many, how large."""

    verb: Text
    """push: new files on the share; pull: files that lie there."""
    files: Count
    """At most; fewer where the time is over."""
    file_bytes: Size
    dialect: Text
    seconds: Seconds
    """For making and measuring; comparing and removing come after it."""
    seed: Text = ""
    """Of the payload, hex."""
    security: Text = ""
    """One of probes.smb.session.SECURITIES; "": what the server requires and no more."""


def turns(known: Known) -> Iterator[Turn]:
    """Pushed, then pulled."""
    for verb in VERBS:
        yield Turn(
            f"small files {verb}",
            Setting(verb, FILES, FILE_BYTES, known.dialect, 0.0, known.seed),
            USUAL_SECONDS,
            parts=2 * len(VERBS),
            peer="share",
            grace_seconds=2 * CLEANING_SECONDS,
        )


def fitted(setting: Setting, known: Known) -> Setting:
    """As it is, where there is room for it."""
    if known.room_bytes < setting.files * setting.file_bytes:
        raise Unavailable(f"not enough free space on the share for {setting.files} files of 16 KiB")
    return setting


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Copies one file after the other and yields samples of what arrived.

    peer: host, port, share, access and folder, the run's. Elapsed is the sum of the files' own
    times: what keeps a file from being left behind is not in it. Returns the details: files,
    seconds_per_file (median) with its quartiles, round_trips_per_file, rtt_seconds (median of SMB
    ECHOs on the idle session), hash_ok. Raises Refused, Unavailable, Broken, and ValueError for a
    setting that makes no sense.
    """
    if setting.verb not in VERBS or setting.files < 1 or setting.seconds <= 0:
        raise ValueError(f"no such files: {setting.verb} of {setting.files}")
    if not 1 <= setting.file_bytes <= payload.LONGEST_BLOCK_BYTES:
        raise ValueError(f"a small file has no {setting.file_bytes} bytes")
    ring = payload.ring(bytes.fromhex(setting.seed))
    path = joined(peer.folder, f"small-{secrets.token_hex(8)}")
    with open_session(peer, setting.dialect, setting.security) as session:
        # opened first: the last to leave removes folder and files
        folder = session.open_folder(peer.folder)
        facts = session.facts
        what = f"{STAGE.name} {setting.verb} failed"
        with status.error_context(lambda: what, peer), session.pipe(folder) as pipe:
            until = time.monotonic() + setting.seconds
            pipe.limit(until + GRACE_SECONDS)
            rtts = round_trips(pipe, ECHO_SHARE * setting.seconds)
            files = SmallFiles(pipe, path, setting.file_bytes, ring)
            if setting.verb == "pull":
                # more cannot be pulled in the time, however fast the server is
                most = 1 + int(setting.seconds / (3 * min(rtts)))
                making = time.monotonic() + MAKING_SHARE * setting.seconds
                files.make(min(setting.files, most), making)
            timed = yield from _window(setting, files, until)
            pipe.limit(time.monotonic() + CLEANING_SECONDS)
            rtts += round_trips(pipe, ECHO_SHARE * setting.seconds)
            if setting.verb == "push":
                files.read_back()
            files.remove()
    each = sorted(one.seconds for one in timed)
    # twice the same list has the same quartiles, and a single file has some too
    low, median, high = statistics.quantiles(each * 2, n=4, method="inclusive")
    return {
        "files": len(timed),
        "seconds_per_file": median,
        "seconds_per_file_low": low,
        "seconds_per_file_high": high,
        "round_trips_per_file": statistics.median(one.round_trips for one in timed),
        "rtt_seconds": statistics.median(rtts),
        "hash_ok": files.intact,
        **facts.used,
    }


def _window(
    setting: Setting, files: SmallFiles, until: float
) -> Generator[Sample, None, list[Timed]]:
    """Copies until all are copied or the time is over; LEAST_FILES get a little more time."""
    timed: list[Timed] = []
    elapsed = told = 0.0
    yield Sample(0.0, 0)
    for number in files.numbers if setting.verb == "pull" else range(setting.files):
        one = files.pull(number) if setting.verb == "pull" else files.push(number)
        if one is None:
            break
        timed.append(one)
        elapsed += one.seconds
        grace = GRACE_SECONDS / 2 if len(timed) < LEAST_FILES else 0.0
        if time.monotonic() > until + grace:
            break
        if elapsed - told >= SAMPLE_SECONDS:
            told = elapsed
            yield Sample(elapsed, len(timed) * setting.file_bytes)
    if not timed:
        raise Unavailable("the server opens no more files for this session")
    yield Last(elapsed, len(timed) * setting.file_bytes)
    return timed


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
