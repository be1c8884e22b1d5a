"""What each buffer size gets, on a host alone and between the hosts (stage sweep)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bottleneck import plan
from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.steps.allowance import alone, seconds_for, thorough
from probes import sweep
from probes.records import Endpoint
from probes.stage import Unavailable

USUAL_SECONDS = 4.0
"""Of one sweep."""
BESIDE = 2
"""Buffer sizes' worth of time for the first look and the window."""
HOLD_SECONDS = 40.0
"""How much longer than its time a responder waits: a long path needs it for the least there is."""


@dataclass(frozen=True)
class SweepStep:
    """One sweep."""

    side: plan.Side
    """Who initiates it."""
    over: str
    verb: str


def sweep_steps(bench: Bench) -> tuple[SweepStep, ...]:
    """Those to make: between the hosts, and with the time for it each host alone."""
    sides: tuple[plan.Side, ...] = ("client",) if bench.server is None else ("client", "server")
    hosts = tuple(SweepStep(side, "loopback", "push") for side in sides)
    push, pull = (SweepStep("client", "tcp", verb) for verb in ("push", "pull"))
    if bench.server is None:
        return hosts
    if alone(bench, sweep.NAME):
        return (*hosts, push, pull)
    return (*hosts, push, pull) if thorough(bench, sweep.NAME) else (push,)


def measure_sweeps(bench: Bench) -> None:
    """Each sweep that there is time for."""
    steps = sweep_steps(bench)
    for each in steps:
        seconds = seconds_for(bench, sweep.NAME, USUAL_SECONDS, parts=len(steps))
        if seconds is None:
            return
        _measure(bench, each, seconds)
    if bench.server is None:
        bench.note(f"{sweep.NAME} between the hosts: {NEEDS_AGENT}")


def _measure(bench: Bench, each: SweepStep, seconds: float) -> None:
    setting = sweep.Setting(
        over=each.over,
        verb=each.verb,
        seconds=seconds / (len(sweep.BUFFERS) + BESIDE),
        address=bench.address,
    )
    step = bench.step(sweep.NAME, setting, each.side)
    label = f"sweep {each.over} {each.side if each.over == 'loopback' else each.verb}"
    lifetime = seconds + HOLD_SECONDS
    between = each.over == "tcp"
    with bench.outcome(step, label, optional=not alone(bench, sweep.NAME)):
        responder = bench.server if between else bench.reached[each.side]
        if responder is None:
            raise Unavailable(NEEDS_AGENT)
        with responder.hold(sweep.NAME, setting, Endpoint(), lifetime) as peer:
            there = replace(peer, host=bench.address) if between else peer
            bench.initiate(step, setting, there, lifetime, both=between)
