"""network/loss: packets are lost, and the sender's congestion control slows down for each.

Never for one that does not (BBR). A full link drops packets too, and the same law holds there: it
is loss alone where several connections together carry clearly more than one. From the client alone
nothing shows that, so that a link whose queue is too short (a policer) may look the same; of a pull
it sees the packets that came after a hole: about a window of them for each loss.
Source: Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
Algorithm" (1997): rate = C * segment / (RTT * sqrt(p)), C from 0.7 to 1.22; for CUBIC RFC 9438,
section 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import (
    Connection,
    Evidence,
    one_stream,
    streams,
    streams_gain,
)
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.units import range_text, seconds_text, share_text, times_text

REMEDY = (
    "Find the packet loss: check cables, plugs, Wi-Fi and switch ports for errors (`ethtool -S`), "
    "and queues that are too short"
)
CAUSE = Cause("network", "loss", "packet loss", stays=True, remedy=REMEDY)
LOW_CONSTANT, HIGH_CONSTANT = 0.7, 1.22
CUBIC_CONSTANT = 1.054
"""RFC 9438 section 5.1: mean window = 1.054 * (RTT / p) ** 0.75, segments and seconds."""
LOW_TOLERANCE, HIGH_TOLERANCE = 1.5, 3.0
"""The share of lost packets is counted over seconds; what one event loses at once, and what is
sent before the first one, makes a connection faster than its share allows."""
CUBIC_TOLERANCE = 1.5
"""Below RFC 9438's own region CUBIC follows the law with a higher constant."""
LEAST_SEGMENTS = 8
LEAST_RATIO, MOST_RATIO = 1e-4, 0.5
GAIN_RATIO = 1.5
"""Several connections over one, from which on the link was not full."""
NEARLY_RATIO = 0.6
"""Gain over the number of streams, from which on each still ran as if it were alone."""
HELD_RATIO = 1e-3
LINK_RATIO = 0.75
"""A copy at this share of what several connections carry is near the link itself."""
SCARCE_RATIO = 1.3
"""The peer's window over what was in flight: below it the window may be the limit."""


@dataclass(frozen=True)
class Bracket:
    """What the law allows, bytes per second."""

    low: float
    high: float

    def fits(self, rate: float) -> bool:
        """Whether the law explains a rate."""
        return self.low / LOW_TOLERANCE <= rate <= self.high * HIGH_TOLERANCE

    def after(self, trip: float) -> str:
        """The law as the end of a sentence."""
        return (
            f"t an RTT of {seconds_text(trip)}, this loss allows one connection "
            f"{range_text(self.low, self.high)}."
        )


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


def rule(given: Evidence) -> Iterator[Claim]:
    """The rate of a connection that loses packets, where the law of loss explains it."""
    seen, single = given.connection, given.alone
    lost = None if seen is None else _events_ratio(seen, single)
    allowed = None if seen is None or lost is None else lossy(seen, lost)
    if seen is None or lost is None or allowed is None:
        return
    gain, rate, own = given.streams_gain or 0.0, given.rate.median, seen.own
    if gain < GAIN_RATIO or not allowed.fits(seen.found.rate.median):
        return
    if rate >= LINK_RATIO * (given.path_rate or math.inf):
        return
    level = max(rate, single.found.rate.median if single else 0.0)
    again = f"{seen.sockets.retransmitted_segments:.0f} segments were retransmitted. A"
    yield claim(
        CAUSE,
        "path",
        seen.found,
        lossy_text(seen, lost),
        level=level if own else seen.found.rate.median,
        standing="inferred" if own else "measured",
        reached=True if own else None,
        evidence=(
            f"{again}{allowed.after(seen.sockets.rtt_seconds_median or 0.0)}",
            *_other_way(given),
            f"Several connections together carried {times_text(gain)} the rate of one; the link "
            "was not full.",
        ),
        remedy=REMEDY,
    )


def lossy_text(seen: Connection, lost: float) -> str:
    """What a path loses, and whom it slows down."""
    return f"{share_text(lost)} packet loss makes TCP ({seen.control}) slow down"


def holds(report: Report, found: Found) -> bool:
    """Whether lost packets and no full link may have set the rate of a tcp step.

    Of one stream: where the law of loss explains its rate, and none of several tells more. Of
    several: where they lose packets at a congestion control that minds, and carry as much more
    than one stream as there are more of them, or nearly.
    """
    if found.details.limits is None:
        return False
    seen, count = Connection(found, found.details.limits, own=False), streams(found)
    gain, lost = streams_gain(report, found.sender), seen.sockets.loss_ratio
    if lost is None or lost < HELD_RATIO:
        return False
    if count > 1:
        return seen.loss_based and (gain or 0.0) >= max(GAIN_RATIO, NEARLY_RATIO * count)
    allowed = lossy(seen, lost)
    return allowed is not None and gain is None and allowed.fits(found.rate.median)


def _events_ratio(seen: Connection, single: Connection | None) -> float | None:
    """Loss events a packet, the lower of what two connections lost: one burst is one event."""
    lost = seen.sockets.loss_ratio or None
    other = None if single is None else single.sockets.loss_ratio or None
    return lost if lost is None or other is None else min(lost, other)


def lossy(seen: Connection, lost: float, count: float = 0.0) -> Bracket | None:
    """The law's rates for a connection that lost packets and had more to send; None: it did not.

    count: segments that another connection of this way sent again.
    """
    told = seen.sockets
    segment, rtt = told.segment_bytes, told.rtt_seconds_median
    if segment is None or rtt is None or not seen.loss_based:
        return None
    count = max(count, told.retransmitted_segments)
    if not LEAST_RATIO <= lost <= MOST_RATIO or count < LEAST_SEGMENTS:
        return None
    if told.unread_bytes_median is not None and not seen.reader_waits:
        return None
    in_flight, window = told.in_flight_bytes_median, told.peer_window_bytes_median
    if in_flight is not None and window is not None and window < SCARCE_RATIO * in_flight:
        return None
    if not seen.backlog or seen.queued:
        return None
    return bracket(segment, rtt, lost, seen.control)


def _other_way(given: Evidence) -> Iterator[str]:
    """The loss in the opposite direction, where that was measured."""
    back = one_stream(given.report, given.receiver)
    lost = None if back is None else back.sockets.loss_ratio
    if lost is not None:
        yield f"In the other direction TCP lost {share_text(min(1.0, lost))} of its packets."
