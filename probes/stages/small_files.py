"""Copies many small files, one after the other: the seconds and round trips of each.

Files of one size that are made for it, or those of a folder of the user's (probes/smb/trees.py).
Runs on the client only (Python 3.11).
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial

from probes.core.field_types import Count, FolderOrNone, Seconds, Size, Text
from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last, RunFacts, Running, Stage, Turn, Unavailable, no_agent
from probes.files import payload
from probes.smb import status, transfer
from probes.smb.login import open_session
from probes.smb.many_files import DEPTH, ManyFiles, TimedFile, refuse_recycle_bin
from probes.smb.pipe import Pipe, round_trips
from probes.smb.run_folder import join_path

STAGE = Stage(
    "small-files",
    measures="the time per small file",
    usual_seconds=1.8,
    needs=("share",),
    writes=True,
    varying=("size_bytes", "folder"),
)
USUAL_SECONDS = 1.5
FILES, FILE_BYTES = 500, 16 * 1024

VERBS = ("push", "pull")
SAMPLE_SECONDS = 0.1
ECHO_SHARE = 0.1
MAKING_SHARE = 0.4
"""Share of a pull's time for making the files, which is not measured."""
LEAST_FILES = 3
GRACE_SECONDS = 5.0
CLEANING_SECONDS = 20.0


@dataclass(frozen=True)
class Setting:
    """Direction, count and size of the files."""

    verb: Text
    """push: new files on the share; pull: files that lie there."""
    files: Count
    """Most files; fewer where the time is over. 0: those of a tree."""
    file_bytes: Size
    """Size of each file; 0: those of a tree."""
    dialect: Text
    seconds: Seconds
    """Time for making and measuring; comparing and removing come after it."""
    seed: Text = ""
    """Seed of the payload, hex."""
    security: Text = ""
    """One of probes.smb.session.SECURITIES; "": what the server requires and no more."""
    tree: Text = ""
    """A folder of the user's whose files are copied, opened for reading: by its path on the share
    (pull; ".": the share's root), or a name for peer.path, a folder of this host (push)."""
    size_bytes: Size = 0
    """Most bytes of a tree to copy."""
    folder: FolderOrNone = ""
    """This host's folder, in which a nameless file receives a pulled tree."""


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a push, then a pull."""
    for verb in VERBS:
        yield Turn(
            f"small files {verb}",
            Setting(verb, FILES, FILE_BYTES, facts.dialect, 0.0, facts.seed),
            USUAL_SECONDS,
            parts=2 * len(VERBS),
            peer="share",
            grace_seconds=2 * CLEANING_SECONDS,
        )


def fit_setting(setting: Setting, facts: RunFacts) -> Setting:
    """Returns the setting unchanged. Raises Unavailable where there is no room for the files."""
    if facts.room_bytes < setting.files * setting.file_bytes:
        raise Unavailable(f"not enough free space on the share for {setting.files} files of 16 KiB")
    return setting


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Copies one file after the other and yields samples of the payload that arrived.

    peer: host, port, share, access and folder, the run's. Elapsed is the sum of the files' own
    times: handling of leftovers between them does not count. Returns the details: files,
    seconds_per_file (median) with its quartiles, round_trips_per_file, rtt_seconds (median of SMB
    ECHOs on the idle session), hash_ok. Raises Refused, Unavailable, SmbError, and ValueError for a
    setting that makes no sense.
    """
    least_files = 0 if setting.tree else 1
    if setting.verb not in VERBS or setting.files < least_files or setting.seconds <= 0:
        raise ValueError(f"no such files: {setting.verb} of {setting.files}")
    if setting.verb == "push" or not setting.tree:
        refuse_recycle_bin(peer)
    if setting.tree:
        return (yield from _copy_tree(setting, peer))
    if not 1 <= setting.file_bytes <= payload.LONGEST_BLOCK_BYTES:
        raise ValueError(f"a small file has no {setting.file_bytes} bytes")
    ring = payload.make_ring(bytes.fromhex(setting.seed))
    path = join_path(peer.folder, "small")
    with open_session(peer, setting.dialect, setting.security) as session:
        folder = session.open_folder(peer.folder)
        facts = session.facts
        what = f"{STAGE.name} {setting.verb} failed"
        with status.error_context(lambda: what, peer), session.pipe(folder) as pipe:
            until = time.monotonic() + setting.seconds
            pipe.limit(until + GRACE_SECONDS)
            rtts = round_trips(pipe, ECHO_SHARE * setting.seconds)
            files = SmallFiles(pipe, path, setting.file_bytes, ring)
            if setting.verb == "pull":
                # No more can be pulled in the time, even by an infinitely fast server.
                most_files = 1 + int(setting.seconds / (3 * min(rtts)))
                making = time.monotonic() + MAKING_SHARE * setting.seconds
                files.make(min(setting.files, most_files), making)
            timed = yield from _window(setting, files, until)
            pipe.limit(time.monotonic() + CLEANING_SECONDS)
            rtts += round_trips(pipe, ECHO_SHARE * setting.seconds)
            if setting.verb == "push":
                files.read_back()
            files.remove()
    return {**_details(timed, rtts), "hash_ok": files.intact, **facts.protocol_details}


def _details(timed: list[TimedFile], rtts: list[float]) -> Details:
    each = sorted(one.seconds for one in timed)
    # The list twice has the same quartiles, and also some for a single file.
    low, median, high = statistics.quantiles(each * 2, n=4, method="inclusive")
    return {
        "files": len(timed),
        "seconds_per_file": median,
        "seconds_per_file_low": low,
        "seconds_per_file_high": high,
        "round_trips_per_file": statistics.median(one.round_trips for one in timed),
        "rtt_seconds": statistics.median(rtts),
    }


def _copy_tree(setting: Setting, peer: Endpoint) -> Running:
    """Copies a folder of the user's; reports the files' mean, since their sizes differ."""
    from probes.smb import trees

    with open_session(peer, setting.dialect, setting.security) as session:
        folder = session.open_folder(peer.folder)
        what = f"{STAGE.name} {setting.verb} of {setting.tree} failed"
        copy = trees.Copy(setting.tree, setting.size_bytes, setting.folder, setting.seconds)
        with status.error_context(lambda: what, peer):
            listed = copy.list_files(session) if setting.verb == "pull" else None
            with session.pipe(folder) as pipe:
                pipe.limit(time.monotonic() + GRACE_SECONDS)
                rtts = round_trips(pipe, ECHO_SHARE * setting.seconds)
                path = join_path(peer.folder, "small")
                if listed is None:
                    timed = yield from copy.push_files(pipe, path, peer, setting.dialect != "smb1")
                else:
                    timed = yield from copy.pull_files(pipe, listed)
        mean = copy.elapsed_seconds / len(timed)
        details = {**_details(timed, rtts), "seconds_per_file": mean, "hash_ok": None}
        return {**details, **copy.details(), **session.facts.protocol_details}


def _window(
    setting: Setting, files: SmallFiles, until: float
) -> Generator[Sample, None, list[TimedFile]]:
    """Copies until all are done or the time is over; LEAST_FILES get a little more time."""
    timed: list[TimedFile] = []
    elapsed = sampled = 0.0
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
        if elapsed - sampled >= SAMPLE_SECONDS:
            sampled = elapsed
            yield Sample(elapsed, len(timed) * setting.file_bytes)
    if not timed:
        raise Unavailable("the server opens no more files for this session")
    yield Last(elapsed, len(timed) * setting.file_bytes)
    return timed


class SmallFiles:
    """Files of file_bytes, <path>-0-..., <path>-1-..., whose contents all differ."""

    def __init__(
        self, pipe: Pipe, path: str, file_bytes: int, ring: memoryview, requests: int = 0
    ) -> None:
        """requests: of a file that is copied, one at a time; 0: as few as can be, many at once."""
        write = pipe.prepare("write", file_bytes, DEPTH)
        read = pipe.prepare("read", file_bytes, DEPTH)
        self.pipe, self._write_bytes = pipe, write[0]
        if requests:
            part_bytes = -(-file_bytes // requests)
            write, read = ((min(part_bytes, size), 1) for size, _ in (write, read))
        self._files = ManyFiles(pipe, path, {"write": write, "read": read})
        self._file_bytes, self._ring = file_bytes, ring
        self._buffer = memoryview(bytearray(file_bytes))
        self.intact = True
        """Whether all content compared so far was right."""

    @property
    def numbers(self) -> list[int]:
        """Numbers of the files on the share."""
        return list(self._files.handles)

    def make(self, files: int, until: float) -> None:
        """Makes the files from 0 on, many at once, until a moment of time.monotonic()."""
        handles = self._files.handles
        while len(handles) < files and not self._files.full and time.monotonic() < until:
            self._files.make(range(len(handles), min(files, len(handles) + DEPTH)), self._write)

    def push(self, number: int) -> TimedFile | None:
        """Pushes a new file; None where the server opens no more of them."""
        return self._files.push(number, self._file_bytes, partial(self._content, number))

    def pull(self, number: int) -> TimedFile:
        """Pulls a file that was made, and compares its content afterwards."""
        timed = self._files.pull(self._files.name(number), self._take, self._file_bytes)
        self._look(number)
        return timed

    def look_up(self, number: int) -> None:
        """Opens and closes a file by its name."""
        self._files.look_up(number)

    def read_back(self) -> None:
        """Reads all files back through their open handles, and compares them."""
        pipe = self._files.pipe
        for number, handle in self._files.handles.items():
            pipe.turn(handle.id)
            ranges = iter([(0, self._file_bytes)])
            deque(transfer.fetch(pipe, ranges, *self._files.shapes["read"], self._take), maxlen=0)
            self._look(number)

    def remove(self, first: int = 0) -> None:
        """Removes the files from that number on."""
        self._files.remove(first)

    def _content(self, number: int, offset: int, size: int) -> memoryview:
        return payload.block(self._ring, number * self._file_bytes + offset, size)

    def _take(self, offset: int, view: memoryview) -> None:
        self._buffer[offset : offset + len(view)] = view

    def _look(self, number: int) -> None:
        offset = number * self._file_bytes
        self.intact = self.intact and payload.matches(self._ring, offset, self._buffer)

    def _write(self, number: int) -> None:
        """Sends a file's content, in as few WRITEs as the server takes."""
        pipe, done = self._files.pipe, 0
        while done < self._file_bytes:
            size = pipe.affords(min(self._write_bytes, self._file_bytes - done))
            if not size:
                pipe.wait()
                continue
            pipe.write(done, self._content(number, done, size))
            done += size
