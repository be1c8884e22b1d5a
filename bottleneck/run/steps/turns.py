"""A stage's turns in a run: how long each may take, who answers it, and what it is fitted to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from bottleneck.analysis.model import looks_like
from bottleneck.analysis.rules.network import mtu
from bottleneck.analysis.steps import positive
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.bench import NEEDS_AGENT, Bench
from bottleneck.run.steps import files
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


def ask_path(bench: Bench, error: str) -> None:
    """Looks at the path once, at the moment when something on it stood still, as its error says."""
    asked = any(each.stage == path.STAGE.name for each in bench.log.steps)
    still = any(each in error for each in STOOD_STILL)
    if still and not asked and bench.world.wants(path.STAGE.name):
        measure(bench, path.STAGE, "why the transfer stood still")


def dropped(bench: Bench, verb: str) -> bool:
    """Whether the path was seen to drop full-size packets of a direction."""
    return mtu.hole(bench.report(), "client" if verb == "push" else "server") is not None


def in_vain(bench: Bench, verb: str) -> bool:
    """Whether a copy would only stall again: its like did, on a path that drops full packets.

    A pull reads what was pushed: on a path that drops those, there is nothing to be pulled.
    """
    if verb == "pull" and not bench.source_bytes and dropped(bench, "push"):
        return True
    alike = (s for s in bench.log.steps if str(s.setting.get("copy", "")).startswith(verb))
    return any(map(bench.log.failed, alike)) and dropped(bench, verb)


def measure(bench: Bench, stage: Stage, why: str, most_seconds: float = math.inf) -> None:
    """All turns of a stage that there is time for; most_seconds: of all of them together."""
    module = module_of(stage.name)
    turns = list(_turns(bench, module))
    for turn in turns:
        seconds = _seconds(bench, stage, turn, most_seconds / len(turns))
        if seconds is None:
            return
        key, share = turn.timed
        _make(bench, module, turn, why, replace(turn.setting, **{key: share * seconds}), seconds)
    if stage.by_agent and not stage.needs and bench.world.server is None:
        bench.note(f"{stage.name} between the hosts: skipped: {NEEDS_AGENT}")


def _turns(bench: Bench, module: Any) -> Iterator[Turn]:
    """A stage's turns as the user chose them: those that differ in nothing else are one."""
    made = set()
    for turn in module.turns(known(bench, module.STAGE)):
        setting = bench.world.chosen(turn.setting)
        if (setting, turn.initiator) not in made:
            made.add((setting, turn.initiator))
            yield replace(turn, setting=setting)


def _make(bench: Bench, module: Any, turn: Turn, why: str, setting: Any, seconds: float) -> None:
    stage: Stage = module.STAGE
    step = bench.step(stage.name, setting, plan.side(turn.initiator))
    optional = stage.optional and not bench.world.alone(stage.name)
    with bench.outcome(step, turn.label, why, optional) as take:
        if turn.peer == "agent" and bench.world.server is None:
            raise Unavailable(NEEDS_AGENT)
        # A pace that was chosen needs no look at what the path carries.
        if hasattr(module, "fitted") and "bytes_per_second" not in bench.world.options.settings:
            key = (stage.name, turn.initiator, setting)
            if key not in bench.fitted:
                known = _more_known(bench, stage, setting)
                bench.fitted[key] = bench.world.chosen(module.fitted(setting, known))
            setting = bench.fitted[key]
            # what is not chosen before its turn stands in the report too
            step.setting.update(bench.step(stage.name, setting, "client").setting)
        lifetime = seconds + turn.grace_seconds
        with _peer(bench, stage, turn, setting, lifetime) as peer:
            take(bench.run(step, setting, peer, lifetime, both=turn.peer != "own"))


@contextmanager
def _peer(
    bench: Bench, stage: Stage, turn: Turn, setting: Any, lifetime: float
) -> Iterator[Endpoint]:
    """Who answers a turn, until left."""
    if turn.peer not in ("agent", "own"):
        yield replace(bench.world.share, path="") if turn.peer == "share" else Endpoint()
        return
    host = (
        bench.world.server if turn.peer == "agent" else bench.world.hosts[plan.side(turn.initiator)]
    )
    assert host is not None
    with host.hold(stage.name, setting, bench.world.caller, lifetime) as held:
        yield held if turn.peer == "own" else replace(held, host=bench.world.address)


def known(bench: Bench, stage: Stage) -> Known:
    """What is known as a stage's turn comes."""
    return Known(
        address=bench.world.address,
        port=bench.world.options.target.port or SMB_PORT,
        dialect=str(bench.world.share.facts.get("dialect") or ""),
        seed=bench.seed,
        budget_seconds=bench.world.options.budget_seconds,
        alone=bench.world.alone(stage.name),
        agent=bench.world.server is not None,
        connect_seconds=float(bench.world.share.facts.get("connect_seconds") or 0.0),
    )


def _more_known(bench: Bench, stage: Stage, setting: Any) -> Known:
    """With what has to be found out for a setting."""
    found = known(bench, stage)
    if "rate" in stage.needs:
        rate, rtt_seconds = path_rate(bench, setting.verb)
        link = link_that_fits(bench, rate) or ""
        found = replace(found, bytes_per_second=rate, rtt_seconds=rtt_seconds, link=link)
    if "source" in stage.needs and setting.verb == "pull":
        return replace(found, source_bytes=files.ready_bytes(bench, found.dialect))
    if "share" in stage.needs:
        return replace(found, room_bytes=files.room_bytes(bench))
    return found


def usual_seconds_of(bench: Bench, stage: Stage) -> float:
    """What all turns of a stage take in a usual run."""
    return sum(each.usual_seconds for each in _turns(bench, module_of(stage.name)))


def _seconds(
    bench: Bench, stage: Stage, turn: Turn, most_seconds: float = math.inf
) -> float | None:
    seconds = bench.world.options.settings.get("seconds")
    if seconds is not None:
        return float(seconds)
    if not turn.least_seconds:
        return seconds_for(bench, stage, turn.usual_seconds, turn.parts, most_seconds)
    scale = max(LEAST_SCALE, _scale(bench))
    return min(turn.most_seconds, max(turn.least_seconds, scale * turn.usual_seconds))


def _scale(bench: Bench) -> float:
    return min(MOST_TIMES_USUAL, bench.world.options.usual_seconds / USUAL_BUDGET_SECONDS)


def seconds_for(
    bench: Bench,
    stage: Stage,
    usual_seconds: float,
    parts: float = 1,
    most_seconds: float = math.inf,
) -> float | None:
    """Seconds for a stage that usually takes so long; None: left out, which is noted.

    parts: how many times as long the stage takes if it is all that was asked for.
    """
    least = LEAST_TIMES_USUAL * usual_seconds
    if bench.world.options.runs:
        return usual_seconds
    if bench.world.alone(stage.name):
        return max(least, min(MOST_TIMES_ALONE * usual_seconds, bench.clock.left() / parts))
    seconds = min(usual_seconds * _scale(bench), SHARE_OF_LEFT * bench.clock.left(), most_seconds)
    if bench.world.options.budget_seconds < stage.least_budget_seconds or seconds < least:
        bench.note(f"{stage.name}: skipped: out of time (use a larger --budget)")
        return None
    return seconds


def path_rate(bench: Bench, verb: str) -> tuple[float, float | None]:
    """What TCP carries between the hosts by the system's own tuning, and its least round trip.

    By the run's own tcp steps, the fastest of them; where there are none, by a short trial, and
    where round trips are long by a longer one: the first is their slow start. Raises Unavailable
    without an agent on the server, StageError where the trial breaks.
    """
    found = [
        (rates(outcome).median, positive(outcome.details, *RTT))
        for step, outcome in bench.log.entries()
        if isinstance(outcome, Measured)
        and (step.stage, step.initiator) == ("tcp", "client")
        and (step.setting.get("verb"), step.setting.get("engine")) == (verb, None)
    ]
    if found:
        return max(found, key=lambda each: each[0])
    first = _trial(bench, verb, TRIAL_SECONDS)
    needed = min(MOST_TRIAL_SECONDS, TRIAL_ROUND_TRIPS * (first[1] or 0.0))
    return first if needed <= TRIAL_SECONDS else _trial(bench, verb, needed)


def _trial(bench: Bench, verb: str, seconds: float) -> tuple[float, float | None]:
    if bench.world.server is None:
        raise Unavailable(NEEDS_AGENT)
    setting = tcp.Setting(verb, seconds=seconds, address=bench.world.address)
    most_seconds = seconds + HOLD_SECONDS
    with bench.world.server.hold("tcp", setting, bench.world.caller, most_seconds) as peer:
        there = replace(peer, host=bench.world.address)
        ran = bench.run(bench.step("tcp", setting, "client"), setting, there, most_seconds)
    return run_rate(ran.samples), positive(ran.details, *RTT)


def link_that_fits(bench: Bench, bytes_per_second: float) -> str | None:
    """The standard link whose payload that is, in words."""
    interfaces = (each.interface for each in bench.world.facts.values())
    sizes = [each.mtu_bytes for each in interfaces if each is not None and each.mtu_bytes]
    match = looks_like(bytes_per_second, min(sizes, default=None))
    return None if match is None else link_text(match.bits_per_second)


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
class _Taxed:
    """What the copies so far have taught."""

    copy_seconds: float
    sizes: dict[str, int] = field(default_factory=dict)
    """By verb, the same for every security."""
    denied: dict[str, str] = field(default_factory=dict)
    """By security, why the server does not allow it."""


def measure_security(bench: Bench, why: str) -> None:
    """Rounds of all six copies, forth and back in turn: what drifts hits each security alike.

    What the server does not allow is a note; it is a Skipped step where this stage is all that
    was asked for.
    """
    seconds = seconds_for(bench, smb_tax.STAGE, smb_tax.STAGE.usual_seconds, parts=2)
    if seconds is None:
        return
    if files.room_bytes(bench) < files.FIRST_BYTES:
        for security, verb in product(SECURITIES, smb_tax.VERBS):
            bench.log.add(_taxed_step(bench, verb, security), Skipped(NO_ROOM), why)
        return
    until = bench.clock.elapsed() + seconds
    taxed = _Taxed(max(LEAST_TAXED_SECONDS, seconds / COPIES_A_ROUND / 2 - TAX_LOGIN_SECONDS))
    for number in range(1 if bench.world.options.runs else MOST_ROUNDS):
        began = bench.clock.elapsed()
        for security in SECURITIES if number % 2 == 0 else SECURITIES[::-1]:
            for verb in smb_tax.VERBS:
                if security not in taxed.denied:
                    _taxed_copy(bench, verb, security, taxed, why)
                elif bench.world.alone(smb_tax.STAGE.name):
                    reason = taxed.denied[security]
                    bench.log.add(_taxed_step(bench, verb, security), Skipped(reason), why)
        now = bench.clock.elapsed()
        if now + (now - began) > until:
            return


def _taxed_setting(bench: Bench, verb: str, security: str) -> smb_tax.Setting:
    return smb_tax.Setting(
        verb, str(bench.world.share.facts["dialect"]), security, 0, 0.0, bench.seed
    )


def _taxed_step(bench: Bench, verb: str, security: str) -> Step:
    """The step of a copy, without what is chosen on the way."""
    return bench.step(smb_tax.STAGE.name, _taxed_setting(bench, verb, security), "client")


def _taxed_copy(bench: Bench, verb: str, security: str, taxed: _Taxed, why: str) -> None:
    """One run of one copy."""
    step = _taxed_step(bench, verb, security)
    deadline = max(LEAST_DEADLINE_SECONDS, DEADLINE_TIMES * taxed.copy_seconds)
    # a server that insists on its security is well kept: that is no stage missing
    optional = not bench.world.alone(smb_tax.STAGE.name)
    with bench.outcome(step, f"security {security} {verb}", why, optional) as take:
        if verb not in taxed.sizes:
            taxed.sizes[verb] = _taxed_size(bench, verb, taxed.copy_seconds)
        setting = replace(
            _taxed_setting(bench, verb, security), size_bytes=taxed.sizes[verb], seconds=deadline
        )
        peer = replace(bench.world.share, path="")
        try:
            take(bench.run(step, setting, peer, deadline + TAX_GRACE_SECONDS))
        except Unavailable as error:
            taxed.denied[security] = str(error)
            raise


def _taxed_size(bench: Bench, verb: str, seconds: float) -> int:
    """Bytes that a plain copy moves in about that time; what file and share have room for."""
    spoken = str(bench.world.share.facts["dialect"])
    held = files.ready_bytes(bench, spoken)
    rate = held / files.FILL_SECONDS
    for step in bench.log.steps:
        setting = step.setting
        if step.stage == "smb-copy" and (setting["end"], setting["dialect"]) == ("memory", spoken):
            told = bench.log.rate(step)
            if told is not None and setting["copy"].startswith(verb):
                rate = told
    most = held if verb == "pull" else files.room_bytes(bench)
    size = min(most, MOST_TAXED_BYTES, max(plan.MIB, int(rate * seconds)))
    return size // plan.MIB * plan.MIB or size
