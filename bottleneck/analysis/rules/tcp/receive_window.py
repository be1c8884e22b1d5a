"""tcp/receive-window: the receiver lets too few bytes be in flight for the round trip.

No more than the window that the receiver advertises arrives per round trip. It is the window's
affair where the sender was kept waiting for it while the receiver read everything at once: a
reader that is slow fills the same window, and is its disk's or its CPU's affair. From one end alone
what the other does with what it has cannot be seen; but a window that a slow reader fills carries
less than one window a round trip, and one that is too small just that.
Source: tcp_info's tcpi_rwnd_limited and tcpi_snd_wnd (include/uapi/linux/tcp.h).
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import socket_buffers
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.text.units import percent_text, rate_text, seconds_text, size_text

CAUSE = Cause(
    *("tcp", "receive-window", "receive window"),
    remedy="Raise the receive buffer on the {side} (`net.ipv4.tcp_rmem`, or SO_RCVBUF in Samba's "
    "`socket options`)",
)
LIMITED_RATIO = 0.2
"""Share of the time that the sender waited for the window, from which on it matters."""
MOSTLY_RATIO = 0.5
FILLED_RATIO = 0.6
"""In flight over the window: what silly window avoidance and late updates leave of a full one."""
CARRIES_MORE_RATIO = 1.3
"""TCP alone over the copy's rate, from which on the path is not what holds the copy."""


def rule(given: Evidence) -> Iterator[Claim]:
    """What the window of the copy's receiver carries at the round trip of the path."""
    seen = given.connection
    if seen is None:
        return
    sockets, share = seen.sockets, seen.sockets.receive_window_limited_ratio
    window, rtt = sockets.peer_window_bytes_median, sockets.min_rtt_seconds
    if window is None or rtt is None or share < LIMITED_RATIO or not seen.reader_waits:
        return
    in_flight = sockets.in_flight_bytes_median
    if in_flight is not None and in_flight < FILLED_RATIO * window:
        return
    # What lies in a queue on the path would make any window look too small.
    most, rate = window / rtt, given.rate.median
    level, reached = most, None
    if not seen.own:
        level = seen.found.rate.median
        if not FILLED_RATIO * most <= level <= most / FILLED_RATIO:
            return
    elif (given.path_rate or 0.0) >= CARRIES_MORE_RATIO * rate and share >= MOSTLY_RATIO:
        # The round trips of the copy itself, with the time that window updates take.
        usual = min(most, window / (sockets.rtt_seconds_median or rtt))
        if rate >= FILLED_RATIO * usual:
            level, reached = max(rate, usual), True
    set_by = socket_buffers.fixed(
        *(given, given.receiver, socket_buffers.RECEIVE, sockets, rtt, window),
    )
    yield claim(
        CAUSE,
        given.receiver,
        seen.found,
        f"the {given.receiver}'s TCP receive window ({size_text(window)}) allows at most "
        f"{rate_text(level)} at an RTT of {seconds_text(window / level)}",
        level=level,
        low=level if seen.own else None,
        high=max(level, most) if seen.own else None,
        standing="inferred" if seen.own else "measured",
        reached=reached,
        evidence=(
            f"{seen.whose} waited for the receiver's window {percent_text(min(1.0, share))} of the "
            "time, although the receiver read all data at once.",
        ),
        remedy=set_by.remedy,
        detail=set_by.detail,
        window_bytes=window if seen.own else 0.0,
    )
