"""Watches a running copy of another program, on each host with an agent; moves no data."""

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
from bottleneck.run import watched_copy, watched_sockets
from bottleneck.run.clock import Clock
from bottleneck.run.log import Log
from bottleneck.run.plan import Side
from bottleneck.run.watched_copy import End, step_of
from probes.core import typed
from probes.core.records import Failed, HostFacts, Outcome, Usage
from probes.core.stage import Refused, Unavailable
from probes.host.counters import Counters, usage
from probes.net import peers
from probes.watch import running_copies
from probes.watch.running_copies import LEAST_BYTES, Running

FIND_SECONDS = 1.0
FACTS_SECONDS = 20.0
GRACE_SECONDS = 30.0
"""Time that a watch may live beyond its own time."""
QUIET_RATIO = 0.05
"""Share of the interface's highest traffic below which a second is quiet."""
QUIET_COUNT = 2
TROUBLE = (AgentLost, StageError, Unavailable, Refused, ValueError)
"""Errors of the other end's agent; this host's own observation is not affected."""
Wait = Callable[[float], bool]
"""Waits so many seconds; False: the user ends the watch."""


class NothingRuns(Exception):
    """No running copy was found; the message says what was searched."""


@dataclass(frozen=True)
class Options:
    """Choice of the copy to watch."""

    pid: int = 0
    host: str = ""
    """Other end of the copy; empty, without pid: the busiest SMB connection."""
    agent: str = "none"
    seconds: float = 10.0

    @property
    def name(self) -> str:
        """Copy in words."""
        if self.pid:
            return f"process {self.pid}"
        return f"connection with {self.host}" if self.host else "SMB connection"


@dataclass
class Watch:
    """One watch, from the search for the copy to the report."""

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
    """Reason why a side's agent sends nothing more."""
    entry: tuple[Step, Outcome] | None = None
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.clock = Clock(self.options.seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def reach(self) -> None:
        """Finds the copy here, and its other end if there is an agent.

        Raises:
            NothingRuns: no copy moves data.
            Refused, Unavailable, AgentLost, StageError: from this host.
            AgentLost: the other host's agent did not start.
        """
        self.tell("looking for the copy")
        address = look_up(self.options.host) if self.options.host else ""
        host = self.stack.enter_context(hosts.start_here())
        running = _find(host, pid=self.options.pid, address=address)
        if not watched_copy.moves(running):
            name = self.options.name
            raise NothingRuns(
                f"no running copy found: no active {name} within {FIND_SECONDS:.0f} s"
            )
        self.here = watched_copy.side_of(running)
        host.side = self.here
        self.reached[self.here], self.running[self.here] = host, running
        if self.options.agent != "none":
            self._reach_other(running)
        self.tell("reading both hosts" if len(self.reached) > 1 else "reading this host")
        self._learn(self.here)
        there = watched_sockets.OTHER[self.here]
        if there in self.reached:
            try:
                self._learn(there)
            except TROUBLE as error:
                self._drop(there, error)

    def _drop(self, side: Side, error: Exception) -> None:
        """Continues without a host."""
        self.reached.pop(side, None)
        self.silent[side] = _error_text(side, error)
        self.log.note(self.silent[side])

    def _reach_other(self, running: Running) -> None:
        there = watched_sockets.OTHER[self.here]
        if running.link is None:
            self.log.note("the copy stays on this host, so no agent was used")
            return
        host = self.stack.enter_context(hosts.start_there(self.options.agent))
        host.side = there
        for line in host.banner:
            self.log.note(f"printed before the {there}'s agent started: {line}")
        try:
            other = _find(host, **watched_copy.mirror(running.link))
        except TROUBLE as error:
            self._drop(there, error)
            return
        if other.link is None:
            self.log.note(f"{there}: the agent cannot see this connection")
            return
        self.reached[there], self.running[there] = host, other

    def _learn(self, side: Side) -> None:
        """Reads a host's facts, and sets what its counters watch."""
        host, running = self.reached[side], self.running[side]
        place = running_copies.place_of(running, running_copies.sends_more(running))
        folder = place.folder if place is not None and place.here else None
        peer = running.link.peer_address if running.link is not None else ""
        plain = host.ask("facts", FACTS_SECONDS, toward=peer, folder=folder)
        facts = self.facts[side] = protocol.from_plain(HostFacts, plain)
        device = place.device if place is not None else None
        host.watch(facts, peer, False, folder_device=device, server_pids=running.pids)

    def observe(self, wait: Wait) -> None:
        """Watches for the requested time, until the copy ends or wait() returns False.

        Raises:
            AgentLost: this host's own agent is gone.
        """
        seconds = self.options.seconds
        observations: dict[Side, Observation] = {}
        with ExitStack() as stack:
            for side, host in self.reached.items():
                setting = running_copies.watch_setting(self.running[side], seconds + GRACE_SECONDS)
                watch = host.observe("sockets", setting, seconds + 2 * GRACE_SECONDS)
                observations[side] = stack.enter_context(watch)
            readings = [self._counters()]
            until = time.monotonic() + seconds
            ended = False
            while (remaining := until - time.monotonic()) > 0 and not ended:
                self.tell("observing the copy")
                self.interrupted = not wait(min(1.0, remaining))
                readings.append(self._counters())
                if self.interrupted:
                    break
                ended = self._has_ended(readings)
            if ended:
                # Readings after the copy's end are dropped.
                readings = readings[:-QUIET_COUNT]
                self.log.note("the copy ended or paused during the observation")
            for side, observation in observations.items():
                counters = _readings_of(side, readings)
                if len(counters) > 1:
                    observation.window = counters[0].clock_seconds, counters[-1].clock_seconds
        self.entry = self._entry(observations, readings)

    def _has_ended(self, readings: list[dict[Side, Counters]]) -> bool:
        """Whether the copy has stopped: on a quiet interface its connection is checked.

        The interface is also quiet if other traffic ended while the copy goes on.
        """
        link = self.running[self.here].link
        if link is None or not _quiet(readings, self.here):
            return False
        ends = {name: getattr(link, name) for name in watched_copy.mirror(link)}
        now = _find(self.reached[self.here], **ends)
        same = now.link is not None and watched_copy.mirror(now.link) == watched_copy.mirror(link)
        return not same or sum(now.moved_bytes.values()) < LEAST_BYTES

    def _counters(self) -> dict[Side, Counters]:
        by_side: dict[Side, Counters] = {}
        for side, host in list(self.reached.items()):
            try:
                by_side[side] = protocol.from_plain(Counters, host.tell("counters"))
            except TROUBLE as error:
                if side == self.here:
                    raise
                self._drop(side, error)
        return by_side

    def _entry(
        self, observations: dict[Side, Observation], readings: list[dict[Side, Counters]]
    ) -> tuple[Step, Outcome]:
        ends, usages = {}, {}
        for side, observation in observations.items():
            if isinstance(observation.reply, dict) and not observation.trouble:
                ends[side] = End(self.running[side], observation.reply)
            elif observation.trouble and side not in self.silent:
                self._drop(side, StageError(f"the copy was not observed: {observation.trouble}"))
            usage_there = _usage(_readings_of(side, readings))
            if usage_there is not None:
                usages[side] = usage_there
        counters = _readings_of(self.here, readings)
        lasted = counters[-1].clock_seconds - counters[0].clock_seconds
        try:
            if self.here not in ends or self.here not in usages:
                raise ValueError("the observation was too short")
            try:
                return step_of(self.here, ends, usages, lasted)
            except ValueError as error:
                one_sided = step_of(self.here, {self.here: ends[self.here]}, usages, lasted)
                self.log.note(_error_text(watched_sockets.OTHER[self.here], error))
                return one_sided
        except ValueError as error:
            setting = {"copy": "pull", "dialect": "unknown", "engine": "running"}
            return Step(watched_copy.STAGE, setting, self.here), Failed(str(error))

    def report(self) -> Report:
        running = self.running.get(self.here)
        link = None if running is None else running.link
        return Report(
            status="interrupted" if self.interrupted else "partial" if self.silent else "complete",
            tool={"version": __version__, "python": platform.python_version()},
            started=self.clock.started,
            elapsed_seconds=self.clock.elapsed(),
            target={
                "share": None,
                "watched": None if link is None else typed.to_plain(link),
                "program": None if running is None else _program(running),
            },
            client=self.facts.get("client"),
            server=self.facts.get("server"),
            entries=() if self.entry is None else (self.entry,),
            notes=tuple(self.log.notes),
        )


def _program(running: Running) -> dict[str, Any]:
    """Returns name, process, connections and folders of the program that copies here."""
    folders = {
        name: {"folder": place.folder, "filesystem": place.filesystem}
        for name, place in {"reads": running.reads, "writes": running.writes}.items()
        if place is not None
    }
    process = {"name": running.program, "process": next(iter(running.pids), None)}
    return {**process, "connections": running.connections, **folders}


def _find(host: Host, **query: Any) -> Running:
    """Finds the copy on a host. Errors: those of Host.ask; ValueError: a malformed answer."""
    empty = {"pid": 0, "address": "", "own_address": "", "own_port": 0}
    empty |= {"peer_address": "", "peer_port": 0}
    arguments = {**empty, **query, "look_seconds": FIND_SECONDS}
    plain = host.ask("running-copies", FIND_SECONDS + 10.0, **arguments)
    return protocol.from_plain(Running, plain)


def _readings_of(side: Side, readings: list[dict[Side, Counters]]) -> list[Counters]:
    return [each[side] for each in readings if side in each]


def _error_text(side: Side, error: Exception) -> str:
    """Formats a host's error with its side, unless it names the side already."""
    text = str(error)
    return text if text.startswith(f"{side}: ") else f"{side}: {text}"


def _usage(readings: list[Counters]) -> Usage | None:
    try:
        return usage(readings[0], readings[-1]) if len(readings) > 1 else None
    except ValueError:
        return None


def _quiet(readings: list[dict[Side, Counters]], here: Side) -> bool:
    """Whether the interface was quiet in the last seconds."""
    counts = [sum(each[here].traffic or ()) for each in readings]
    grown = [new - old for old, new in zip(counts, counts[1:], strict=False)]
    if len(grown) <= QUIET_COUNT:
        return False
    usual = max(grown[:-QUIET_COUNT])
    return usual > 0 and all(each < QUIET_RATIO * usual for each in grown[-QUIET_COUNT:])


def look_up(host: str) -> str:
    """Resolves a host's name. Raises Refused: it cannot be resolved."""
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "not a host name"
        raise Refused("unreachable", f"{host}: the name cannot be resolved ({why})") from None
    return peers.zoned_address(addresses[0][4])
