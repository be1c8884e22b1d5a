"""network/delay: the round trip is too long for a copy so short, or for the largest window.

Strict: a window that can be raised is the window's affair, and requests that wait for replies are
SMB's. What is left is a copy that ends soon after its connection has started, and one connection
with all that TCP is given on a path that asks for more.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import Cause
from bottleneck.analysis.claim import claim as claimed
from bottleneck.analysis.evidence.copies import Evidence, foreign_rate
from bottleneck.analysis.evidence.startup import SHORT_RATIO, SMALL_RATIO, is_all, startup
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.tcp.receive_window import LARGEST_BYTES, limit
from bottleneck.units import percent_text, rate_text, seconds_text, size_text

REMEDY = "Copy small files in parallel or as one archive, or shorten the path"
CAUSE = Cause("network", "delay", "delay", stays=True, remedy=REMEDY)


def rule(given: Evidence) -> Iterator[Claim | str]:
    """The start of a short copy, and what the largest window carries at the path's round trip."""
    found = limit(given)
    if found is not None and found.window_bytes >= LARGEST_BYTES:
        remedy = "Use several connections (SMB multichannel), or several copies in parallel"
        yield found.claim(CAUSE, "path", "one connection's TCP window", "law", remedy)
    trip = is_all(given)
    if trip is None:
        yield from _short(given)
        return
    yield claimed(
        CAUSE,
        "path",
        given.made,
        f"its connection was still in slow start when it ended, at an RTT of {seconds_text(trip)}",
        standing="inferred",
        reached=True,
        source="law",
        remedy=REMEDY,
    )


def _short(given: Evidence) -> Iterator[Claim | str]:
    """What a copy's start takes of it; it is the cause where the copy is short beside it."""
    start = startup(given)
    if start is None or not start.matters:
        return
    if foreign_rate(given.report, given.made, given.sender) is not None:
        return  # a round trip in the queue of other traffic is not the path's own
    took = f"{seconds_text(start.seconds)} of {seconds_text(given.made.seconds)}"
    at = f"at an RTT of {seconds_text(start.rtt_seconds)}"
    apart = (
        f"TCP's start took {took} (slow start and first replies {at}). A long file gets about "
        f"{rate_text(start.bytes_per_second)}; from {size_text(start.small_from_bytes)} on, the "
        f"start takes less than {percent_text(SMALL_RATIO)}."
    )
    if start.ratio < SHORT_RATIO:
        yield apart
        return
    yield claimed(
        CAUSE,
        "path",
        given.made,
        f"TCP's start took {took} {at}, which matters for files below "
        f"{size_text(start.small_from_bytes)}",
        standing="inferred",
        reached=True,
        source="seen" if given.alone and given.details.sockets.by == "network" else "law",
        evidence=(apart,),
        remedy=REMEDY,
    )
