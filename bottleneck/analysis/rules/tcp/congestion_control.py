"""tcp/congestion-control: one connection's sender does not use what the path gives to several.

Only where nothing else is in its way: hardly a packet is lost, the windows and buffers have room,
there is more to send, and yet several connections together carry much more on a long path, or the
copy's own window stands still where it should grow each round trip (RFC 5681 section 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Connection, Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.network.loss import SCARCE_RATIO
from bottleneck.analysis.rules.tcp.receive_window import LIMITED_RATIO
from bottleneck.units import percent_text, times_text

CAUSE = Cause(
    *("tcp", "congestion-control", "congestion control"),
    remedy="Look for a limit on the {side}: `cwnd` in `ip route show`, or its congestion control "
    "(`sysctl net.ipv4.tcp_congestion_control`)",
)
GAIN_RATIO = 2.0
LONG_SECONDS = 0.01
"""Below it a congestion window recovers within the time of a measurement."""
LOW_LOSS_RATIO = 1e-3
FILLED_RATIO = 0.7
"""In flight over the congestion window: it is what holds the sender."""


def rule(given: Evidence) -> Iterator[Claim]:
    """The rate of one stream of TCP alone, where several show that the path carries more."""
    seen, single, gain = given.connection, given.alone, given.streams_gain or 0.0
    if seen is None or single is None or gain < GAIN_RATIO or not (_held(seen) and _held(single)):
        return
    yield claim(
        CAUSE,
        given.sender,
        single.found,
        f"the {given.sender}'s congestion control ({single.control}) keeps one connection at "
        f"{percent_text(1 / gain)} of what several carry",
        source="law",
        evidence=(
            f"Several connections carried {times_text(gain)} the rate of one, with hardly any "
            "packet loss and with room in both windows.",
        ),
        remedy=(
            f"Use several connections, or another congestion control on the {given.sender} "
            "(`sysctl -w net.ipv4.tcp_congestion_control=bbr`)"
        ),
    )


def _held(seen: Connection) -> bool:
    """Whether the congestion window alone holds a connection of a long path."""
    told = seen.sockets
    rtt, in_flight = told.min_rtt_seconds, told.in_flight_bytes_median
    window, peer = told.congestion_window_bytes_median, told.peer_window_bytes_median
    if rtt is None or in_flight is None or window is None or peer is None:
        return False
    waits = max(told.receive_window_limited_ratio, told.send_buffer_limited_ratio)
    return (
        seen.loss_based
        and told.segment_bytes is not None
        and rtt >= LONG_SECONDS
        and (told.loss_ratio or 0.0) < LOW_LOSS_RATIO
        and waits < LIMITED_RATIO
        and not seen.queued
        and in_flight >= FILLED_RATIO * window
        and peer >= SCARCE_RATIO * in_flight
        and seen.backlog
    )
