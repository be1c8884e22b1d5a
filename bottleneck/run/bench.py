"""The parts of a run that each of its steps works with: world, log, clock and files."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bottleneck import __version__
from bottleneck.agents import hosts, protocol
from bottleneck.agents.hosts import PartlyRan, Ran, StageError
from bottleneck.report.report import WARMED_UP, Report, Step
from bottleneck.run import plan
from bottleneck.run.clock import Clock
from bottleneck.run.log import Log, Repeat
from bottleneck.run.sockets import watching
from bottleneck.run.world import World
from probes.core.records import Endpoint, Failed, Sample, Skipped, Usage
from probes.core.stage import Refused, Unavailable, module_of
from probes.host import interface
from probes.host.counters import Counters, usage
from probes.system import waiting

BROKEN_OFF = "interrupted"
"""How a step ends that takes the run with it, as Ctrl-C does."""
NEEDS_AGENT = "needs an agent on the server (use --agent ssh://HOST)"
WHOLE_COPY = "the copy as a user makes it"


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


@dataclass
class Bench:
    """One run from its start to its report."""

    world: World
    watch: Callable[[Event], None]
    save: Callable[[Report], None]
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    seed: str = field(default_factory=lambda: secrets.token_hex(16))
    """Of the payload: both hosts make the same bytes from it."""
    status: str = "partial"
    log: Log = field(default_factory=Log)
    sources: dict[plan.Side, Endpoint] = field(default_factory=dict)
    """Each side's own file to read from."""
    no_source: dict[plan.Side, str] = field(default_factory=dict)
    """Why a side has none."""
    unclosed: list[str] = field(default_factory=list)
    """What could not be closed in order at the end, and may be left on a host."""
    calibrated: dict[str, float] = field(default_factory=dict)
    """By verb, what a copy may reach by a first small one over SMB, bytes per second."""
    fitted: dict[Any, Any] = field(default_factory=dict)
    """By a stage and its setting, what that was fitted to: the same in each run."""
    warming: bool = False
    """Whether what is measured now is not counted."""
    unwatched: set[plan.Side] = field(default_factory=set)
    """Hosts whose sockets could not be watched, which is noted once."""
    source_bytes: int = 0
    """Size of the file on the share that pulls read; 0: not written yet."""
    file_limit_bytes: int | None = None
    """Upper bound of a file's bytes, once a push has filled the share; None: none has."""
    reopen: Callable[[], bool] = lambda: False
    """Makes another folder on a share from which the run's is gone; whether that worked."""
    return_seconds: float = 12.0
    """Limit of one wait for a server that went; 0: it did not come back."""
    host_clock: waiting.Clock = waiting.CLOCK
    clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = Clock(self.world.options.budget_seconds, self.host_clock)

    def source_bytes_of(self, side: plan.Side) -> int:
        """Size of a side's own file; 0: it has none."""
        source = self.sources.get(side)
        return int(source.facts["size_bytes"]) if source else 0

    def note(self, text: str) -> None:
        """One line for the report about what was not measured, and why; once."""
        self.log.note(text)

    def rounds(self) -> Iterator[None]:
        """The runs of all that is measured: one, or those that were asked for after a warm-up."""
        runs = self.world.options.runs
        began = self.clock.elapsed()
        self.warming = runs > 0
        yield
        if self.warming:
            self.log.forget()
            self.note(WARMED_UP)
            self.warming = False
        for made in range(runs):
            took, began = self.clock.elapsed() - began, self.clock.elapsed()
            if took > self.clock.left():
                self.note(f"{made} of {runs} runs made: out of time (use a larger --budget)")
                return
            yield

    def tell(self, label: str, **more: Any) -> None:
        """Tells whoever watches."""
        self.watch(Event(label, self.clock.elapsed(), self.world.options.budget_seconds, **more))

    def report(self) -> Report:
        """What is known now."""
        client = self.world.facts.get("client")
        opened = self.world.share.facts
        return Report(
            status=self.status,
            tool={
                "version": __version__,
                "python": platform.python_version(),
                **(client.tools if client else {}),
            },
            started=self.started,
            elapsed_seconds=self.clock.elapsed(),
            target={
                "share": self.world.options.target.name,
                **{name: opened.get(name) for name in ("dialect", "signing", "encryption")},
                **opened,
                "smb_conf": self.world.samba_config,
                **({"copy_alone": True} if self.world.options.copy else {}),
            },
            client=client,
            server=self.world.facts.get("server"),
            entries=self.log.entries(),
            notes=tuple(self.log.notes),
            target_rate_bytes_per_second=self.world.options.target_rate_bytes_per_second,
        )

    def step(self, stage: str, setting: Any, initiator: plan.Side) -> Step:
        """The step of a stage's setting, without what changes from run to run."""
        varying = ("seed", *module_of(stage).STAGE.varying)
        plain = {key: value for key, value in asdict(setting).items() if key not in varying}
        return Step(stage, plain, initiator)

    @contextmanager
    def outcome(
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
                self.log.add(step, Skipped(str(error)), why)
        except (PartlyRan, Refused, StageError) as error:
            outcome = f"failed: {error}"
            self.log.add(step, Failed(str(error), error.samples), why)
            if isinstance(error, PartlyRan) and error.lost:
                raise hosts.AgentLost(str(error)) from None
            if isinstance(error, Refused):
                # Where the first copy gets no connection, no other does.
                none_fits = error.kind == "crowded" and not self.log.measured_any()
                if error.ends_run or none_fits:
                    raise
        finally:
            self._tell_end(step, label, outcome)
            self.save(self.report())

    def _tell_end(self, step: Step, label: str, outcome: str) -> None:
        made = self.log.latest(step)
        own, other = (made.initiator, made.responder) if made else (None, None)
        client, server = (own, other) if step.initiator == "client" else (other, own)
        rate = self.log.rate(step)
        self.tell(label, outcome=outcome, bytes_per_second=rate, client=client, server=server)

    def run(
        self,
        step: Step,
        setting: Any,
        peer: Endpoint,
        seconds: float,
        both: bool = True,
        engine: str = "",
        finish: Callable[[], float] | None = None,
    ) -> Ran:
        """One run of a step, started by the step's initiator.

        engine: what runs it, where that is not the stage itself (agent_requests.ENGINES). finish:
        see Host.initiate.
        """
        side: plan.Side = "client" if step.initiator == "client" else "server"
        other: plan.Side = "server" if side == "client" else "client"

        opened: list[float] = []

        def progress(sample: Sample) -> None:
            opened.append(self.clock.elapsed() - sample.elapsed_seconds)
            self.tell(step.stage, sample=sample)

        with watching(self, step, peer, seconds) as watches:
            ran = self.world.hosts[side].initiate(
                engine or step.stage,
                setting,
                peer,
                seconds,
                self.world.hosts.get(other) if both else None,
                progress,
                finish,
                watches.copied,
            )
        shown = watches.shown(ran)
        # When, since the run began: what several hosts do at once is compared by it.
        known = {"opened_after_seconds": opened[0]} if opened else {}
        return replace(shown, details={**shown.details, **known})

    def _take(self, step: Step, why: str, ran: Ran, details: dict[str, Any] | None = None) -> None:
        """A run of a step into the log, with what is known of it beside its own details."""
        try:
            used = [
                usage(*(protocol.from_plain(Counters, each) for each in pair)) if pair else None
                for pair in (ran.own, ran.other)
            ]
        except ValueError as error:
            raise StageError(f"invalid counters from an agent: {error}") from None
        if used[0] is None:
            raise StageError(f"{step.initiator}: the agent sent no counters")
        known = {**ran.details, **(details or {})}
        counted = _interface_counts(step, ran)
        if counted:
            known["interface_counts"] = counted
        self.log.add(step, Repeat(ran.samples, used[0], used[1], known), why)


def _interface_counts(step: Step, ran: Ran) -> dict[str, Any]:
    """What went wrong at each host's interface during a run: packets lost, frames paused."""
    sides = ("client", "server") if step.initiator == "client" else ("server", "client")
    found = {}
    for side, pair in zip(sides, (ran.own, ran.other), strict=True):
        before, after = (each.get("interface_counts", {}) for each in pair or ({}, {}))
        grown = interface.growth(before, after)
        if grown:
            found[side] = grown
    return found
