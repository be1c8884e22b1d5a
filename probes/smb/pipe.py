"""What the data paths of SMB1 and of SMB2/3 have in common: requests out, replies back, counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

Verb = Literal["read", "write", "flush", "echo", "create", "close", "space"]

REMEMBERED_REQUESTS = 4096
IN_FLIGHT_LIMIT_BYTES = 64 * 1024 * 1024
"""Buffers of a copy never take more than that, whatever depth is asked for."""
EMPTY = memoryview(b"")


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


class Pipe(Protocol):
    """Requests on one open file; replies come in any order. Raises Broken."""

    @property
    def counters(self) -> Counters:
        """Counts since the pipe was opened."""

    @property
    def outstanding(self) -> int:
        """Requests that are not answered yet."""

    def prepare(self, verb: Verb, request_bytes: int, depth: int) -> tuple[int, int]:
        """Readies depth requests of request_bytes; returns what is possible.

        0 is the default for a short path; probes.smb.flight chooses for the path at hand.
        """

    def affords(self, size_bytes: int) -> int:
        """How much of size_bytes may be requested at once now; 0: wait for a reply first."""

    def read(self, offset: int, view: memoryview) -> None:
        """Asks for the bytes of view; one that affords() allowed."""

    def write(self, offset: int, data: memoryview) -> None:
        """Sends data, which may be reused at once; one that affords() allowed."""

    def flush(self) -> None:
        """Asks the server to make durable what was written so far."""

    def ask(self, verb: Verb, tag: int, body: bytes) -> None:
        """Sends a request of another kind, made of body; its Reply has the tag as its offset."""

    def echo(self) -> None:
        """Asks for a sign of life, which costs the server nothing."""

    def turn(self, file_id: bytes) -> None:
        """READ, WRITE and FLUSH go to that open file from now on (Handle.id)."""

    def wait(self) -> Reply:
        """The next request that is answered."""

    def limit(self, deadline: float) -> None:
        """Sets the absolute deadline, by time.monotonic(), of all that follows."""


def shape(request_bytes: int, longest_bytes: int, depth: int) -> tuple[int, int]:
    """Request size and depth within the server's and our own limits."""
    request_bytes = max(1, min(request_bytes, longest_bytes))
    return request_bytes, max(1, min(depth, IN_FLIGHT_LIMIT_BYTES // request_bytes))


def received(pipe: Pipe, offset: int, view: memoryview) -> Iterator[memoryview]:
    """Reads one range with nothing else in flight; yields its parts in order."""
    done = 0
    while done < len(view):
        size = pipe.affords(len(view) - done)
        pipe.read(offset + done, view[done : done + size])
        reply = pipe.wait()
        done += reply.moved_bytes
        yield reply.view
