"""What the data paths of SMB1 and of SMB2/3 have in common: requests out, replies back, counts."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from probes.smb import status
from probes.smb.frames import Broken, Wire
from probes.smb.time_bins import TimeBins

Verb = Literal["read", "write", "flush", "echo", "create", "close", "space", "empty"]

REMEMBERED_REQUESTS = 4096
IN_FLIGHT_LIMIT_BYTES = 64 * 1024 * 1024
"""Buffers of a copy never take more than that, whatever depth is asked for."""
EMPTY = memoryview(b"")

GENERIC_READ, GENERIC_WRITE, DELETE = 0x80000000, 0x40000000, 0x00010000
LIST_AND_DELETE = 0x00110081
"""SYNCHRONIZE, DELETE, READ_ATTRIBUTES, LIST_DIRECTORY."""
SHARE_ALL, SHARE_BUT_DELETE = 0x7, 0x3
"""Others may do anything with what is open; all but rename or delete it."""
EXISTING, NEW = 1, 2
FOLDER, FILE, DELETE_ON_CLOSE = 0x0001, 0x0040, 0x1000
READ_ALONE, PAST_CACHE, OPEN_LINK, NO_RECALL = 0x81, 0x8, 0x200000, 0x400000
"""Access, sharing, dispositions and options of a CREATE: the same in SMB1 (MS-CIFS 2.2.4.64) and
SMB2 (MS-SMB2 2.2.13)."""
NORMAL, IMPERSONATION = 0x80, 2
END_OF_FILE = 0xC0000011
"""STATUS_END_OF_FILE (MS-ERREF 2.3.1): a READ of an empty file."""


class Request(NamedTuple):
    """One request in flight."""

    verb: Verb
    offset: int
    size_bytes: int
    view: memoryview
    """Where the payload of a READ goes."""
    sequence: int
    """Of its signature (SMB1); 0 elsewhere."""
    sent_seconds: float
    """time.monotonic() when it was sent."""


class Reply(NamedTuple):
    """One request that was answered in full."""

    verb: Verb
    offset: int
    view: memoryview
    """Of a READ: what arrived; empty otherwise."""
    moved_bytes: int
    """Payload bytes that were moved; of a READ possibly fewer than asked, never 0."""
    body: bytes = b""
    """Of a request that ask() sent: all that follows the header; empty otherwise."""


class Created(NamedTuple):
    """An open file, as turn() takes it."""

    id: bytes
    size_bytes: int
    """When it was opened."""
    identity: bytes = b""
    """Number of the file and of its volume, by whatever path it was opened; b"": untold."""


@dataclass
class Counters:
    """What happened on a pipe so far."""

    requests: int = 0
    """READs and WRITEs sent."""
    flushes: int = 0
    flushing_seconds: float = 0.0
    """From sending to the reply, of all FLUSHes that a push sent on its way, not of its last."""
    pending_replies: int = 0
    """Interim STATUS_PENDING replies: the server could not answer at once."""
    short_replies: int = 0
    credit_stalls: int = 0
    """Times that only the server's credits kept the next request back."""
    in_flight_bytes: int = 0
    """The most payload that was ever asked for and not yet answered."""
    request_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED_REQUESTS))
    """From sending to the full reply, of the last READs and WRITEs."""


class Pipe(ABC):
    """Requests on one open file; replies come in any order. Raises Broken.

    No oplock and no lease is asked for: nobody here could answer its break.
    """

    link: Any
    """A Link1 or Link2: the session as this takes it over and gives it back."""
    _echo_body: bytes

    def __init__(self, wire: Wire) -> None:
        self.counters = Counters()
        """Counts since the pipe was opened."""
        self._wire = wire
        self._requests: dict[int, Request] = {}
        self._in_flight_bytes = 0
        self._times: TimeBins | None = None
        self.created: set[bytes] = set()
        """Files of this run that are emptied where the work on this pipe breaks off."""

    @property
    def outstanding(self) -> int:
        """Requests that are not answered yet."""
        return len(self._requests)

    @abstractmethod
    def prepare(self, verb: Verb, request_bytes: int, depth: int) -> tuple[int, int]:
        """Readies depth requests of request_bytes; returns what is possible.

        0 is the default for a short path; fitting() chooses for the path at hand.
        """

    @abstractmethod
    def affords(self, size_bytes: int) -> int:
        """How much of size_bytes may be requested at once now; 0: wait for a reply first."""

    @abstractmethod
    def read(self, offset: int, view: memoryview) -> None:
        """Asks for the bytes of view; one that affords() allowed."""

    @abstractmethod
    def write(self, offset: int, data: memoryview) -> None:
        """Sends data, which may be reused at once; one that affords() allowed."""

    @abstractmethod
    def turn(self, file_id: bytes) -> None:
        """READ, WRITE and FLUSH go to that open file from now on (Handle.id)."""

    @abstractmethod
    def wait(self) -> Reply:
        """The next request that is answered."""

    @abstractmethod
    def opened(self, body: bytes) -> Created:
        """What the reply to create() or open() tells. Raises Broken where it is too short."""

    def ask(self, verb: Verb, tag: int, body: bytes) -> None:
        """Sends a request of another kind, made of body; its Reply has the tag as its offset."""
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
        """Asks the server to make durable what was written so far."""
        self.ask("flush", 0, self._flush_body())

    def echo(self) -> None:
        """Asks for a sign of life, which costs the server nothing."""
        self.ask("echo", 0, self._echo_body)

    def create(self, tag: int, path: str) -> None:
        """Asks for a new file to read and write; it goes when this handle is closed."""
        access = GENERIC_READ | GENERIC_WRITE | DELETE
        self.ask("create", tag, self._create_body(path, access, NEW, FILE | DELETE_ON_CLOSE))

    def open(self, tag: int, path: str, write: bool, options: int = FILE) -> None:
        """Asks for one more handle of an existing file."""
        access = GENERIC_READ | (GENERIC_WRITE if write else 0)
        self.ask("create", tag, self._create_body(path, access, EXISTING, options))

    def close(self, tag: int, file_id: bytes) -> None:
        """Asks to close a handle."""
        self.ask("close", tag, self._close_body(file_id))

    def empty(self, tag: int, file_id: bytes) -> None:
        """Asks for a length of 0: whatever a server does with a deleted file, nothing is kept."""
        self.ask("empty", tag, self._empty_body(file_id))

    def abandon(self, seconds: float) -> None:
        """Empties what was created, after work that broke off; waits no longer than that."""
        self._wire.deadline = time.monotonic() + seconds
        with suppress(Broken):  # the connection is of no use, or the time is over
            for each in self.created:
                while not self.affords(1):
                    self._pass_over()
                self.empty(0, each)
            while self._requests:
                self._pass_over()

    def _pass_over(self) -> None:
        """Waits for a reply, which may say no."""
        with suppress(status.ServerSaid):
            self.wait()

    def add_up(self, times: TimeBins) -> None:
        """Adds up from now on where the time goes; until times.end()."""
        self._times = self._wire.times = times
        times.begin()

    def turn_times(self) -> None:
        """Once a request: now and then closes a bin."""
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
        """Counts a request that is about to be sent; its reply has that number."""
        counters, flushes = self.counters, request.verb == "flush"
        self._requests[number] = request
        self._in_flight_bytes += request.size_bytes
        counters.in_flight_bytes = max(counters.in_flight_bytes, self._in_flight_bytes)
        counters.flushes += flushes
        counters.requests += request.size_bytes > 0
        # a disk may be busy with one flush for longer than a stall takes
        self._wire.patient |= flushes

    def _end(
        self, number: int, code: int, read: memoryview | None, written: int, *body: memoryview
    ) -> Reply:
        """What a request came to that was answered in full.

        code: its status; read: what arrived of a READ; written: of a WRITE, as the server tells.
        """
        request = self._requests.pop(number)
        verb, size, view = request.verb, request.size_bytes, read or EMPTY
        times, heard = self._times, self._wire.heard
        if times is not None and (heard >= times.request_at or not size):
            times.answered(verb, request.sent_seconds, heard, size, self._in_flight_bytes)
        self._in_flight_bytes -= size
        self._wire.patient &= verb != "flush"
        if code != status.SUCCESS:
            raise status.said(f"{verb.upper()} at {request.offset}", code)
        if not size:
            return Reply(verb, request.offset, view, 0, b"".join(body))
        if verb == "write" and written != size:
            raise Broken(f"the server wrote {written} of the {size} bytes sent")
        moved = written if verb == "write" else len(view)
        self.counters.request_seconds.append(time.monotonic() - request.sent_seconds)
        self.counters.short_replies += moved < size
        return Reply(verb, request.offset, view, moved)

    def _received(self, size: int) -> memoryview:
        """The next size bytes of the frame; what surrounds a payload is small or absent."""
        if not size:
            return EMPTY
        view = memoryview(bytearray(size))
        self._wire.receive(view)
        return view


def shape(request_bytes: int, longest_bytes: int, depth: int) -> tuple[int, int]:
    """Request size and depth within the server's and our own limits."""
    request_bytes = max(1, min(request_bytes, longest_bytes))
    return request_bytes, max(1, min(depth, IN_FLIGHT_LIMIT_BYTES // request_bytes))


ECHOS, LEAST_ECHOS = 12, 3


def round_trips(pipe: Pipe, seconds: float, count: int = ECHOS) -> list[float]:
    """Seconds of each of up to count ECHOs, one by one; LEAST_ECHOS whatever time they take.

    Nothing else may be in flight: a READ's payload in front of a reply would be counted too.
    Raises Broken where something is.
    """
    if pipe.outstanding:
        raise Broken("an ECHO measures the round-trip time of an idle session only")
    taken: list[float] = []
    until = time.monotonic() + seconds
    while len(taken) < count and (len(taken) < LEAST_ECHOS or time.monotonic() < until):
        before = time.perf_counter()
        pipe.echo()
        pipe.wait()
        taken.append(time.perf_counter() - before)
    return taken


LIKELY_BYTES_PER_SECOND = 2.5e9
"""Twice 10 Gbit/s: a link's worth on its way, and as much with the server. A slower link only has
our own requests wait for each other; nobody else's packets do, for TCP bounds what is sent."""


class Flight(NamedTuple):
    """What a copy was made with."""

    request_bytes: int
    depth: int
    rtt_seconds: float | None
    """Shortest ECHO on the idle session; None: the depth was given."""

    @property
    def shape(self) -> tuple[int, int]:
        """Request size and depth."""
        return self.request_bytes, self.depth


def fitting(
    pipe: Pipe, verb: Verb, request_bytes: int = 0, depth: int = 0, least_bytes: int = 0
) -> Flight:
    """Readies the pipe for a copy, deep enough that the path's RTT does not cap it.

    rate = bytes in flight / RTT, up to IN_FLIGHT_LIMIT_BYTES and to the server's
    credits. 0: the default request; a depth that is given is kept; least_bytes: in flight, whatever
    the RTT. Nothing may be in flight.
    """
    if depth:
        return Flight(*pipe.prepare(verb, request_bytes, depth), None)
    size, depth = pipe.prepare(verb, request_bytes, 0)
    rtt = min(round_trips(pipe, 0.0, LEAST_ECHOS))
    needed = -int(-max(rtt * LIKELY_BYTES_PER_SECOND, least_bytes) // size)
    if needed > depth:
        # A power of two: smb-matrix measures such depths, so that a copy finds its own among them.
        size, depth = pipe.prepare(verb, request_bytes, 1 << (needed - 1).bit_length())
    return Flight(size, depth, rtt)
