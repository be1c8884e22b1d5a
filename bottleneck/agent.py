"""The agent: serves the probes over one byte stream, and is nothing but them.

Reads requests from stdin, writes replies to stdout, one JSON line each. Every piece of work runs
in a child of its own; this process moves no payload. When the stream closes, it and all of its
children end. Runs on Python 3.9 with the standard library alone: it is what travels.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import select
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

from bottleneck import __version__, wire
from probes import STAGES
from probes.host import counters
from probes.host.child import Child, Event, failure, spawn
from probes.records import Endpoint
from probes.stage import Last

CLOSING_SECONDS = 3.0
"""What children get to clean up after the stream has closed."""

ASKS = {
    "facts": ("probes.host.facts", "host_facts"),
    "samba-config": ("probes.host.samba_config", "settings"),
    "locate": ("probes.host.locate", "locate"),
    "set-cache": ("probes.host.locate", "set_cache"),
    "mount": ("probes.host.mount", "read_mount"),
    "usable-bytes": ("probes.host.free_space", "usable_bytes"),
    "user-file": ("probes.storage.users_file", "look"),
    "readable-device": ("probes.storage.block_device", "readable"),
    "reach": ("probes.host.reach", "reach"),
    "readiness": ("probes.host.readiness", "readiness"),
    "offered": ("probes.smb.offered", "offered"),
    "leftovers": ("probes.host.leftovers", "find"),
    "remove-leftover": ("probes.host.leftovers", "remove"),
    "smbclient": ("probes.drivers.smbclient", "version"),
    "running-copies": ("probes.host.running_copies", "find"),
    "served-flush": ("probes.host.served_file", "flush"),
    "served-intact": ("probes.host.served_file", "intact"),
    "served-resize": ("probes.host.served_file", "resize"),
    "served-remove": ("probes.host.served_file", "remove"),
}
"""Questions: name, and the function that answers it."""

HOLDS = {
    "mounted-folder": "probes.host.mounted_folder",
    "source-file": "probes.host.source_file",
    "run-folder": "probes.smb.run_folder",
    "client-share": "probes.smb.client_share",
    "visit": "probes.smb.visit",
    "leftovers": "probes.smb.leftovers",
}
"""What a host can hold for a run beside the responders of its stages."""

OBSERVERS = {
    "sockets": "probes.host.socket_watch",
    "running-copy": "probes.host.copy_watch",
}
"""What can watch a host beside a stage, or a copy that others made; asked for it at the end."""

ENGINES = {
    "smbclient-copy": "probes.smbclient_copy",
    "iperf3": "probes.tcp_by_iperf3",
    "ttcp": "probes.tcp_by_ttcp",
}
"""Other ways to run a stage, by programs that a host has: what `initiate` knows beside them."""


def stage_module(name: str) -> Any:
    """The module of a stage, or of an engine."""
    if name in ENGINES:
        return importlib.import_module(ENGINES[name])
    if name not in STAGES:
        raise ValueError(f"no stage is called {name!r}")
    return importlib.import_module("probes." + name.replace("-", "_"))


@dataclass
class Task:
    """A child at work for one request."""

    number: int
    child: Child
    deadline: float
    initiates: bool
    unread: bytes = b""
    open: bool = True
    started: bool = False
    told: bool = False
    """Whether its end has been told."""


@dataclass
class Agent:
    """One agent at work on a pair of descriptors."""

    requests_fd: int
    replies_fd: int
    tasks: Dict[int, Task] = field(default_factory=dict)
    watched: counters.Watched = field(default_factory=counters.Watched)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    closing: bool = False

    def serve(self) -> None:
        """Serves until the stream closes or a signal says so."""
        self.reply_bytes(
            wire.greeting(__version__, platform.python_version(), socket.gethostname())
        )
        self.selector.register(self.requests_fd, selectors.EVENT_READ, None)
        unread = b""
        while not self.closing:
            for key, _ in self.selector.select(self.patience()):
                if key.data is not None:
                    self.read_child(key.data)
                    continue
                chunk = os.read(self.requests_fd, 1 << 16)
                if not chunk:
                    self.closing = True
                    break
                *lines, unread = (unread + chunk).split(b"\n")
                if len(unread) > wire.MAX_LINE_BYTES:
                    raise wire.WireError("a request without end")
                for line in lines:
                    self.take(wire.decode(line))
            self.end_overdue()
        self.end_all()

    def patience(self) -> Optional[float]:
        """Seconds until the next deadline."""
        if not self.tasks:
            return None
        soonest = min(task.deadline for task in self.tasks.values())
        return max(0.0, soonest - time.monotonic())

    def reply_bytes(self, line: bytes) -> None:
        """Writes a line to the coordinator; its absence closes us."""
        while line and not self.closing:
            try:
                line = line[os.write(self.replies_fd, line) :]
            except BrokenPipeError:
                self.closing = True

    def reply(self, number: int, event: Event) -> None:
        """One event of a request."""
        try:
            line = wire.encode({"id": number, **event})
        except wire.WireError as error:
            line = wire.encode({"id": number, **failure(error)})
        self.reply_bytes(line)

    def take(self, request: wire.Message) -> None:
        """Starts what a request asks for."""
        number, do = int(request["id"]), request["do"]
        try:
            if do == "close":
                self.close_control(self.tasks.get(number), request.get("window"))
            elif do == "continue":
                self.let_continue(self.tasks.get(number))
            elif do == "watch":
                self.watched = wire.from_plain(counters.Watched, request["watched"])
                self.reply(number, {"answer": None})
            elif do == "counters":
                self.reply(number, {"answer": self.counters()})
            elif do == "preload":
                stage_module(request["name"]).preload()
                self.reply(number, {"answer": None})
            else:
                self.start(number, do, request)
        except Exception as error:
            self.reply(number, failure(error))

    def counters(self) -> Any:
        """This host's counters now."""
        return wire.to_plain(counters.read_counters(self.watched, os.getpid()))

    def start(self, number: int, do: str, request: wire.Message) -> None:
        """Forks a child for an ask, a hold, an initiate or an observe."""
        works: Dict[str, Callable[[wire.Message], Any]] = {
            "ask": _ask,
            "hold": _hold,
            "initiate": _initiate,
            "observe": _observe,
        }
        if do not in works:
            raise ValueError(f"no request is called {do!r}")
        child = spawn(works[do](request))
        deadline = time.monotonic() + float(request["seconds"])
        task = Task(number, child, deadline, initiates=do == "initiate")
        self.tasks[number] = task
        self.selector.register(child.events_fd, selectors.EVENT_READ, task)

    def read_child(self, task: Task) -> None:
        """Passes a child's events on; at its end, reaps it."""
        chunk = os.read(task.child.events_fd, 1 << 16)
        *lines, task.unread = (task.unread + chunk).split(b"\n")
        for line in lines:
            self.pass_on(task, wire.decode(line))
        if not chunk:
            self.reap(task)

    def pass_on(self, task: Task, event: Event) -> None:
        """One event, with this host's counters where a window opens or closes."""
        if "sample" in event and (not task.started or event.get("last")):
            task.started = True
            event["counters"] = self.counters()
        if not {"sample", "endpoint"} & set(event):
            task.told = True
        self.reply(task.number, event)

    def reap(self, task: Task) -> None:
        """Takes leave of an ended child; one that said nothing is a failure."""
        self.selector.unregister(task.child.events_fd)
        os.close(task.child.events_fd)
        self.close_control(task)
        task.child.kill()
        _, status = os.waitpid(task.child.pid, 0)
        del self.tasks[task.number]
        if not task.told:
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "no word"
            self.reply(task.number, {"failed": f"the probe's process ended with {how}"})

    def close_control(self, task: Optional[Task], window: Any = None) -> None:
        """Asks a child to end; window: the copy's time, for one that observed it."""
        if task is not None and task.open:
            task.open = False
            if window is not None:
                # One that ended by itself reads no more; its end has been told or will be.
                with contextlib.suppress(BrokenPipeError):
                    os.write(task.child.control_fd, wire.encode({"window": window}))
            os.close(task.child.control_fd)

    def let_continue(self, task: Optional[Task]) -> None:
        """Lets a child go on after it opened or closed its window."""
        if task is not None and task.open:
            os.write(task.child.control_fd, b".")

    def end_overdue(self) -> None:
        """Kills what has not ended in its time; the peer cannot extend it."""
        now = time.monotonic()
        for task in list(self.tasks.values()):
            if now < task.deadline:
                continue
            if not task.told:
                task.told = True
                self.reply(task.number, {"failed": "did not end within its time and was stopped"})
            self.close_control(task)
            task.child.kill()
            task.deadline = now + CLOSING_SECONDS

    def end_all(self) -> None:
        """Closes every child, first gently, then not."""
        for task in self.tasks.values():
            self.close_control(task)
            if task.initiates:
                task.child.kill()
        waiting: List[int] = [task.child.pid for task in self.tasks.values()]
        until = time.monotonic() + CLOSING_SECONDS
        while waiting and time.monotonic() < until:
            waiting = [pid for pid in waiting if os.waitpid(pid, os.WNOHANG)[0] == 0]
            time.sleep(0.01)
        for task in self.tasks.values():
            task.child.kill()


def _ask(request: wire.Message) -> Any:
    module, function = ASKS[request["name"]]

    def work(tell: Callable[[Event], None], control_fd: int) -> None:
        answer = getattr(importlib.import_module(module), function)
        tell({"answer": wire.to_plain(answer(**request["arguments"]))})

    return work


def _peer(request: wire.Message) -> Endpoint:
    return wire.from_plain(Endpoint, request["peer"])


def _hold(request: wire.Message) -> Any:
    name = request["name"]

    def work(tell: Callable[[Event], None], control_fd: int) -> None:
        if name in HOLDS:
            module = importlib.import_module(HOLDS[name])
            held = module.hold(wire.from_plain(module.Setting, request["setting"]), _peer(request))
        else:
            module = stage_module(name)
            held = module.respond(wire.from_plain(module.Setting, request["setting"]))
        with held as endpoint:
            tell({"endpoint": wire.endpoint_to_plain(endpoint)})
            os.read(control_fd, 1)
        tell({"closed": True})

    return work


def _observe(request: wire.Message) -> Any:
    # Here and not in the child: the next one starts at once, and may have a short copy to watch.
    module = importlib.import_module(OBSERVERS[request["name"]])
    setting = wire.from_plain(module.Setting, request["setting"])

    def work(tell: Callable[[Event], None], control_fd: int) -> None:
        def window() -> Any:
            """The copy's time, or None: nobody wants to know."""
            line = os.read(control_fd, select.PIPE_BUF)
            return wire.decode(line)["window"] if line else None

        tell({"observed": wire.to_plain(module.observe(setting, control_fd, window))})

    return work


def _initiate(request: wire.Message) -> Any:
    def work(tell: Callable[[Event], None], control_fd: int) -> None:
        module = stage_module(request["name"])
        setting = wire.from_plain(module.Setting, request["setting"])
        running = module.initiate(setting, _peer(request))
        opened = False
        while True:
            try:
                sample = next(running)
            except StopIteration as end:
                tell({"details": wire.to_plain(end.value)})
                return
            event: Event = {"sample": [sample.elapsed_seconds, sample.moved_bytes]}
            if isinstance(sample, Last):
                event["last"] = True
            tell(event)
            if opened and "last" not in event:
                continue
            opened = True
            # The window's ends wait until both hosts were read: what follows would be in it, and
            # a file server's process that ended before would not.
            if not os.read(control_fd, 1):
                return

    return work


def main() -> None:
    """Serves one coordinator over stdin and stdout."""
    replies_fd = os.dup(1)
    # Nothing but replies may reach the stream: what a library prints goes to stderr.
    os.dup2(2, 1)
    agent = Agent(0, replies_fd)

    def close(*_: Any) -> None:
        raise SystemExit(0)

    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(each, close)
    try:
        agent.serve()
    except wire.WireError as error:
        print(f"agent: {error}", file=sys.stderr)
        agent.end_all()
        raise SystemExit(70) from None
    except SystemExit:
        agent.end_all()
        raise


if __name__ == "__main__":
    main()
