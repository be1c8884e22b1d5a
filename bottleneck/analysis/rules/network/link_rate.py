"""network/link-rate: the highest rate of TCP in the copy's direction.

Where TCP alone was not measured the link is inferred from copies that use no disk: one within 3 %
of a standard link's payload is limited by such a link. At another rate (a shaper, a radio link)
the client's own socket has to show that its packets queue on the path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import hardware_limits, interface_facts, model, steps, transfer_rates
from bottleneck.analysis.claim import GAP, LIKENESS, SURE, Cause, claim
from bottleneck.analysis.evidence import copies
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.interface_facts import NOTHING, Behind
from bottleneck.analysis.load import load
from bottleneck.analysis.noise import SINGLE_RATIO
from bottleneck.analysis.rules import bus
from bottleneck.analysis.rules.instrument import tool_ceiling
from bottleneck.analysis.rules.network import duplex, loss
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, rate_and_bits_text, rate_text
from probes.core.records import SIDES

CAUSE = Cause("network", "link-rate", "link speed")
TOOL_SHARE = 2 / 3
SAME_RATIO = 1.05
BOUND_RATIO = 0.85
"""Least share of a card's or a shaper's rate at which a shared link counts as full."""
CLOSE_RATIO = 1.01
"""Most rate of another transfer / TCP's alone at which TCP's figure is kept."""
WITHOUT_DISK_RATIO = 0.95
"""Least rate of a transfer without a disk over the fastest one: else a disk may be the limit."""
OTHER_WAY_RATIO = 1.1
_LIMITED = {
    "receive-window": "the receive window limited TCP",
    "send-buffer": "the send buffer limited TCP",
    "sender": "the sender did not keep up",
    "receiver": "the receiver did not keep up",
}


def rule(evidence: copies.Evidence) -> Iterator[Claim | str]:
    """Yields the link's payload rate by the tcp steps; without them, inferred from the copies."""
    yield from hardware_limits.reasons_for_doubt(evidence.report, evidence.sender)
    if evidence.copy.step is not None:
        yield from filter(None, [hardware_limits.impossible(evidence.report, evidence.step)])
        yield from interface_facts.interface_events(evidence.step)
    tests = evidence.believed_steps
    if tests:
        yield from _from_tcp(evidence, _best(tests))
    elif not steps.on_one_host(evidence.report):
        yield from (_doubted_claim(evidence, each) for each in _inferred_claims(evidence))


def likeness(match: model.LinkMatch | None, behind: Behind = NOTHING) -> str:
    """Returns the second half of a sentence about a rate; empty: nothing explains it."""
    if behind.words:
        return f"; {behind.words}"
    if match is None:
        return ""
    link = link_text(match.bits_per_second)
    return f", the usable rate of a {link} link (MTU {match.mtu_bytes})"


# -- TCP alone ---------------------------------------------------------------------------------


def _best(tests: list[MeasuredStep]) -> MeasuredStep:
    """Returns the fastest step; that of one stream, which is steadier, if it is as fast."""
    highest = max(each.rate.median for each in tests)
    enough = [each for each in tests if each.rate.median * SAME_RATIO >= highest]
    return min(enough, key=copies.streams)


def _foreign(evidence: copies.Evidence, best: MeasuredStep) -> float:
    """Returns others' bytes per second beside the best step, up to a full card or shaper."""
    # If several streams leave others little room, a test with one stream shows the sum.
    total = max(
        each.rate.median + (copies.foreign_rate(evidence.report, each, evidence.sender) or 0.0)
        for each in evidence.believed_steps
    )
    foreign = max(0.0, total - best.rate.median) if total > SAME_RATIO * best.rate.median else 0.0
    lowest = hardware_limits.sent_rate(evidence.report, evidence.sender)
    bound = math.inf if lowest is None else lowest.bytes_per_second
    foreign = min(foreign, max(0.0, bound - best.rate.median))
    # Both counters have different windows: the rate of the card or the shaper is more exact.
    if foreign and best.rate.median + foreign > BOUND_RATIO * bound:
        foreign = bound - best.rate.median
    return foreign


def _from_tcp(evidence: copies.Evidence, best: MeasuredStep) -> Iterator[Claim | str]:
    foreign = _foreign(evidence, best)
    capacity = best.rate.median + foreign
    moves = transfer_rates.transfers_from(evidence.report, evidence.sender)
    # A short cell may have been a burst: only rates within a step's range count.
    lasting = (each for each in moves if each.bytes_per_second <= each.step.rate.high)
    fastest = max(lasting, key=lambda each: each.bytes_per_second)
    within = fastest.bytes_per_second <= SINGLE_RATIO * capacity
    if within and fastest.bytes_per_second > CLOSE_RATIO * capacity:
        capacity = fastest.bytes_per_second
    match = evidence.looks_like(capacity)
    why = _hindrance(evidence.report, best, match is not None)
    count = copies.streams(best)
    result = (
        f"TCP moved {rate_and_bits_text(best.rate.median)} from {evidence.sender} to "
        f"{evidence.receiver} ({count:.0f} stream{'s' if count > 1 else ''})"
    )
    if why:
        yield f"{result}. The network may carry more, because {why}."
        if any(copies.hindrance_text(best, side) for side in SIDES):
            yield from _claims_by_settings(evidence, best)
    elif not within:
        capacity, match, why = fastest.bytes_per_second, None, "more was carried over SMB"
        yield f"{result}. The network carries more: {fastest.what} ran at {rate_text(capacity)}."
    behind = NOTHING if why else interface_facts.behind(evidence, capacity, match)
    fact = likeness(match, behind)
    yield claim(
        CAUSE,
        "path",
        best,
        f"the network carries at most {rate_text(capacity)}{fact}",
        level=capacity,
        low=best.rate.low + foreign,
        high=best.rate.high + foreign,
        standing="at-least" if why else "measured",
        evidence=(f"{result}.", *interface_facts.remarks(evidence, best, match)),
        remedy=behind.remedy,
        detail=behind.detail,
    )


def _claims_by_settings(evidence: copies.Evidence, best: MeasuredStep) -> Iterator[Claim]:
    bound = hardware_limits.sent_rate(evidence.report, evidence.sender)
    if bound is not None and bound.bytes_per_second > best.rate.median:
        rate = rate_text(bound.bytes_per_second)
        behind = interface_facts.behind(evidence, bound.bytes_per_second, None)
        yield claim(
            CAUSE,
            "path",
            best,
            f"{bound.what} carries at most {rate}",
            level=bound.bytes_per_second,
            high=bound.bytes_per_second,
            standing="inferred",
            remedy=behind.remedy,
            detail=behind.detail,
        )


def _hindrance(report: Report, best: MeasuredStep, standard: bool) -> str | None:
    """Returns what else may have limited a tcp step, in words; None: the path did."""
    if steps.on_one_host(report):
        return "the packets never left the host"
    for side in SIDES:
        cpu, why = load(best.usage(side)), copies.hindrance_text(best, side)
        # At a rate within 3 % of a link's, that link is likelier than a full core.
        if why and cpu is not None and (cpu.is_throttled or not standard):
            return why
    if standard:
        return None
    link = bus.filled_link(report, best)
    if link is not None:
        return f"{link.name} limited TCP"
    half = duplex.limiting_side(report, best)
    if half is not None:
        return f"the {half}'s link was half duplex"
    by = None if best.details.limits is None else best.details.limits.by
    if by in _LIMITED:
        return _LIMITED[by]
    if loss.holds(report, best):
        return "packet loss slowed down each of its streams"
    for side in SIDES:
        tool = tool_ceiling(report, side)
        if tool is not None and best.rate.median > TOOL_SHARE * tool.rate.median:
            return f"this tool on the {side} was near its own limit"
    return None


# -- copies, if TCP alone was not measured -----------------------------------------------------


def _inferred_claims(evidence: copies.Evidence) -> Iterator[Claim]:
    report = evidence.report
    transfers = copies.smb_steps(report, evidence.sender)
    possible = [each for each in transfers if hardware_limits.impossible(report, each) is None]
    best = max(copies.diskless(report, evidence.sender), key=copies.steady_rate, default=None)
    if best is None:
        return
    rate, highest = copies.steady_rate(best), max(each.rate.median for each in possible)
    if rate < WITHOUT_DISK_RATIO * highest or copies.is_client_bound(best):
        return
    match = evidence.looks_like(rate)
    if match is not None:
        behind = interface_facts.behind(evidence, rate, match)
        words = f"the network carries at most {rate_text(rate)}{likeness(match, behind)}"
        words = f"{words}, inferred: TCP was not measured"
        yield claim(
            CAUSE,
            "path",
            best,
            words,
            level=rate,
            low=best.rate.low,
            standing="inferred",
            trust=_trust(evidence, rate),
            evidence=tuple(interface_facts.remarks(evidence, best, match)),
            remedy=behind.remedy,
            detail=behind.detail,
        )


def _doubted_claim(evidence: copies.Evidence, inferred: Claim) -> Claim:
    """Returns a claim with less trust if another path may be faster, which only both ends show."""
    rate = inferred.ceiling.bytes_per_second
    way = interface_facts.unseen_way(evidence.report, rate) if evidence.sees_client_only else None
    if way is None:
        return inferred
    why = f"{way}. Whether another path is faster is not known: an agent (--agent) tests each one."
    return replace(inferred, trust=min(inferred.trust, GAP), evidence=(*inferred.evidence, why))


def _trust(evidence: copies.Evidence, rate: float) -> float:
    """Returns the trust in a rate that matches a link's: a disk may happen to have the same rate.

    It is less if the client had nothing more to send, or if the other direction carries more.
    """
    idle = evidence.copy.step is not None and evidence.details.sockets.by == "sender"
    back = copies.best_smb_step(evidence.report, evidence.receiver)
    is_faster = back is not None and copies.steady_rate(back) > OTHER_WAY_RATIO * rate
    return LIKENESS if idle or (is_faster and not evidence.queues()) else SURE
