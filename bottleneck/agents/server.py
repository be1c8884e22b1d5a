"""Agent: serves the probes over one byte stream.

Reads requests from stdin, writes replies to stdout, one JSON line each. Each request runs in a
child of its own; this process moves no payload. When the stream closes or falls silent, it and all
its children end. Runs on Python 3.9 with the standard library alone, because it travels.
"""

from __future__ import annotations

import contextlib
import platform
import socket
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, List, Optional

from bottleneck import __version__
from bottleneck.agents import protocol, requests
from bottleneck.agents.request_checks import MOST_AT_ONCE, AllowedPaths, Session, check
from probes import STAGES
from probes.core import typed
from probes.core.stage import Refused
from probes.host import counters
from probes.system import tools
from probes.system.child import INTERRUPTS, Child, keep_private, spawn
from probes.system.events import Event, Tell, Work, failure
from probes.system.platform import os
from probes.system.waiting import select, selectors, signal

CLOSING_SECONDS = 3.0
"""Time for children to clean up after the stream has closed."""
WRITE_SECONDS = 30.0
"""Longest time that a caller may leave a reply unread."""
SILENCE_SECONDS, RUN_SILENCE_SECONDS = 30.0, 55.0
"""Longest silence of a client: without a task and with one. With CLOSING_SECONDS at most 60."""
LONGEST_PROGRAM_BYTES = 16 << 20
WORK = {
    "ask": requests.ask,
    "hold": requests.hold,
    "initiate": requests.initiate,
    "observe": requests.observe,
}


class SessionEnd(Exception):
    """The session is over; the message is the reason."""


@dataclass
class Requests:
    """Incoming requests, split into lines."""

    unread: bytes = b""
    skipped_bytes: int = -1
    """Remaining bytes of a program that is not run; below zero: unknown yet."""

    def lines(self, chunk: bytes) -> List[bytes]:
        """Returns the lines that this chunk completes. Errors: Ended: a line is too long."""
        *lines, self.unread = self._without_program(self.unread + chunk).split(b"\n")
        if len(self.unread) > protocol.MAX_LINE_BYTES:
            raise SessionEnd("a request without end")
        return lines

    def _without_program(self, unread: bytes) -> bytes:
        """Returns the bytes behind the zip that a caller sends to start a travelling agent.

        An installed agent, as behind ssh's forced command, does not run it.
        """
        if self.skipped_bytes < 0:
            size, newline, rest = unread.partition(b"\n")
            if not newline:
                return unread
            self.skipped_bytes = 0
            if size.isdigit():
                if len(size) > 9 or int(size) > LONGEST_PROGRAM_BYTES:
                    raise SessionEnd("a program that is too large")
                self.skipped_bytes, unread = int(size), rest
        skipped = min(self.skipped_bytes, len(unread))
        self.skipped_bytes -= skipped
        return unread[skipped:]


def work_of(do: str, request: protocol.Message) -> Work:
    spec = requests.takes(do, request["name"])
    if do == "hold" and request["name"] in STAGES:
        return requests.respond(request, spec)
    return WORK[do](request, spec)


def perform(do: str, request: protocol.Message, tell: Tell, control_fd: int) -> None:
    """Carries out a request in a child."""
    work_of(do, request)(tell, control_fd)


def _event(line: bytes) -> Event:
    """Decodes an event of a child strictly: the child has read foreign data."""
    try:
        return protocol.decode(line)
    except protocol.WireError as error:
        return failure(error)


@dataclass
class Task:
    """A child at work for one request."""

    number: int
    do: str
    name: str
    child: Child
    deadline: float
    unread: bytes = b""
    open: bool = True
    started: bool = False
    waits: bool = False
    """Whether the child waits for permission to continue."""
    has_ended: bool = False
    """Whether its last reply was sent."""


@dataclass
class Agent:
    """One agent at work on a pair of descriptors."""

    requests_fd: int
    replies_fd: int
    session: Session = field(default_factory=Session)
    highest: int = 0
    """Number of the latest request."""
    requests: Requests = field(default_factory=Requests)
    tasks: Dict[int, Task] = field(default_factory=dict)
    watched: counters.CountedObjects = field(default_factory=counters.CountedObjects)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    closing: bool = False
    heard: float = field(default_factory=time.monotonic)
    """Time of the client's latest bytes."""

    def serve(self) -> None:
        """Serves until the stream closes; the caller calls end_all. Errors: Ended, WireError."""
        self.reply_bytes(
            protocol.greeting(__version__, platform.python_version(), socket.gethostname())
        )
        self.selector.register(self.requests_fd, selectors.EVENT_READ, None)
        while not self.closing:
            for key, _ in self.selector.select(self.timeout_seconds()):
                if key.data is not None:
                    self.read_child(key.data)
                    continue
                chunk = os.read(self.requests_fd, 1 << 16)
                self.heard = time.monotonic()
                if not chunk:
                    self.closing = True
                    break
                # A blank line is a sign of life.
                for line in filter(None, self.requests.lines(chunk)):
                    self.take(protocol.decode(line))
                    if self.closing:
                        break
                    self.end_overdue()
            self.end_overdue()
            if time.monotonic() >= self.silent_until():
                raise SessionEnd("its client has been silent for too long")

    def silent_until(self) -> float:
        """Returns the time until which the client may be silent."""
        return self.heard + (RUN_SILENCE_SECONDS if self.tasks else SILENCE_SECONDS)

    def timeout_seconds(self) -> float:
        """Returns the seconds until the next deadline."""
        soonest = min([self.silent_until(), *(task.deadline for task in self.tasks.values())])
        return max(0.0, soonest - time.monotonic())

    def reply_bytes(self, line: bytes) -> None:
        """Writes a line to the coordinator; stops if the coordinator is gone.

        Overdue children are killed meanwhile, however slowly the coordinator reads. Errors: Ended:
        nobody reads, or the session is over.
        """
        now = time.monotonic()
        # Signs of life may be waiting unread: at least a second for those.
        until = min(now + WRITE_SECONDS, max(now + 1.0, self.silent_until()))
        while line and not self.closing:
            now = time.monotonic()
            self.kill_overdue(now)
            if now >= until:
                raise SessionEnd("its replies were not read in time")
            ahead = (each.deadline for each in self.tasks.values() if each.deadline > now)
            soonest = min([until, *ahead])
            # PIPE_BUF bytes do not block if the pipe is writable (pipe(7)).
            if select.select([], [self.replies_fd], [], soonest - now)[1]:
                try:
                    line = line[os.write(self.replies_fd, line[: select.PIPE_BUF]) :]
                except BrokenPipeError:
                    self.closing = True

    def reply(self, number: int, event: Event) -> None:
        """Sends an event of a request."""
        try:
            line = protocol.encode({"id": number, **event})
        except protocol.WireError as error:
            line = protocol.encode({"id": number, **failure(error)})
        self.reply_bytes(line)

    def take(self, request: protocol.Message) -> None:
        """Checks a request and carries it out."""
        try:
            number, do = typed.whole_number(request.get("id"), "id"), request.get("do")
        except typed.NotTyped as error:
            raise SessionEnd(f"a request without a number: {error}") from None
        try:
            check(request, self.session)
            if do == "close":
                self.close_control(self.tasks.get(number), request.get("window"))
            elif do == "continue":
                self.let_continue(self.tasks.get(number))
            elif number <= self.highest:
                raise SessionEnd(f"request {number} comes after {self.highest}")
            else:
                self.highest = number
                self.begin(number, request)
        except SessionEnd:
            raise
        except Exception as error:
            self.reply(number, failure(error))

    def begin(self, number: int, request: protocol.Message) -> None:
        """Carries out a new request."""
        do = request["do"]
        if do == "watch":
            self.watched = protocol.from_plain(counters.CountedObjects, request["watched"])
            self.reply(number, {"answer": None})
        elif do == "counters":
            self.reply(number, {"answer": self.counters()})
        elif do == "preload":
            requests.takes(do, request["name"]).import_module().preload()
            self.reply(number, {"answer": None})
        else:
            self.start(number, do, request)

    def counters(self) -> Any:
        return typed.to_plain(counters.read_counters(self.watched, os.getpid()))

    def start(self, number: int, do: str, request: protocol.Message) -> None:
        """Forks a child for an ask, a hold, an initiate or an observe."""
        if len(self.tasks) >= MOST_AT_ONCE:
            raise Refused("permission", f"more than {MOST_AT_ONCE} requests at once of an agent")
        # Imported here once, so that forked children share it.
        requests.takes(do, request["name"]).import_module()
        child = spawn(partial(perform, do, request))
        deadline = time.monotonic() + float(request["seconds"])
        task = Task(number, do, request["name"], child, deadline)
        self.tasks[number] = task
        self.selector.register(child.events_fd, selectors.EVENT_READ, task)

    def read_child(self, task: Task) -> None:
        """Passes a child's events on; at its end, reaps it."""
        chunk = os.read(task.child.events_fd, 1 << 16)
        *lines, task.unread = (task.unread + chunk).split(b"\n")
        for line in lines:
            self.pass_on(task, _event(line))
        if len(task.unread) > protocol.MAX_LINE_BYTES:
            self.pass_on(task, {"failed": "the probe's process sent a result that is too long"})
            task.child.kill()
            task.unread = b""
        if not chunk:
            self.reap(task)

    def pass_on(self, task: Task, event: Event) -> None:
        """Sends an event, with this host's counters where a window opens or closes."""
        if task.has_ended:
            return
        if "sample" in event and (not task.started or event.get("last")):
            task.started = task.waits = True
            try:
                event["counters"] = self.counters()
            except Exception as error:  # only this step fails, not the agent
                event = failure(error)
                task.child.kill()
        task.started |= "endpoint" in event
        if not {"sample", "endpoint"} & set(event):
            task.has_ended = True
        self.session.hand_out(task.number, task.do, task.name, event)
        self.reply(task.number, event)

    def reap(self, task: Task) -> None:
        """Reaps a finished child; one without a last reply has failed."""
        self.selector.unregister(task.child.events_fd)
        os.close(task.child.events_fd)
        self.close_control(task)
        task.child.kill()
        how = task.child.wait()
        del self.tasks[task.number]
        self.session.source_files.pop(task.number, None)
        if not task.has_ended:
            self.reply(task.number, {"failed": f"the probe's process ended with {how}"})

    def close_control(self, task: Optional[Task], window: Any = None) -> None:
        """Asks a child to end; window: the copy's time, for one that observed it."""
        if task is not None and (task.do == "initiate" or task.do == "hold" and not task.started):
            task.child.terminate()
        if task is not None and task.open:
            task.open = False
            if window is not None:
                # A child that ended by itself does not read; its last reply is on the way.
                with contextlib.suppress(BrokenPipeError):
                    os.write(task.child.control_fd, protocol.encode({"window": window}))
            os.close(task.child.control_fd)

    def let_continue(self, task: Optional[Task]) -> None:
        """Lets a child go on after it opened or closed its window."""
        if task is not None and task.open and task.waits:
            task.waits = False
            # A child that ended by itself does not read; its last reply is on the way.
            with contextlib.suppress(BrokenPipeError):
                os.write(task.child.control_fd, b".")

    def kill_overdue(self, now: float) -> None:
        """Kills children whose time is over."""
        for task in self.tasks.values():
            if now >= task.deadline:
                task.child.kill()

    def end_overdue(self) -> None:
        """Ends children whose time is over, which the peer cannot extend."""
        now = time.monotonic()
        self.kill_overdue(now)
        for task in [each for each in self.tasks.values() if now >= each.deadline]:
            if not task.has_ended:
                task.has_ended = True
                self.reply(task.number, {"failed": "did not end in time and was stopped"})
            self.close_control(task)
            task.deadline = now + CLOSING_SECONDS

    def end_all(self) -> None:
        """Asks all children to end, then kills the rest."""
        for task in self.tasks.values():
            self.close_control(task)
        waiting = [task.child for task in self.tasks.values()]
        until = time.monotonic() + CLOSING_SECONDS
        while waiting and time.monotonic() < until:
            waiting = [each for each in waiting if not each.has_ended()]
            time.sleep(0.01)
        for task in self.tasks.values():
            task.child.kill()


def main(allowed: Optional[AllowedPaths] = None) -> None:
    """Serves one coordinator over stdin and stdout.

    allowed: paths of an installed agent's command line; None: the caller's own rights.
    """
    keep_private()
    tools.keep_to_safe_folders()
    replies_fd = os.dup(1)
    # Only replies may reach the stream: a library's output goes to stderr.
    os.dup2(2, 1)
    agent = Agent(0, replies_fd, Session(allowed))

    def close(*_: Any) -> None:
        raise SystemExit(0)

    for each in INTERRUPTS:
        signal.signal(each, close)
    trouble = ""
    try:
        agent.serve()
    except (protocol.WireError, SessionEnd) as error:
        trouble = str(error)
    finally:
        for each in INTERRUPTS:
            signal.signal(each, signal.SIG_IGN)
        agent.end_all()
    if trouble:
        with contextlib.suppress(OSError):
            print(f"agent: {trouble}", file=sys.stderr)
        raise SystemExit(70)
