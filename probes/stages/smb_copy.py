"""A real copy of one file between this host and a share, flushed to the disk at its end.

READ and WRITE are our own, pipelined on the session of an SMB library: the libraries' copy loops
keep one request in flight and would measure themselves. Runs on the client only (Python 3.11).
"""

from __future__ import annotations

import os
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import TypeVar

from probes.core.field_types import Count, FolderOrNone, Seconds, Size, Text
from probes.core.records import OWN_COPIES, Details, Endpoint, Sample
from probes.core.stage import (
    Last,
    Refused,
    Running,
    Stage,
    Unavailable,
    Window,
    no_agent,
    requested_cache,
)
from probes.files import payload
from probes.host.counters import process_seconds
from probes.smb import status, transfer
from probes.smb.client_end import Check, FolderSink, FolderSource, MemorySink, MemorySource, spread
from probes.smb.copy_length import CopyLength, Flushes
from probes.smb.frames import SmbError
from probes.smb.login import open_session
from probes.smb.pipe import Flight, Pipe, plan_flight
from probes.smb.run_folder import new_file, source_of, source_to_fill
from probes.smb.session import Handle, Session
from probes.smb.time_bins import TimeBins
from probes.sockets import limits

STAGE = Stage(
    "smb-copy",
    measures="the copy as a user makes it",
    explains=False,
    needs=("share",),
    writes=True,
    varying=tuple(
        "size_bytes seconds fill_source file most_seconds lasting past_cache checked"
        " source_bytes".split()
    ),
)

FILE_COPIES = tuple(f"file.{name}" for name in OWN_COPIES)
"""Copies of a file of the user's, by their direction and the sender's cache."""
MOST_REPEATED_BYTES = 4 << 30
"""Limit of a copy that lasts for a given time."""
FILE_LEAST_BYTES = 1024 * 1024
"""Smallest file: the copy of a smaller one consists of its opening and closing."""
ENDS = ("folder", "memory")
END_RATIO = 0.8
"""Share of the deadline after which an extended copy sends no further requests."""
SAMPLE_SECONDS = 0.1
REMEMBERED_REPLIES = 4096
"""Last replies whose intervals are examined for bursts."""
MEMORY_IN_FLIGHT_BYTES = 16 * 1024 * 1024
"""Bytes in flight to memory: such a receiver is faster than a server that waits for READs."""
CHECK_FILE_SECONDS = 2.0
"""Longest comparison of a pull in a folder, where the pull itself took less."""
CHECK_BYTES = 256 * 1024
CHECK_LEAST_BYTES = 4096
CHECK_DEPTH = 16
CHECK_SHARE = 0.08
"""Time to read a push back, as a share of its own time."""
CHECK_LEAST_SECONDS = 0.2
CHECK_MOST_SECONDS = 5.0
"""Limit of the comparison, however long the copy took."""
CHECK_SECONDS = 20.0
"""Deadline of the requests that read a push back."""


@dataclass(frozen=True)
class Setting:
    """The copy, its dialect and its limits."""

    copy: Text
    """One of OWN_COPIES or FILE_COPIES; cached or not is about the sender."""
    dialect: Text
    """2.0.2, 2.1, 3.0, 3.0.2, 3.1.1 or smb1."""
    end: Text
    """folder: the client's folder is read from or written to; memory: no disk on the client."""
    size_bytes: Size
    """Bytes to copy; a push sends a smaller cached file of the run repeatedly."""
    seconds: Seconds
    """Deadline of this one run, from the opening of its window."""
    folder: FolderOrNone = "."
    seed: Text = ""
    """Seed of the payload, hex."""
    fill_source: bool = False
    """Push only: writes the run's own source file instead of a new one."""
    signing: Text | None = None
    """Label of a report; the details have the algorithm in use."""
    encryption: Text | None = None
    request_bytes: Count = 0
    """Bytes of a READ or WRITE; 0: the dialect's best."""
    depth: Count = 0
    """Requests in flight; 0: the dialect's best."""
    security: Text = ""
    """One of probes.smb.session.SECURITIES; "": what the server requires and no more."""
    flushed: bool = True
    """Push only: the server flushes the file repeatedly and at the end."""
    checked: bool = True
    """Push only: a part of the file is read back and compared."""
    file: Text = ""
    """FILE_COPIES only: the user's file by its path on the share, or a name for peer.path on this
    host; opened for reading."""
    most_seconds: Seconds = 0.0
    """Time after which no more requests are sent, unless the rate still rises; 0: all size_bytes
    are copied."""
    lasting: bool = False
    """Whether it lasts for just that time: a pull reads any source repeatedly."""
    source_bytes: Size = 0
    """pull.cached only: part of the source to copy repeatedly; 0: it is copied once."""
    past_cache: bool = False
    """pull.uncached only: the source is read without the server's cache, if that allows it."""


def preload() -> None:
    """Imports the SMB library, so that children forked afterwards need not."""
    from cryptography.hazmat.primitives import cmac
    from cryptography.hazmat.primitives.ciphers import Cipher, aead

    from probes.smb import smbprotocol_session

    del cmac, Cipher, aead, smbprotocol_session


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Makes the copy once and yields its samples: payload that the receiver has.

    peer: host, port, share, access, folder (the run's folder on the share) and, for a push from
    the folder, path (the client's file, opened for reading). The window opens before the first
    READ or WRITE and closes when all is durable; login, open, cache and check are outside.
    Returns the details. Raises Refused, Unavailable, ValueError for a setting that makes no
    sense, and SmbError in mid-copy.
    """
    copies = FILE_COPIES if setting.file else OWN_COPIES
    if setting.copy not in copies or setting.end not in ENDS or setting.size_bytes < 1:
        raise ValueError(f"no such copy: {setting.copy}, {setting.end}, {setting.size_bytes} bytes")
    if "push" in setting.copy:
        return (yield from _push(setting, peer))
    if setting.fill_source:
        raise ValueError("only a push fills the source file")
    return (yield from _pull(setting, peer))


def _pull(setting: Setting, peer: Endpoint) -> Running:
    """Pulls into a nameless file or memory; the content of users' files is not compared."""
    check = Check(payload.make_ring(bytes.fromhex(setting.seed)))
    in_folder = setting.file or setting.end == "folder"
    with (
        closing(TimeBins()) as times,
        closing(FolderSink(setting.folder, times) if in_folder else MemorySink(check)) as sink,
    ):
        with _open_session(setting, peer, _source_on_share) as (session, handle):
            # Only so much of the file was brought into the server's cache.
            size_bytes = min(_least_bytes(setting), handle.size_bytes)
            if setting.file and size_bytes < FILE_LEAST_BYTES:
                raise Unavailable(f"{setting.file} is smaller than 1 MiB; use a larger file")
            window = _Window(setting, peer, times)
            with window.error_context(), session.pipe(handle) as pipe:
                least_bytes = 0 if in_folder else MEMORY_IN_FLIGHT_BYTES
                flight = plan_flight(
                    pipe, "read", setting.request_bytes, setting.depth, least_bytes
                )
                most_bytes = setting.size_bytes if setting.source_bytes else size_bytes
                if setting.lasting:
                    most_bytes = MOST_REPEATED_BYTES
                elif setting.source_bytes:
                    sink.file_bytes = size_bytes
                count = max(1, most_bytes // size_bytes)
                parts: Iterator[tuple[int, int]] = repeat((0, size_bytes), count)
                if setting.most_seconds:
                    parts = _until_over(parts, flight.request_bytes, window.length)
                arrived = transfer.fetch(pipe, parts, *flight.shape, sink.take)
                yield from window.samples(pipe, arrived)
                sink.finish()
                yield window.close(time.monotonic(), window.moved_bytes)
            details = window.details(pipe, session, flight)
        if setting.file:
            return {**details, "file_bytes": handle.size_bytes}
        # Only the server's agent can prove the state of its cache.
        cache = {"side": "server", "proven": False, "cached_ratio_before": None}
        details = {**details, "cache": {**cache, "requested": requested_cache(setting.copy)}}
        seconds = min(CHECK_MOST_SECONDS, max(CHECK_FILE_SECONDS, window.seconds))
        sink.look(check, min(size_bytes, window.moved_bytes), seconds)
    return {**details, **_check_details(check)}


def _until_over(
    ranges: Iterator[tuple[int, int]], part_bytes: int, length: CopyLength
) -> Iterator[tuple[int, int]]:
    """Yields the parts of ranges until the copy is over, the first part in any case."""
    has_begun = False
    for first, end in ranges:
        for start in range(first, end, part_bytes):
            if has_begun and length.over:
                return
            yield start, min(start + part_bytes, end)
            has_begun = True


def _push(setting: Setting, peer: Endpoint) -> Running:
    ring = payload.make_ring(bytes.fromhex(setting.seed))
    # A file of the user's stays in the page cache as it is.
    cached = None if setting.file else requested_cache(setting.copy) == "cached"
    with (
        closing(TimeBins()) as times,
        closing(
            FolderSource(peer.path, setting.size_bytes, cached, times)
            if setting.end == "folder"
            else MemorySource(ring, requested_cache(setting.copy) == "cached")
        ) as source,
        _open_session(setting, peer, _target_on_share) as (session, handle),
    ):
        window = _Window(setting, peer, times)
        with window.error_context(), session.pipe(handle) as pipe:
            flight = plan_flight(pipe, "write", setting.request_bytes, setting.depth)
            cache = source.cache()
            every, room = transfer.SHORT_FLUSH_BYTES, None
            if setting.dialect != "smb1":
                every = transfer.FLUSH_BYTES
                room = transfer.ShareRoom(pipe, handle.id, f"//{peer.host}/{peer.share}")
            if not setting.flushed:
                every = setting.size_bytes
            moves = transfer.push(
                pipe,
                setting.size_bytes,
                *flight.shape,
                source.give,
                every,
                room,
                flushes=window.flushes,
                over=lambda: window.length.over,
            )
            yield from window.samples(pipe, moves)
            if setting.flushed:
                transfer.finish(pipe)
            yield window.close(time.monotonic(), window.moved_bytes)
            details = window.details(pipe, session, flight)
            if setting.flushed:
                last = details["flush_seconds"]
                details["flushing_seconds"] = pipe.counters.flushing_seconds + last
            check = Check(ring)
            if setting.checked:
                _read_back(pipe, window.moved_bytes, window.seconds, check)
    cache = {"side": "client", "requested": requested_cache(setting.copy), **cache}
    checked = _check_details(check) if setting.checked else {"hash_ok": None, "checked_bytes": 0}
    return {**details, "cache": cache, **checked}


def _read_back(pipe: Pipe, size_bytes: int, copy_seconds: float, check: Check) -> None:
    """Compares as much of the pushed file as a share of the copy's own time allows."""
    pipe.limit(time.monotonic() + CHECK_SECONDS)
    seconds = min(CHECK_MOST_SECONDS, max(CHECK_LEAST_SECONDS, CHECK_SHARE * copy_seconds))
    likely_bytes = int(size_bytes * seconds / copy_seconds)
    # On a slow path small and few at a time: requests in flight outlast the time.
    block_bytes = min(CHECK_BYTES, max(CHECK_LEAST_BYTES, likely_bytes // 8 & ~4095))
    depth = min(CHECK_DEPTH, max(1, likely_bytes // 2 // block_bytes))
    shape = pipe.prepare("read", block_bytes, depth)
    blocks = spread(size_bytes, shape[0], seconds)
    deque(transfer.fetch(pipe, blocks, *shape, check.take), maxlen=0)


def _check_details(check: Check) -> Details:
    return {"hash_ok": check.intact, "checked_bytes": check.checked_bytes}


class _Window(Window):
    def __init__(self, setting: Setting, peer: Endpoint, times: TimeBins) -> None:
        super().__init__()
        self._setting, self._peer, self._times = setting, peer, times
        self._trace: Details = {}
        self._process: Details = {}
        self._began = os.times()
        self._moments: deque[float] = deque(maxlen=REMEMBERED_REPLIES)
        self.flushes = Flushes()
        longest = setting.most_seconds if setting.lasting else END_RATIO * setting.seconds
        self.length = CopyLength(setting.most_seconds, longest)

    def samples(self, pipe: Pipe, moves: Iterator[int]) -> Iterator[Sample]:
        """Yields samples from the opening to the last byte that the receiver acknowledged."""
        yield Sample(0.0, 0)
        self._began = os.times()
        self.opened = sampled_at = time.monotonic()
        pipe.add_up(self._times)
        pipe.limit(self.opened + self._setting.seconds)
        try:
            for self.moved_bytes in moves:
                now = time.monotonic()
                self._moments.append(now)
                if now - sampled_at >= SAMPLE_SECONDS:
                    sampled_at = now
                    backlog = self.flushes.backlog_seconds(self.moved_bytes, now)
                    self.length.look(now - self.opened, self.moved_bytes, backlog)
                    yield Sample(now - self.opened, self.moved_bytes)
        except SmbError:
            # The copy's rate includes the standstill before the failure.
            yield Sample(time.monotonic() - self.opened, self.moved_bytes)
            raise
        self.acknowledged = time.monotonic()

    def close(self, now: float, moved_bytes: int) -> Last:
        """Returns the last sample, and ends the copy's own timings."""
        self._trace, self._process = self._times.end(), process_seconds(self._began)
        return super().close(now, moved_bytes)

    def details(self, pipe: Pipe, session: Session, flight: Flight) -> Details:
        """Returns the figures of the window, without what comes after it."""
        counters, facts = pipe.counters, session.facts
        return {
            "in_flight_bytes": counters.in_flight_bytes,
            "credit_stalls": counters.credit_stalls,
            "pending_replies": counters.pending_replies,
            "short_replies": counters.short_replies,
            "requests": counters.requests,
            "flushes": counters.flushes,
            **self.flush_details(self.moved_bytes),
            "replies": limits.moment_silence(tuple(self._moments)),
            "request_seconds_median": statistics.median(counters.request_seconds),
            **facts.protocol_details,
            "request_bytes": flight.request_bytes,
            "depth": flight.depth,
            "rtt_seconds": flight.rtt_seconds,
            "trace": self._trace,
            **self._process,
        }

    def error_context(self) -> AbstractContextManager[None]:
        """Raises errors as one line: where a copy broke, and after how many bytes."""
        return status.error_context(self._broke, self._peer, f" ({self._setting.seconds:.1f} s)")

    def _broke(self) -> str:
        moment = "before the copy began"
        if self.opened:
            moment = f"after {self.moved_bytes} of {self._setting.size_bytes} bytes"
        if self.closed:
            moment = "while the copy was checked"
        return f"{self._setting.copy} failed {moment}"


T = TypeVar("T")


@contextmanager
def _open_session(
    setting: Setting, peer: Endpoint, open_end: Callable[[Session, Setting, Endpoint], T]
) -> Iterator[tuple[Session, T]]:
    """Opens a session, and the file to copy.

    Raises Unavailable for a login that works in the dialect of the run's folder, but not in this
    one.
    """
    with ExitStack() as stack:
        try:
            session = stack.enter_context(open_session(peer, setting.dialect, setting.security))
            handle = open_end(session, setting, peer)
        except Refused as refused:
            run_dialect = peer.facts.get("dialect")
            if run_dialect in (None, setting.dialect) or refused.kind == "space":
                raise
            text = f"not over {setting.dialect}, although over {run_dialect}: {refused.text}"
            raise Unavailable(text) from None
        yield session, handle


def _source_on_share(session: Session, setting: Setting, peer: Endpoint) -> Handle:
    if setting.file:
        return session.open_file(setting.file, write=False)
    return source_of(session, peer, _least_bytes(setting), "pulled", setting.past_cache)


def _least_bytes(setting: Setting) -> int:
    """Returns the bytes that a pull's source must have, and that are read of it at a time."""
    return min(setting.source_bytes or setting.size_bytes, setting.size_bytes)


def _target_on_share(session: Session, setting: Setting, peer: Endpoint) -> Handle:
    if setting.fill_source:
        return source_to_fill(session, peer, setting.seed)
    return new_file(session, peer)
