"""The start of a copy on a long path, told apart from its rate.

TCP begins with 10 segments (RFC 6928) and doubles them each round trip until the path is full
(RFC 5681 3.1); a first request and a last reply travel as well. A copy that is short beside it gets
less than the path carries, though nothing keeps a longer one from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis.evidence.copies import (
    FAR_SECONDS,
    START_SLACK_RATIO,
    Evidence,
    growing_seconds,
    likely_path_rate,
)
from bottleneck.analysis.steps import OWN

SHORT_RATIO, SMALL_RATIO = 0.3, 0.1
"""Of a copy's time: its start matters more than the path's rate; it no longer matters."""
FILLED_RATIO = 0.85
"""Rate once started over the path's, from which on nothing but the path holds it then."""
MOSTLY_RATIO = 0.5
"""Of a copy's time, from which on its connection mostly grew, or waited for an end."""


BUFFERS = ("send-buffer", "receive-window")
"""What a connection waited for that no start explains."""


@dataclass(frozen=True)
class Startup:
    """The start of one copy: how long it took, as a share of all, and what a long copy gets."""

    seconds: float
    ratio: float
    bytes_per_second: float
    rtt_seconds: float
    carried_bytes_per_second: float
    """What one stream of TCP carried the same way, or what the link seems to carry."""
    growing_seconds: float
    """That a slow start up to that rate takes."""

    @property
    def matters(self) -> bool:
        """Whether it took a good part of a copy that the path alone holds once it has started."""
        filled = self.bytes_per_second >= FILLED_RATIO * self.carried_bytes_per_second
        return filled and self.ratio >= SMALL_RATIO

    @property
    def small_from_bytes(self) -> float:
        """Size of a file from which on the start is a small part of its copy."""
        return self.carried_bytes_per_second * self.seconds * (1 / SMALL_RATIO - 1)


def startup(given: Evidence) -> Startup | None:
    """The start of a copy of this tool's; None: its path is short, or nobody measured it."""
    if given.copy.made is None or given.copy.engine != OWN:
        return None
    alone = given.alone
    carried = likely_path_rate(given) if alone is None else alone.found.rate.median
    if carried is None:
        return None
    made, told = given.made, given.details.sockets
    rtt = told.min_rtt_seconds or given.details.rtt_seconds
    waited = max(told.receive_window_limited_ratio, told.send_buffer_limited_ratio)
    if rtt is None or rtt < FAR_SECONDS or waited >= MOSTLY_RATIO or told.by in BUFFERS:
        return None
    growing = growing_seconds(made, carried, rtt)
    missing = made.seconds - made.moved_bytes / carried
    seconds = min(max(0.0, missing), START_SLACK_RATIO * (growing + rtt))
    rate = made.moved_bytes / (made.seconds - seconds)
    return Startup(seconds, seconds / made.seconds, rate, rtt, carried, growing)


def is_all(given: Evidence) -> float | None:
    """The round trip of a copy by a lone client that took no longer than its connection's slow
    start; None: it took longer, or something else held it as well."""
    if given.copy.made is None or not given.lone:
        return None
    made, told = given.made, given.details.sockets
    rtt = told.min_rtt_seconds or given.details.rtt_seconds
    if rtt is None or rtt < FAR_SECONDS or told.by in BUFFERS or told.retransmitted_bytes:
        return None
    # The last window doubled is all that went before; a first request and a last reply travel too.
    start = growing_seconds(made, made.moved_bytes / rtt, rtt) + 2 * rtt
    return rtt if made.seconds <= START_SLACK_RATIO * start else None


def explains(given: Evidence) -> bool:
    """Whether its start is what held a copy, and no end's buffer."""
    start = startup(given)
    if start is None:
        return False
    return start.matters or start.growing_seconds >= MOSTLY_RATIO * given.made.seconds
