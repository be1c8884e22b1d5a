"""The limits of a copy by figures that a person supplied, where nothing was measured.

The rules of an estimate, with the figures of both hosts and of the path. Silent in every report
that this tool measured by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bottleneck.analysis import model, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps, rate_at, rates_by_place
from bottleneck.analysis.estimate import Missing, link, loss, receiver_disk, sender_disk
from bottleneck.analysis.estimate.envelope import Envelope, disk_of
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import Fit
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.link_end import is_told, slower_link
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.rules.disk import zone
from bottleneck.analysis.rules.disk.alone import DOES
from bottleneck.analysis.rules.registry import RECEIVE_WINDOW, SEND_BUFFER
from bottleneck.analysis.rules.smb import round_trips
from bottleneck.analysis.socket_buffers import RECEIVE, SEND, Kind, largest
from bottleneck.report.report import Report
from bottleneck.text.units import count_text, percent_text, rate_text, seconds_text, size_text

MOSTLY_BYTES_RATIO = 0.8
"""Of the bandwidth of messages: requests that reach it wait for the link and not for answers."""
INSIDE_RATIO = 0.8
"""Of the outermost rate: a place that gives more is none to speak of."""
OUTER_EDGE_RATIO, INNER_EDGE_RATIO = 0.05, 0.95
_LARGEST_DEPTH = 65_535


def rule(given: Evidence) -> Iterator[Claim]:
    """Every limit that follows from the figures: link, buffers, requests, losses, disks."""
    if not is_told(given.report):
        return
    figures = _envelope(given)
    found = [*loss(figures)]
    # A transfer of TCP alone that no window held tells what the path carries.
    limits = [each.details.limits for each in given.believed]
    if not any(each is None or each.by is None for each in limits):
        found += link(figures)
    yield from _claims(found)
    for side, kind, cause in (
        (given.receiver, RECEIVE, RECEIVE_WINDOW),
        (given.sender, SEND, SEND_BUFFER),
    ):
        size = largest(given, side, kind)
        if size and figures.rtt_seconds is not None:
            yield _buffer(figures, side, kind, cause, size, figures.rtt_seconds)
    yield from _requests(given, figures)
    if given.copy.cache == "uncached":
        yield from _disk(given, figures, "read")
    yield from _disk(given, figures, "write")


def _claims(found: Iterable[Claim | Missing]) -> list[Claim]:
    """Without the rules that they were computed by: a diagnosis has no room for those."""
    return [replace(e, evidence=(), detail="") for e in found if isinstance(e, Claim)]


def _envelope(given: Evidence) -> Envelope:
    report, copy = given.report, given.copy
    seen, slow, lost = rtt(report), slower_link(report), steps.target_of(report).loss_ratio
    return Envelope(
        verb=copy.verb,
        initiator=copy.initiator,
        cached=copy.cache == "cached",
        link_bits_per_second=None if slow is None else slow.bits_per_second,
        link_side="path" if slow is None else slow.side,
        mtu_bytes=min(max(steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES, 576), 65_535),
        rtt_seconds=None if seen is None else seen.seconds,
        streams=max(1, round(copy.setting.streams or 1)),
        loss_ratio=None if lost is None else min(1.0, lost),
    )


def _buffer(
    figures: Envelope, side: str, kind: Kind, cause: Cause, size: int, trip: float
) -> Claim:
    """What the largest buffer that a kernel gives a socket carries at the round trip."""
    level = figures.streams * size / trip
    one = figures.streams == 1
    many = "" if one else f" for each of {count_text(figures.streams)} connections"
    payload = figures.link_payload
    needs = None if payload is None else payload * trip / figures.streams
    remedy = fills = ""
    if needs is not None and needs > size:
        fills = f"; {size_text(needs)} would fill the link"
        remedy = (
            f"Set the third value of {kind.sysctl} on the {side} to {round(2 * needs)} or more "
            f"(now {size}). {'The' if one else 'Each'} connection needs a {kind.name} of "
            f"{size_text(needs)}, the bandwidth-delay product"
        )
    return claim(
        cause,
        side,
        None,
        f"the {side}'s {kind.name} ({size_text(size)}{many}) allows at most {rate_text(level)} at "
        f"an RTT of {seconds_text(trip)}{fills}",
        level=level,
        standing="inferred",
        evidence=(f"The third value of {kind.sysctl} is {size} on the {side}.",),
        remedy=remedy,
    )


def _requests(given: Evidence, figures: Envelope) -> Iterator[Claim]:
    """What requests of a given size carry; one in flight where their number was not given."""
    size = given.copy.setting.request_bytes
    if size is None:
        return
    depth = min(given.copy.setting.depth or 1.0, _LARGEST_DEPTH)
    seconds, fit = _answer(given.report, size) or (figures.rtt_seconds, Fit())
    if seconds is None:
        return
    level = size * depth / seconds
    many = "1 is" if depth == 1 else f"{count_text(depth)} are"
    enough, itself = "longer requests or more of them", ""
    bandwidth, half = fit.bandwidth_bytes_per_second, fit.n_half_bytes
    if bandwidth is not None and half is not None:
        if level >= MOSTLY_BYTES_RATIO * bandwidth:
            return
        enough = f"requests of {size_text(half)} reach half of {rate_text(bandwidth)}"
        itself = f" ({seconds_text(size / bandwidth)} of it for the data)"
    yield claim(
        round_trips.CAUSE,
        "path",
        None,
        f"a request of {size_text(size)} and its response take {seconds_text(seconds)}{itself}, "
        f"and {many} in flight",
        level=level,
        standing="inferred",
        remedy=f"Keep more than {size_text(size * depth)} in flight ({enough})",
    )


def _answer(report: Report, message_bytes: float) -> tuple[float, Fit] | None:
    """What a message of a size and its small response take, seconds, and the line of all sizes.

    As timed where that size was, else by the line; None: not known. Of several latency stages the
    first counts.
    """
    found = next(steps.measured(report, "latency"), None)
    if found is None:
        return None
    fit, sizes = found.details.fit, found.details.table
    once = (each for each in sizes if each.round_trips == 1 and each.message_bytes == message_bytes)
    timed = next(once, None)
    if timed is not None and timed.seconds is not None:
        return timed.seconds, fit
    latency, bandwidth = fit.latency_seconds, fit.bandwidth_bytes_per_second
    if latency is None or bandwidth is None:
        return None
    return latency + message_bytes / bandwidth, fit


def _disk(given: Evidence, figures: Envelope, verb: str) -> Iterator[Claim]:
    setting, reads = given.copy.setting, verb == "read"
    side = given.sender if reads else given.receiver
    best = steps.fastest(disk_steps(given.report, side, verb, "told"))
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
    disk, rule_of = disk_of(rate), sender_disk if reads else receiver_disk
    for each in _claims(rule_of(replace(figures, read=disk, write=disk))):
        yield replace(each, ceiling=replace(each.ceiling, steps=(best.index,)))


def place_text(place: float) -> str:
    """A location on a disk: `the inner tracks`, `40% of the way to the inner tracks`."""
    if OUTER_EDGE_RATIO < place < INNER_EDGE_RATIO:
        return f"{percent_text(place)} of the way to the inner tracks"
    return "the inner tracks" if place >= INNER_EDGE_RATIO else "the outer tracks"
