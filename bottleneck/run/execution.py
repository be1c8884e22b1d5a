"""Carries out a run from the first contact to the last step; saves the report after each step."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from bottleneck.agents.hosts import Host, Result, StageError
from bottleneck.agents.metrics import MetricsEndpoint
from bottleneck.report.report import Report
from bottleneck.run import plan, world
from bottleneck.run.clock import Clock
from bottleneck.run.files import Files
from bottleneck.run.log import Event, Log, Task, Tasks
from bottleneck.run.steps.native import Native, read_mount
from bottleneck.run.steps.schedule import Schedule
from bottleneck.run.watched_sockets import OTHER, watch_copy
from bottleneck.run.world import World
from probes.core.records import Access, Endpoint, Sample
from probes.core.stage import Refused, Unavailable
from probes.smb import run_folder
from probes.system import waiting

T = TypeVar("T")


@dataclass
class Session:
    """One run and its state."""

    options: plan.Options
    access: Access
    watch: Callable[[Event], None]
    write: Callable[[Report], None]
    """Saves the current report."""
    host_clock: waiting.Clock = waiting.CLOCK
    status: str = "partial"
    unclosed: list[str] = field(default_factory=list)
    """Sentences on files that may remain on a host."""
    clock: Clock = field(init=False)
    log: Log = field(init=False)
    files: Files = field(init=False)
    world: World = field(init=False)

    def __post_init__(self) -> None:
        self.clock = Clock(self.options.budget_seconds, self.host_clock)
        self.log = Log(tell=self._tell, save=lambda: self.write(self.report()))
        self.files = Files(self.options.folder)
        self.world = World(self.options, self.access)

    def report(self) -> Report:
        partial_report = world.so_far(self.world, self.clock, self.log, self.files)
        return replace(partial_report, status=self.status)

    def _tell(self, label: str, **fields: Any) -> None:
        """Emits a progress event."""
        self.watch(Event(label, self.clock.elapsed(), self.options.budget_seconds, **fields))

    def measure(self) -> None:
        """Measures all that the options and the budget allow.

        Raises:
            Refused: by a host, the login or the share; nothing could be measured.
            AgentLost: an agent is gone.
            KeyboardInterrupt: after the hosts were closed.
        """
        with ExitStack() as stack:
            stack.callback(self._note_unclosed)
            self.log.tell("reaching the hosts")
            native = self.reach(stack)
            order = Schedule(self.world, self.clock, self.log, self.files, stack)
            order.native = native
            self.carry_out(order.tasks())
        self.status = "complete" if self.log.complete() else "partial"
        self.log.save()

    def reach(self, stack: ExitStack) -> Native | None:
        """Connects to the hosts and the share, and reads their facts.

        stack: closes them. Returns the native copies of a mounted TARGET; None: it is a share.
        """
        target = self.options.target
        if not target.path:
            self.world = replace(self.world, address=world.server_address(target.host, target.port))
        self.world = world.client_of(self.world, stack)
        preloaded: Callable[[], Any] | None = None
        if self.world.opens_share:
            # Loading takes as long as starting the server's agent; a mount may not need it.
            preloaded = self.world.client.start_tell("preload", name="smb-copy")
        self.world = world.server_of(self.world, stack, self.log)
        if target.path:
            self.world = read_mount(self.world, self.files, self.log)
        if preloaded is not None and self.world.opens_share:
            preloaded()
            holding = stack.enter_context(ExitStack())
            self.world = self._open_share(holding)
            self.files.reopen = partial(self._reopen_share, holding)
        native = None
        if target.path:
            native = Native(self.world, self.clock, self.log, self.files)
            if self.world.wants("native-copy") or self.world.measures_server_disk:
                native.hold_folder(stack)
        for with_facts in world.learn_facts(self.world, self.files):
            self.world = with_facts
        self.world = world.add_samba_config(self.world, self.files, self.log)
        if native is not None:
            native.world = self.world
        return native

    def _open_share(self, holding: ExitStack) -> World:
        opened = world.open_share(self.world, self.files, holding, self.clock, self.log)
        world.locate(opened, self.files, self.log)
        return opened

    def _reopen_share(self, holding: ExitStack) -> bool:
        """Creates a new folder if the run's is gone from the share; returns whether it could."""
        holding.close()
        self.files.source_bytes = 0
        try:
            self._open_share(holding)
        except Refused as error:
            if error.ends_run:
                raise
            return False
        reason = "the run's folder was gone from the share, as after a restart"
        self.log.note(f"{reason}: another was made")
        return True

    def carry_out(self, tasks: Tasks[None]) -> None:
        carried_out(tasks, self.execute)

    def execute(self, task: Task | tuple[Task, ...]) -> Result | tuple[Result | Exception, ...]:
        """Runs one task, or several at once, and returns the result."""
        if isinstance(task, Task):
            return execute(task, self.world, self.files, self.clock, self.log)
        return execute_at_once(task, self.world, self.log)

    def _note_unclosed(self) -> None:
        """Notes files that may remain because a host could not close them."""
        remedy = "may remain there; the next run or bottleneck cleanup removes it"
        name = self.world.options.target.name
        folder = f"{name}: the folder {self.files.share.folder} {remedy}"
        for line in (line for host in self.world.hosts.values() for line in host.unclosed):
            nameless = run_folder.NAME in line and "//" not in line
            self.unclosed.append(folder if nameless else line)
            self.log.note(self.unclosed[-1])


def carried_out(tasks: Tasks[T], execute: Callable[[Any], Any]) -> T:
    """Carries out each task and sends back its result or error; returns the tasks' result."""
    with closing(tasks):
        try:
            task = next(tasks)
            while True:
                try:
                    gained = execute(task)
                except BaseException as error:
                    task = tasks.throw(error)
                else:
                    task = tasks.send(gained)
        except StopIteration as end:
            result: T = end.value
            return result


def execute(task: Task, world: World, files: Files, clock: Clock, log: Log) -> Result:
    """Carries out one run of a step: opens its other end, starts and watches it.

    Raises the errors of Host.initiate.
    """
    initiate = world.hosts[plan.side(task.step.initiator)].initiate
    start = partial(initiate, task.engine or task.step.stage, task.setting)
    other = _other_end(task, world) if task.both else None
    opened: list[float] = []

    def progress(sample: Sample) -> None:
        opened.append(clock.elapsed() - sample.elapsed_seconds)
        log.tell(task.step.stage, sample=sample)

    with ExitStack() as stack:
        peer = _open_peer(task, world, stack)
        if not task.is_shown:
            return _counted(start(peer, task.seconds, other), task.setting, world)
        with watch_copy(world, files, log, task.step, peer, task.seconds) as watches:
            ran = start(peer, task.seconds, other, progress, task.finish, watches.finish)
    observed = watches.annotate(_counted(ran, task.setting, world))
    # Time since the run began, by which copies of several hosts at once are aligned.
    timing = {"opened_after_seconds": opened[0]} if opened else {}
    return replace(observed, details={**observed.details, **timing})


def _other_end(task: Task, world: World) -> Host | MetricsEndpoint | None:
    """Returns who has the counters of the host that does not start a task; None: nobody."""
    return world.hosts.get(OTHER[plan.side(task.step.initiator)]) or world.metrics


def _counted(ran: Result, setting: Any, world: World) -> Result:
    """Returns a run with its server's counters, where those are --metrics."""
    if world.metrics is None or ran.responder is None:
        return ran
    pushes = "push" in (getattr(setting, "copy", "") or getattr(setting, "verb", ""))
    moved_bytes = ran.samples[-1].moved_bytes
    return replace(ran, responder=world.metrics.counters(ran.responder, moved_bytes, pushes))


def execute_at_once(
    tasks: tuple[Task, ...], world: World, log: Log
) -> tuple[Result | Exception, ...]:
    """Carries out runs that this host starts at the same time; returns results in their order."""
    ended: list[queue.SimpleQueue[Result | Exception]] = [queue.SimpleQueue() for _ in tasks]

    def put(start: Callable[[], Result], into: queue.SimpleQueue[Result | Exception]) -> None:
        try:
            into.put(start())
        except Exception as error:  # any error is the result of that run
            into.put(error)

    with ExitStack() as stack:
        try:
            peers = [_open_peer(each, world, stack) for each in tasks]
        except (StageError, Unavailable) as error:
            return (error,) * len(tasks)
        for task, peer, into in zip(tasks, peers, ended, strict=True):
            progress = partial(_tell_sample, log, task)
            arguments = task.step.stage, task.setting, peer, task.seconds, world.server, progress
            start = partial(world.client.initiate, *arguments)
            # Daemon threads, so that an interrupted run does not wait for them.
            threading.Thread(target=put, args=(start, into), daemon=True).start()
        return tuple(each.get() for each in ended)


def _tell_sample(log: Log, task: Task, sample: Sample) -> None:
    log.tell(task.step.stage, sample=sample, part=task.setting.verb)


def _open_peer(task: Task, world: World, stack: ExitStack) -> Endpoint:
    """Opens the other end of a task until the stack closes."""
    if not task.opened_by:
        return task.peer
    host, setting = world.hosts[plan.side(task.opened_by)], task.setting
    peer = stack.enter_context(host.hold(task.step.stage, setting, task.peer, task.seconds))
    return peer if task.opened_by == task.step.initiator else replace(peer, host=world.address)
