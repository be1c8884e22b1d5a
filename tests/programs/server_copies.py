"""Runs what a run does up to the copies that the server starts, and those; for the tests.

Reads one line of JSON from stdin (target, options of plan.Options, password; stop_at: a step's
name, in the middle of which it says so), writes one line with what the steps gave.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack

from bottleneck.login.target import parse
from bottleneck.run import plan
from bottleneck.run.execution import Session
from bottleneck.run.log import Event
from bottleneck.run.steps.schedule import INITIATORS
from probes.core.records import Access, Measured, Outcome
from tests.run.steps.sessions import order_of, reached

request = json.loads(sys.stdin.readline())


def watch(event: Event) -> None:
    if event.sample and event.sample.moved_bytes and request.get("stop_at") == event.step:
        print("in the copy", flush=True)


def outcome_facts(outcome: Outcome) -> dict[str, object]:
    if not isinstance(outcome, Measured):
        return {"text": getattr(outcome, "reason", "") or getattr(outcome, "error", "")}
    usages = (outcome.initiator, outcome.responder)
    return {
        "details": outcome.details,
        "cpu_seconds": [usage.copy_cpu_seconds if usage else None for usage in usages],
        "moved_bytes": outcome.runs[0][-1].moved_bytes,
    }


options = plan.Options(target=parse(request["target"]), **request["options"])
access = Access(request.get("user", "bottleneck"), request["password"])
session = Session(options, access, watch, lambda report: None)
with ExitStack() as stack:
    reached(session, stack, address=options.target.host)
    order = order_of(session, stack)
    order.disks.hold_sources(stack)
    session.carry_out(order.by_hand[INITIATORS.name](""))
steps = [
    {"kind": type(end).__name__, "initiator": step.initiator, **step.setting, **outcome_facts(end)}
    for step, end in session.report().entries
]
remaining = [line for host in session.world.hosts.values() for line in host.unclosed]
print(json.dumps({"steps": steps, "notes": session.log.notes, "unclosed": remaining}), flush=True)
