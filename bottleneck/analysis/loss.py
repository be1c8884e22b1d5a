"""Rule network/loss: packets are lost, and the sender's congestion control slows down for each.

Never for one that does not (BBR). A full link drops packets too, and the same law holds there: it
is loss alone where several connections together carry clearly more than one.
Source: Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
Algorithm" (1997): rate = C * segment / (RTT * sqrt(p)), C from 0.7 to 1.22; for CUBIC RFC 9438,
section 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps, tcp_evidence
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.steps import Copy, Found
from bottleneck.analysis.tcp_evidence import Connection
from bottleneck.report import Report
from bottleneck.reports.units import range_text, seconds_text, share_text

LOW_CONSTANT, HIGH_CONSTANT = 0.7, 1.22
CUBIC_CONSTANT = 1.054
"""RFC 9438 section 5.1: mean window = 1.054 * (RTT / p) ** 0.75, segments and seconds."""
LOW_TOLERANCE, HIGH_TOLERANCE = 1.5, 2.5
"""The share of lost packets is counted over seconds; what one event loses at once, and what is
sent before the first one, makes a connection faster than its share allows."""
CUBIC_TOLERANCE = 1.5
"""Below RFC 9438's own region CUBIC follows the law with a higher constant."""
LEAST_SEGMENTS = 8
LEAST_RATIO, MOST_RATIO = 1e-4, 0.5
BACKLOG_SEGMENTS = 4
"""Unsent at the sender: it had more to send than its congestion window let go."""
GAIN_RATIO = 1.5
"""Several connections over one, from which on the link was not full."""
NEARLY_RATIO = 0.6
"""Gain over the number of streams, from which on each still ran as if it were alone."""
HELD_RATIO = 1e-3
LINK_RATIO = 0.75
"""A copy at this share of what several connections carry is near the link itself."""
SCARCE_RATIO = 1.3
"""The peer's window over what was in flight: below it the window may be the limit."""
OWN_TRUST, ALONE_TRUST = 0.85, 0.75


@dataclass(frozen=True)
class Bracket:
    """What the law allows, bytes per second."""

    low: float
    high: float


def bracket(segment_bytes: float, rtt_seconds: float, loss_ratio: float, name: str) -> Bracket:
    """The law's rates for a congestion control; the higher of both for CUBIC."""
    per_trip = segment_bytes / rtt_seconds
    low, high = (
        per_trip * constant / math.sqrt(loss_ratio) for constant in (LOW_CONSTANT, HIGH_CONSTANT)
    )
    if name == "cubic":
        cubic = per_trip * CUBIC_CONSTANT * (rtt_seconds / loss_ratio) ** 0.75
        high = max(high * CUBIC_TOLERANCE, cubic)
    return Bracket(low, high)


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The rate of a connection that loses packets, where the law of loss explains it."""
    seen = tcp_evidence.connection(report, copy)
    if seen is None or copy.made is None:
        return
    single = tcp_evidence.alone(report, copy.sender)
    lost = _events_ratio(seen, single)
    allowed = None if lost is None else lossy(seen, lost)
    if lost is None or allowed is None:
        return
    gain, rate, own = tcp_evidence.streams_gain(report, copy.sender), copy.made.rate, seen.own
    if gain is None or gain < GAIN_RATIO or not _fits(seen.found.rate.median, allowed):
        return
    carried = tcp_evidence.path_rate(report, copy.sender)
    if carried is not None and rate.median >= LINK_RATIO * carried:
        return
    level = max(rate.median, single.found.rate.median if single else 0.0)
    level = level if own else seen.found.rate.median
    events = seen.share("retransmitted_segments")
    name, share = control(seen), share_text(lost)
    yield Claim(
        Ceiling(
            component="network",
            side="path",
            cause="loss",
            bytes_per_second=level,
            low_bytes_per_second=min(level, seen.found.rate.low),
            high_bytes_per_second=max(level, seen.found.rate.high),
            steps=(seen.found.index,),
            standing="inferred" if own else "measured",
        ),
        words=f"the path loses {share} of its packets, and {name} slows down for each",
        reached=True if own else None,
        trust=OWN_TRUST if own else ALONE_TRUST,
        evidence=(
            f"{events:.0f} segments were sent again; at a round trip of "
            f"{seconds_text(seen.figure('rtt_seconds_median') or 0.0)} so much loss allows one "
            f"connection {range_text(allowed.low, allowed.high)}.",
            *_other_way(report, copy),
            f"Several connections together carried {gain:.1f} times as much: the link is not full.",
        ),
        remedy="A path that loses no packets (cable, plug, radio, a queue that is too short)",
    )


def holds(report: Report, found: Found) -> bool:
    """Whether lost packets and no full link may have set the rate of a tcp step.

    Of one stream: where the law of loss explains its rate, and none of several tells more. Of
    several: where they lose packets at a congestion control that minds, and carry as much more
    than one stream as there are more of them, or nearly.
    """
    count = tcp_evidence.streams(found)
    seen = Connection(found, found.outcome.details.get("limits") or {}, own=False)
    sender = steps.sender(steps.word(found.step.setting, "verb") or "", found.step.initiator)
    gain = tcp_evidence.streams_gain(report, sender)
    if count > 1:
        return (
            seen.loss_based
            and seen.share("loss_ratio") >= HELD_RATIO
            and gain is not None
            and gain >= GAIN_RATIO
            and gain >= NEARLY_RATIO * count
        )
    lost = seen.figure("loss_ratio")
    allowed = None if lost is None else lossy(seen, lost)
    if allowed is None or gain is not None or seen.share("loss_ratio") < HELD_RATIO:
        return False
    return _fits(found.rate.median, allowed)


def _fits(rate: float, allowed: Bracket) -> bool:
    return allowed.low / LOW_TOLERANCE <= rate <= allowed.high * HIGH_TOLERANCE


def _events_ratio(seen: Connection, single: Connection | None) -> float | None:
    """Loss events a packet, the lower of what two connections lost: one burst is one event."""
    lost = seen.figure("loss_ratio")
    other = None if single is None else single.figure("loss_ratio")
    return lost if lost is None or other is None else min(lost, other)


def lossy(seen: Connection, lost: float) -> Bracket | None:
    """The law's rates for a connection that lost packets and had more to send; None: it did not."""
    again = seen.share("retransmitted_segments")
    segment, rtt = seen.figure("segment_bytes"), seen.figure("rtt_seconds_median")
    if segment is None or rtt is None or not seen.loss_based:
        return None
    if not LEAST_RATIO <= lost <= MOST_RATIO or again < LEAST_SEGMENTS:
        return None
    if steps.amount(seen.told, "unread_bytes_median") is not None and not seen.reader_waits:
        return None
    in_flight, window = (
        seen.figure("in_flight_bytes_median"),
        seen.figure("peer_window_bytes_median"),
    )
    if in_flight is not None and window is not None and window < SCARCE_RATIO * in_flight:
        return None
    if seen.share("unsent_bytes_median") < BACKLOG_SEGMENTS * segment or seen.queued:
        return None
    return bracket(segment, rtt, lost, control(seen))


def control(seen: Connection) -> str:
    """Name of the congestion control of its sender; empty: not known."""
    named = steps.word(seen.told, "congestion_control")
    return named or steps.word(seen.found.outcome.details, "congestion_control") or ""


def _other_way(report: Report, copy: Copy) -> Iterator[str]:
    """The loss in the opposite direction, where that was measured."""
    back = tcp_evidence.alone(report, copy.receiver)
    lost = None if back is None else steps.amount(back.told, "loss_ratio")
    if lost is not None:
        yield f"In the other direction TCP alone lost {share_text(min(1.0, lost))}."
