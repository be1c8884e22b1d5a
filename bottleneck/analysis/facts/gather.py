"""Collects all facts of a copy from a report: measured, with or without a trace, or supplied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.cap import bounded_confidence, is_scattered
from bottleneck.analysis.evidence.capture import Capture
from bottleneck.analysis.facts.busy import watched_utilizations
from bottleneck.analysis.facts.captured import capture_facts, capture_of, trust_of, view_of
from bottleneck.analysis.facts.counters import cost_facts
from bottleneck.analysis.facts.path import path_facts, request_facts
from bottleneck.analysis.facts.record import BUSY, NETWORK, CopyFacts, Fact, Level, Part
from bottleneck.analysis.facts.removed_causes import without
from bottleneck.analysis.facts.rule_claims import (
    Claimed,
    claim_facts,
    claims_by_part,
    ignored_remark,
    is_path_unmeasured,
    refuting_transfer,
)
from bottleneck.analysis.facts.signs import signs
from bottleneck.analysis.facts.supplied_signs import supplied_facts
from bottleneck.analysis.facts.transfers import transfer_facts
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.link_end import is_supplied
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report

COUNTED_TRUST = 0.65
"""Confidence in a server's CPU whose use no agent assigned to processes."""


def gather(
    report: Report, copy: Copy, claims: tuple[Claim, ...], timed: TimedCopy | None
) -> CopyFacts:
    """Returns all facts that a report holds of one copy; timed: the copy with its trace."""
    capture = capture_of(copy)
    time = watched_utilizations(report, copy, timed) if capture is None else view_of(copy, capture)
    chain = tuple(_chain(copy))
    trip = _rtt(report, copy, time.timed)
    transfers = tuple(transfer_facts(report, copy))
    claimed, refuted = _standing_claims(report, copy, claims, transfers)
    time_facts, seen_signs = time.facts, tuple(signs(report, copy, time.timed))
    stops = [each.name for each in seen_signs if each.name == "stalls"]
    stops += [each.ceiling.cause for each in claims if each.ceiling.cause == "quota"]
    if time.view == "counters" and stops:
        # A server that stops and goes leaves full queues behind, as a full path does.
        time_facts = tuple(each for each in time_facts if each.part != NETWORK)
    others = {each.side: each.value for each in seen_signs if each.name == "others-traffic"}
    facts = (
        *time_facts,
        *claim_facts(copy, claimed),
        *path_facts(report, copy, time, trip, is_path_unmeasured=is_path_unmeasured(claims)),
        *transfers,
        *request_facts(report, copy, time.timed, trip),
        *(() if copy.step is None else cost_facts(report, copy.step, others)),
        *supplied_facts(copy),
        *(() if capture is None else capture_facts(report, copy, capture)),
    )
    rate = None if copy.step is None else copy.step.rate
    return CopyFacts(
        name=copy.name,
        dialect=copy.dialect,
        engine=copy.engine,
        initiator=copy.initiator,
        sender=copy.sender,
        receiver=copy.receiver,
        rate=None if rate is None else Level(rate.low, rate.median, rate.high),
        chain=chain,
        facts=tuple(each for each in facts if each.part in chain or each.kind == BUSY),
        signs=seen_signs,
        claims=tuple(claimed),
        ignored=tuple(dict.fromkeys(refuted)),
        without=tuple(without(report, copy)),
        view=time.view,
        unseen=time.unseen,
        rtt_seconds=trip,
        trust=1.0 if copy.step is None else bounded_confidence(copy, copy.step, 1.0),
        component_trust=_component_trust(report, copy, capture),
        is_scattered=rate is not None and is_scattered(rate),
        supplied=is_supplied(report),
    )


def _component_trust(report: Report, copy: Copy, capture: Capture | None) -> dict[Any, float]:
    """Returns the most trust in a component: by a capture, or in the server's CPU by --metrics.

    These do not contain whose work the CPU did.
    """
    if capture is not None:
        return dict(trust_of(report, copy, capture))
    is_counted = copy.step is not None and copy.step.usage("server") is not None
    if not is_counted or report.server is not None or is_supplied(report):
        return {}
    return {("cpu", "server"): COUNTED_TRUST}


def _standing_claims(
    report: Report, copy: Copy, claims: tuple[Claim, ...], transfers: tuple[Fact, ...]
) -> tuple[list[Claimed], list[str]]:
    """Returns the claims that nothing refutes, and the remarks about the others."""
    claimed, refuted = [], []
    for each in claims_by_part(report, copy, claims):
        fact = refuting_transfer(copy, each, transfers)
        if fact is None:
            claimed.append(each)
        elif each[1].ceiling.standing != "at-least":
            refuted.append(ignored_remark(each[1], fact))
    return claimed, refuted


def _chain(copy: Copy) -> Iterator[Part]:
    if copy.on_one_host:
        yield from (("disk", copy.initiator), ("cpu", copy.initiator))
        return
    if copy.cache != "cached" or (copy.step is not None and not steps.may_be_from_ram(copy.step)):
        yield "disk", copy.sender
    yield "cpu", copy.sender
    yield "tcp", copy.sender
    yield NETWORK
    yield "tcp", copy.receiver
    yield "smb", steps.other(copy.initiator)
    yield "cpu", copy.receiver
    yield "disk", copy.receiver


def _rtt(report: Report, copy: Copy, timed: TimedCopy | None) -> float | None:
    connection = timed.connection(timed.sender) if timed is not None else None
    if connection is not None and connection.min_rtt_seconds > 0:
        return connection.min_rtt_seconds
    if copy.step is not None:
        details = copy.step.details
        if details.capture is not None:
            return details.capture.rtt_seconds
        trip = details.sockets.min_rtt_seconds or details.rtt_seconds
        if trip:
            return trip
    idle = rtt(report, copy.step)
    if idle is not None and idle.is_echo:
        return idle.seconds
    tests = (each.details.limits for each in hardware_limits.believed_steps(report, copy.sender))
    trips = (each.min_rtt_seconds for each in tests if each is not None and each.min_rtt_seconds)
    return min(trips, default=steps.target_of(report).connect_seconds)
