"""BUSY facts: the share of a copy's own time in which each component had work, from its trace.

It comes from looks of both hosts, or of the initiator's host alone; without a trace from counters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.attribution import patterns
from bottleneck.analysis.attribution.shares import BOTH, THREADS_UNSEEN
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.views import best, is_far_and_empty, is_without_queue
from bottleneck.analysis.facts.counters import counter_facts, cpu_counted, disk_counted, memory_wait
from bottleneck.analysis.facts.record import (
    BUSY,
    NETWORK,
    THROTTLED_RATIO,
    UNKNOWN,
    Fact,
    Level,
    Part,
    View,
)
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report
from probes.core.records import SIDES

SHAPED_RATIOS = 0.96, 1.04
"""Rate of a running copy over that of its sender's shaper, if the shaper limits it."""


@dataclass(frozen=True)
class ViewFacts:
    """Facts from one view of a copy's time."""

    facts: tuple[Fact, ...] = ()
    view: View = ""
    unseen: frozenset[Part] = frozenset()
    timed: TimedCopy | None = None
    """The copy with its trace; None: it has none."""


def watched_utilizations(report: Report, copy: Copy, timed: TimedCopy | None) -> ViewFacts:
    """Returns the utilizations of a copy's components, by the best view that the report has."""
    result = None if timed is None else best(timed)
    if timed is None or result is None:
        facts = counter_facts(report, copy)
        return ViewFacts(facts, "counters" if facts else "", timed=timed)
    uses = dict(result.time.uses)
    if patterns.is_limited_by_cwnd(timed):
        # The sender's congestion window holds a path that is empty.
        uses["tcp", timed.sender] = uses.pop(NETWORK, 0.0)
    _count_host(report, copy, uses, timed.asking)
    shaper = _shaper_use(report, copy)
    if shaper > uses.get(NETWORK, 0.0):
        uses |= {NETWORK: shaper, UNKNOWN: uses.get(UNKNOWN, 0.0) * (1 - shaper)}
    view: View = "both" if result.view == BOTH else "alone"
    if result.view == THREADS_UNSEEN:
        view = "hidden"
    facts = tuple(_fact(part, use, result.time.looks) for part, use in uses.items())
    unseen: frozenset[Part] = frozenset()
    if view == "alone":
        facts, unseen = _one_end(report, copy, timed, uses, facts, result.time.looks)
    return ViewFacts(facts, view, unseen, timed)


def _count_host(report: Report, copy: Copy, uses: dict[Part, float], asking: str) -> None:
    """Adds to a CPU's use the time in which its quota stopped the copy, or in which it was full.

    A look at a thread that is stopped, or that waits for a core, does not find it at work.
    """
    for side in SIDES if copy.step is not None else ():
        load = None if copy.step is None else load_of(report, copy.step, side)
        if load is None:
            continue
        part: Part = ("cpu", side)
        if (stopped := load.throttled_ratio or 0.0) > THROTTLED_RATIO:
            uses[part] = max(stopped, uses.get(part, 0.0))
            uses[UNKNOWN] = uses.get(UNKNOWN, 0.0) * (1 - stopped)
        usage = copy.step.usage(side) if copy.step is not None else None
        waits = memory_wait(usage) if usage is not None else 0.0
        if waits > 0:
            uses[part] = max(min(1.0, waits), uses.get(part, 0.0))
        if load.is_full:
            # A program whose reads wait for the network waits for no core meanwhile.
            idle = uses.get(NETWORK, 0.0) if copy.is_running and side == asking else 0.0
            uses[part] = max(min(1.0 - idle, load.all_cores_ratio), uses.get(part, 0.0))


def _shaper_use(report: Report, copy: Copy) -> float:
    """Returns a running copy's rate over that of the sender's shaper, at most 1.

    0: no shaper is known, or the copy does not run at its rate. A drained token bucket leaves no
    queue in the looks of a sender whose few segments wait there.
    """
    shaped = hardware_limits.shaped_rate(report, copy.sender)
    if shaped is None or copy.step is None or not copy.is_running:
        return 0.0
    ratio = copy.step.rate.median / shaped.bytes_per_second
    return min(1.0, ratio) if SHAPED_RATIOS[0] <= ratio <= SHAPED_RATIOS[1] else 0.0


def _one_end(
    report: Report,
    copy: Copy,
    timed: TimedCopy,
    uses: Mapping[Part, float],
    facts: tuple[Fact, ...],
    looks: int,
) -> tuple[tuple[Fact, ...], frozenset[Part]]:
    """Returns the facts of a view of one end alone, and the components that it cannot see."""
    hidden = timed.serving
    parts: list[Part] = [("disk", hidden), ("cpu", hidden), ("smb", steps.other(copy.initiator))]
    # If the other host was too busy for looks, its counters still show its CPU's use.
    other = () if copy.step is None else cpu_counted(report, copy.step, hidden)
    other = (*other, *disk_counted(report, copy, hidden))
    unseen = frozenset(parts) - {each.part for each in other}
    facts = (*facts, *other)
    socket = timed.connection(timed.asking)
    if timed.pull and not timed.on_one_host:
        return _arrival_facts(timed, uses, facts, looks), unseen
    if socket is not None and is_without_queue(timed, socket) and not _shaper_use(report, copy):
        # A server that acknowledges late leaves bytes unsent too, as a full path does.
        late = min(1.0, uses.get(UNKNOWN, 0.0) + uses.get(NETWORK, 0.0))
        facts = (*(e for e in facts if e.part != UNKNOWN), _fact(UNKNOWN, late, looks))
    return facts, unseen


def _arrival_facts(
    timed: TimedCopy, uses: Mapping[Part, float], facts: tuple[Fact, ...], looks: int
) -> tuple[Fact, ...]:
    """Returns the facts of a pull that its receiver alone watched.

    While a reader has read all that arrived, the path or the server had work, however much of a
    core the reader takes. Whether path or windows held the bytes back does not show at this end.
    """
    connection = timed.connection(timed.asking)
    looked = connection.looks if connection is not None else ()
    ahead = sum(timed.keeps_up(each) for each in looked) / max(1, len(looked))
    core: Part = ("cpu", timed.asking)
    fed = ahead * uses.get(core, 0.0)
    path, hidden = (min(1.0, uses.get(part, 0.0) + fed) for part in (NETWORK, UNKNOWN))
    if timed.watched and connection is not None and is_far_and_empty(connection):
        # Few requests of the program, or few credits of its server, leave such a path idle.
        hidden = max(hidden, path)
    ends: tuple[Part, Part] = ("tcp", "client"), ("tcp", "server")
    again: dict[Part, float] = {core: uses.get(core, 0.0) - fed, NETWORK: path, UNKNOWN: hidden}
    again |= dict.fromkeys(ends, path)
    others = (each for each in facts if each.part not in again)
    return (*others, *(_fact(part, use, looks) for part, use in again.items()))


def _fact(part: Part, use: float, looks: int) -> Fact:
    """Returns a sampled share, with the error of its sample (Agresti and Coull)."""
    ratio = (use * looks + 1) / (looks + 2)
    error = math.sqrt(ratio * (1 - ratio) / (looks + 2))
    level = Level(max(0.0, use - error), use, min(1.0, use + error))
    return Fact(part, BUSY, level, f"had work for {use:.0%} of the time")
