"""The log of a run, append-only: tasks and what they came to; runs are gathered when it is read."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from bottleneck.agents import protocol
from bottleneck.agents.hosts import AgentLost, PartlyRan, Ran, StageError
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
"""How a step ends that takes the run with it, as Ctrl-C does."""
NEEDS_AGENT = "needs an agent on the server (use --agent ssh://HOST)"
WHOLE_COPY = "the copy as a user makes it"
T = TypeVar("T")


@dataclass(frozen=True)
class Event:
    """Something that a person watching wants to see."""

    step: str
    elapsed_seconds: float
    budget_seconds: float
    sample: Sample | None = None
    outcome: str = ""
    """Empty while it runs; then "measured", "skipped: ...", "failed: ..." or BROKEN_OFF."""
    bytes_per_second: float | None = None
    client: Usage | None = None
    """What the client was busy with in the step's last run, once that is over; None: not known."""
    server: Usage | None = None
    part: str = ""
    """Which of several transfers that are made at once the sample is of."""


@dataclass(frozen=True)
class Task:
    """One run of a step, for the step's initiator to start."""

    step: Step
    setting: Any
    peer: Endpoint
    """The other end; of what a host opens for it, who may call there."""
    seconds: float
    """Limit of the answer, and of how long the other end is open."""
    opened_by: str = ""
    """The host that opens the other end until the run is over: client or server."""
    both: bool = True
    """Whether the other host's counters are read too."""
    engine: str = ""
    """What runs it, where that is not the stage itself (agent_requests.ENGINES)."""
    finish: Callable[[], float] | None = None
    """See Host.initiate."""
    is_shown: bool = True
    """Whether a person sees it go, and its connections are watched."""


Tasks = Generator[Task | tuple[Task, ...], Any, T]
"""Asks for tasks one after the other, and is sent what each came to, or thrown its error; of tasks
that are made at once one result or error each."""


def step_of(stage: str, setting: Any, initiator: str) -> Step:
    """The step of a stage's setting, without what changes from run to run."""
    varying = ("seed", *module_of(stage).STAGE.varying)
    plain = {key: value for key, value in asdict(setting).items() if key not in varying}
    return Step(stage, plain, initiator)


def raise_if_final(error: Exception) -> None:
    """Raises AgentLost or Refused for what takes the run with it; nothing for anything else."""
    if isinstance(error, PartlyRan) and error.lost:
        raise AgentLost(str(error)) from None
    if isinstance(error, Refused) and error.ends_run:
        raise error


@dataclass(frozen=True)
class Repeat:
    """One run of a step, with what its hosts were busy with."""

    run: Run
    initiator: Usage
    responder: Usage | None
    details: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One attempt at a step: what it came to, and why it was made."""

    step: Step
    came_to: Repeat | Skipped | Failed
    why: str


@dataclass
class Log:
    """Attempts in the order in which they ended, and notes."""

    all_entries: list[Entry] = field(default_factory=list)
    uncounted: int = 0
    """Number of first entries that a warm-up made, once it is over."""
    warming: bool = False
    """Whether what is measured now is not counted."""
    notes: list[str] = field(default_factory=list)
    first_rates: dict[str, float] = field(default_factory=dict)
    """By verb, what a copy may reach by a first small one that is not counted; bytes per second."""
    tell: Callable[..., None] = lambda label, **more: None
    """Tells whoever watches what is begun, and the rest of an Event."""
    save: Callable[[], None] = lambda: None
    """Called when a step has ended."""

    @contextmanager
    def attempt(
        self, step: Step, label: str, why: str, optional: bool = False
    ) -> Iterator[Callable[..., None]]:
        """Runs the body for a step; whatever goes wrong becomes the step's outcome.

        optional: what cannot be tried here is a note, and the run is complete without it. Yields
        what takes a run of the step into the log: see _take.

        Raises:
            AgentLost: an agent went with it; nothing more can be measured.
            Refused: the login is refused by now, and is not tried again; or a file was replaced.
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
            # Where the first copy gets no connection, no other does.
            crowded = isinstance(error, Refused) and error.kind == "crowded"
            if crowded and not self.measured_any():
                raise
        finally:
            made = self.latest(step)
            own, other = (made.initiator, made.responder) if made else (None, None)
            client, server = (own, other) if step.initiator == "client" else (other, own)
            rate = self.rate(step)
            self.tell(label, outcome=outcome, bytes_per_second=rate, client=client, server=server)
            self.save()

    def _take(self, step: Step, why: str, ran: Ran, details: dict[str, Any] | None = None) -> None:
        """A run of a step into the log, with what is known of it beside its own details."""
        try:
            used = [
                usage(*(protocol.from_plain(Counters, each) for each in pair)) if pair else None
                for pair in (ran.initiator, ran.responder)
            ]
        except ValueError as error:
            raise StageError(f"invalid counters from an agent: {error}") from None
        if used[0] is None:
            raise StageError(f"{step.initiator}: the agent sent no counters")
        known = {**ran.details, **(details or {})}
        counted = _interface_counts(step, ran)
        if counted:
            known["interface_counts"] = counted
        self.add(step, Repeat(ran.samples, used[0], used[1], known), why)

    def add(self, step: Step, came_to: Repeat | Skipped | Failed, why: str = "") -> None:
        """One more attempt at a step; what was measured before it stands."""
        self.all_entries.append(Entry(step, came_to, why))

    def note(self, text: str) -> None:
        """One line for the report about what was not measured, and why; once."""
        if text not in self.notes:
            self.notes.append(text)

    def forget(self) -> None:
        """Counts nothing of what was measured so far; what is noted stands."""
        self.uncounted = len(self.all_entries)

    @property
    def counted(self) -> list[Entry]:
        """All that counts."""
        return self.all_entries[self.uncounted :]

    @property
    def steps(self) -> list[Step]:
        """Steps in the order in which they first came to something."""
        found: list[Step] = []
        for each in self.counted:
            if each.step not in found:
                found.append(each.step)
        return found

    def _of(self, step: Step) -> list[Entry]:
        return [each for each in self.counted if each.step == step]

    def repeats(self, step: Step) -> list[Repeat]:
        """The runs of a step that were measured, in their order."""
        return [e.came_to for e in self._of(step) if isinstance(e.came_to, Repeat)]

    def failures(self, step: Step) -> list[str]:
        """The errors of a step's runs, each of them."""
        return [e.came_to.error for e in self._of(step) if isinstance(e.came_to, Failed)]

    def failed(self, step: Step) -> str:
        """Why a step's first run that failed did; empty: none failed."""
        return next(iter(self.failures(step)), "")

    def latest(self, step: Step) -> Repeat | None:
        """The last run of a step; None: none was measured."""
        return next(reversed(self.repeats(step)), None)

    def rate(self, step: Step) -> float | None:
        """Median rate of a step's runs, bytes per second."""
        made = self.repeats(step)
        return statistics.median(run_rate(each.run) for each in made) if made else None

    def entries(self) -> tuple[tuple[Step, Outcome], ...]:
        """Each step with its outcome, and with the reasons of its runs."""
        return tuple(
            (replace(step, why="; then ".join(self._whys(step))), self._outcome(step))
            for step in self.steps
        )

    def measured_any(self) -> bool:
        """Whether any run of any step was measured."""
        return any(isinstance(each.came_to, Repeat) for each in self.counted)

    def complete(self) -> bool:
        """Whether every step was measured."""
        return all(isinstance(each.came_to, Repeat) for each in self.counted)

    def _whys(self, step: Step) -> dict[str, None]:
        return dict.fromkeys(each.why for each in self._of(step) if each.why)

    def _outcome(self, step: Step) -> Outcome:
        made, failures = self.repeats(step), self.failures(step)
        if not made:
            ends = (e.came_to for e in self._of(step) if not isinstance(e.came_to, Repeat))
            return next(ends)
        ordered = sorted(made, key=lambda each: run_rate(each.run))
        middle = ordered[(len(ordered) - 1) // 2]
        details = dict(middle.details)
        if "hash_ok" in details:
            # None: nobody could look, which is neither right nor wrong.
            looks = [each.details.get("hash_ok") for each in made]
            details["hash_ok"] = None if None in looks and False not in looks else all(looks)
        if details.get("cache"):
            proofs = [each.details.get("cache") or {} for each in made]
            proven = all(each.get("proven") is True for each in proofs)
            details["cache"] = {**details["cache"], "proven": proven}
        if failures:
            details["failed_runs"] = failures
        return Measured(
            tuple(each.run for each in made), middle.initiator, middle.responder, details
        )


def _interface_counts(step: Step, ran: Ran) -> dict[str, Any]:
    """What went wrong at each host's interface during a run: packets lost, frames paused."""
    sides = ("client", "server") if step.initiator == "client" else ("server", "client")
    found = {}
    for side, pair in zip(sides, (ran.initiator, ran.responder), strict=True):
        before, after = (each.get("interface_counts", {}) for each in pair or ({}, {}))
        grown = interface.growth(before, after)
        if grown:
            found[side] = grown
    return found
