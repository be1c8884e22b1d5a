"""A stage's turns in a run: how long each may take, who answers it, and what it is fitted to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from bottleneck.analysis.model import looks_like
from bottleneck.analysis.rules.network import mtu
from bottleneck.analysis.steps import positive
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.log import NEEDS_AGENT, Task, Tasks, step_of
from bottleneck.run.steps.sources import FILL_SECONDS, FIRST_BYTES, Sources
from bottleneck.run.world import RunState, World, so_far
from bottleneck.text.units import link_text
from probes.core.records import SMB_PORT, Endpoint, Measured, Skipped, rates, run_rate
from probes.core.stage import (
    NO_ROOM,
    USUAL_BUDGET_SECONDS,
    RunFacts,
    Stage,
    Turn,
    Unavailable,
    module_of,
)
from probes.smb.session import SECURITIES
from probes.stages import path, smb_tax, tcp

MOST_TIMES_USUAL = 5.0
LEAST_TIMES_USUAL = 0.4
LEAST_SCALE = 0.25
SHARE_OF_LEFT = 0.25
MOST_TIMES_ALONE = 4.0
HOLD_SECONDS = 30.0
"""Time that a responder waits beyond its transfer."""
TRIAL_SECONDS, MOST_TRIAL_SECONDS = 0.6, 4.0
TRIAL_ROUND_TRIPS = 25
"""Round trips after which a transfer shows the path's rate: slow start takes ten."""
RTT = ("limits", "min_rtt_seconds")
"""Keys of the shortest round trip in a transfer's details."""
STOOD_STILL = (
    "stalled",
    "no payload arrived",
    "nothing arrived",
    "ran out of time",
    "the connection failed",
)
"""Words in the error of a transfer that the path may have stopped."""


def link_that_fits(world: World, bytes_per_second: float) -> str | None:
    """Returns the standard link whose payload a rate looks like, in words."""
    interfaces = (each.interface for each in world.facts.values())
    sizes = [each.mtu_bytes for each in interfaces if each is not None and each.mtu_bytes]
    match = looks_like(bytes_per_second, min(sizes, default=None))
    return None if match is None else link_text(match.bits_per_second)


@dataclass
class Turns(RunState):
    """Stages that explain copies by a sequence of turns."""

    sources: Sources
    fitted: dict[Any, Any] = field(default_factory=dict)
    """Fitted settings by stage and setting, the same in each run."""

    def ask_path(self, error: str) -> Tasks[None]:
        """Measures the path, once, if an error says that a transfer stood still."""
        was_asked = any(each.stage == path.STAGE.name for each in self.log.steps)
        still = any(each in error for each in STOOD_STILL)
        if still and not was_asked and self.world.wants(path.STAGE.name):
            yield from self.measure(path.STAGE, "why the transfer stood still")

    def drops_packets(self, verb: str) -> bool:
        """Whether the path drops full-size packets in a direction."""
        report = so_far(self.world, self.clock, self.log, self.files)
        return mtu.hole(report, "client" if verb == "push" else "server") is not None

    def in_vain(self, verb: str) -> bool:
        """Whether a copy would stall like an earlier one on a path that drops full-size packets.

        If the path drops those of pushes, there is no file to pull either.
        """
        if verb == "pull" and not self.files.source_bytes and self.drops_packets("push"):
            return True
        copy_steps = (s for s in self.log.steps if str(s.setting.get("copy", "")).startswith(verb))
        return any(map(self.log.first_failure, copy_steps)) and self.drops_packets(verb)

    def measure(self, stage: Stage, why: str, most_seconds: float = math.inf) -> Tasks[None]:
        """Runs the turns of a stage that time allows; most_seconds: limit of all together."""
        module = module_of(stage.name)
        turns = list(self._turns(module))
        for turn in turns:
            seconds = self._seconds(stage, turn, most_seconds / len(turns))
            if seconds is None:
                return
            key, share = turn.timed
            setting = replace(turn.setting, **{key: share * seconds})
            yield from self._make(module, turn, why, setting, seconds)
        if stage.by_agent and not stage.needs and self.world.server is None:
            self.log.note(f"{stage.name} between the hosts: skipped: {NEEDS_AGENT}")

    def _turns(self, module: Any) -> Iterator[Turn]:
        """Yields a stage's turns with the user's choices, without duplicates."""
        seen_settings = set()
        for turn in module.turns(self.facts_for(module.STAGE)):
            setting = self.world.apply_choices(turn.setting)
            if (setting, turn.initiator) not in seen_settings:
                seen_settings.add((setting, turn.initiator))
                yield replace(turn, setting=setting)

    def _make(self, module: Any, turn: Turn, why: str, setting: Any, seconds: float) -> Tasks[None]:
        stage: Stage = module.STAGE
        step = step_of(stage.name, setting, plan.side(turn.initiator))
        optional = stage.optional and not self.world.is_only(stage.name)
        with self.log.attempt(step, turn.label, why, optional) as add_run:
            if turn.peer == "agent" and self.world.server is None:
                raise Unavailable(NEEDS_AGENT)
            # A chosen pace needs no measurement of the path's rate.
            is_paced = "bytes_per_second" in self.world.options.settings
            if hasattr(module, "fit_setting") and not is_paced:
                key = (stage.name, turn.initiator, setting)
                if key not in self.fitted:
                    facts = yield from self._more_known(stage, setting)
                    self.fitted[key] = self.world.apply_choices(module.fit_setting(setting, facts))
                setting = self.fitted[key]
                # Values that are chosen only now are part of the report too.
                step.setting.update(step_of(stage.name, setting, "client").setting)
            peer, opened_by = self._peer(turn)
            lifetime = seconds + turn.grace_seconds
            add_run((yield Task(step, setting, peer, lifetime, opened_by, turn.peer != "own")))

    def _peer(self, turn: Turn) -> tuple[Endpoint, str]:
        """Returns the other end of a turn, and the side that opens it."""
        if turn.peer in ("agent", "own"):
            return self.world.caller, "server" if turn.peer == "agent" else turn.initiator
        return replace(self.files.share, path="") if turn.peer == "share" else Endpoint(), ""

    def facts_for(self, stage: Stage) -> RunFacts:
        return RunFacts(
            address=self.world.address,
            port=self.world.options.target.port or SMB_PORT,
            dialect=str(self.files.share.facts.get("dialect") or ""),
            seed=self.world.seed,
            budget_seconds=self.world.options.budget_seconds,
            is_only=self.world.is_only(stage.name),
            agent=self.world.server is not None,
            connect_seconds=self.world.connect_seconds,
        )

    def _more_known(self, stage: Stage, setting: Any) -> Tasks[RunFacts]:
        """Returns the facts with those that a setting needs, which are measured first."""
        facts = self.facts_for(stage)
        if "rate" in stage.needs:
            rate, rtt_seconds = yield from self.path_rate(setting.verb)
            link = link_that_fits(self.world, rate) or ""
            facts = replace(facts, bytes_per_second=rate, rtt_seconds=rtt_seconds, link=link)
        if "source" in stage.needs and setting.verb == "pull":
            source_bytes = yield from self.sources.fill_source(facts.dialect)
            return replace(facts, source_bytes=source_bytes)
        if "share" in stage.needs:
            return replace(facts, room_bytes=self.sources.room_bytes())
        return facts

    def usual_seconds_of(self, stage: Stage) -> float:
        """Returns the seconds of all turns of a stage in a usual run."""
        return sum(each.usual_seconds for each in self._turns(module_of(stage.name)))

    def _seconds(self, stage: Stage, turn: Turn, most_seconds: float = math.inf) -> float | None:
        seconds = self.world.options.settings.get("seconds")
        if seconds is not None:
            return float(seconds)
        if not turn.least_seconds:
            return self.seconds_for(stage, turn.usual_seconds, turn.parts, most_seconds)
        scale = max(LEAST_SCALE, self._scale())
        return min(turn.most_seconds, max(turn.least_seconds, scale * turn.usual_seconds))

    def _scale(self) -> float:
        return min(MOST_TIMES_USUAL, self.world.options.usual_seconds / USUAL_BUDGET_SECONDS)

    def seconds_for(
        self, stage: Stage, usual_seconds: float, parts: float = 1, most_seconds: float = math.inf
    ) -> float | None:
        """Returns the seconds of a stage; None: it is skipped, which is noted.

        parts: number of such times that the stage takes if only it is requested.
        """
        floor = LEAST_TIMES_USUAL * usual_seconds
        if self.world.options.runs:
            return usual_seconds
        if self.world.is_only(stage.name):
            return max(floor, min(MOST_TIMES_ALONE * usual_seconds, self.clock.remaining() / parts))
        part_of_left = SHARE_OF_LEFT * self.clock.remaining()
        seconds = min(usual_seconds * self._scale(), part_of_left, most_seconds)
        if self.world.options.budget_seconds < stage.least_budget_seconds or seconds < floor:
            self.log.note(f"{stage.name}: skipped: out of time (use a larger --budget)")
            return None
        return seconds

    def path_rate(self, verb: str) -> Tasks[tuple[float, float | None]]:
        """Returns the rate of TCP between the hosts with the system's tuning, and its least RTT.

        The fastest of the run's tcp steps counts; without any a short trial, which is repeated with
        more time on a far path because of slow start. Raises Unavailable without an agent on the
        server, StageError if the trial fails.
        """
        known_rates = [
            (rates(outcome).median, positive(outcome.details, *RTT))
            for step, outcome in self.log.entries()
            if isinstance(outcome, Measured)
            and (step.stage, step.initiator) == ("tcp", "client")
            and (step.setting.get("verb"), step.setting.get("engine")) == (verb, None)
        ]
        if known_rates:
            return max(known_rates, key=lambda each: each[0])
        first = yield from self._trial(verb, TRIAL_SECONDS)
        needed = min(MOST_TRIAL_SECONDS, TRIAL_ROUND_TRIPS * (first[1] or 0.0))
        return first if needed <= TRIAL_SECONDS else (yield from self._trial(verb, needed))

    def _trial(self, verb: str, seconds: float) -> Tasks[tuple[float, float | None]]:
        if self.world.server is None:
            raise Unavailable(NEEDS_AGENT)
        setting = tcp.Setting(verb, seconds=seconds, address=self.world.address)
        most_seconds = seconds + HOLD_SECONDS
        step = step_of("tcp", setting, "client")
        ran = yield Task(step, setting, self.world.caller, most_seconds, "server")
        return run_rate(ran.samples), positive(ran.details, *RTT)


# -- cost of security: the same bytes plain, signed and encrypted (stage smb-tax) -----------------

MOST_ROUNDS = 3
COPIES_A_ROUND = 2 * len(SECURITIES)
TAX_LOGIN_SECONDS = 0.1
"""Time of a copy beside its transfer: login, open and check."""
LEAST_TAXED_SECONDS = 0.1
MOST_TAXED_BYTES = 256 * plan.MIB
DEADLINE_TIMES = 8.0
"""Time limit of a copy over its planned time: encryption may cost so much."""
LEAST_DEADLINE_SECONDS = 3.0
TAX_GRACE_SECONDS = 30.0


@dataclass
class Security:
    """Copies of one security after the other, with the results so far."""

    turns: Turns
    why: str
    copy_seconds: float = 0.0
    """Intended time of one copy."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Size by verb, the same for every security."""
    denied: dict[str, str] = field(default_factory=dict)
    """Reason why the server does not allow a security."""

    def measure(self) -> Tasks[None]:
        """Makes rounds of all six copies, forth and back: drift affects each security alike.

        A security that the server does not allow gives a note; a Skipped step if only this stage is
        requested.
        """
        seconds = self.turns.seconds_for(smb_tax.STAGE, smb_tax.STAGE.usual_seconds, parts=2)
        if seconds is None:
            return
        if self.turns.sources.room_bytes() < FIRST_BYTES:
            for security, verb in product(SECURITIES, smb_tax.VERBS):
                self.turns.log.add(self._step(verb, security), Skipped(NO_ROOM), self.why)
            return
        until = self.turns.clock.elapsed() + seconds
        each = seconds / COPIES_A_ROUND / 2 - TAX_LOGIN_SECONDS
        self.copy_seconds = max(LEAST_TAXED_SECONDS, each)
        for number in range(1 if self.turns.world.options.runs else MOST_ROUNDS):
            began = self.turns.clock.elapsed()
            for security in SECURITIES if number % 2 == 0 else SECURITIES[::-1]:
                for verb in smb_tax.VERBS:
                    if security not in self.denied:
                        yield from self._copy(verb, security)
                    elif self.turns.world.is_only(smb_tax.STAGE.name):
                        reason = self.denied[security]
                        self.turns.log.add(self._step(verb, security), Skipped(reason), self.why)
            now = self.turns.clock.elapsed()
            if now + (now - began) > until:
                return

    def _tax_setting(self, verb: str, security: str) -> smb_tax.Setting:
        dialect, seed = self.turns.files.dialect, self.turns.world.seed
        return smb_tax.Setting(verb, dialect, security, 0, 0.0, seed)

    def _step(self, verb: str, security: str) -> Step:
        """Returns the step of a copy, without values that are chosen later."""
        return step_of(smb_tax.STAGE.name, self._tax_setting(verb, security), "client")

    def _copy(self, verb: str, security: str) -> Tasks[None]:
        """Makes one run of one copy."""
        step = self._step(verb, security)
        deadline = max(LEAST_DEADLINE_SECONDS, DEADLINE_TIMES * self.copy_seconds)
        # A server that insists on its security is well configured: the run is complete.
        optional = not self.turns.world.is_only(smb_tax.STAGE.name)
        label = f"security {security} {verb}"
        with self.turns.log.attempt(step, label, self.why, optional) as add_run:
            if verb not in self.sizes:
                self.sizes[verb] = yield from self._size(verb)
            setting = self._tax_setting(verb, security)
            setting = replace(setting, size_bytes=self.sizes[verb], seconds=deadline)
            peer = replace(self.turns.files.share, path="")
            try:
                add_run((yield Task(step, setting, peer, deadline + TAX_GRACE_SECONDS)))
            except Unavailable as error:
                self.denied[security] = str(error)
                raise

    def _size(self, verb: str) -> Tasks[int]:
        """Returns the bytes of a plain copy in the intended time, limited by file and share."""
        spoken = self.turns.files.dialect
        source_bytes = yield from self.turns.sources.fill_source(spoken)
        rate = source_bytes / FILL_SECONDS
        for step in self.turns.log.steps:
            setting = step.setting
            like = ("memory", spoken)
            if step.stage == "smb-copy" and (setting["end"], setting["dialect"]) == like:
                known_rate = self.turns.log.rate(step)
                if known_rate is not None and setting["copy"].startswith(verb):
                    rate = known_rate
        limit = source_bytes if verb == "pull" else self.turns.sources.room_bytes()
        size = min(limit, MOST_TAXED_BYTES, max(plan.MIB, int(rate * self.copy_seconds)))
        return size // plan.MIB * plan.MIB or size
