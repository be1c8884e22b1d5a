"""network/loss: packets are lost, and the sender's congestion control slows down for each.

Never for one that does not (BBR). A full link drops packets too, and the same law holds there: it
is loss alone where several connections together carry clearly more than one.
Source: Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
Algorithm" (1997): rate = C * segment / (RTT * sqrt(p)), C from 0.7 to 1.22; for CUBIC RFC 9438,
section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bottleneck.analysis.claim import Cause
from bottleneck.analysis.evidence.copies import Connection, streams, streams_gain
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report

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


def holds(report: Report, found: Found) -> bool:
    """Whether lost packets and no full link may have set the rate of a tcp step.

    Of one stream: where the law of loss explains its rate, and none of several tells more. Of
    several: where they lose packets at a congestion control that minds, and carry as much more
    than one stream as there are more of them, or nearly.
    """
    if found.details.limits is None:
        return False
    seen, count = Connection(found, found.details.limits, is_own=False), streams(found)
    gain, lost = streams_gain(report, found.sender), seen.sockets.loss_ratio
    if lost is None or lost < HELD_RATIO:
        return False
    if count > 1:
        return seen.loss_based and (gain or 0.0) >= max(GAIN_RATIO, NEARLY_RATIO * count)
    allowed = lossy(seen, lost)
    return allowed is not None and gain is None and allowed.fits(found.rate.median)


def lossy(seen: Connection, lost: float) -> Bracket | None:
    """The law's rates for a connection that lost packets and had more to send; None: it did not."""
    told = seen.sockets
    segment, rtt = told.segment_bytes, told.rtt_seconds_median
    if segment is None or rtt is None or not seen.loss_based:
        return None
    if not LEAST_RATIO <= lost <= MOST_RATIO or told.retransmitted_segments < LEAST_SEGMENTS:
        return None
    if told.unread_bytes_median is not None and not seen.reader_waits:
        return None
    in_flight, window = told.in_flight_bytes_median, told.peer_window_bytes_median
    if in_flight is not None and window is not None and window < SCARCE_RATIO * in_flight:
        return None
    if not seen.backlog or seen.queued:
        return None
    return bracket(segment, rtt, lost, seen.control)
