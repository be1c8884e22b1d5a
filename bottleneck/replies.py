"""What an agent has replied and nobody has read yet: bounded, and only what was asked for.

As lines, which take as much memory as they have bytes: what is in them is made when they are read.
"""

from __future__ import annotations

import queue
import threading
from typing import Any

from bottleneck import wire

MOST_BYTES = 2 << 20
"""Of all replies to one request: a run of a minute has 6 KB of samples."""
MOST_WAITING_BYTES = 4 << 20
"""Of replies to all requests that nobody has read yet."""
MOST_SESSION_BYTES, MOST_REQUEST_BYTES = 16 << 20, 160 << 10
"""Of a session in all, and for each request on top of it: what is told goes into the report. A run
of a minute has 150 KB."""
MOST_LATE = 1000
"""Replies to requests that were given up: they may have been on the way."""
ENDS = frozenset({"answer", "closed", "details", "observed", "failed", "skipped", "refused"})
"""What a reply has that is the last one of its request."""
UNASKED = "sends what nobody asked for"


class Unasked(Exception):
    """A reply to nothing, or more than fits; the text says what its sender did."""


class Replies:
    """The replies of one agent, by the number of the request that they belong to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[bytes | str]] = {}
        self._taken: dict[int, int] = {}
        """Bytes that came for each request whose last reply has not."""
        self._late = 0
        self._unread_bytes = self._session_bytes = 0
        self._most_session_bytes = MOST_SESSION_BYTES

    def expect(self, number: int) -> None:
        """A request is about to be sent."""
        with self._lock:
            self._waiting[number] = queue.SimpleQueue()
            self._taken[number] = 0
            self._most_session_bytes += MOST_REQUEST_BYTES

    def forget(self, number: int) -> None:
        """Nobody reads more replies to a request; late ones are tolerated, a few."""
        with self._lock:
            waiting = self._waiting.pop(number, None)
            if waiting is None:
                return
            while not waiting.empty():
                left = waiting.get()
                self._unread_bytes -= 0 if isinstance(left, str) else len(left)

    def put(self, line: bytes) -> None:
        """A line from the agent. Errors: Unasked; wire.WireError, it is no message."""
        reply = wire.decode(line)
        number = reply.get("id")
        with self._lock:
            # No request has this number, or its last reply has come already.
            if type(number) is not int or number not in self._taken:
                raise Unasked(UNASKED)
            self._count(number, len(line))
            if ENDS & reply.keys():
                del self._taken[number]
            waiting = self._waiting.get(number)
            if waiting is None:
                self._late += 1
                if self._late > MOST_LATE:
                    raise Unasked(UNASKED)
                return
            self._unread_bytes += len(line)
            waiting.put(line)

    def _count(self, number: int, size: int) -> None:
        self._taken[number] += size
        self._session_bytes += size
        if (
            self._taken[number] > MOST_BYTES
            or self._unread_bytes + size > MOST_WAITING_BYTES
            or self._session_bytes > self._most_session_bytes
        ):
            raise Unasked("sends more than an agent has to tell")

    def get(self, number: int, timeout_seconds: float) -> dict[str, Any]:
        """The next reply to a request; {"lost": how} where none will come. Errors: queue.Empty."""
        found = self._waiting[number].get(timeout=timeout_seconds)
        if isinstance(found, str):
            return {"lost": found}
        with self._lock:
            self._unread_bytes -= len(found)
        return wire.decode(found)

    def lose(self, how: str) -> None:
        """Nothing more will come for any request."""
        with self._lock:
            for waiting in self._waiting.values():
                waiting.put(how)
