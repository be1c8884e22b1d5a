"""Each ceiling that a few figures give, with the rule of thumb that it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bottleneck.analysis.estimate.disk_kinds import DiskKind
from bottleneck.analysis.estimate.envelope import Envelope
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.steps import dialect_name
from bottleneck.reports.units import (
    count_text,
    fine_rate_text,
    link_text,
    range_text,
    rate_text,
    seconds_text,
    size_text,
)

MATHIS_LOW, MATHIS_HIGH = 0.7, math.sqrt(1.5)
"""The constant of Mathis et al. 1997: 1.22 without delayed acknowledgements; 0.7 by pathdiag."""
TRUST = 0.75
"""Figures that nobody measured in this run."""


@dataclass(frozen=True)
class Missing:
    """A ceiling that is not known."""

    component: str
    side: str | None
    needs: str
    """What would have to be given."""
    required: bool = False
    """Whether every byte passes it: as long as it is not known, it may be the cap."""


Found = Iterator[Claim | Missing]
"""The evidence of each claim is its rule of thumb with the figures, a sentence without its dot."""


def all_claims(given: Envelope) -> Found:
    """Every ceiling of the envelope, known or not."""
    for each in WAYS:
        yield from each(given)


def link(given: Envelope) -> Found:
    """Payload of the link in full frames: RFC 6349 section 4.1.1."""
    payload, bits = given.link_payload, given.link_bits_per_second
    if payload is None or bits is None:
        yield Missing("network", "path", "--link", required=True)
        return
    wire = round(given.segment_bytes / given.link_efficiency)
    what = [f"MTU {given.mtu_bytes}"]
    what += ["IPv6"] if given.ipv6 else []
    what += ["TCP timestamps"] if given.timestamps else []
    what += ["a VLAN tag"] if given.vlan_tags else []
    words = f"a {link_text(bits)} link carries no more than {rate_text(payload)} of payload"
    yield _claim(
        *("network", given.link_side, "link-rate", payload, words),
        f"{link_text(bits)} with {', '.join(what)} carries {fine_rate_text(payload)} of payload: "
        f"{given.segment_bytes}/{wire} of its bits (RFC 6349, 4.1.1)",
    )


def window(given: Envelope) -> Found:
    """No more than the receiver's window arrives in a round trip."""
    if given.window_bytes is None or given.rtt_seconds is None:
        lacks = [
            name
            for name, told in (("--window", given.window_bytes), ("--rtt", given.rtt_seconds))
            if told is None
        ]
        yield Missing("tcp", given.receiver, " and ".join(lacks))
        return
    level = given.streams * given.window_bytes / given.rtt_seconds
    trip, size = seconds_text(given.rtt_seconds), size_text(given.window_bytes)
    fills, needs = "", None
    if given.link_payload is not None:
        needs = given.link_payload * given.rtt_seconds / given.streams
        fills = (
            f"; {link_text(given.link_bits_per_second or 0)} needs {size_text(needs)} of window"
            f"{_each(given)}"
        )
    many = "" if given.streams == 1 else f"{count_text(given.streams)} x "
    yield _claim(
        *("tcp", given.receiver, "receive-window", level),
        f"a receive window of {size}{_each(given)} carries no more than {rate_text(level)} at a "
        f"round trip of {trip}",
        f"window / round trip: {many}{size} / {trip} = {rate_text(level)}{fills}",
        remedy=""
        if needs is None or needs <= given.window_bytes
        else f"A receive window of {size_text(needs)} or more on the {given.receiver}"
        f"{_each(given)} (rate x round trip)",
    )


def _each(given: Envelope) -> str:
    return "" if given.streams == 1 else f" for each of {count_text(given.streams)} streams"


def round_trips(given: Envelope) -> Found:
    """Requests that wait for their replies: bytes in flight over the time that each takes."""
    if given.rtt_seconds is None:
        yield Missing("smb", "path", "--rtt")
        return
    size, depth = given.shape
    payload = given.link_payload
    own = 0.0 if payload is None else size / payload
    level = size * depth / (given.rtt_seconds + own)
    trip = seconds_text(given.rtt_seconds)
    assumed = given.request_bytes is None or given.depth is None
    whose = f" (assumed, as usual for {dialect_name(given.dialect)})" if assumed else ""
    one = depth == 1
    many = f"{count_text(depth)} request{'' if one else 's'} of {size_text(size)}"
    time = f"({trip} + {seconds_text(own)} on the link)" if own else trip
    half = ""
    if payload is not None:
        need = given.rtt_seconds * payload
        half = f"; one at a time, half of the link takes requests of {size_text(need)}"
    yield _claim(
        *("smb", "path", "round-trips", level),
        f"{many} at a time {'carries' if one else 'carry'} no more than {rate_text(level)} "
        f"at a round trip of {trip}",
        f"in flight / time of a request: {many}{whose} / {time} = {rate_text(level)}{half}",
        remedy=f"More than {size_text(size * depth)} in flight (longer requests, or more of "
        "them at a time)",
    )


def loss(given: Envelope) -> Found:
    """What a congestion control that backs off at each loss leaves: Mathis et al. 1997."""
    if not given.loss_ratio or given.rtt_seconds is None:
        needs = "--rtt" if given.loss_ratio else "--loss"
        if given.loss_ratio != 0:
            yield Missing("network", "path", f"{needs} (what losses cost)")
        return
    base = given.streams * given.segment_bytes / given.rtt_seconds / math.sqrt(given.loss_ratio)
    low, high = MATHIS_LOW * base, MATHIS_HIGH * base
    level = math.sqrt(low * high)
    often = count_text(1 / given.loss_ratio)
    yield _claim(
        *("network", "path", "loss", level),
        f"one lost packet in {often} leaves a loss-based congestion control about "
        f"{rate_text(level)}",
        f"segment / round trip x C / sqrt(loss), C from 0.7 to 1.22 (Mathis 1997; reno, CUBIC is "
        f"above it, BBR far above): {range_text(low, high)} at one lost packet in {often}",
        ends=(low, high),
        remedy="A path that loses less (a quarter of the losses is twice the rate), or BBR",
    )


def sender_disk(given: Envelope) -> Found:
    """What the source is read from."""
    if not given.reads_disk:
        return
    if given.read is None:
        yield Missing("disk", given.sender, "--disk-read", required=True)
        return
    if given.cached:
        ram, size = size_text(given.ram_bytes or 0), size_text(given.size_bytes or 0)
        words = (
            f"{size} do not stay in the {given.sender}'s RAM of {ram}, and its disk reads "
            f"{rate_text(given.read.usual)}"
        )
        rule = f"a file of {size} is not cached in {ram} of RAM: its disk reads {given.read.rule}"
        yield _of_disk(given.read, "memory", given.sender, "cache-size", words, rule)
        return
    words = f"the {given.sender}'s disk reads no faster than {rate_text(given.read.usual)}"
    yield _of_disk(given.read, "disk", given.sender, "read", words, f"it reads {given.read.rule}")


def receiver_disk(given: Envelope) -> Found:
    """What the copy is written to, and flushed to at its end."""
    if given.write is None:
        yield Missing("disk", given.receiver, "--disk-write", required=True)
        return
    words = f"the {given.receiver}'s disk writes no faster than {rate_text(given.write.usual)}"
    rule = f"it writes {given.write.rule}"
    yield _of_disk(given.write, "disk", given.receiver, "write", words, rule)


def _of_disk(disk: DiskKind, component: str, side: str, cause: str, words: str, rule: str) -> Claim:
    if disk.cause is not None and component == "disk":
        component, cause = "bus", disk.cause
        words = words.replace(" no faster than", " over USB no faster than")
    ends = (disk.low, disk.high)
    return _claim(component, side, cause, disk.usual, words, rule, ends=ends)


def _claim(
    component: str,
    side: str,
    cause: str,
    level: float,
    words: str,
    rule: str,
    *,
    ends: tuple[float, float] | None = None,
    remedy: str = "",
) -> Claim:
    low, high = ends or (level, level)
    ceiling = Ceiling(component, side, cause, level, low, high, steps=(), standing="inferred")
    return Claim(ceiling, words=words, trust=TRUST, evidence=(rule,), remedy=remedy)


WAYS: tuple[Callable[[Envelope], Found], ...] = (
    link,
    window,
    round_trips,
    loss,
    sender_disk,
    receiver_disk,
)
"""Every part of the way that a few figures say something of."""
