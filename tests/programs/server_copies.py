"""Runs what a run does up to the copies that the server starts, and those; for the tests.

Reads one line of JSON from stdin (target, options of plan.Options, password; stop_at: a step's
name, in the middle of which it says so), writes one line with what the steps gave.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack

from bottleneck.run import plan
from bottleneck.run.bench import Bench, Event
from bottleneck.run.steps import disks, initiators
from bottleneck.run.world import World
from bottleneck.target.target import parse
from probes.core.records import Access, Measured, Outcome
from tests.run.steps.benches import reached

asked = json.loads(sys.stdin.readline())


def watch(event: Event) -> None:
    if event.sample and event.sample.moved_bytes and asked.get("stop_at") == event.step:
        print("in the copy", flush=True)


def told(outcome: Outcome) -> dict[str, object]:
    if not isinstance(outcome, Measured):
        return {"text": getattr(outcome, "reason", "") or getattr(outcome, "error", "")}
    usages = (outcome.initiator, outcome.responder)
    return {
        "details": outcome.details,
        "cpu_seconds": [usage.copy_cpu_seconds if usage else None for usage in usages],
        "moved_bytes": outcome.runs[0][-1].moved_bytes,
    }


options = plan.Options(target=parse(asked["target"]), **asked["options"])
access = Access(asked.get("user", "bottleneck"), asked["password"])
bench = Bench(World(options, access), watch, lambda report: None)
with ExitStack() as stack:
    reached(bench, stack, address=options.target.host)
    disks.hold_sources(bench, stack)
    initiators.measure_initiators(bench, "")
steps = [
    {"kind": type(end).__name__, "initiator": step.initiator, **step.setting, **told(end)}
    for step, end in bench.report().entries
]
left = [line for host in bench.world.hosts.values() for line in host.unclosed]
print(json.dumps({"steps": steps, "notes": bench.log.notes, "unclosed": left}), flush=True)
