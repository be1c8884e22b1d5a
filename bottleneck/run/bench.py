"""What every part of a run works with: the hosts, what is known so far, the time that is left."""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from bottleneck import __version__
from bottleneck.agents import hosts, protocol
from bottleneck.agents.hosts import Host, PartlyRan, Ran, StageError
from bottleneck.report.report import WARMED_UP, Report, Step
from bottleneck.run import plan
from bottleneck.run.log import Log, Repeat
from bottleneck.run.sockets import watching
from probes.core.records import Access, Endpoint, Failed, HostFacts, Sample, Skipped, Usage
from probes.core.stage import USUAL_BUDGET_SECONDS, Refused, Unavailable, module_of
from probes.host import interface
from probes.host.counters import Counters, usage

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
CLOSING_SECONDS = 2.0
CLOSING_SHARE = 0.05
BROKEN_OFF = "interrupted"
"""How a step ends that takes the run with it, as Ctrl-C does."""
NEEDS_AGENT = "needs an agent on the server (use --agent ssh://HOST)"
WHOLE_COPY = "the copy as a user makes it"
USEFUL_SECONDS = 1.5
"""Less is no copy."""
HELD_SECONDS = 60.0
"""How much longer than the budget what a host holds may live."""


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

    options: plan.Options
    access: Access
    watch: Callable[[Event], None]
    save: Callable[[Report], None]
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    began: float = field(default_factory=time.monotonic)
    seed: str = field(default_factory=lambda: secrets.token_hex(16))
    """Of the payload: both hosts make the same bytes from it."""
    status: str = "partial"
    log: Log = field(default_factory=Log)
    address: str = ""
    """The server's IP address, looked up once."""
    facts: dict[str, HostFacts] = field(default_factory=dict)
    share: Endpoint = field(default_factory=Endpoint)
    """This run's folder on the share, once it is open."""
    denied: str = ""
    """Why copies of the security that was asked for are not possible there."""
    server_path: str | None = None
    """The same folder as the server's own path, once its agent has found it."""
    agent_folder: str = ""
    """Where the agent's files lie, as it may not write there: on the same file system; or empty."""
    samba_config: list[dict[str, Any]] | None = None
    """What in the server's smb.conf costs throughput; None: it was not seen."""
    reached: dict[plan.Side, Host] = field(default_factory=dict)
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

    @property
    def client(self) -> Host:
        """The client's agent."""
        return self.reached["client"]

    @property
    def server(self) -> Host | None:
        """The server's agent, where there is one."""
        return self.reached.get("server")

    @property
    def caller(self) -> Endpoint:
        """This host by its own address, as whoever calls what the server opens for a run."""
        facts = self.facts.get("client")
        return Endpoint(host=facts.interface.address if facts and facts.interface else "")

    @property
    def usual_seconds(self) -> float:
        """The budget that a run's parts are made for: of several runs the usual one of each."""
        return USUAL_BUDGET_SECONDS if self.options.runs else self.options.budget_seconds

    @property
    def times(self) -> plan.Times:
        """What each part may take."""
        trip = self.share.facts.get("connect_seconds") or 0.0
        usual = plan.times(self.usual_seconds, float(trip))
        seconds = self.options.settings.get("seconds")
        if seconds is None or self.options.copy:
            return usual
        return plan.Times(**dict.fromkeys(asdict(usual), seconds))

    def chosen(self, setting: T) -> T:
        """A stage's setting with what the user chose of it, but for its time (see times)."""
        known = {each.name for each in fields(setting)} - {"seconds"}
        given = dict(self.options.settings)
        if self.options.security:
            given["security"] = self.options.security
        return replace(setting, **{key: value for key, value in given.items() if key in known})

    def wants(self, stage: str) -> bool:
        """Whether the user asked for a stage."""
        return stage in self.options.stages

    def alone(self, stage: str) -> bool:
        """Whether nothing but this stage was asked for."""
        return self.options.stages == (stage,)

    def folder(self, side: plan.Side) -> str | None:
        """The folder of a side's copies, as that host's path."""
        return self.options.folder if side == "client" else self.server_path

    def test_file_folder(self, side: plan.Side) -> str:
        """Where this tool's own files on a side lie: there, or beside it on its file system; empty:
        it has none."""
        beside = self.agent_folder if side == "server" else ""
        return beside or self.folder(side) or ""

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def left(self) -> float:
        """Seconds of the budget that remain for steps; closing the hosts takes the rest."""
        closing = max(CLOSING_SECONDS, CLOSING_SHARE * self.options.budget_seconds)
        return self.options.budget_seconds - closing - self.elapsed()

    @property
    def lifetime(self) -> float:
        """Seconds for what a host holds until the run's end."""
        return self.options.budget_seconds + HELD_SECONDS

    def need(self, seconds: float = USEFUL_SECONDS) -> None:
        """Raises Unavailable where less is left."""
        if self.left() < seconds:
            raise Unavailable("out of time (use a larger --budget)")

    def source_bytes_of(self, side: plan.Side) -> int:
        """Size of a side's own file; 0: it has none."""
        source = self.sources.get(side)
        return int(source.facts["size_bytes"]) if source else 0

    def note(self, text: str) -> None:
        """One line for the report about what was not measured, and why; once."""
        if text not in self.log.notes:
            self.log.notes.append(text)

    def rounds(self) -> Iterator[None]:
        """The runs of all that is measured: one, or those that were asked for after a warm-up."""
        runs = self.options.runs
        began = time.monotonic()
        self.warming = runs > 0
        yield
        if self.warming:
            self.log.forget()
            self.note(WARMED_UP)
            self.warming = False
        for made in range(runs):
            took, began = time.monotonic() - began, time.monotonic()
            if took > self.left():
                self.note(f"{made} of {runs} runs made: out of time (use a larger --budget)")
                return
            yield

    def tell(self, label: str, **more: Any) -> None:
        """Tells whoever watches."""
        self.watch(Event(label, self.elapsed(), self.options.budget_seconds, **more))

    def report(self) -> Report:
        """What is known now."""
        client = self.facts.get("client")
        opened = self.share.facts
        return Report(
            status=self.status,
            tool={
                "version": __version__,
                "python": platform.python_version(),
                **(client.tools if client else {}),
            },
            started=self.started,
            elapsed_seconds=self.elapsed(),
            target={
                "share": self.options.target.name,
                **{name: opened.get(name) for name in ("dialect", "signing", "encryption")},
                **opened,
                "smb_conf": self.samba_config,
                **({"copy_alone": True} if self.options.copy else {}),
            },
            client=client,
            server=self.facts.get("server"),
            entries=self.log.entries(),
            notes=tuple(self.log.notes),
            target_rate_bytes_per_second=self.options.target_rate_bytes_per_second,
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
            opened.append(self.elapsed() - sample.elapsed_seconds)
            self.tell(step.stage, sample=sample)

        with watching(self, step, peer, seconds) as watches:
            ran = self.reached[side].initiate(
                engine or step.stage,
                setting,
                peer,
                seconds,
                self.reached.get(other) if both else None,
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
