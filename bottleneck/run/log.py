"""Append-only log of a run: tasks and their results; repeats are merged when it is read."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from bottleneck.agents import protocol
from bottleneck.agents.hosts import AgentLost, PartlyRan, Result, StageError
from bottleneck.report.report import Step
from probes.core.records import (
    Endpoint,
    Failed,
    Measured,
    Outcome,
    Run,
    Sample,
    Skipped,
    Usage,
    run_rate,
)
from probes.core.stage import Refused, Unavailable, module_of
from probes.host import interface
from probes.host.counters import Counters, usage

BROKEN_OFF = "interrupted"
"""Outcome of a step that ended the whole run, as Ctrl-C does."""
NEEDS_AGENT = "needs an agent on the server (use --agent ssh://HOST)"
WHOLE_COPY = "the copy as a user makes it"
T = TypeVar("T")


@dataclass(frozen=True)
class Event:
    """Progress of a run, for a person who watches."""

    step: str
    elapsed_seconds: float
    budget_seconds: float
    sample: Sample | None = None
    outcome: str = ""
    """Empty while it runs; then "measured", "skipped: ...", "failed: ..." or BROKEN_OFF."""
    bytes_per_second: float | None = None
    client: Usage | None = None
    """Load of the client in the step's last run, once that is over; None: unknown."""
    server: Usage | None = None
    part: str = ""
    """Transfer of the sample, if several run at once."""


@dataclass(frozen=True)
class Task:
    """One run of a step, which its initiator starts."""

    step: Step
    setting: Any
    peer: Endpoint
    """Other end; if a host opens it, the address that may connect to it."""
    seconds: float
    """Time limit of the answer, and of the open other end."""
    opened_by: str = ""
    """Host that opens the other end for the run: client or server."""
    both: bool = True
    """Whether the other host's counters are read too."""
    engine: str = ""
    """Engine that runs it in place of the stage (requests.ENGINES)."""
    finish: Callable[[], float] | None = None
    """Callback of Host.initiate."""
    is_shown: bool = True
    """Whether its progress is shown, and its connections are watched."""


Tasks = Generator[Task | tuple[Task, ...], Any, T]
"""Generator of tasks: receives each result by send(), or its error by throw(); for tasks at once
one result or error each."""


def step_of(stage: str, setting: Any, initiator: str) -> Step:
    """Returns the step of a stage's setting, without keys that vary from run to run."""
    varying = ("seed", *module_of(stage).STAGE.varying)
    plain = {key: value for key, value in asdict(setting).items() if key not in varying}
    return Step(stage, plain, initiator)


def raise_if_final(error: Exception) -> None:
    """Raises AgentLost or Refused if the error ends the whole run."""
    if isinstance(error, PartlyRan) and error.lost:
        raise AgentLost(str(error)) from None
    if isinstance(error, Refused) and error.ends_run:
        raise error


@dataclass(frozen=True)
class Repeat:
    """One measured run of a step, with the load of its hosts."""

    run: Run
    initiator: Usage
    responder: Usage | None
    details: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One attempt at a step: its result and its reason."""

    step: Step
    came_to: Repeat | Skipped | Failed
    why: str


@dataclass
class Log:
    """Attempts in the order of their end, and notes."""

    all_entries: list[Entry] = field(default_factory=list)
    uncounted: int = 0
    """Number of first entries that belong to a finished warm-up."""
    warming: bool = False
    """Whether current measurements belong to a warm-up."""
    notes: list[str] = field(default_factory=list)
    first_rates: dict[str, float] = field(default_factory=dict)
    """Expected rate of a copy by verb, from a first small one that is not counted; bytes/s."""
    tell: Callable[..., None] = lambda label, **fields: None
    """Emits a progress event: label and further fields of Event."""
    save: Callable[[], None] = lambda: None
    """Callback at the end of a step."""

    @contextmanager
    def attempt(
        self, step: Step, label: str, why: str, optional: bool = False
    ) -> Iterator[Callable[..., None]]:
        """Runs the body for a step; its errors become the step's outcome.

        optional: a step that cannot be tried here gives a note, and the run is complete without
        it. Yields the function that adds a run of the step: see _take.

        Raises:
            AgentLost: an agent was lost; nothing more can be measured.
            Refused: the login is refused now, and is not tried again; or a file was replaced.
        """
        if self.warming:
            label = f"{label} (warm-up)"
        self.tell(label)
        outcome = BROKEN_OFF
        try:
            yield partial(self._take, step, why)
            outcome = "measured"
        except Unavailable as error:
            outcome = f"skipped: {error}"
            if optional:
                self.note(f"{label}: {outcome}")
            else:
                self.add(step, Skipped(str(error)), why)
        except (PartlyRan, Refused, StageError) as error:
            outcome = f"failed: {error}"
            self.add(step, Failed(str(error), error.samples), why)
            raise_if_final(error)
            # If the first copy gets no connection, no other one will.
            crowded = isinstance(error, Refused) and error.kind == "crowded"
            if crowded and not self.measured_any():
                raise
        finally:
            repeat = self.latest(step)
            usages = (repeat.initiator, repeat.responder) if repeat else (None, None)
            client, server = usages if step.initiator == "client" else usages[::-1]
            rate = self.rate(step)
            self.tell(label, outcome=outcome, bytes_per_second=rate, client=client, server=server)
            self.save()

    def _take(
        self, step: Step, why: str, ran: Result, details: dict[str, Any] | None = None
    ) -> None:
        """Adds a run of a step to the log, with further details."""
        try:
            used = [
                usage(*(protocol.from_plain(Counters, each) for each in pair)) if pair else None
                for pair in (ran.initiator, ran.responder)
            ]
        except ValueError as error:
            raise StageError(f"invalid counters from an agent: {error}") from None
        if used[0] is None:
            raise StageError(f"{step.initiator}: the agent sent no counters")
        merged = {**ran.details, **(details or {})}
        counted = _interface_counts(step, ran)
        if counted:
            merged["interface_counts"] = counted
        self.add(step, Repeat(ran.samples, used[0], used[1], merged), why)

    def add(self, step: Step, came_to: Repeat | Skipped | Failed, why: str = "") -> None:
        """Adds an attempt at a step; earlier ones stay."""
        self.all_entries.append(Entry(step, came_to, why))

    def note(self, text: str) -> None:
        """Adds a line to the report's notes, once."""
        if text not in self.notes:
            self.notes.append(text)

    def forget(self) -> None:
        """Excludes all attempts so far from the result; notes stay."""
        self.uncounted = len(self.all_entries)

    @property
    def counted_entries(self) -> list[Entry]:
        return self.all_entries[self.uncounted :]

    @property
    def steps(self) -> list[Step]:
        """Steps in the order of their first attempt."""
        ordered: list[Step] = []
        for each in self.counted_entries:
            if each.step not in ordered:
                ordered.append(each.step)
        return ordered

    def _entries_of(self, step: Step) -> list[Entry]:
        return [each for each in self.counted_entries if each.step == step]

    def repeats(self, step: Step) -> list[Repeat]:
        """Returns the measured runs of a step, in order."""
        return [e.came_to for e in self._entries_of(step) if isinstance(e.came_to, Repeat)]

    def failures(self, step: Step) -> list[str]:
        """Returns the errors of a step's failed runs."""
        return [e.came_to.error for e in self._entries_of(step) if isinstance(e.came_to, Failed)]

    def first_failure(self, step: Step) -> str:
        """Returns the error of a step's first failed run; empty: none failed."""
        return next(iter(self.failures(step)), "")

    def latest(self, step: Step) -> Repeat | None:
        """Returns the last measured run of a step; None: there is none."""
        return next(reversed(self.repeats(step)), None)

    def rate(self, step: Step) -> float | None:
        """Returns the median rate of a step's runs, bytes per second; None: there is none."""
        repeats = self.repeats(step)
        return statistics.median(run_rate(each.run) for each in repeats) if repeats else None

    def entries(self) -> tuple[tuple[Step, Outcome], ...]:
        """Returns each step with its outcome and the reasons of its runs."""
        return tuple(
            (replace(step, why="; then ".join(self._whys(step))), self._outcome(step))
            for step in self.steps
        )

    def measured_any(self) -> bool:
        """Whether any run of any step was measured."""
        return any(isinstance(each.came_to, Repeat) for each in self.counted_entries)

    def complete(self) -> bool:
        """Whether every step was measured."""
        return all(isinstance(each.came_to, Repeat) for each in self.counted_entries)

    def _whys(self, step: Step) -> dict[str, None]:
        return dict.fromkeys(each.why for each in self._entries_of(step) if each.why)

    def _outcome(self, step: Step) -> Outcome:
        repeats, failures = self.repeats(step), self.failures(step)
        if not repeats:
            ends = (e.came_to for e in self._entries_of(step) if not isinstance(e.came_to, Repeat))
            return next(ends)
        ordered = sorted(repeats, key=lambda each: run_rate(each.run))
        middle = ordered[(len(ordered) - 1) // 2]
        details = dict(middle.details)
        if "hash_ok" in details:
            # None: it could not be checked.
            looks = [each.details.get("hash_ok") for each in repeats]
            details["hash_ok"] = None if None in looks and False not in looks else all(looks)
        if details.get("cache"):
            proofs = [each.details.get("cache") or {} for each in repeats]
            proven = all(each.get("proven") is True for each in proofs)
            details["cache"] = {**details["cache"], "proven": proven}
        if failures:
            details["failed_runs"] = failures
        return Measured(tuple(e.run for e in repeats), middle.initiator, middle.responder, details)


def _interface_counts(step: Step, ran: Result) -> dict[str, Any]:
    """Returns growth of each interface's error counters in a run: packets lost, frames paused."""
    sides = ("client", "server") if step.initiator == "client" else ("server", "client")
    counts = {}
    for side, pair in zip(sides, (ran.initiator, ran.responder), strict=True):
        start, end = (each.get("interface_counts", {}) for each in pair or ({}, {}))
        grown = interface.growth(start, end)
        if grown:
            counts[side] = grown
    return counts
