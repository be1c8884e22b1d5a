"""network/loss: packets are lost, and the sender's congestion control slows down for each.

Some do not (BBR). A full link drops packets too, and the same law holds there: loss is the cause
only if several connections together carry clearly more than one.
Source: Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
Algorithm" (1997): rate = C * segment / (RTT * sqrt(p)), C from 0.7 to 1.22; for CUBIC RFC 9438,
section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bottleneck.analysis.claim import Cause
from bottleneck.analysis.evidence.copies import Connection, streams, streams_gain
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report

REMEDY = (
    "Find the packet loss: check cables, plugs, Wi-Fi and switch ports for errors (`ethtool -S`), "
    "and queues that are too short"
)
CAUSE = Cause("network", "loss", "packet loss", limits_without_fault=True, remedy=REMEDY)
LOW_CONSTANT, HIGH_CONSTANT = 0.7, 1.22
CUBIC_CONSTANT = 1.054
"""RFC 9438 section 5.1: mean window = 1.054 * (RTT / p) ** 0.75, segments and seconds."""
LOW_TOLERANCE, HIGH_TOLERANCE = 1.5, 3.0
"""Tolerance of the law, below and above: losses of several packets at once, and bytes sent before
the first loss, make a connection faster than its share of lost packets allows."""
CUBIC_TOLERANCE = 1.5
"""Factor of the law for CUBIC where RFC 9438's own law gives less."""
LEAST_SEGMENTS = 8
LEAST_RATIO, MOST_RATIO = 1e-4, 0.5
GAIN_RATIO = 1.5
"""Least rate of several connections / one's at which the link was not full."""
NEARLY_RATIO = 0.6
"""Least gain per stream at which each ran about as fast as one alone."""
HELD_RATIO = 1e-3
SCARCE_RATIO = 1.3
"""Least ratio of the peer's window to the bytes in flight at which the window is no limit."""


@dataclass(frozen=True)
class Bracket:
    """Range of rates by the law, bytes per second."""

    low: float
    high: float

    def fits(self, rate: float) -> bool:
        """Whether the law explains a rate."""
        return self.low / LOW_TOLERANCE <= rate <= self.high * HIGH_TOLERANCE


def bracket(segment_bytes: float, rtt_seconds: float, loss_ratio: float, name: str) -> Bracket:
    """Returns the law's rates for a congestion control; for CUBIC the higher of both laws."""
    per_trip = segment_bytes / rtt_seconds
    low, high = (
        per_trip * constant / math.sqrt(loss_ratio) for constant in (LOW_CONSTANT, HIGH_CONSTANT)
    )
    if name == "cubic":
        cubic = per_trip * CUBIC_CONSTANT * (rtt_seconds / loss_ratio) ** 0.75
        high = max(high * CUBIC_TOLERANCE, cubic)
    return Bracket(low, high)


def holds(report: Report, step: MeasuredStep) -> bool:
    """Whether lost packets and no full link may have set the rate of a tcp step.

    With one stream: the law of loss explains its rate, and no step with several was measured. With
    several: they lose packets under a loss-based congestion control, and carry nearly as many
    times the rate of one stream as they are.
    """
    if step.details.limits is None:
        return False
    connection, count = Connection(step, step.details.limits, is_own=False), streams(step)
    gain, lost = streams_gain(report, step.sender), connection.sockets.loss_ratio
    if lost is None or lost < HELD_RATIO:
        return False
    if count > 1:
        return connection.is_loss_based and (gain or 0.0) >= max(GAIN_RATIO, NEARLY_RATIO * count)
    allowed = lossy(connection, lost)
    return allowed is not None and gain is None and allowed.fits(step.rate.median)


def lossy(connection: Connection, lost: float) -> Bracket | None:
    """Returns the law's rates for a connection with losses and a backlog; None: it has not both."""
    sockets = connection.sockets
    segment, rtt = sockets.segment_bytes, sockets.rtt_seconds_median
    if segment is None or rtt is None or not connection.is_loss_based:
        return None
    if not LEAST_RATIO <= lost <= MOST_RATIO or sockets.retransmitted_segments < LEAST_SEGMENTS:
        return None
    if sockets.unread_bytes_median is not None and not connection.reader_waits:
        return None
    in_flight, window = sockets.in_flight_bytes_median, sockets.peer_window_bytes_median
    if in_flight is not None and window is not None and window < SCARCE_RATIO * in_flight:
        return None
    if not connection.has_backlog or connection.is_queued:
        return None
    return bracket(segment, rtt, lost, connection.control)
