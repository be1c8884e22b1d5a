"""The start of a copy on a long path, told apart from its rate.

TCP begins with 10 segments (RFC 6928) and doubles them each round trip until the path is full
(RFC 5681 3.1); a first request and a last reply travel as well. A copy that is short beside it gets
less than the path carries, though nothing keeps a longer one from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bottleneck.analysis.evidence.copies import Evidence, alike
from bottleneck.analysis.steps import OWN

FIRST_SEGMENTS, USUAL_SEGMENT_BYTES = 10, 1448
FAR_SECONDS = 5e-3
"""Below it a start takes no more than some 50 ms."""
SLACK_RATIO = 1.25
"""What a start may take beyond that: a queue adds to its last round trips."""
SHORT_RATIO = 0.3
"""Of a copy's time, from which on its start matters more than the path's rate."""
SMALL_RATIO = 0.1
"""Of its time that no longer matters."""
FILLED_RATIO = 0.85
"""Rate once started over the path's, from which on nothing but the path holds it then."""
MOSTLY_RATIO = 0.5
"""Of a copy's time, from which on its connection mostly grew, or waited for an end."""
MORE_RATIO, BEYOND_RATIO = 1.1, 1.05
"""Over a ceiling, of what shows that it is none; over the path, of what no path carried."""


@dataclass(frozen=True)
class Startup:
    """The start of one copy."""

    seconds: float
    """Of its time."""
    ratio: float
    """That over all of it."""
    bytes_per_second: float
    """What a copy gets that lasts: its rate without the start."""
    rtt_seconds: float
    carried_bytes_per_second: float
    """What one stream of TCP carried the same way."""
    growing_seconds: float
    """That a slow start up to the path's rate takes."""

    @property
    def filled(self) -> bool:
        """Whether the path alone holds the copy once it has started."""
        return self.bytes_per_second >= FILLED_RATIO * self.carried_bytes_per_second

    @property
    def short(self) -> bool:
        """Whether the copy is so short that its start is what keeps it from the path's rate."""
        return self.filled and self.ratio >= SHORT_RATIO

    @property
    def small_from_bytes(self) -> float:
        """Size of a file from which on the start is a small part of its copy."""
        return self.carried_bytes_per_second * self.seconds * (1 / SMALL_RATIO - 1)


def startup(given: Evidence) -> Startup | None:
    """The start of a copy of this tool's; None: its path is short, or nobody measured it."""
    alone = None if given.copy.made is None else given.alone
    if alone is None or given.copy.engine != OWN:
        return None
    carried = alone.found.rate.median
    made, told = given.made, given.details.sockets
    rtt = told.min_rtt_seconds or given.details.rtt_seconds
    waited = max(told.receive_window_limited_ratio, told.send_buffer_limited_ratio)
    if rtt is None or rtt < FAR_SECONDS or waited >= MOSTLY_RATIO:
        return None
    first = FIRST_SEGMENTS * (told.segment_bytes or USUAL_SEGMENT_BYTES)
    growing = rtt * max(0.0, math.log2(carried * rtt / first))
    missing = made.seconds - made.moved_bytes / carried
    seconds = min(max(0.0, missing), SLACK_RATIO * (growing + rtt))
    rate = made.moved_bytes / (made.seconds - seconds)
    return Startup(seconds, seconds / made.seconds, rate, rtt, carried, growing)


def outgrown(given: Evidence, bytes_per_second: float) -> bool:
    """Whether no end's buffer is what held a copy at a rate.

    Its start did; or the same client moved more over SMB the same way, through such buffers.
    """
    start = startup(given)
    if start is not None:
        grew = start.growing_seconds >= MOSTLY_RATIO * given.made.seconds
        if grew or (start.filled and start.ratio >= SMALL_RATIO):
            return True
    most = BEYOND_RATIO * given.path_rate if given.path_rate else math.inf
    moved = [
        rate
        for each in alike(given.report, given.sender)
        for rate in (each.rate.median, *(cell.bytes_per_second for cell in each.details.cells))
        if rate is not None and rate <= most and each.index != given.made.index
    ]
    return max(moved, default=0.0) > MORE_RATIO * max(bytes_per_second, given.rate.median)
