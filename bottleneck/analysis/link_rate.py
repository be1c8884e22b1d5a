"""Rule network/link-rate: the most that TCP carried in the copy's direction."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import (
    bus,
    duplex,
    interface_facts,
    link_one_end,
    loss,
    model,
    physics,
    steps,
    tcp_evidence,
)
from bottleneck.analysis.contention import foreign_rate
from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.instrument import tool_ceiling
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_and_bits_text, rate_text
from probes.records import SIDES

UNNAMED_LINK_TRUST = 0.85
"""For a rate that is no standard link's: a shaper, a radio link, or something unseen."""
TOOL_SHARE = 2 / 3
SAME_RATIO = 1.05
FAR_SECONDS, FAR_RATIO = 0.01, 0.7
"""Where a copy of seconds may stay so far below a link that it fills."""
_WINDOWS = ("receive-window", "send-buffer")
_ENDS = ("sender", "receiver")


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The link's payload rate from the tcp steps; without them, inferred from the copies."""
    yield from physics.doubted(report, copy.sender)
    if copy.made is not None:
        yield from filter(None, [physics.impossible(report, copy.made)])
        yield from interface_facts.counted(copy.made)
    found = physics.believed(report, copy.sender)
    if found:
        yield from _from_tcp(report, _best(found), copy)
    else:
        yield from link_one_end.inferred(report, copy)


def _best(found: list[Found]) -> Found:
    """The fastest step; one stream where several carry hardly more: it has the steadier figures."""
    fastest = max(found, key=lambda each: each.rate.median)
    enough = [each for each in found if each.rate.median * SAME_RATIO >= fastest.rate.median]
    return min(enough, key=lambda each: steps.amount(each.step.setting, "streams") or 1)


def _from_tcp(report: Report, best: Found, copy: Copy) -> Iterator[Claim | str]:
    foreign = foreign_rate(report, best, copy.sender) or 0.0
    bound = physics.physical_rate(report)
    if bound is not None:
        foreign = min(foreign, max(0.0, bound.bytes_per_second - best.rate.median))
    capacity = best.rate.median + foreign
    match = model.looks_like(capacity, steps.mtu_bytes(report))
    why = _hindrance(report, best, match is not None)
    standing: Standing = "at-least" if why else "measured"
    streams = steps.amount(best.step.setting, "streams") or 1
    moved = (
        f"TCP with {streams:.0f} stream{'s' if streams > 1 else ''} moved "
        f"{rate_and_bits_text(best.rate.median)} from the {copy.sender} "
        f"to the {copy.receiver}"
    )
    if why:
        yield f"{moved} while {why}: the network may carry more."
    yield Claim(
        Ceiling(
            component="network",
            side="path",
            cause="link-rate",
            bytes_per_second=capacity,
            low_bytes_per_second=best.rate.low + foreign,
            high_bytes_per_second=best.rate.high + foreign,
            steps=(best.index,),
            standing=standing,
        ),
        words=(
            f"the network carries no more than {rate_text(capacity)}{link_one_end.likeness(match)}"
        ),
        reached=True if not why and _filled(report, copy, capacity) else None,
        trust=0.97 if match else UNNAMED_LINK_TRUST,
        evidence=(f"{moved}.", *interface_facts.told(report, best, copy, match)),
    )


def _filled(report: Report, copy: Copy, capacity: float) -> bool:
    """Whether the copy's own packets stood in a queue on a far path, with more to follow.

    Its first and its last round trips take their time there, without the link being any faster.
    """
    seen = tcp_evidence.connection(report, copy)
    if copy.made is None or seen is None or not seen.own:
        return False
    rtt, segment = seen.figure("min_rtt_seconds"), seen.figure("segment_bytes")
    if rtt is None or segment is None or seen.figure("rtt_seconds_median") is None:
        return False
    backlog = seen.share("unsent_bytes_median") >= loss.BACKLOG_SEGMENTS * segment
    held = steps.word(seen.told, "by") == "network" and seen.queued and backlog
    return rtt >= FAR_SECONDS and held and copy.made.rate.median >= FAR_RATIO * capacity


def _hindrance(report: Report, best: Found, standard: bool) -> str | None:
    """What else may have limited a tcp step; None: the path did."""
    if steps.on_one_host(report):
        return "the packets never left the host"
    for side in SIDES:
        seen = load(best.usage(side))
        # A full core beside a rate that is a link's to 3 %: the link is the likelier of the two.
        if seen is not None and (seen.throttled or not standard) and seen.bound:
            return hindrance(seen, side)
    if standard:
        return None
    at = bus.reached(report, best)
    if at is not None:
        return f"{at.name} limited it"
    half = duplex.held(report, best)
    if half is not None:
        return f"the {half}'s link is half duplex"
    limited_by = steps.word(best.outcome.details, "limits", "by")
    if limited_by in _WINDOWS:
        return f"the {limited_by.replace('-', ' ')} limited it"
    if limited_by in _ENDS:
        return f"the {limited_by} did not keep up"
    if loss.holds(report, best):
        return "lost packets held each of its streams back"
    for side in SIDES:
        tool = tool_ceiling(report, side)
        if tool is not None and best.rate.median > TOOL_SHARE * tool.rate.median:
            return f"this tool on the {side} was near its own ceiling"
    return None
