"""network/link-rate: the most that TCP carried in the copy's direction.

Where TCP alone was not measured it is read off copies that touch no disk: one that reaches the
payload of a standard link to 3 % is held by such a link. At another rate (a shaper, a radio link)
the client's own socket has to show that its packets queue on the path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bottleneck.analysis import hardware_limits, interface_facts, model, shown, steps
from bottleneck.analysis.claim import TRUST, Cause, Source, claim
from bottleneck.analysis.evidence.copies import (
    Evidence,
    alike,
    best_alike,
    client_bound,
    diskless,
    foreign_rate,
    hindered,
    steady_rate,
    streams,
)
from bottleneck.analysis.evidence.startup import FILLED_RATIO, SHORT_RATIO, even_rate, startup
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.interface_facts import NOTHING, Behind
from bottleneck.analysis.load import load
from bottleneck.analysis.noise import SINGLE_RATIO
from bottleneck.analysis.rules.bus import links as bus
from bottleneck.analysis.rules.cpu import quota
from bottleneck.analysis.rules.instrument.ceiling import tool_ceiling
from bottleneck.analysis.rules.network import duplex, loss
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.units import link_text, rate_and_bits_text, rate_text, seconds_text
from probes.records import SIDES

CAUSE = Cause("network", "link-rate", "link speed")
CHANGED = (
    "Find out what changed on the path: a link that negotiated a lower rate, a shaper, or a path "
    "that took over. Then repeat the run"
)
TOOL_SHARE = 2 / 3
SAME_RATIO = 1.05
BOUND_RATIO = 0.85
"""Of a card or a shaper, from which on a link that others use too is taken for as full."""
CLOSE_RATIO = 1.01
"""What ran no further above TCP by itself is no reason for another figure."""
FAR_SECONDS, FAR_RATIO = 0.01, 0.7
"""Where a copy of seconds may stay so far below a link that it fills."""
WITHOUT_DISK_RATIO = 0.95
"""Of the fastest, which something without a disk has to reach: else a disk may be what it is."""
STEADY_RATIO = 0.9
"""Of the fastest, which all that a link caps reaches, whatever it moves."""
LEAST_ALIKE = 3
EXACT_RATIO = 0.98
"""The same of pulls alone; and of copies whose rate no server that stops now and then keeps to."""
SILENT_RATIO, BEHIND_RATIO = 0.01, 0.06
"""Share of a pull's time without data, where a path is all it shows; and where packets were lost.
"""
LEAST_WINDOW_BYTES = 16 << 10
"""No window of today is smaller."""
OTHER_WAY_RATIO = 1.1
SLOWED_RATIO = 0.5
"""Of what TCP moved alone, at which a copy that queues all the time shows a slower path."""
_LIMITED = {
    "receive-window": "the receive window limited TCP",
    "send-buffer": "the send buffer limited TCP",
    "sender": "the sender did not keep up",
    "receiver": "the receiver did not keep up",
}


def rule(given: Evidence) -> Iterator[Claim | str]:
    """The link's payload rate from the tcp steps; without them, inferred from the copies."""
    yield from hardware_limits.doubted(given.report, given.sender)
    if given.copy.made is not None:
        yield from filter(None, [hardware_limits.impossible(given.report, given.made)])
        yield from interface_facts.counted(given.made)
    found = given.believed
    if found:
        slowed = _slowed(given, _best(found))
        yield from _from_tcp(given, _best(found)) if slowed is None else (slowed,)
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
        reached=True if not why and _filled(given, capacity) else None,
        source="certain" if match else "seen",
        evidence=(f"{moved}.", *interface_facts.told(given, best, match)),
        remedy=behind.remedy,
        detail=behind.detail,
    )


def _slowed(given: Evidence, best: Found) -> Claim | None:
    """The path as the copy found it, at most half as fast as it had been for TCP alone."""
    if given.copy.made is None or not given.queues(always=True):
        return None
    told, rate = given.details.sockets, given.rate.median
    carried = rate + (foreign_rate(given.report, given.made, given.sender) or 0.0)
    if carried > SLOWED_RATIO * best.rate.median or any(hindered(given.made, at) for at in SIDES):
        return None
    waited, least = told.rtt_seconds_median or 0.0, told.min_rtt_seconds or 0.0
    return claim(
        CAUSE,
        "path",
        given.made,
        f"the network carried {rate_text(rate)} while this copy ran, {rate_text(best.rate.median)} "
        f"before: packets queued on it (RTT {seconds_text(waited)}, not {seconds_text(least)})",
        high=best.rate.median,
        reached=True,
        source="law",
        remedy=CHANGED,
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
            source="alone",
            remedy=behind.remedy,
            detail=behind.detail,
        )


def _filled(given: Evidence, capacity: float) -> bool:
    """Whether the copy's own packets stood in a queue on a far path, with more to follow.

    Its first and its last round trips take their time there, without the link being any faster;
    nor is it where the copy ran at the link's rate once it had started.
    """
    start = startup(given)
    if start and start.matters and start.bytes_per_second >= FILLED_RATIO * capacity:
        return start.ratio < SHORT_RATIO
    seen = given.connection
    if seen is None or not seen.own:
        return False
    told = seen.sockets
    if told.min_rtt_seconds is None or told.segment_bytes is None:
        return False
    held = told.by == "network" and told.rtt_seconds_median and seen.queued and seen.backlog
    far = told.min_rtt_seconds >= FAR_SECONDS
    return bool(far and held and given.rate.median >= FAR_RATIO * capacity)


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
    even = even_rate(given) if given.lone else None
    moved = alike(given.report, given.sender)
    found = [each for each in moved if hardware_limits.impossible(given.report, each) is None]
    best = max(diskless(given.report, given.sender), key=steady_rate, default=None)
    unlike = best is None or given.looks_like(steady_rate(best)) is None
    if even is not None and (unlike or given.looks_like(even) is None):
        yield _even(given, even)
        return
    if best is None:
        return
    rate, most = steady_rate(best), max(each.rate.median for each in found)
    if rate < WITHOUT_DISK_RATIO * most or client_bound(best):
        return
    match = given.looks_like(rate)
    if match is not None:
        behind = interface_facts.behind(given, rate, match)
        words = f"the network carries at most {rate_text(rate)}{likeness(match, behind)}; inferred,"
        words, source = f"{words} TCP was not measured separately", _source(given, rate)
        told = tuple(interface_facts.told(given, best, match))
        yield _of_copies(best, words, rate, behind, source, told, low=best.rate.low)
    elif given.lone:
        yield from _unlike(given, best, found, rate)


def _of_copies(
    shown: Found | None,
    words: str,
    rate: float,
    behind: Behind,
    source: Source,
    evidence: tuple[str, ...],
    **more: Any,
) -> Claim:
    """A link that nobody measured."""
    return claim(
        *(CAUSE, "path", shown, words),
        level=rate,
        standing="inferred",
        source=source,
        evidence=evidence,
        remedy=behind.remedy,
        detail=behind.detail,
        **more,
    )


def _even(given: Evidence, rate: float) -> Claim:
    """A path of no standard rate that holds both ways alike."""
    behind = interface_facts.behind(given, rate, None)
    unseen = "probably the limit of the network path (not measured: no agent)"
    words = behind.words or f"every copy levels off at about {rate_text(rate)}, {unseen}"
    shown, reached = best_alike(given.report, given.sender), _filled(given, rate) or None
    told = ("What this client sends queues on the path.",)
    return _of_copies(shown, words, rate, behind, "law", told, reached=reached)


def _unlike(given: Evidence, best: Found, found: list[Found], rate: float) -> Iterator[Claim]:
    """A path of no standard rate: a push queues on it, or all pulls come evenly from it."""
    told = given.details.sockets
    source: Source
    if given.queues() and _steady(given.report, found, rate):
        waits, least = told.rtt_seconds_median or 0.0, told.min_rtt_seconds or 0.0
        source = "law"
        words = (
            f"its packets queue on the path, which carries at most {rate_text(rate)} (RTT "
            f"{seconds_text(waits)} instead of {seconds_text(least)})"
        )
        why = (
            "All copies in this direction, with and without a disk, reached the same rate and "
            "had more data to send."
        )
    elif _paced(given, found, rate):
        source = "gap"
        words = (
            f"all pulls come evenly at {rate_text(rate)}, which seems to be what the path carries"
        )
        why = (
            "With and without a disk and in each dialect the same rate was reached, without pauses."
        )
    else:
        return
    behind = interface_facts.behind(given, rate, None)
    seen = (f"{why} An agent on the server (--agent) measures the network.",)
    more = {"low": best.rate.low, "reached": True}
    yield _of_copies(best, behind.words or words, rate, behind, source, seen, **more)


def _doubted(given: Evidence, found: Claim) -> Claim:
    """The same, less sure where another way to the server may be faster: only both ends tell."""
    rate = found.ceiling.bytes_per_second
    way = interface_facts.unseen_way(given.report, rate) if given.lone else None
    if way is None:
        return found
    why = f"{way}. Whether another path is faster is not known: an agent (--agent) tests each one."
    trust = min(found.trust, TRUST["gap"])
    return replace(found, trust=trust, evidence=(*found.evidence, why))


def _source(given: Evidence, rate: float) -> Source:
    """How far a likeness is believed: a server's disk may happen to write what a link carries.

    Less where the client had nothing left to send, and where the other way carries more.
    """
    idle = given.copy.made is not None and given.details.sockets.by == "sender"
    back = best_alike(given.report, given.receiver)
    more = back is not None and steady_rate(back) > OTHER_WAY_RATIO * rate
    return "likeness" if idle or (more and not given.queues()) else "alone"


def _paced(given: Evidence, found: list[Found], rate: float) -> bool:
    """Whether all pulls came evenly at one rate, in several dialects, which no window explains.

    What a server's CPU, disk or quota sets differs by dialect, by cache, or comes in bursts.
    """
    told = given.details.sockets
    if given.copy.verb != "pull" or told.by == "receiver" or given.details.rtt_seconds is None:
        return False
    dialects = {each.setting.dialect for each in found if each.step.stage == "smb-copy"}
    # What comes behind a lost packet waits for it.
    silent = BEHIND_RATIO if told.out_of_order_segments else SILENT_RATIO
    even = told.receiver_seen and told.silent_ratio <= silent
    close = rate * given.details.rtt_seconds < LEAST_WINDOW_BYTES
    return even and close and len(dialects) > 1 and _steady(given.report, found, rate, EXACT_RATIO)


def _steady(report: Report, found: list[Found], rate: float, least: float = STEADY_RATIO) -> bool:
    """Whether all copies that way came to the same rate, evenly or quite exactly: a server that
    stops now and then serves each in its own time."""
    copies = [each for each in found if each.step.stage == "smb-copy"]
    lowest = min(map(steady_rate, copies), default=0.0)
    even = lowest >= EXACT_RATIO * rate or not any(quota.stopped(report, each) for each in copies)
    return lowest >= least * rate and even and len(copies) >= LEAST_ALIKE
