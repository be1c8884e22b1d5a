"""network/link-rate: the most that TCP carried in the copy's direction.

Where TCP alone was not measured it is read off copies that touch no disk: one that reaches the
payload of a standard link to 3 % is held by such a link. At another rate (a shaper, a radio link)
the client's own socket has to show that its packets queue on the path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import hardware_limits, interface_facts, model, shown, steps
from bottleneck.analysis.claim import GAP, LIKENESS, SURE, Cause, claim
from bottleneck.analysis.evidence.copies import (
    Evidence,
    best_smb_step,
    client_bound,
    diskless,
    foreign_rate,
    hindered,
    smb_steps,
    steady_rate,
    streams,
)
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.interface_facts import NOTHING, Behind
from bottleneck.analysis.load import load
from bottleneck.analysis.noise import SINGLE_RATIO
from bottleneck.analysis.rules.bus import links as bus
from bottleneck.analysis.rules.instrument.ceiling import tool_ceiling
from bottleneck.analysis.rules.network import duplex, loss
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, rate_and_bits_text, rate_text
from probes.core.records import SIDES

CAUSE = Cause("network", "link-rate", "link speed")
TOOL_SHARE = 2 / 3
SAME_RATIO = 1.05
BOUND_RATIO = 0.85
"""Of a card or a shaper, from which on a link that others use too is taken for as full."""
CLOSE_RATIO = 1.01
"""What ran no further above TCP by itself is no reason for another figure."""
WITHOUT_DISK_RATIO = 0.95
"""Of the fastest, which something without a disk has to reach: else a disk may be what it is."""
OTHER_WAY_RATIO = 1.1
_LIMITED = {
    "receive-window": "the receive window limited TCP",
    "send-buffer": "the send buffer limited TCP",
    "sender": "the sender did not keep up",
    "receiver": "the receiver did not keep up",
}


def rule(given: Evidence) -> Iterator[Claim | str]:
    """The link's payload rate from the tcp steps; without them, inferred from the copies."""
    yield from hardware_limits.doubted(given.report, given.sender)
    if given.copy.step is not None:
        yield from filter(None, [hardware_limits.impossible(given.report, given.step)])
        yield from interface_facts.counted(given.step)
    found = given.believed
    if found:
        yield from _from_tcp(given, _best(found))
    elif not given.on_one_host:
        yield from (_doubted(given, each) for each in _inferred(given))


def likeness(match: model.LinkMatch | None, behind: Behind = NOTHING) -> str:
    """The second half of a sentence about a rate; empty where nothing explains it."""
    if behind.words:
        return f"; {behind.words}"
    if match is None:
        return ""
    link = link_text(match.bits_per_second)
    return f", the usable rate of a {link} link (MTU {match.mtu_bytes})"


# -- TCP alone ---------------------------------------------------------------------------------


def _best(found: list[Found]) -> Found:
    """The fastest step; one stream where several carry hardly more: it has the steadier figures."""
    most = max(each.rate.median for each in found)
    enough = [each for each in found if each.rate.median * SAME_RATIO >= most]
    return min(enough, key=streams)


def _foreign(given: Evidence, best: Found) -> float:
    """What others moved beside the best step, bytes per second, up to a full card or shaper."""
    # Where several streams leave others little room, one beside them shows the whole.
    whole = max(
        each.rate.median + (foreign_rate(given.report, each, given.sender) or 0.0)
        for each in given.believed
    )
    foreign = max(0.0, whole - best.rate.median) if whole > SAME_RATIO * best.rate.median else 0.0
    lowest = hardware_limits.sent_rate(given.report, given.sender)
    bound = math.inf if lowest is None else lowest.bytes_per_second
    foreign = min(foreign, max(0.0, bound - best.rate.median))
    # Both were counted over different windows: the card or the shaper is the surer figure.
    if foreign and best.rate.median + foreign > BOUND_RATIO * bound:
        foreign = bound - best.rate.median
    return foreign


def _from_tcp(given: Evidence, best: Found) -> Iterator[Claim | str]:
    foreign = _foreign(given, best)
    capacity, moves = best.rate.median + foreign, shown.moved(given.report, given.sender)
    # A short cell may have been a burst: what lasted counts.
    lasting = (each for each in moves if each.bytes_per_second <= each.found.rate.high)
    most = max(lasting, key=lambda each: each.bytes_per_second)
    within = most.bytes_per_second <= SINGLE_RATIO * capacity
    if within and most.bytes_per_second > CLOSE_RATIO * capacity:
        capacity = most.bytes_per_second
    match = given.looks_like(capacity)
    why = _hindrance(given.report, best, match is not None)
    count = streams(best)
    moved = (
        f"TCP moved {rate_and_bits_text(best.rate.median)} from {given.sender} to "
        f"{given.receiver} ({count:.0f} stream{'s' if count > 1 else ''})"
    )
    if why:
        yield f"{moved}. The network may carry more, because {why}."
        if any(hindered(best, side) for side in SIDES):
            yield from _as_set(given, best)
    elif not within:
        capacity, match, why = most.bytes_per_second, None, "more was carried over SMB"
        yield f"{moved}. The network carries more: {most.what} ran at {rate_text(capacity)}."
    behind = NOTHING if why else interface_facts.behind(given, capacity, match)
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
        evidence=(f"{moved}.", *interface_facts.told(given, best, match)),
        remedy=behind.remedy,
        detail=behind.detail,
    )


def _as_set(given: Evidence, best: Found) -> Iterator[Claim]:
    """What the sender's shaper or both hosts' cards let through, where a CPU kept TCP below it."""
    bound = hardware_limits.sent_rate(given.report, given.sender)
    if bound is not None and bound.bytes_per_second > best.rate.median:
        rate = rate_text(bound.bytes_per_second)
        behind = interface_facts.behind(given, bound.bytes_per_second, None)
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


def _hindrance(report: Report, best: Found, standard: bool) -> str | None:
    """What else may have limited a tcp step; None: the path did."""
    if steps.on_one_host(report):
        return "the packets never left the host"
    for side in SIDES:
        seen, why = load(best.usage(side)), hindered(best, side)
        # A full core beside a rate that is a link's to 3 %: the link is the likelier of the two.
        if why and seen is not None and (seen.throttled or not standard):
            return why
    if standard:
        return None
    at = bus.reached(report, best)
    if at is not None:
        return f"{at.name} limited TCP"
    half = duplex.held(report, best)
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


# -- copies, where nobody measured TCP alone ---------------------------------------------------


def _inferred(given: Evidence) -> Iterator[Claim]:
    """The link's payload rate, inferred from what this client moved over SMB that way."""
    moved = smb_steps(given.report, given.sender)
    found = [each for each in moved if hardware_limits.impossible(given.report, each) is None]
    best = max(diskless(given.report, given.sender), key=steady_rate, default=None)
    if best is None:
        return
    rate, most = steady_rate(best), max(each.rate.median for each in found)
    if rate < WITHOUT_DISK_RATIO * most or client_bound(best):
        return
    match = given.looks_like(rate)
    if match is not None:
        behind = interface_facts.behind(given, rate, match)
        words = f"the network carries at most {rate_text(rate)}{likeness(match, behind)}"
        words = f"{words}, inferred: TCP was not measured"
        told = tuple(interface_facts.told(given, best, match))
        yield claim(
            *(CAUSE, "path", best, words),
            level=rate,
            low=best.rate.low,
            standing="inferred",
            trust=_trust(given, rate),
            evidence=told,
            remedy=behind.remedy,
            detail=behind.detail,
        )


def _doubted(given: Evidence, found: Claim) -> Claim:
    """The same, less sure where another way to the server may be faster: only both ends tell."""
    rate = found.ceiling.bytes_per_second
    way = interface_facts.unseen_way(given.report, rate) if given.lone else None
    if way is None:
        return found
    why = f"{way}. Whether another path is faster is not known: an agent (--agent) tests each one."
    trust = min(found.trust, GAP)
    return replace(found, trust=trust, evidence=(*found.evidence, why))


def _trust(given: Evidence, rate: float) -> float:
    """How far a likeness is believed: a server's disk may happen to write what a link carries.

    Less where the client had nothing left to send, and where the other way carries more.
    """
    idle = given.copy.step is not None and given.details.sockets.by == "sender"
    back = best_smb_step(given.report, given.receiver)
    more = back is not None and steady_rate(back) > OTHER_WAY_RATIO * rate
    return LIKENESS if idle or (more and not given.queues()) else SURE
