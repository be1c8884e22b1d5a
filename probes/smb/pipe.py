"""The common part of the data paths of SMB1 and of SMB2/3: requests out, replies back, counts."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from probes.smb import status
from probes.smb.frames import SmbError, Wire
from probes.smb.time_bins import TimeBins

Verb = Literal["read", "write", "flush", "echo", "create", "close", "space", "empty"]

REMEMBERED_REQUESTS = 4096
IN_FLIGHT_LIMIT_BYTES = 64 * 1024 * 1024
"""Limit of a copy's buffers, whatever the depth."""
EMPTY = memoryview(b"")

GENERIC_READ, GENERIC_WRITE, DELETE = 0x80000000, 0x40000000, 0x00010000
LIST_AND_DELETE = 0x00110081
"""SYNCHRONIZE, DELETE, READ_ATTRIBUTES, LIST_DIRECTORY."""
SHARE_ALL, SHARE_BUT_DELETE = 0x7, 0x3
"""Sharing: others may do anything with an open file; all but rename or delete it."""
EXISTING, NEW = 1, 2
FOLDER, FILE, DELETE_ON_CLOSE = 0x0001, 0x0040, 0x1000
READ_ALONE, PAST_CACHE, OPEN_LINK, NO_RECALL = 0x81, 0x8, 0x200000, 0x400000
"""Access, sharing, dispositions and options of a CREATE: the same in SMB1 (MS-CIFS 2.2.4.64) and
SMB2 (MS-SMB2 2.2.13)."""
NORMAL, IMPERSONATION = 0x80, 2
END_OF_FILE = 0xC0000011
"""STATUS_END_OF_FILE (MS-ERREF 2.3.1): a READ of an empty file."""


class Request(NamedTuple):
    verb: Verb
    offset: int
    size_bytes: int
    view: memoryview
    """Buffer for the payload of a READ."""
    sequence: int
    """Sequence number of its signature (SMB1); else 0."""
    sent_seconds: float
    """Time at which it was sent (time.monotonic())."""


class Reply(NamedTuple):
    """One request that was answered in full."""

    verb: Verb
    offset: int
    view: memoryview
    """Payload of a READ; else empty."""
    moved_bytes: int
    """Payload bytes that were moved; for a READ possibly fewer than requested, never 0."""
    body: bytes = b""
    """All that follows the header, for requests that ask() sent; else empty."""


class CreatedFile(NamedTuple):
    """An open file, for turn()."""

    id: bytes
    size_bytes: int
    """Size when it was opened."""
    identity: bytes = b""
    """Number of the file and of its volume, independent of the path; b"": unknown."""


@dataclass
class Counters:
    """Counts of a pipe so far."""

    requests: int = 0
    """READs and WRITEs sent."""
    flushes: int = 0
    flushing_seconds: float = 0.0
    """Time from sending to the reply, of all FLUSHes of a push but its last."""
    pending_replies: int = 0
    """Interim STATUS_PENDING replies: the server could not answer at once."""
    short_replies: int = 0
    credit_stalls: int = 0
    """Times that only the server's credits delayed the next request."""
    in_flight_bytes: int = 0
    """The most payload that was ever in flight."""
    request_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED_REQUESTS))
    """Time from sending to the full reply, of the last READs and WRITEs."""


class Pipe(ABC):
    """Requests on one open file; replies come in any order. Raises SmbError.

    No oplock and no lease is requested: nobody here could answer its break.
    """

    link: Any
    """A Link1 or Link2: the session's state, which the pipe takes over and gives back."""
    _echo_body: bytes

    def __init__(self, wire: Wire) -> None:
        self.counters = Counters()
        """Counts since the pipe was opened."""
        self._wire = wire
        self._requests: dict[int, Request] = {}
        self._in_flight_bytes = 0
        self._times: TimeBins | None = None
        self.created: set[bytes] = set()
        """Files of this run that abandon() empties."""

    @property
    def in_flight(self) -> int:
        """Count of requests that are not answered yet."""
        return len(self._requests)

    @abstractmethod
    def prepare(self, verb: Verb, request_bytes: int, depth: int) -> tuple[int, int]:
        """Prepares for `depth` requests of request_bytes; returns the possible size and depth.

        0 is the default for a short path; plan_flight() chooses for the present path.
        """

    @abstractmethod
    def affords(self, size_bytes: int) -> int:
        """Returns the part of size_bytes that may be requested now; 0: wait for a reply first."""

    @abstractmethod
    def read(self, offset: int, view: memoryview) -> None:
        """Sends a READ for the bytes of view, a size that affords() allowed."""

    @abstractmethod
    def write(self, offset: int, data: memoryview) -> None:
        """Sends a WRITE of a size that affords() allowed; data may be reused at once."""

    @abstractmethod
    def turn(self, file_id: bytes) -> None:
        """Directs READ, WRITE and FLUSH to that open file from now on (Handle.id)."""

    @abstractmethod
    def wait(self) -> Reply:
        """Waits for the next reply."""

    @abstractmethod
    def parse_created(self, body: bytes) -> CreatedFile:
        """Parses the reply to create() or open(). Raises SmbError where it is too short."""

    def ask(self, verb: Verb, tag: int, body: bytes) -> None:
        """Sends a request of another kind with that body; its Reply has the tag as its offset."""
        self._send(verb, tag, body)

    def begins_with(self, mark: bytes) -> bool:
        """Whether the file begins with these bytes; nothing else may be in flight."""
        try:
            self.read(0, memoryview(bytearray(len(mark))))
            return self.wait().view == mark
        except status.ServerSaid as error:
            if error.status != END_OF_FILE:
                raise
            return False

    def flush(self) -> None:
        """Sends a FLUSH of all that was written so far."""
        self.ask("flush", 0, self._flush_body())

    def echo(self) -> None:
        """Sends an ECHO, which costs the server nothing."""
        self.ask("echo", 0, self._echo_body)

    def create(self, tag: int, path: str) -> None:
        """Sends a CREATE of a new file to read and write, deleted when this handle is closed."""
        access = GENERIC_READ | GENERIC_WRITE | DELETE
        self.ask("create", tag, self._create_body(path, access, NEW, FILE | DELETE_ON_CLOSE))

    def send_create(self, tag: int, path: str, write: bool, options: int = FILE) -> None:
        """Sends a CREATE for one more handle of an existing file."""
        access = GENERIC_READ | (GENERIC_WRITE if write else 0)
        self.ask("create", tag, self._create_body(path, access, EXISTING, options))

    def close(self, tag: int, file_id: bytes) -> None:
        """Sends the CLOSE of a handle."""
        self.ask("close", tag, self._close_body(file_id))

    def empty(self, tag: int, file_id: bytes) -> None:
        """Sets a file's length to 0, so that a recycle bin keeps nothing of it."""
        self.ask("empty", tag, self._empty_body(file_id))

    def abandon(self, seconds: float) -> None:
        """Empties the created files after work that failed, within so many seconds."""
        self._wire.deadline = time.monotonic() + seconds
        with suppress(SmbError):  # the connection is broken, or the time is over
            for each in self.created:
                while not self.affords(1):
                    self._pass_over()
                self.empty(0, each)
            while self._requests:
                self._pass_over()

    def _pass_over(self) -> None:
        """Waits for a reply, which may be an error."""
        with suppress(status.ServerSaid):
            self.wait()

    def add_up(self, times: TimeBins) -> None:
        """Adds up times by activity from now on, until times.end()."""
        self._times = self._wire.times = times
        times.begin()

    def turn_times(self) -> None:
        """Closes a bin of times that is due; called once a request."""
        times = self._times
        if times is None or self._wire.heard < times.due:
            return
        times.turn(times.clock())

    def limit(self, deadline: float) -> None:
        """Sets the absolute deadline, by time.monotonic(), of all that follows."""
        self._wire.deadline = deadline

    @abstractmethod
    def _send(self, verb: Verb, offset: int, body: bytes) -> None: ...

    @abstractmethod
    def _create_body(self, path: str, access: int, disposition: int, options: int) -> bytes: ...

    @abstractmethod
    def _close_body(self, file_id: bytes) -> bytes: ...

    @abstractmethod
    def _empty_body(self, file_id: bytes) -> bytes: ...

    @abstractmethod
    def _flush_body(self) -> bytes: ...

    def _begin(self, number: int, request: Request) -> None:
        """Counts a request that is about to be sent; number: that of its reply."""
        counters, flushes = self.counters, request.verb == "flush"
        self._requests[number] = request
        self._in_flight_bytes += request.size_bytes
        counters.in_flight_bytes = max(counters.in_flight_bytes, self._in_flight_bytes)
        counters.flushes += flushes
        counters.requests += request.size_bytes > 0
        # One flush may take a disk longer than STALL_SECONDS.
        self._wire.patient |= flushes

    def _end(
        self, number: int, code: int, read: memoryview | None, written: int, *body: memoryview
    ) -> Reply:
        """Counts a request that was answered in full; returns its Reply.

        code: its status; read: payload of a READ; written: bytes of a WRITE by the server's count.
        """
        request = self._requests.pop(number)
        verb, size, view = request.verb, request.size_bytes, read or EMPTY
        times, heard = self._times, self._wire.heard
        if times is not None and (heard >= times.request_at or not size):
            times.record_answer(verb, request.sent_seconds, heard, size, self._in_flight_bytes)
        self._in_flight_bytes -= size
        self._wire.patient &= verb != "flush"
        if code != status.SUCCESS:
            raise status.error_of(f"{verb.upper()} at {request.offset}", code)
        if not size:
            return Reply(verb, request.offset, view, 0, b"".join(body))
        if verb == "write" and written != size:
            raise SmbError(f"the server wrote {written} of the {size} bytes sent")
        moved_bytes = written if verb == "write" else len(view)
        self.counters.request_seconds.append(time.monotonic() - request.sent_seconds)
        self.counters.short_replies += moved_bytes < size
        return Reply(verb, request.offset, view, moved_bytes)

    def _receive(self, size: int) -> memoryview:
        """Receives the next bytes of the frame, around a payload: they are few or none."""
        if not size:
            return EMPTY
        view = memoryview(bytearray(size))
        self._wire.receive(view)
        return view


def shape(request_bytes: int, longest_bytes: int, depth: int) -> tuple[int, int]:
    """Returns request size and depth within the server's and our own limits."""
    request_bytes = max(1, min(request_bytes, longest_bytes))
    return request_bytes, max(1, min(depth, IN_FLIGHT_LIMIT_BYTES // request_bytes))


ECHOS, LEAST_ECHOS = 12, 3


def round_trips(pipe: Pipe, seconds: float, count: int = ECHOS) -> list[float]:
    """Measures up to count ECHOs one by one, in seconds; LEAST_ECHOS whatever time they take.

    Raises SmbError where another request is in flight: a READ's payload would delay the reply.
    """
    if pipe.in_flight:
        raise SmbError("an ECHO measures the round-trip time of an idle session only")
    times: list[float] = []
    until = time.monotonic() + seconds
    while len(times) < count and (len(times) < LEAST_ECHOS or time.monotonic() < until):
        began = time.perf_counter()
        pipe.echo()
        pipe.wait()
        times.append(time.perf_counter() - began)
    return times


LIKELY_BYTES_PER_SECOND = 2.5e9
"""Twice 10 Gbit/s: one half under way on the link, the other at the server. On a slower link only
our own requests wait for each other, not others' packets, since TCP limits the rate."""


class Flight(NamedTuple):
    """Request size and depth of a copy."""

    request_bytes: int
    depth: int
    rtt_seconds: float | None
    """Shortest ECHO on the idle session; None: the depth was given."""

    @property
    def shape(self) -> tuple[int, int]:
        """Request size and depth."""
        return self.request_bytes, self.depth


def plan_flight(
    pipe: Pipe, verb: Verb, request_bytes: int = 0, depth: int = 0, least_bytes: int = 0
) -> Flight:
    """Prepares the pipe for a copy, deep enough that the path's RTT does not limit it.

    rate = bytes in flight / RTT, up to IN_FLIGHT_LIMIT_BYTES and to the server's credits.
    request_bytes: 0: the default; depth: 0: by the RTT; least_bytes: in flight, whatever the RTT.
    Nothing may be in flight.
    """
    if depth:
        return Flight(*pipe.prepare(verb, request_bytes, depth), None)
    size, depth = pipe.prepare(verb, request_bytes, 0)
    rtt = min(round_trips(pipe, 0.0, LEAST_ECHOS))
    needed = -int(-max(rtt * LIKELY_BYTES_PER_SECOND, least_bytes) // size)
    if needed > depth:
        # A power of two: smb-matrix measures such depths, and so includes that of a copy.
        size, depth = pipe.prepare(verb, request_bytes, 1 << (needed - 1).bit_length())
    return Flight(size, depth, rtt)
