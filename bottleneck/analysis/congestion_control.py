"""Rule tcp/congestion-control: one connection's sender does not use what the path gives to several.

Only where nothing else is in its way: hardly a packet is lost, the windows and buffers have room,
there is more to send, and yet several connections together carry much more on a long path.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import loss, tcp_evidence
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.receive_window import LIMITED_RATIO
from bottleneck.analysis.steps import Copy
from bottleneck.analysis.tcp_evidence import Connection
from bottleneck.report import Report
from bottleneck.reports.units import percent_text

GAIN_RATIO = 2.0
LONG_SECONDS = 0.01
"""Below it a congestion window recovers within the time of a measurement."""
LOW_LOSS_RATIO = 1e-3
FILLED_RATIO = 0.7
"""In flight over the congestion window: it is what holds the sender."""
TRUST = 0.7


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The rate of one stream of TCP alone, where several show that the path carries more."""
    seen, made = tcp_evidence.connection(report, copy), copy.made
    single = tcp_evidence.alone(report, copy.sender)
    gain = tcp_evidence.streams_gain(report, copy.sender)
    if seen is None or single is None or made is None or gain is None or gain < GAIN_RATIO:
        return
    if not (_held(seen) and _held(single)):
        return
    rate = single.found.rate
    yield Claim(
        Ceiling(
            component="tcp",
            side=copy.sender,
            cause="congestion-control",
            bytes_per_second=rate.median,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=rate.high,
            steps=(single.found.index,),
            standing="measured",
        ),
        words=(
            f"the {copy.sender}'s congestion control ({loss.control(single)}) keeps one connection "
            f"at {percent_text(1 / gain)} of what several carry together"
        ),
        trust=TRUST,
        evidence=(
            f"Several connections carried {gain:.1f} times as much as one, with hardly a packet "
            "lost and room in both windows.",
        ),
        remedy=f"Another congestion control on the {copy.sender} (bbr), or several connections,",
    )


def _held(seen: Connection) -> bool:
    """Whether the congestion window alone holds a connection of a long path."""
    rtt, in_flight = seen.figure("min_rtt_seconds"), seen.figure("in_flight_bytes_median")
    window, peer = (
        seen.figure("congestion_window_bytes_median"),
        seen.figure("peer_window_bytes_median"),
    )
    segment = seen.figure("segment_bytes")
    if None in (rtt, in_flight, window, peer, segment) or not seen.loss_based:
        return False
    assert rtt and in_flight and window and peer and segment
    waits = max(seen.share("receive_window_limited_ratio"), seen.share("send_buffer_limited_ratio"))
    return (
        rtt >= LONG_SECONDS
        and seen.share("loss_ratio") < LOW_LOSS_RATIO
        and waits < LIMITED_RATIO
        and not seen.queued
        and in_flight >= FILLED_RATIO * window
        and peer >= loss.SCARCE_RATIO * in_flight
        and seen.share("unsent_bytes_median") >= loss.BACKLOG_SEGMENTS * segment
    )
