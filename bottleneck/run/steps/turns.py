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
from bottleneck.run.clock import Clock
from bottleneck.run.files import Files
from bottleneck.run.log import NEEDS_AGENT, Log, Task, Tasks, step_of
from bottleneck.run.steps.sources import FILL_SECONDS, FIRST_BYTES, Sources
from bottleneck.run.world import World, so_far
from bottleneck.text.units import link_text
from probes.core.records import SMB_PORT, Endpoint, Measured, Skipped, rates, run_rate
from probes.core.stage import (
    NO_ROOM,
    USUAL_BUDGET_SECONDS,
    Known,
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
"""How much longer than its transfer a responder waits."""
TRIAL_SECONDS, MOST_TRIAL_SECONDS = 0.6, 4.0
TRIAL_ROUND_TRIPS = 25
"""That a transfer needs at least to show what the path carries: a slow start takes ten."""
RTT = ("limits", "min_rtt_seconds")
"""Where a transfer's details have its least round trip."""
STOOD_STILL = (
    "stalled",
    "no payload arrived",
    "nothing arrived",
    "ran out of time",
    "the connection failed",
)
"""In the error of what the path may have stopped."""


def link_that_fits(world: World, bytes_per_second: float) -> str | None:
    """The standard link whose payload that is, in words."""
    interfaces = (each.interface for each in world.facts.values())
    sizes = [each.mtu_bytes for each in interfaces if each is not None and each.mtu_bytes]
    match = looks_like(bytes_per_second, min(sizes, default=None))
    return None if match is None else link_text(match.bits_per_second)


@dataclass
class Turns:
    """The stages that explain copies by turns one after the other."""

    world: World
    clock: Clock
    log: Log
    files: Files
    sources: Sources
    fitted: dict[Any, Any] = field(default_factory=dict)
    """By a stage and its setting, what that was fitted to: the same in each run."""

    def ask_path(self, error: str) -> Tasks[None]:
        """Looks at the path once, at the moment when something stood still, as its error says."""
        asked = any(each.stage == path.STAGE.name for each in self.log.steps)
        still = any(each in error for each in STOOD_STILL)
        if still and not asked and self.world.wants(path.STAGE.name):
            yield from self.measure(path.STAGE, "why the transfer stood still")

    def dropped(self, verb: str) -> bool:
        """Whether the path was seen to drop full-size packets of a direction."""
        known = so_far(self.world, self.clock, self.log, self.files)
        return mtu.hole(known, "client" if verb == "push" else "server") is not None

    def in_vain(self, verb: str) -> bool:
        """Whether a copy would only stall again: its like did, on a path that drops full packets.

        A pull reads what was pushed: on a path that drops those, there is nothing to be pulled.
        """
        if verb == "pull" and not self.files.source_bytes and self.dropped("push"):
            return True
        alike = (s for s in self.log.steps if str(s.setting.get("copy", "")).startswith(verb))
        return any(map(self.log.failed, alike)) and self.dropped(verb)

    def measure(self, stage: Stage, why: str, most_seconds: float = math.inf) -> Tasks[None]:
        """All turns of a stage that there is time for; most_seconds: of all of them together."""
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
        """A stage's turns as the user chose them: those that differ in nothing else are one."""
        made = set()
        for turn in module.turns(self.known(module.STAGE)):
            setting = self.world.apply_choices(turn.setting)
            if (setting, turn.initiator) not in made:
                made.add((setting, turn.initiator))
                yield replace(turn, setting=setting)

    def _make(self, module: Any, turn: Turn, why: str, setting: Any, seconds: float) -> Tasks[None]:
        stage: Stage = module.STAGE
        step = step_of(stage.name, setting, plan.side(turn.initiator))
        optional = stage.optional and not self.world.is_only(stage.name)
        with self.log.attempt(step, turn.label, why, optional) as take:
            if turn.peer == "agent" and self.world.server is None:
                raise Unavailable(NEEDS_AGENT)
            # A pace that was chosen needs no look at what the path carries.
            if hasattr(module, "fitted") and "bytes_per_second" not in self.world.options.settings:
                key = (stage.name, turn.initiator, setting)
                if key not in self.fitted:
                    known = yield from self._more_known(stage, setting)
                    self.fitted[key] = self.world.apply_choices(module.fitted(setting, known))
                setting = self.fitted[key]
                # what is not chosen before its turn stands in the report too
                step.setting.update(step_of(stage.name, setting, "client").setting)
            peer, opened_by = self._peer(turn)
            lifetime = seconds + turn.grace_seconds
            both = turn.peer != "own"
            take((yield Task(step, setting, peer, lifetime, opened_by, both)))

    def _peer(self, turn: Turn) -> tuple[Endpoint, str]:
        """Who answers a turn, and who opens that for it."""
        if turn.peer in ("agent", "own"):
            return self.world.caller, "server" if turn.peer == "agent" else turn.initiator
        return replace(self.files.share, path="") if turn.peer == "share" else Endpoint(), ""

    def known(self, stage: Stage) -> Known:
        """What is known as a stage's turn comes."""
        return Known(
            address=self.world.address,
            port=self.world.options.target.port or SMB_PORT,
            dialect=str(self.files.share.facts.get("dialect") or ""),
            seed=self.world.seed,
            budget_seconds=self.world.options.budget_seconds,
            is_only=self.world.is_only(stage.name),
            agent=self.world.server is not None,
            connect_seconds=self.world.connect_seconds,
        )

    def _more_known(self, stage: Stage, setting: Any) -> Tasks[Known]:
        """With what has to be found out for a setting."""
        found = self.known(stage)
        if "rate" in stage.needs:
            rate, rtt_seconds = yield from self.path_rate(setting.verb)
            link = link_that_fits(self.world, rate) or ""
            found = replace(found, bytes_per_second=rate, rtt_seconds=rtt_seconds, link=link)
        if "source" in stage.needs and setting.verb == "pull":
            held = yield from self.sources.ready_bytes(found.dialect)
            return replace(found, source_bytes=held)
        if "share" in stage.needs:
            return replace(found, room_bytes=self.sources.room_bytes())
        return found

    def usual_seconds_of(self, stage: Stage) -> float:
        """What all turns of a stage take in a usual run."""
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
        """Seconds for a stage that usually takes so long; None: left out, which is noted.

        parts: how many times as long the stage takes if it is all that was asked for.
        """
        least = LEAST_TIMES_USUAL * usual_seconds
        if self.world.options.runs:
            return usual_seconds
        if self.world.is_only(stage.name):
            return max(least, min(MOST_TIMES_ALONE * usual_seconds, self.clock.remaining() / parts))
        part_of_left = SHARE_OF_LEFT * self.clock.remaining()
        seconds = min(usual_seconds * self._scale(), part_of_left, most_seconds)
        if self.world.options.budget_seconds < stage.least_budget_seconds or seconds < least:
            self.log.note(f"{stage.name}: skipped: out of time (use a larger --budget)")
            return None
        return seconds

    def path_rate(self, verb: str) -> Tasks[tuple[float, float | None]]:
        """What TCP carries between the hosts by the system's own tuning, and its least round trip.

        By the run's own tcp steps, the fastest of them; where there are none, by a short trial,
        and where round trips are long by a longer one: the first is their slow start. Raises
        Unavailable without an agent on the server, StageError where the trial breaks.
        """
        found = [
            (rates(outcome).median, positive(outcome.details, *RTT))
            for step, outcome in self.log.entries()
            if isinstance(outcome, Measured)
            and (step.stage, step.initiator) == ("tcp", "client")
            and (step.setting.get("verb"), step.setting.get("engine")) == (verb, None)
        ]
        if found:
            return max(found, key=lambda each: each[0])
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


# -- the same bytes plain, signed and encrypted: what security costs (stage smb-tax) --------------

MOST_ROUNDS = 3
COPIES_A_ROUND = 2 * len(SECURITIES)
TAX_LOGIN_SECONDS = 0.1
"""Login, open, and the look at what arrived: what a copy costs beside its transfer."""
LEAST_TAXED_SECONDS = 0.1
MOST_TAXED_BYTES = 256 * plan.MIB
DEADLINE_TIMES = 8.0
"""How many times the time that was planned a copy may take: encryption may cost so much."""
LEAST_DEADLINE_SECONDS = 3.0
TAX_GRACE_SECONDS = 30.0


@dataclass
class Security:
    """What the copies so far have taught."""

    turns: Turns
    why: str
    copy_seconds: float = 0.0
    """Meant for one."""
    sizes: dict[str, int] = field(default_factory=dict)
    """By verb, the same for every security."""
    denied: dict[str, str] = field(default_factory=dict)
    """By security, why the server does not allow it."""

    def measure(self) -> Tasks[None]:
        """Rounds of all six copies, forth and back in turn: what drifts hits each security alike.

        What the server does not allow is a note; it is a Skipped step where this stage is all that
        was asked for.
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

    def _setting(self, verb: str, security: str) -> smb_tax.Setting:
        dialect, seed = self.turns.files.dialect, self.turns.world.seed
        return smb_tax.Setting(verb, dialect, security, 0, 0.0, seed)

    def _step(self, verb: str, security: str) -> Step:
        """The step of a copy, without what is chosen on the way."""
        return step_of(smb_tax.STAGE.name, self._setting(verb, security), "client")

    def _copy(self, verb: str, security: str) -> Tasks[None]:
        """One run of one copy."""
        step = self._step(verb, security)
        deadline = max(LEAST_DEADLINE_SECONDS, DEADLINE_TIMES * self.copy_seconds)
        # a server that insists on its security is well kept: that is no stage missing
        optional = not self.turns.world.is_only(smb_tax.STAGE.name)
        label = f"security {security} {verb}"
        with self.turns.log.attempt(step, label, self.why, optional) as take:
            if verb not in self.sizes:
                self.sizes[verb] = yield from self._size(verb)
            setting = self._setting(verb, security)
            setting = replace(setting, size_bytes=self.sizes[verb], seconds=deadline)
            peer = replace(self.turns.files.share, path="")
            try:
                take((yield Task(step, setting, peer, deadline + TAX_GRACE_SECONDS)))
            except Unavailable as error:
                self.denied[security] = str(error)
                raise

    def _size(self, verb: str) -> Tasks[int]:
        """Bytes that a plain copy moves in about that time; what file and share have room for."""
        spoken = self.turns.files.dialect
        held = yield from self.turns.sources.ready_bytes(spoken)
        rate = held / FILL_SECONDS
        for step in self.turns.log.steps:
            setting = step.setting
            alike = ("memory", spoken)
            if step.stage == "smb-copy" and (setting["end"], setting["dialect"]) == alike:
                told = self.turns.log.rate(step)
                if told is not None and setting["copy"].startswith(verb):
                    rate = told
        most = held if verb == "pull" else self.turns.sources.room_bytes()
        size = min(most, MOST_TAXED_BYTES, max(plan.MIB, int(rate * self.copy_seconds)))
        return size // plan.MIB * plan.MIB or size
