"""Runs a session and the copies that the server starts, for the tests.

Reads one line of JSON from stdin (target, options of plan.Options, password; tell_at: a step
during which it prints 'in the copy'), writes one line with the outcomes of the steps.
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
from tests.run.steps.sessions import order_of, reach

request = json.loads(sys.stdin.readline())


def watch(event: Event) -> None:
    if event.sample and event.sample.moved_bytes and request.get("tell_at") == event.step:
        print("in the copy", flush=True)


def outcome_facts(outcome: Outcome) -> dict[str, object]:
    kind = type(outcome).__name__
    if not isinstance(outcome, Measured):
        why = getattr(outcome, "reason", "") or getattr(outcome, "error", "")
        return {"kind": kind, "text": why}
    usages = (outcome.initiator, outcome.responder)
    return {
        "kind": kind,
        "details": outcome.details,
        "cpu_seconds": [usage.copy_cpu_seconds if usage else None for usage in usages],
        "moved_bytes": outcome.runs[0][-1].moved_bytes,
    }


options = plan.Options(target=parse(request["target"]), **request["options"])
access = Access(request.get("user", "bottleneck"), request["password"])
session = Session(options, access, watch, lambda report: None)
with ExitStack() as stack:
    reach(session, stack, address=options.target.host)
    order = order_of(session, stack)
    order.disks.hold_sources(stack)
    session.carry_out(order.by_hand[INITIATORS.name](""))
steps = [
    {"initiator": step.initiator, **step.setting, **outcome_facts(outcome)}
    for step, outcome in session.report().entries
]
remaining = [line for host in session.world.hosts.values() for line in host.unclosed]
print(json.dumps({"steps": steps, "notes": session.log.notes, "unclosed": remaining}), flush=True)
