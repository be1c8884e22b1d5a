"""tcp/send-buffer: the sender's socket holds too few bytes for the round trip.

A kernel that tunes the buffer keeps it well above the congestion window (tcp_sndbuf_expand: more
than 3 times); one that is smaller was fixed (SO_SNDBUF) or is at the end of tcp_wmem. What is sent
stays in it until it is acknowledged. A program that refills it as it empties has one buffer in
flight; one that writes long blocks, as smbd does, waits until it is nearly empty, so that each
round trip comes on top. The kernel's own count of the time (tcpi_sndbuf_limited) shows the first
and not the second, nor the trap of a tiny buffer on a short path: there each burst waits for the
receiver's delayed acknowledgement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis import socket_buffers
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Connection, Evidence
from bottleneck.analysis.finding import Claim, Standing
from bottleneck.analysis.rules.smb import round_trips
from bottleneck.analysis.rules.tcp.receive_window import CARRIES_MORE_RATIO, MOSTLY_RATIO
from bottleneck.text.units import rate_text, seconds_text, size_text

CAUSE = Cause(
    *("tcp", "send-buffer", "send buffer"),
    remedy="Raise the send buffer on the {side} (`net.ipv4.tcp_wmem`, or SO_SNDBUF in Samba's "
    "`socket options`)",
)
TUNED_RATIO = 2.0
"""Buffer over congestion window: the kernel's own tuning keeps it above."""
FULL_RATIO = 0.6
"""In flight at most over the buffer: below it the buffer was never the limit."""
EMPTY_RATIO = 0.5
"""Unsent over in flight: above it there was more to send than the path took."""
LINK_RATIO = 0.85
"""A copy at this share of what TCP alone moves is held by the path."""
BURSTS_RATIO = 0.7
"""Of what bursts as long as the longest ones carry: others are shorter."""
SHORT_SECONDS, DELAYED_SECONDS, DELAYED_RATIO = 1e-3, 5e-3, 10.0
"""Of the trap: the idle round trip, and what delayed acknowledgements make of it."""
TINY_BYTES = 64 << 10


@dataclass(frozen=True)
class Limit:
    """A connection that its sender's buffer holds."""

    window_bytes: float
    """What is in flight each round trip; 0: not what limits it."""
    bytes_per_second: float
    high_bytes_per_second: float
    reached: bool | None
    words: str
    evidence: str
    standing: Standing = "inferred"


def rule(given: Evidence) -> Iterator[Claim]:
    """What the sender's buffer carries at the round trip of the path."""
    seen = given.connection
    if seen is None or round_trips.starved(given):
        # The buffer then holds what the server's credits let go, and has room for more.
        return
    carried, rate = given.path_rate, seen.found.rate.median
    found = _in_bursts(seen, carried, rate)
    if found is not None and not seen.own:
        # TCP alone was measured: that is its ceiling, and the copy's rate has to reach it.
        found = replace(found, bytes_per_second=rate, reached=None, standing="measured")
    told = seen.sockets
    set_by = socket_buffers.fixed(
        *(given, given.sender, socket_buffers.SEND),
        *(told, told.min_rtt_seconds, told.send_buffer_bytes),
    )
    if found is not None:
        yield claim(
            CAUSE,
            given.sender,
            seen.found,
            f"the {given.sender}'s TCP send buffer {found.words}",
            level=found.bytes_per_second,
            high=found.high_bytes_per_second,
            standing=found.standing,
            reached=found.reached,
            evidence=(found.evidence,),
            remedy=set_by.remedy,
            detail=set_by.detail,
            window_bytes=found.window_bytes if seen.own else 0.0,
        )


def _in_bursts(seen: Connection, carried: float | None, rate: float) -> Limit | None:
    """Where the buffer is smaller than the kernel's tuning makes it, and runs empty each time."""
    told = seen.sockets
    size, window = told.send_buffer_bytes, told.congestion_window_bytes_median
    high, rtt = told.in_flight_bytes_high, told.min_rtt_seconds
    if not size or window is None or high is None or rtt is None or carried is None:
        return None
    small = size < TUNED_RATIO * window and high >= FULL_RATIO * size
    emptied = (told.unsent_bytes_median or 0.0) <= EMPTY_RATIO * high
    if not small or not emptied or rate >= LINK_RATIO * carried:
        return None
    usual, bursts = told.rtt_seconds_median or rtt, high / (rtt + high / carried)
    each_trip = bursts * usual
    if _trapped(size, high, rtt, usual) and carried >= CARRIES_MORE_RATIO * rate:
        # Only its last bytes wait that long.
        level, reached, each_trip = rate, True, 0.0
        how = (
            f"({size_text(size)}) waits for delayed acknowledgements ({seconds_text(usual)} "
            f"instead of {seconds_text(rtt)})"
        )
    else:
        full = told.send_queue_full_ratio
        shown = told.by == "send-buffer" and full >= MOSTLY_RATIO
        # A buffer that was seen to be full most of the time leaves what it left, scaled up.
        level = max(rate, min(bursts, rate / full) if shown else bursts)
        reached = shown or rate >= BURSTS_RATIO * bursts
        how = (
            f"({size_text(size)}) runs empty once per RTT of {seconds_text(rtt)}, which allows "
            f"about {rate_text(level)}"
        )
    return Limit(
        each_trip,
        level,
        max(level, min(carried, high / rtt)),
        reached,
        how,
        f"The buffer ({size_text(size)}) was smaller than the kernel's own tuning makes it for a "
        f"congestion window of {size_text(window)}, and was mostly empty.",
    )


def _trapped(size: float, high: float, rtt: float, usual: float) -> bool:
    """Whether it is a tiny buffer on a path that takes no time by itself."""
    tiny = size <= TINY_BYTES and high <= size
    return tiny and rtt < SHORT_SECONDS and usual >= max(DELAYED_SECONDS, DELAYED_RATIO * rtt)
