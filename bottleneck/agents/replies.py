"""Coordinator's end of an agent's stream: requests out, replies in.

Unread replies are bounded, and only requested ones are accepted. They wait as lines, which take no
more memory than their bytes, and are decoded when they are read.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bottleneck.agents import protocol
from probes.core import lenient, typed
from probes.core.records import Details, Endpoint, Sample, run_rate
from probes.core.stage import Refused, Unavailable
from probes.system.events import one_line
from probes.system.platform import os
from probes.system.waiting import select

MOST_BYTES = 2 << 20
"""Replies to one request: a run of a minute has 6 KB of samples."""
MOST_WAITING_BYTES = 4 << 20
"""Unread replies to all requests."""
MOST_SESSION_BYTES, MOST_REQUEST_BYTES = 16 << 20, 160 << 10
"""Replies of a session, and for each request in addition: they go into the report. A run of a
minute has 150 KB."""
MOST_LATE = 1000
"""Replies to abandoned requests, which may have been on the way."""
ENDS = frozenset({"answer", "closed", "details", "observed", "failed", "skipped", "refused"})
"""Keys of the last reply to a request."""
UNASKED = "sent data that was not requested"
WRITE_SECONDS, LOOK_SECONDS = 10.0, 0.1
"""Time for a request to be accepted; interval at which a writer checks for a closed stream."""
SIGN_SECONDS = 10.0
"""Interval of the signs of life, which an agent must not miss for long."""
LONGEST_WORDS_BYTES = 500
MOST_BANNER_LINES = 20
REFUSALS = frozenset(
    ("usage", "unreachable", "share", "login", "permission", "space", "crowded", "replaced")
)
"""Kinds of probes.core.stage.Refused."""
T = TypeVar("T")


class StageError(Exception):
    """A probe was tried and failed; the message is one line."""

    samples: tuple[Sample, ...] = ()
    """Samples of the stage; empty: it failed before it began."""


class AgentLost(Exception):
    """The agent does not answer or is gone; the message names host and step."""

    def __init__(self, text: str, remedy: str = "", said: str = "") -> None:
        """Takes a sentence, a remedy, and `said`, the last lines of the agent's errors."""
        super().__init__(f"{text}; {remedy}" if remedy else text)
        self.text, self.remedy, self.said = text, remedy, said


class PartlyRan(Exception):
    """A stage broke after it had begun; the samples until then are kept."""

    def __init__(self, text: str, samples: tuple[Sample, ...], lost: bool) -> None:
        super().__init__(text)
        self.samples = samples
        self.lost = lost
        """Whether the agent was lost too."""


Pair = tuple[Any, Any]
"""A host's counters at both ends of a window, as plain values."""


@dataclass(frozen=True)
class Result:
    """Result of an initiated stage, with the counters of both hosts at its window's ends."""

    samples: tuple[Sample, ...]
    details: Details
    initiator: Pair
    responder: Pair | None


@dataclass
class Observation:
    """Observation of a host beside a stage; the coordinator tells the copy's time at its end."""

    ask: Callable[[Observation], None]
    """Ends the observation and takes its reply."""
    window: tuple[float, float] | None = None
    """Copy's time, by that host's clock; None: the reply is not needed."""
    reply: Any = None
    """Observations as plain values."""
    trouble: str = ""
    """Reason why there is no reply; the stage itself is not affected."""
    ended: bool = False

    def end(self) -> None:
        """Ends the observation, once, and takes its reply for the window."""
        if not self.ended:
            self.ended = True
            self.ask(self)


class UnaskedReply(Exception):
    """A reply without a request, or too much data; the message says which."""


class Replies:
    """Replies of one agent, by number of their request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[bytes | str]] = {}
        self._taken: dict[int, int] = {}
        """Bytes received for each request without a last reply yet."""
        self._late = 0
        self._unread_bytes = self._session_bytes = 0
        self._most_session_bytes = MOST_SESSION_BYTES

    def expect(self, number: int) -> None:
        """Prepares for the replies to a request that is about to be sent."""
        with self._lock:
            self._waiting[number] = queue.SimpleQueue()
            self._taken[number] = 0
            self._most_session_bytes += MOST_REQUEST_BYTES

    def forget(self, number: int) -> None:
        """Drops the replies to a request; a few late ones are tolerated."""
        with self._lock:
            waiting = self._waiting.pop(number, None)
            if waiting is None:
                return
            while not waiting.empty():
                line = waiting.get()
                self._unread_bytes -= 0 if isinstance(line, str) else len(line)

    def take_line(self, line: bytes) -> None:
        """Takes a line from the agent. Errors: Unasked; protocol.WireError: it is no message."""
        reply = protocol.decode(line)
        number = reply.get("id")
        with self._lock:
            # No request has this number, or its last reply has arrived.
            if type(number) is not int or number not in self._taken:
                raise UnaskedReply(UNASKED)
            self._count(number, len(line))
            if ENDS & reply.keys():
                del self._taken[number]
            waiting = self._waiting.get(number)
            if waiting is None:
                self._late += 1
                if self._late > MOST_LATE:
                    raise UnaskedReply(UNASKED)
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
            raise UnaskedReply("sent too much data")

    def get(self, number: int, timeout_seconds: float) -> dict[str, Any]:
        """Returns the next reply; {"lost": how} if none will come. Errors: queue.Empty."""
        line = self._waiting[number].get(timeout=timeout_seconds)
        if isinstance(line, str):
            return {"lost": line}
        with self._lock:
            self._unread_bytes -= len(line)
        return protocol.decode(line)

    def lose(self, how: str) -> None:
        """Marks all requests as lost: no more replies will come."""
        with self._lock:
            for waiting in self._waiting.values():
                waiting.put(how)


@dataclass
class Stream:
    """Stream to an agent: requests out, replies in."""

    side: str
    process: subprocess.Popen[bytes]
    banner: list[str] = field(default_factory=list)
    """Text before the greeting: shown, never parsed."""
    greeting: dict[str, Any] = field(default_factory=dict)
    replies: Replies = field(default_factory=Replies)
    lost: str = ""
    number: int = 0
    sending: threading.RLock = field(default_factory=threading.RLock)
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when nothing more may be written: the descriptor may soon be another file's."""
    is_remote: bool = False
    """Whether it is on another host."""
    errors: list[str] = field(default_factory=list)
    """Last lines of its stderr."""

    def _last_words(self) -> str:
        # A banner explains only a login that failed, not later errors.
        if self.banner and not (self.errors or self.greeting):
            return f"; printed first: {self.banner[-1][:200]}"
        return f" ({self.errors[-1][:200]})" if self.errors else ""

    def _send_signs(self) -> None:
        """Writes a blank line at intervals; without it the agent assumes that its client died."""
        assert self.process.stdin is not None
        fd = self.process.stdin.fileno()
        while not self.closing.wait(SIGN_SECONDS) and not self.lost:
            # A request on its way is a sign too. No wait for an agent that does not read.
            if self.sending.acquire(blocking=False):
                with contextlib.suppress(OSError):
                    if not self.closing.is_set() and select.select([], [fd], [], 0)[1]:
                        os.write(fd, b"\n")
                self.sending.release()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        stream = self.process.stderr
        for line in iter(lambda: stream.readline(LONGEST_WORDS_BYTES), b""):
            text = line.decode(errors="replace").strip()
            if text:
                self.errors.append(text)
                del self.errors[:-20]

    def _read(self, program: bytes, greeted: queue.SimpleQueue[str]) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        try:
            # An agent that ended at once says why in its errors.
            with contextlib.suppress(BrokenPipeError):
                self._write(program)
            junk = 0
            while not self.greeting:
                line = stream.readline(protocol.MAX_LINE_BYTES)
                junk += len(line)
                if not line or junk > protocol.MAX_JUNK_BYTES:
                    if not line:
                        # An agent that closed its stream may still run.
                        with contextlib.suppress(subprocess.TimeoutExpired):
                            self.process.wait(1)
                    greeted.put("did not start" if not line else "sent only text of other programs")
                    return
                self.greeting = protocol.read_greeting(line) or {}
                if not self.greeting and len(self.banner) < MOST_BANNER_LINES:
                    self.banner.append(line.decode(errors="replace").rstrip())
            self.errors.clear()
            greeted.put("")
            while line := stream.readline(protocol.MAX_LINE_BYTES + 1):
                self.replies.take_line(line)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
            self._lose("ended")
        except UnaskedReply as error:
            self._lose(str(error))
        except Exception as error:  # whatever the agent sent, only the agent is lost
            self._lose(f"failed: {one_line(error)}")
            greeted.put(self.lost)

    def _lose(self, how: str) -> None:
        self.lost = how
        self.replies.lose(how)

    def _write(self, line: bytes, timeout_seconds: float = WRITE_SECONDS) -> None:
        assert self.process.stdin is not None
        # Unbuffered: a waiting thread would hold the buffer's lock, and delay closing as well.
        with self.sending:
            self._check_open()
            until = time.monotonic() + timeout_seconds
            fd = self.process.stdin.fileno()
            os.set_blocking(fd, False)
            while line:
                takes = select.select([], [fd], [], LOOK_SECONDS)[1]
                self._check_open()
                if time.monotonic() >= until:
                    raise TimeoutError("it accepts no more requests")
                if takes:
                    line = line[os.write(fd, line) :]

    def _check_open(self) -> None:
        if self.closing.is_set():
            raise BrokenPipeError("its stream was closed")

    def send(self, request: dict[str, Any]) -> int:
        # In the order of numbers: an agent refuses a smaller one as a repetition.
        with self.sending:
            self.number += 1
            number = self.number
            self.replies.expect(number)
            try:
                self._write(protocol.encode({"id": number, **request}))
            except OSError as error:
                self._lose(f"failed: {error}")
        if self.lost:
            self.replies.lose(self.lost)
        return number

    def next(self, number: int, until: float, step: str) -> dict[str, Any]:
        """Returns the next reply to a request.

        Raises:
            Unavailable, Refused, StageError: the probe's own answer.
            StageError: the reply is malformed.
            AgentLost: no reply will come.
        """
        try:
            reply = self.replies.get(number, max(0.01, until - time.monotonic()))
        except queue.Empty:
            remedy = (
                "check that the host is up" if self.is_remote else "try again with less load here"
            )
            text = f"{self.side}: the agent did not answer in {step}"
            raise AgentLost(text, remedy) from None
        if "lost" in reply:
            how = words(reply["lost"])
            text = f"{self.side}: the agent {how} in {step}{self._last_words()}"
            ssh_failed = self.process.poll() == 255
            remedy = "its connection broke or it was killed: check the link to it"
            raise AgentLost(text, remedy if ssh_failed else "")
        if "skipped" in reply:
            raise Unavailable(words(reply["skipped"]))
        if "refused" in reply:
            raise self._checked_value(refusal, reply["refused"])
        if "failed" in reply:
            raise StageError(words(reply["failed"]))
        return reply

    def _checked_value(self, check: Callable[[Any], T], value: object) -> T:
        """Returns the checked value. Raises StageError if the check fails."""
        try:
            return check(value)
        except ValueError as error:
            raise StageError(f"{self.side}: invalid data from the agent: {error}") from None


# -- checks of an agent's replies. Errors: ValueError, where and why ------------------------------


def answer(reply: dict[str, Any]) -> Any:
    """Returns the answer in a reply; the caller checks its type."""
    if "answer" not in reply:
        raise typed.NotTyped("the reply holds no answer")
    return reply["answer"]


def endpoint(reply: dict[str, Any]) -> Endpoint:
    """Returns the endpoint of a held resource."""
    if "endpoint" not in reply:
        raise typed.NotTyped("the reply holds no endpoint")
    return protocol.from_plain(Endpoint, reply["endpoint"])


def refusal(value: object) -> Refused:
    """Returns a refusal of a known kind, with its reason."""
    fields = typed.mapping(value, "refused")
    kind = typed.text(fields.get("kind"), "refused.kind")
    if kind not in REFUSALS:
        raise typed.NotTyped("refused.kind is unknown")
    return Refused(kind, words(typed.text(fields.get("text"), "refused.text")))


def words(value: object) -> str:
    """Formats any value as one line."""
    return " ".join(str(value).split())


def sample(value: object) -> Sample:
    """Returns a sample of two amounts: elapsed seconds and bytes moved so far."""
    pair = typed.array(value, "sample")
    if len(pair) != 2:
        raise typed.NotTyped("sample must be two numbers")
    moved_bytes = typed.number(pair[1], "sample.moved_bytes")
    return Sample(typed.number(pair[0], "sample.elapsed_seconds"), int(moved_bytes))


def is_window(samples: list[Sample]) -> bool:
    """Whether time passed, no figure fell, and the rate is plausible."""
    pairs = list(zip(samples, samples[1:], strict=False))
    lasted = any(a.elapsed_seconds < b.elapsed_seconds for a, b in pairs) and all(
        a.elapsed_seconds <= b.elapsed_seconds and a.moved_bytes <= b.moved_bytes for a, b in pairs
    )
    return lasted and run_rate(tuple(samples)) <= lenient.LARGEST
