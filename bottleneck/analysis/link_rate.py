"""Rule network/link-rate: the most that TCP carried in the copy's direction."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import model, steps
from bottleneck.analysis.contention import foreign_rate
from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.instrument import tool_ceiling
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import bit_rate_text, link_text, rate_text
from probes.records import SIDES

UNNAMED_LINK_TRUST = 0.85
"""For a rate that is no standard link's: a shaper, a radio link, or something unseen."""
INFERRED_TRUST = 0.8
TOOL_SHARE = 2 / 3
SAME_RATIO = 1.05
_WINDOWS = ("receive-window", "send-buffer")


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The link's payload rate from the tcp steps; without them, inferred from copies to memory."""
    found = [each for each in steps.measured(report, "tcp") if _sender(each) == copy.sender]
    if found:
        yield from _from_tcp(report, _best(found), copy)
    else:
        yield from _from_memory(report, copy)


def _best(found: list[Found]) -> Found:
    """The fastest step; one stream where several carry hardly more: it has the steadier figures."""
    fastest = max(found, key=lambda each: each.rate.median)
    enough = [each for each in found if each.rate.median * SAME_RATIO >= fastest.rate.median]
    return min(enough, key=lambda each: steps.amount(each.step.setting, "streams") or 1)


def _sender(found: Found) -> str:
    verb = steps.word(found.step.setting, "verb") or ""
    return steps.sender(verb, found.step.initiator)


def _from_tcp(report: Report, best: Found, copy: Copy) -> Iterator[Claim | str]:
    foreign = foreign_rate(report, best, copy.sender) or 0.0
    capacity = best.rate.median + foreign
    match = model.looks_like(capacity, steps.mtu_bytes(report))
    why = _hindrance(report, best, match is not None)
    standing: Standing = "at-least" if why else "measured"
    streams = steps.amount(best.step.setting, "streams") or 1
    moved = (
        f"TCP with {streams:.0f} stream{'s' if streams > 1 else ''} moved "
        f"{rate_text(best.rate.median)} ({bit_rate_text(best.rate.median)}) from the {copy.sender} "
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
        words=f"the network carries no more than {rate_text(capacity)}{_likeness(match)}",
        trust=0.97 if match else UNNAMED_LINK_TRUST,
        evidence=(f"{moved}.", *_claims_of_interfaces(report, match)),
    )


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
    limited_by = steps.word(best.outcome.details, "limits", "by")
    if limited_by in _WINDOWS:
        return f"the {limited_by.replace('-', ' ')} limited it"
    for side in SIDES:
        tool = tool_ceiling(report, side)
        if tool is not None and best.rate.median > TOOL_SHARE * tool.rate.median:
            return f"this tool on the {side} was near its own ceiling"
    return None


def _from_memory(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """Without a second agent: a copy that never touches the client's disk and looks like a link."""
    if steps.on_one_host(report):
        return
    alike = (each for each in steps.copies(report) if each.sender == copy.sender)
    same = [each.memory for each in alike if each.memory is not None]
    best = max(same, key=lambda each: each.rate.median, default=None)
    if best is None:
        return
    match = model.looks_like(best.rate.median, steps.mtu_bytes(report))
    seen = load(best.usage("client"))
    if match is None or (seen is not None and seen.bound):
        return
    yield Claim(
        Ceiling(
            component="network",
            side="path",
            cause="link-rate",
            bytes_per_second=best.rate.median,
            low_bytes_per_second=best.rate.low,
            high_bytes_per_second=best.rate.high,
            steps=(best.index,),
            standing="inferred",
        ),
        words=(
            f"without the client's disk it reaches {rate_text(best.rate.median)}"
            f"{_likeness(match)} (inferred: the network alone was not measured)"
        ),
        trust=INFERRED_TRUST,
        evidence=_claims_of_interfaces(report, match),
    )


def _likeness(match: model.LinkMatch | None) -> str:
    if match is None:
        return ""
    return f", a {link_text(match.bits_per_second)} link's payload at MTU {match.mtu_bytes}"


def _claims_of_interfaces(report: Report, match: model.LinkMatch | None) -> tuple[str, ...]:
    """Interfaces that claim far more than the path carries: the slow part lies elsewhere."""
    if match is None:
        return ()
    hosts = {"client": report.client, "server": report.server}
    links = {side: host.interface for side, host in hosts.items() if host and host.interface}
    return tuple(
        f"The {side}'s interface {link.name} claims {link_text(link.rate_bits_per_second)}: the "
        f"{link_text(match.bits_per_second)} part is a cable, a switch port or the other end."
        for side, link in links.items()
        if not link.virtual
        and link.rate_bits_per_second is not None
        and link.rate_bits_per_second >= 2 * match.bits_per_second
    )
