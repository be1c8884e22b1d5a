"""Watches a copy that runs already, on whichever of its hosts there are agents; moves no byte."""

from __future__ import annotations

import platform
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from bottleneck import __version__
from bottleneck.agents import hosts, protocol
from bottleneck.agents.hosts import AgentLost, Host, Observation, StageError
from bottleneck.report.report import Report, Step
from bottleneck.run import sockets, watched_copy
from bottleneck.run.clock import Clock
from bottleneck.run.log import Log
from bottleneck.run.plan import Side
from bottleneck.run.watched_copy import End, step_of
from probes.core import typed
from probes.core.records import Failed, HostFacts, Outcome, Usage
from probes.core.stage import Refused, Unavailable
from probes.host.counters import Counters, usage
from probes.net import callers
from probes.watch import running_copies
from probes.watch.running_copies import LEAST_BYTES, Running

FIND_SECONDS = 1.0
FACTS_SECONDS = 20.0
GRACE_SECONDS = 30.0
"""How much longer than its time a watch may live."""
QUIET_RATIO = 0.05
"""Of what the interface mostly moved: a second with less is one after the copy's end."""
QUIET_COUNT = 2
TROUBLE = (AgentLost, StageError, Unavailable, Refused, ValueError)
"""What the agent at the other end may come to; this host's own view is as good without."""
Wait = Callable[[float], bool]
"""Waits so many seconds; False: somebody wants the end now."""


class NothingRuns(Exception):
    """There is no copy to be watched; the text says what was looked for."""


@dataclass(frozen=True)
class Options:
    """What to watch."""

    pid: int = 0
    host: str = ""
    """At the other end; empty, with no pid: the busiest SMB connection."""
    agent: str = "none"
    seconds: float = 10.0

    @property
    def name(self) -> str:
        """What a person calls it."""
        if self.pid:
            return f"process {self.pid}"
        return f"connection with {self.host}" if self.host else "SMB connection"


@dataclass
class Watch:
    """One watch, from reaching the hosts to its report."""

    options: Options
    tell: Callable[[str], None]
    clock: Clock = field(init=False)
    log: Log = field(default_factory=Log)
    stack: ExitStack = field(default_factory=ExitStack)
    reached: dict[Side, Host] = field(default_factory=dict)
    running: dict[Side, Running] = field(default_factory=dict)
    facts: dict[Side, HostFacts] = field(default_factory=dict)
    here: Side = "client"
    silent: dict[Side, str] = field(default_factory=dict)
    """Why an agent sends nothing more, by side."""
    entry: tuple[Step, Outcome] | None = None
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.clock = Clock(self.options.seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def reach(self) -> None:
        """Finds the copy here, and its other end where an agent is.

        Raises:
            NothingRuns: nothing moves.
            Refused, Unavailable, AgentLost, StageError: this host said no, or cannot tell.
            AgentLost: the other host's agent did not start.
        """
        self.tell("looking for the copy")
        address = look_up(self.options.host) if self.options.host else ""
        host = self.stack.enter_context(hosts.start_here())
        found = _find(host, pid=self.options.pid, address=address)
        if not watched_copy.moves(found):
            name = self.options.name
            raise NothingRuns(
                f"no running copy found: no active {name} within {FIND_SECONDS:.0f} s"
            )
        self.here = watched_copy.side_of(found)
        host.side = self.here
        self.reached[self.here], self.running[self.here] = host, found
        if self.options.agent != "none":
            self._reach_other(found)
        self.tell("reading both hosts" if len(self.reached) > 1 else "reading this host")
        self._learn(self.here)
        there = sockets.OTHER[self.here]
        if there in self.reached:
            try:
                self._learn(there)
            except TROUBLE as error:
                self._drop(there, error)

    def _drop(self, side: Side, error: Exception) -> None:
        """Goes on without a host."""
        self.reached.pop(side, None)
        self.silent[side] = _of_side(side, error)
        self.log.note(self.silent[side])

    def _reach_other(self, found: Running) -> None:
        there = sockets.OTHER[self.here]
        if found.link is None:
            self.log.note("the copy stays on this host, so no agent was used")
            return
        host = self.stack.enter_context(hosts.start_there(self.options.agent))
        host.side = there
        for line in host.banner:
            self.log.note(f"printed before the {there}'s agent started: {line}")
        try:
            other = _find(host, **watched_copy.turned(found.link))
        except TROUBLE as error:
            self._drop(there, error)
            return
        if other.link is None:
            self.log.note(f"{there}: the agent cannot see this connection")
            return
        self.reached[there], self.running[there] = host, other

    def _learn(self, side: Side) -> None:
        """Facts of a host, and what its counters watch."""
        host, running = self.reached[side], self.running[side]
        place = running_copies.place_of(running, running_copies.sends_more(running))
        folder = place.folder if place is not None and place.here else None
        peer = running.link.peer_address if running.link is not None else ""
        plain = host.ask("facts", FACTS_SECONDS, toward=peer, folder=folder)
        facts = self.facts[side] = protocol.from_plain(HostFacts, plain)
        device = place.device if place is not None else None
        host.watch(facts, peer, False, folder_device=device, server_pids=running.pids)

    def observe(self, wait: Wait) -> None:
        """Watches for the time that was asked for, until the copy ends or wait() says so.

        Raises:
            AgentLost: this host's own agent is gone.
        """
        seconds = self.options.seconds
        seen: dict[Side, Observation] = {}
        with ExitStack() as stack:
            for side, host in self.reached.items():
                setting = running_copies.setting(self.running[side], seconds + GRACE_SECONDS)
                watch = host.observe("sockets", setting, seconds + 2 * GRACE_SECONDS)
                seen[side] = stack.enter_context(watch)
            readings = [self._counters()]
            until = time.monotonic() + seconds
            ended = False
            while (left := until - time.monotonic()) > 0 and not ended:
                self.tell("observing the copy")
                self.interrupted = not wait(min(1.0, left))
                readings.append(self._counters())
                if self.interrupted:
                    break
                ended = self._ended(readings)
            if ended:
                # What came after the copy's end says nothing of it.
                readings = readings[:-QUIET_COUNT]
                self.log.note("the copy ended or paused during the observation")
            for side, observation in seen.items():
                told = _of(side, readings)
                if len(told) > 1:
                    observation.window = told[0].clock_seconds, told[-1].clock_seconds
        self.entry = self._entry(seen, readings)

    def _ended(self, readings: list[dict[Side, Counters]]) -> bool:
        """Whether the copy moves no more: a quiet interface is asked about its own connection.

        Where others' traffic came to its end, the interface is as quiet and the copy goes on.
        """
        link = self.running[self.here].link
        if link is None or not _quiet(readings, self.here):
            return False
        ends = {name: getattr(link, name) for name in watched_copy.turned(link)}
        now = _find(self.reached[self.here], **ends)
        same = now.link is not None and watched_copy.turned(now.link) == watched_copy.turned(link)
        return not same or sum(now.moved_bytes.values()) < LEAST_BYTES

    def _counters(self) -> dict[Side, Counters]:
        found: dict[Side, Counters] = {}
        for side, host in list(self.reached.items()):
            try:
                found[side] = protocol.from_plain(Counters, host.tell("counters"))
            except TROUBLE as error:
                if side == self.here:
                    raise
                self._drop(side, error)
        return found

    def _entry(
        self, seen: dict[Side, Observation], readings: list[dict[Side, Counters]]
    ) -> tuple[Step, Outcome]:
        ends, usages = {}, {}
        for side, observation in seen.items():
            if isinstance(observation.reply, dict) and not observation.trouble:
                ends[side] = End(self.running[side], observation.reply)
            elif observation.trouble and side not in self.silent:
                self._drop(side, StageError(f"the copy was not observed: {observation.trouble}"))
            usage_there = _usage(_of(side, readings))
            if usage_there is not None:
                usages[side] = usage_there
        own = _of(self.here, readings)
        lasted = own[-1].clock_seconds - own[0].clock_seconds
        try:
            if self.here not in ends or self.here not in usages:
                raise ValueError("the observation was too short")
            try:
                return step_of(self.here, ends, usages, lasted)
            except ValueError as error:
                alone = step_of(self.here, {self.here: ends[self.here]}, usages, lasted)
                self.log.note(_of_side(sockets.OTHER[self.here], error))
                return alone
        except ValueError as error:
            setting = {"copy": "pull", "dialect": "unknown", "engine": "running"}
            return Step(watched_copy.STAGE, setting, self.here), Failed(str(error))

    def report(self) -> Report:
        """What is known now."""
        found = self.running.get(self.here)
        link = None if found is None else found.link
        return Report(
            status="interrupted" if self.interrupted else "partial" if self.silent else "complete",
            tool={"version": __version__, "python": platform.python_version()},
            started=self.clock.started,
            elapsed_seconds=self.clock.elapsed(),
            target={
                "share": None,
                "watched": None if link is None else typed.to_plain(link),
                "program": None if found is None else _program(found),
            },
            client=self.facts.get("client"),
            server=self.facts.get("server"),
            entries=() if self.entry is None else (self.entry,),
            notes=tuple(self.log.notes),
        )


def _program(found: Running) -> dict[str, Any]:
    """Returns the program that copies here: name, process, connections, and its folders."""
    places = {"reads": found.reads, "writes": found.writes}
    told = {
        name: {"folder": place.folder, "filesystem": place.filesystem}
        for name, place in places.items()
        if place is not None
    }
    own = {"name": found.program, "process": next(iter(found.pids), None)}
    return {**own, "connections": found.connections, **told}


def _find(host: Host, **wanted: Any) -> Running:
    """What copies at a host. Errors: those of Host.ask; ValueError, what it told cannot be."""
    empty = {"pid": 0, "address": "", "own_address": "", "own_port": 0}
    empty |= {"peer_address": "", "peer_port": 0}
    arguments = {**empty, **wanted, "look_seconds": FIND_SECONDS}
    plain = host.ask("running-copies", FIND_SECONDS + 10.0, **arguments)
    return protocol.from_plain(Running, plain)


def _of(side: Side, readings: list[dict[Side, Counters]]) -> list[Counters]:
    """What one host told of itself, as long as it did."""
    return [each[side] for each in readings if side in each]


def _of_side(side: Side, error: Exception) -> str:
    """A host's trouble; most of it names the host already."""
    text = str(error)
    return text if text.startswith(f"{side}: ") else f"{side}: {text}"


def _usage(readings: list[Counters]) -> Usage | None:
    try:
        return usage(readings[0], readings[-1]) if len(readings) > 1 else None
    except ValueError:
        return None


def _quiet(readings: list[dict[Side, Counters]], here: Side) -> bool:
    """Whether the interface was quiet in the last seconds, of a copy over the network."""
    counts = [sum(each[here].traffic or ()) for each in readings]
    grown = [after - before for before, after in zip(counts, counts[1:], strict=False)]
    if len(grown) <= QUIET_COUNT:
        return False
    usual = max(grown[:-QUIET_COUNT])
    return usual > 0 and all(each < QUIET_RATIO * usual for each in grown[-QUIET_COUNT:])


def look_up(host: str) -> str:
    """The address of a host. Raises Refused: its name cannot be resolved."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a host name"
        raise Refused("unreachable", f"{host}: the name cannot be resolved ({why})") from None
    return callers.with_zone(found[0][4])
