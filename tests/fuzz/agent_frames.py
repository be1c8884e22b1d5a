"""Both ends of an agent's stream: what one tells, and what one is asked to do.

The first byte chooses who reads, see KINDS. Lines come in blocks, with an empty one between. To the
coordinator each block answers one of its requests, whose number stands for a "?"; to the agent each
block comes when what the one before started has been heard of.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import random
import select
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import json_mutation

from bottleneck.agents import hosts, protocol, replies, server
from probes.core import typed
from probes.core.records import Endpoint, HostFacts, Usage
from probes.core.stage import Refused, Unavailable
from probes.host.counters import CountedObjects, Counters, usage
from probes.host.facts import Readiness
from probes.stages.loopback import Setting

NOBODY = 2**30 - 1
"""A process that no kernel has: whoever signals it signals nobody."""
TICK_SECONDS = 0.03
"""Time that an agent waits for the next request before it says something unasked."""
QUIET_SECONDS = 0.001
"""Pause between two requests."""
KINDS_OF_RECORD = (HostFacts, Counters, CountedObjects, Readiness, Endpoint, Usage, Setting)
SAID = {
    "ask": [{"answer": None}],
    "hold": [{"endpoint": protocol.endpoint_to_plain(Endpoint())}, {"closed": True}],
    "observe": [{"observed": None}],
    "initiate": [{"sample": [0.0, 0]}, {"sample": [1.0, 5], "last": True}, {"details": {}}],
}

ENDS = (hosts.AgentLost, hosts.StageError, Refused, hosts.PartlyRan, Unavailable)
LASTING = ("hold", "observe")
"""Children that end when they are told to."""


def one_input(data: bytes) -> None:
    """Gives an input to its kind; it ends as the kind says that it may."""
    if data:
        KINDS[data[0] % len(KINDS)](data[1:])


# -- lines and records -------------------------------------------------------------------------


def lines(data: bytes) -> None:
    """Decodes each line and checks its values; WireError."""
    for line in data.split(b"\n"):
        with contextlib.suppress(protocol.WireError, server.SessionEnd):
            protocol.read_greeting(line)
        with contextlib.suppress(protocol.WireError, server.SessionEnd):
            message = protocol.decode(line)
            values(message)


def values(message: dict[str, Any]) -> None:
    """Checks that a message and each of its values can be what it may be, or raise ValueError."""
    for check in (replies.answer, replies.endpoint):
        with contextlib.suppress(ValueError):
            check(message)
    for value in message.values():
        for check in (replies.refusal, replies.sample, typed.details, replies.words):
            with contextlib.suppress(ValueError):
                check(value)
    for kind in KINDS_OF_RECORD:
        if kind.__name__ in message:
            record(kind, message[kind.__name__])
    with contextlib.suppress(ValueError):
        one, two = (protocol.from_plain(Counters, message.get(k)) for k in ("before", "after"))
        finite(usage(one, two))


def record(kind: type, value: object) -> None:
    """Decodes one record of an agent, exactly and as a report would hold it."""
    with contextlib.suppress(protocol.WireError, server.SessionEnd):
        parsed = protocol.from_plain(kind, value)
        if not isinstance(parsed, Endpoint):
            protocol.encode({"again": typed.to_plain(parsed)})
    with contextlib.suppress(typed.NotTyped):
        typed.record(kind, value, "it")


def finite(value: object) -> None:
    """Checks that each number of a record is finite."""
    for each in dataclasses.astuple(value):  # type: ignore[call-overload]
        numbers = each if isinstance(each, tuple) else (each,)
        assert all(math.isfinite(n) for n in numbers if isinstance(n, (int, float))), value


# -- the coordinator ---------------------------------------------------------------------------


class Talking:
    """The process of an agent that has all its answers ready."""

    pid = NOBODY

    def __init__(self, stream: bytes) -> None:
        self._blocks = stream.split(b"\n\n")
        requests, to_it = os.pipe()
        from_it, answers = os.pipe()
        words, its_words = os.pipe()
        self._requests, self._answers = requests, answers
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(to_it, "wb", 0),
            os.fdopen(from_it, "rb"),
            os.fdopen(words, "rb"),
        )
        os.write(its_words, b"last words \x1b[2J\xff\n")
        os.close(its_words)
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()

    def _talk(self) -> None:
        request = b""
        number = 0
        with contextlib.suppress(OSError):
            for index, block in enumerate(self._blocks):
                if index:
                    os.set_blocking(self._requests, False)
                    request = self._read_request() or request
                    message = json.loads(request.strip().split(b"\n")[-1] or b"{}")
                    number = message.get("id", number)
                os.write(self._answers, block.replace(b'"?"', str(number).encode()) + b"\n")
        os.close(self._answers)

    def _read_request(self) -> bytes:
        ready = select.select([self._requests], [], [], TICK_SECONDS)[0]
        return os.read(self._requests, 1 << 16) if ready else b""

    def poll(self) -> int | None:
        """Returns None while its thread writes, 0 afterwards."""
        return None if self._thread.is_alive() else 0

    def wait(self, timeout: float | None = None) -> int:
        self._thread.join(timeout)
        return 0

    def end(self) -> None:
        for each in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(OSError):
                each.close()
        self._thread.join()
        os.close(self._requests)


@contextlib.contextmanager
def started(stream: bytes) -> Iterator[None]:
    """Replaces the process that a command for an agent starts by Talking."""
    talking: list[Talking] = []

    def popen(*_: object, **__: object) -> Talking:
        talking.append(Talking(stream))
        return talking[-1]

    usual = hosts.subprocess
    attributes = {**vars(usual), "Popen": popen}
    hosts.subprocess = types.SimpleNamespace(**attributes)  # type: ignore[assignment]
    try:
        yield
    finally:
        hosts.subprocess = usual
        for each in talking:
            each.end()


def coordinator(data: bytes) -> None:
    """A run with one agent: AgentLost, StageError, PartlyRan, Refused, Unavailable."""
    with started(data):
        try:
            host = hosts.Host.start("server", ["agent"], b"", 1.0)
        except ENDS[:3] as error:
            one_line(error)
            return
        for step in (facts, counters, hold, observed, ran):
            try:
                step(host)
            except ENDS as error:
                one_line(error)


def one_line(error: Exception) -> None:
    """Checks that an error's text, which a user reads, is one line."""
    text = error.text if isinstance(error, Refused) else str(error)
    assert "\n" not in text, text


def facts(host: hosts.Host) -> None:
    with contextlib.suppress(protocol.WireError, server.SessionEnd):
        protocol.from_plain(HostFacts, host.ask("facts", 1.0))


def counters(host: hosts.Host) -> None:
    host.tell("counters")


def hold(host: hosts.Host) -> None:
    with host.hold("loopback", Setting(), Endpoint(), 1.0, 1.0) as endpoint:
        assert isinstance(endpoint, Endpoint)


def observed(host: hosts.Host) -> None:
    with host.observe("sockets", Setting(), 1.0) as observation:
        observation.window = (0.0, 1.0)


def ran(host: hosts.Host) -> None:
    run = host.initiate("loopback", Setting(), Endpoint(), 1.0, watch_too=host)
    assert replies.is_window(list(run.samples))


# -- the agent ---------------------------------------------------------------------------------


class NoChild:
    """Child of a request: it writes the events of a good one and does nothing."""

    pid = NOBODY

    def __init__(self, do: str) -> None:
        self._ends: tuple[int, ...]
        self.events_fd, said = os.pipe()
        heard, self.control_fd = os.pipe()
        self._ends = said, heard
        os.write(said, b"".join(json.dumps(each).encode() + b"\n" for each in SAID[do]))
        if do not in LASTING:
            self.kill()

    def kill(self) -> None:
        ends, self._ends = self._ends, ()
        for each in ends:
            os.close(each)


@contextlib.contextmanager
def childless() -> Iterator[None]:
    """Replaces the agent's children by NoChild: no request is carried out."""
    usual_os, usual_spawn, spawned = server.os, server.spawn, []

    def spawn(work: Callable[..., object]) -> NoChild:
        do = work.__qualname__.partition(".")[0].strip("_")
        spawned.append(NoChild(do if do in SAID else "ask"))
        return spawned[-1]

    attributes = {**vars(os), "waitpid": lambda pid, how: (pid, 0)}
    server.os, server.spawn = types.SimpleNamespace(**attributes), spawn  # type: ignore[assignment]
    try:
        yield
    finally:
        server.os, server.spawn = usual_os, usual_spawn
        for each in spawned:
            each.kill()
        # the agent has closed some, and a number may have become another child's since
        for each in spawned:
            for fd in (each.events_fd, each.control_fd):
                with contextlib.suppress(OSError):
                    os.close(fd)


def serving(data: bytes) -> None:
    """Serves to the end of the stream, each reply a message; or WireError, Ended."""
    requests, to_it = os.pipe()
    replies = os.memfd_create("replies")
    asking = threading.Thread(target=send_requests, args=(to_it, data.split(b"\n\n")))
    asking.start()
    try:
        with childless(), contextlib.suppress(protocol.WireError, server.SessionEnd):
            served = server.Agent(requests, replies)
            try:
                served.serve()
            finally:
                served.selector.close()
        answers = os.pread(replies, 1 << 24, 0).splitlines()
        assert protocol.read_greeting(answers[0])
        for line in answers[1:]:
            protocol.decode(line)
    finally:
        os.close(requests)
        asking.join()
        os.close(replies)


def send_requests(fd: int, requests: list[bytes]) -> None:
    """Writes blocks of lines with a pause after each, for the agent to act on it."""
    with contextlib.suppress(BrokenPipeError):
        for each in requests:
            os.write(fd, each + b"\n")
            time.sleep(QUIET_SECONDS)
    os.close(fd)


KINDS: tuple[Callable[[bytes], None], ...] = (coordinator, serving, lines)
"""Readers, by the remainder of the first byte: those of "c", "a", "b"."""


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Changes, drops or doubles one line. Errors: ValueError, RecursionError."""
    told_lines = data[1:].split(b"\n")
    index = chance.randrange(len(told_lines))
    line = told_lines[index]
    start = max(0, line.find(b"{"))
    how = chance.randrange(8)
    if how < 6:
        changed = line[:start] + json_mutation.mutated(line[start:], chance)
        told_lines[index] = changed
    elif how == 6:
        del told_lines[index]
    else:
        told_lines.insert(chance.randrange(len(told_lines)), line)
    return data[:1] + b"\n".join(told_lines)
