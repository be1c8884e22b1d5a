"""A run from the first contact to the last step; measures nothing itself, saves after each step."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from bottleneck.agents.hosts import Ran, StageError
from bottleneck.report.report import Report
from bottleneck.run import plan, world
from bottleneck.run.clock import Clock
from bottleneck.run.files import Files
from bottleneck.run.log import Event, Log, Task, Tasks
from bottleneck.run.sockets import OTHER, watching
from bottleneck.run.steps.native import Native, read_mount
from bottleneck.run.steps.schedule import Schedule
from bottleneck.run.world import World
from probes.core.records import Access, Endpoint, Sample
from probes.core.stage import Refused, Unavailable
from probes.smb import run_folder
from probes.system import waiting

T = TypeVar("T")


@dataclass
class Session:
    """One run, and what is known of it at any time."""

    options: plan.Options
    access: Access
    watch: Callable[[Event], None]
    write: Callable[[Report], None]
    """Saves the report of what is known by now."""
    host_clock: waiting.Clock = waiting.CLOCK
    status: str = "partial"
    unclosed: list[str] = field(default_factory=list)
    """What could not be closed in order at the end, and may be left on a host."""
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
        """What is known now."""
        known = world.so_far(self.world, self.clock, self.log, self.files)
        return replace(known, status=self.status)

    def _tell(self, label: str, **more: Any) -> None:
        """Tells whoever watches."""
        self.watch(Event(label, self.clock.elapsed(), self.options.budget_seconds, **more))

    def measure(self) -> None:
        """Every step that the options and the budget allow.

        Raises:
            Refused: a host, the login or the share said no; nothing could be measured.
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
        """Reaches the hosts and the share, and learns what they are; what copies through a mount.

        stack: closes them.
        """
        target = self.options.target
        if not target.path:
            address = world.server_address(target.host, target.port)
            self.world = replace(self.world, address=address)
        self.world = world.client_of(self.world, stack)
        preloaded: Callable[[], Any] | None = None
        if self.world.opens_share:
            # It takes as long as the server's agent to start; a mount may turn out not to need it.
            preloaded = self.world.client.telling("preload", name="smb-copy")
        self.world = world.server_of(self.world, stack, self.log)
        if target.path:
            self.world = read_mount(self.world, self.files, self.log)
        if preloaded is not None and self.world.opens_share:
            preloaded()
            holding = stack.enter_context(ExitStack())
            self.world = self._open(holding)
            self.files.reopen = partial(self._reopen, holding)
        native = None
        if target.path:
            native = Native(self.world, self.clock, self.log, self.files)
            if self.world.wants("native-copy") or self.world.measures_server_disk:
                native.hold_folder(stack)
        for known in world.learned(self.world, self.files):
            self.world = known
        self.world = world.configured(self.world, self.files, self.log)
        if native is not None:
            native.world = self.world
        return native

    def _open(self, holding: ExitStack) -> World:
        found = world.opened(self.world, self.files, holding, self.clock, self.log)
        world.locate(found, self.files, self.log)
        return found

    def _reopen(self, holding: ExitStack) -> bool:
        """Makes another folder on a share from which the run's is gone; whether that worked."""
        holding.close()
        self.files.source_bytes = 0
        try:
            self._open(holding)
        except Refused as error:
            if error.ends_run:
                raise
            return False
        gone = "the run's folder was gone from the share, as after a restart"
        self.log.note(f"{gone}: another was made")
        return True

    def carry_out(self, tasks: Tasks[None]) -> None:
        """Makes each task that is asked for."""
        carried_out(tasks, self.execute)

    def execute(self, task: Task | tuple[Task, ...]) -> Ran | tuple[Ran | Exception, ...]:
        """What one run of a step gives, or what several do that are made at once."""
        if isinstance(task, Task):
            return execute(task, self.world, self.files, self.clock, self.log)
        return execute_at_once(task, self.world, self.log)

    def _note_unclosed(self) -> None:
        """What could not be closed in order may be left: that is said, not hidden."""
        remedy = "may remain there; the next run or bottleneck cleanup removes it"
        name = self.world.options.target.name
        folder = f"{name}: the folder {self.files.share.folder} {remedy}"
        for line in (line for host in self.world.hosts.values() for line in host.unclosed):
            nameless = run_folder.NAME in line and "//" not in line
            self.unclosed.append(folder if nameless else line)
            self.log.note(self.unclosed[-1])


def carried_out(tasks: Tasks[T], execute: Callable[[Any], Any]) -> T:
    """Has each task made, and sends what it gives or throws its error; what the tasks return."""
    with closing(tasks):
        try:
            task = next(tasks)
            while True:
                try:
                    found = execute(task)
                except BaseException as error:
                    task = tasks.throw(error)
                else:
                    task = tasks.send(found)
        except StopIteration as end:
            result: T = end.value
            return result


def execute(task: Task, world: World, files: Files, clock: Clock, log: Log) -> Ran:
    """One run of a step: opens its other end, has its initiator start it, and watches it.

    Raises what becomes of it: see Host.initiate.
    """
    initiate = world.hosts[plan.side(task.step.initiator)].initiate
    start = partial(initiate, task.engine or task.step.stage, task.setting)
    other = world.hosts.get(OTHER[plan.side(task.step.initiator)]) if task.both else None
    opened: list[float] = []

    def progress(sample: Sample) -> None:
        opened.append(clock.elapsed() - sample.elapsed_seconds)
        log.tell(task.step.stage, sample=sample)

    with ExitStack() as stack:
        peer = _opened(task, world, stack)
        if not task.is_shown:
            return start(peer, task.seconds, other)
        with watching(world, files, log, task.step, peer, task.seconds) as watches:
            ran = start(peer, task.seconds, other, progress, task.finish, watches.copied)
    shown = watches.shown(ran)
    # When, since the run began: what several hosts do at once is compared by it.
    known = {"opened_after_seconds": opened[0]} if opened else {}
    return replace(shown, details={**shown.details, **known})


def execute_at_once(tasks: tuple[Task, ...], world: World, log: Log) -> tuple[Ran | Exception, ...]:
    """What runs came to that this host started at the same time, in their order."""
    ended: list[queue.SimpleQueue[Ran | Exception]] = [queue.SimpleQueue() for _ in tasks]

    def put(start: Callable[[], Ran], into: queue.SimpleQueue[Ran | Exception]) -> None:
        try:
            into.put(start())
        except Exception as error:  # whatever it is, it is that run's end
            into.put(error)

    with ExitStack() as stack:
        try:
            peers = [_opened(each, world, stack) for each in tasks]
        except (StageError, Unavailable) as error:
            return (error,) * len(tasks)
        for task, peer, into in zip(tasks, peers, ended, strict=True):
            told = partial(_told, log, task)
            given = task.step.stage, task.setting, peer, task.seconds, world.server, told
            start = partial(world.client.initiate, *given)
            # Nobody waits for a thread where the run is interrupted.
            threading.Thread(target=put, args=(start, into), daemon=True).start()
        return tuple(each.get() for each in ended)


def _told(log: Log, task: Task, sample: Sample) -> None:
    log.tell(task.step.stage, sample=sample, part=task.setting.verb)


def _opened(task: Task, world: World, stack: ExitStack) -> Endpoint:
    """Who answers a task, until the stack closes."""
    if not task.opened_by:
        return task.peer
    host, setting = world.hosts[plan.side(task.opened_by)], task.setting
    held = stack.enter_context(host.hold(task.step.stage, setting, task.peer, task.seconds))
    return held if task.opened_by == task.step.initiator else replace(held, host=world.address)
