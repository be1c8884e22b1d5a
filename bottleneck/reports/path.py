"""The path between the hosts: round trip, routers, packet sizes, queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.report import Report, Step
from bottleneck.reports.document import Points, points
from bottleneck.reports.safe import safe
from bottleneck.reports.units import (
    count_text,
    percent_text,
    rate_text,
    seconds_text,
)
from probes.records import Details, Measured

MOST_HOPS = 12
MOST_REASONS = 6
LONGEST_LINE = 2000


def path(report: Report) -> Iterator[Points]:
    """A point each for the round trip, the routers and both directions; nothing if not measured."""
    yield from points("Path between the hosts", _path_lines(report), longest=LONGEST_LINE)


def _path_lines(report: Report) -> Iterator[str]:
    for step, outcome in report.entries:
        if step.stage == "path" and isinstance(outcome, Measured):
            yield from _lines(step, outcome.details, steps.on_one_host(report))


def _lines(step: Step, details: Details, one_host: bool) -> Iterator[str]:
    yield from _round_trip(details)
    yield from _routers(details)
    for verb in ("push", "pull"):
        sender = steps.sender(verb, step.initiator)
        told = "; ".join(part for part in _way(details, verb, one_host) if part)
        if told:
            yield f"{sender} to {steps.other(sender)}: {told}"
    yield from _missing(details)


def _round_trip(details: Details) -> Iterator[str]:
    low, median, high, count, lost = (
        steps.amount(details, "rtt", "handshake", name)
        for name in ("low_seconds", "median_seconds", "high_seconds", "count", "lost")
    )
    if median is None:
        return
    told = f"round trip {seconds_text(median)}"
    if low is not None and high is not None and count:
        told += f" ({seconds_text(low)} to {seconds_text(high)}, {count_text(count)} handshakes)"
    yield f"{told}, {count_text(lost)} more with a packet lost" if lost else told


def _routers(details: Details) -> Iterator[str]:
    found = steps.items(details, "hops")
    complete = steps.flag(details, "hops_complete")
    between = found[:-1] if complete else found
    if not between:
        if complete:
            yield "no router in between"
        return
    told = ", ".join(_router(hop) for hop in between[:MOST_HOPS])
    if len(between) > MOST_HOPS:
        told += f" and {len(between) - MOST_HOPS} more"
    yield f"through {told}" + ("" if complete else "; what lies beyond does not answer")


def _router(hop: dict[str, Any]) -> str:
    address, seconds = steps.word(hop, "address"), steps.amount(hop, "rtt_seconds")
    if address is None:
        return "one that does not answer"
    return f"{safe(address, 48)} ({seconds_text(seconds)})" if seconds else safe(address, 48)


def _way(details: Details, verb: str, one_host: bool) -> Iterator[str]:
    way = details.get(verb)
    passes, stalls = (
        steps.positive(way, "black_hole", f"{name}_bytes") for name in ("passes", "stalls")
    )
    believed = steps.positive(way, "path_mtu_bytes")
    if passes is not None and stalls is not None:
        yield f"packets of {passes:.0f} bytes pass, those of {stalls:.0f} vanish without a word"
    elif believed is not None:
        # Full segments that came through, or the host's own answer to such a packet.
        full = steps.positive(way, "full_packet_bytes")
        proven = steps.flag(way, "path_mtu_confirmed") or full == believed
        yield f"packets of {believed:.0f} bytes {'pass' if proven else 'should pass'}"
        # Within one host segments are cut by what a window holds, not by what a link takes.
        if full is not None and full < believed and not one_host:
            yield f"TCP sends none above {full:.0f}"
    yield _loaded(way)


def _loaded(way: Any) -> str:
    median, delay, ratio, rate = (
        steps.amount(way, "loaded", name)
        for name in (
            "rtt_seconds_median",
            "buffer_delay_seconds",
            "buffer_delay_ratio",
            "bytes_per_second",
        )
    )
    if median is None or rate is None:
        return ""
    told = f"round trip {seconds_text(median)} beside a stream of {rate_text(rate)}"
    if delay and ratio is not None:
        told += f", {seconds_text(delay)} ({percent_text(ratio)}) of it more than without"
    return told


def _missing(details: Details) -> Iterator[str]:
    """What could not be seen: each reason once."""
    told = details.get("not_measured")
    reasons: dict[str, list[str]] = {}
    for name, why in told.items() if isinstance(told, dict) else ():
        reasons.setdefault(safe(str(why), 200), []).append(safe(str(name), 40))
    for why, names in list(reasons.items())[:MOST_REASONS]:
        yield f"not measured: {', '.join(names)}: {why}"
