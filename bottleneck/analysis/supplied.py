"""Limits of a copy by figures that a person supplied.

The rules of an estimate, with the figures of both hosts and of the path. They yield nothing for a
report that this tool measured by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bottleneck.analysis import estimate, model, steps
from bottleneck.analysis.claim import claim
from bottleneck.analysis.disk_zones import disk_steps, rate_at, rates_by_place
from bottleneck.analysis.estimate.envelope import Envelope, Window, disk_of
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import Fit
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.link_end import is_supplied, slower_link
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.rules.disk import zone
from bottleneck.analysis.rules.disk.alone import DOES
from bottleneck.analysis.socket_buffers import RECEIVE, SEND, largest
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, rate_text

INSIDE_RATIO = 0.8
"""Least rate of a place / outermost rate at which the place is not slow."""
OUTER_EDGE_RATIO, INNER_EDGE_RATIO = 0.05, 0.95
_LARGEST_DEPTH = 65_535
"""Most requests in flight: SMB2 counts credits in 16 bits (MS-SMB2 2.2.1)."""


def rule(evidence: Evidence) -> Iterator[Claim]:
    """Yields every limit that follows from the figures: link, buffers, requests, losses, disks."""
    if not is_supplied(evidence.report):
        return
    figures = _envelope(evidence)
    results = [*estimate.loss(figures), *estimate.window(figures), *estimate.round_trips(figures)]
    # A test of TCP alone that no window limited shows the path's rate.
    limits = [each.details.limits for each in evidence.believed_steps]
    if not any(each is None or each.by is None for each in limits):
        results += estimate.link(figures)
    yield from _claims(results)
    if evidence.copy.cache == "uncached":
        yield from _disk(evidence, figures, "read")
    yield from _disk(evidence, figures, "write")


def _claims(results: Iterable[Claim | estimate.Missing]) -> list[Claim]:
    return [replace(e, evidence=(), detail="") for e in results if isinstance(e, Claim)]


def _envelope(evidence: Evidence) -> Envelope:
    report, copy = evidence.report, evidence.copy
    trip, slow, lost = rtt(report), slower_link(report), steps.target_of(report).loss_ratio
    sides = ((evidence.receiver, RECEIVE), (evidence.sender, SEND))
    windows = ((largest(evidence, side, kind), kind) for side, kind in sides)
    size, depth = copy.setting.request_bytes, copy.setting.depth or 1.0
    response, fit = _response(report, size) if size else (None, Fit())
    return Envelope(
        verb=copy.verb,
        initiator=copy.initiator,
        cached=copy.cache == "cached",
        link_bits_per_second=None if slow is None else slow.bits_per_second,
        link_side="path" if slow is None else slow.side,
        mtu_bytes=min(max(steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES, 576), 65_535),
        rtt_seconds=None if trip is None else trip.seconds,
        windows=tuple(Window(size, kind, True) for size, kind in windows if size),
        streams=max(1, round(copy.setting.streams or 1)),
        request_bytes=size,
        depth=min(depth, _LARGEST_DEPTH),
        assumes_requests=False,
        response_seconds=response,
        fit=fit,
        loss_ratio=None if lost is None else min(1.0, lost),
    )


def _response(report: Report, message_bytes: float) -> tuple[float | None, Fit]:
    """Returns the seconds of a message of a size and its small response, and the fitted line.

    Measured if that size was, else by the line; None: not known. Only the first latency stage
    counts.
    """
    step = next(steps.measured_steps(report, "latency"), None)
    if step is None:
        return None, Fit()
    fit, sizes = step.details.fit, step.details.table
    once = (each for each in sizes if each.round_trips == 1 and each.message_bytes == message_bytes)
    timed = next(once, None)
    latency, bandwidth = fit.latency_seconds, fit.bandwidth_bytes_per_second
    if timed is not None and timed.seconds is not None:
        return timed.seconds, fit
    if latency is None or bandwidth is None:
        return None, Fit()
    return latency + message_bytes / bandwidth, fit


def _disk(evidence: Evidence, figures: Envelope, verb: str) -> Iterator[Claim]:
    setting, reads = evidence.copy.setting, verb == "read"
    side = evidence.sender if reads else evidence.receiver
    best = steps.fastest(disk_steps(evidence.report, side, verb, "told"))
    if best is None:
        return
    zones = sorted(rates_by_place(best))
    place = setting.from_place_ratio if reads else setting.to_place_ratio
    outer = zones[0][1] if zones else best.rate.median
    rate = outer if place is None or not zones else rate_at(zones, min(1.0, place))
    if zones and place is not None and rate <= INSIDE_RATIO * outer:
        yield claim(
            zone.CAUSE,
            side,
            None,
            f"the {side}'s disk {DOES[verb]} at most {rate_text(rate)} at the location of the file "
            f"({place_text(place)}) and {rate_text(outer)} on its outer tracks",
            level=rate,
            steps=(best.index,),
            standing="inferred",
            remedy=f"Store the file on the outer tracks of the {side}'s disk ({rate_text(outer)})",
        )
        return
    disk, rule_of = disk_of(rate), estimate.sender_disk if reads else estimate.receiver_disk
    for each in _claims(rule_of(replace(figures, read=disk, write=disk))):
        yield replace(each, ceiling=replace(each.ceiling, steps=(best.index,), standing="measured"))


def place_text(place: float) -> str:
    """Returns a disk location: `the inner tracks`, `40% of the way to the inner tracks`."""
    if OUTER_EDGE_RATIO < place < INNER_EDGE_RATIO:
        return f"{percent_text(place)} of the way to the inner tracks"
    return "the inner tracks" if place >= INNER_EDGE_RATIO else "the outer tracks"
