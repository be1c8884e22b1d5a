"""disk/write without an agent: what a push's client sees of the server's disk in its FLUSHes.

A FLUSH is answered when the server has made durable what it holds (MS-SMB2 3.3.5.11). Where all
bytes were acknowledged long before, its time is the disk's. What a disk writes alone is in
alone.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.views import LEAST
from bottleneck.analysis.finding import Claim
from bottleneck.units import percent_text, rate_text, seconds_text

CAUSE = Cause("disk", "write", "write")
MOSTLY_RATIO = 0.5
"""Share of a push's time that FLUSHes take, from which on they are what it waits for."""
ARRIVED_RATIO = 1.25
"""Acknowledged over durable rate, from which on the bytes were there and the disk alone was not."""
CLOSE_RATIO = 0.7
"""Rate over what the FLUSHes leave: what came before the first one is no time of the disk."""
SAME = (
    "Seen from the client, a slow disk, a weak zone and other I/O look the same. An agent on the "
    "server (--agent) distinguishes them."
)


@dataclass(frozen=True)
class Flushed:
    """The FLUSHes of one push."""

    seconds: float
    """What they took beyond what a WRITE sent at the same moment takes."""
    ratio: float
    """That over the time of the push."""
    bytes_per_second: float
    """What was made durable in that time."""


def flushed(given: Evidence) -> Flushed | None:
    """What a push's FLUSHes took, where its client alone saw it; None: nothing tells."""
    if given.copy.verb != "push" or not given.lone:
        return None
    told, elapsed = given.details, given.made.seconds
    last = told.flush_seconds
    if last is None:
        return None
    before = max(0.0, (told.flushes or 1) - 1)
    # One on the way stands behind the WRITEs before it, as a WRITE would.
    behind = before * (told.request_seconds_median or 0.0)
    own = min(elapsed, last + max(0.0, (told.flushing_seconds or last) - last - behind))
    return Flushed(own, own / elapsed, given.made.moved_bytes / own) if own >= LEAST else None


def rule(given: Evidence) -> Iterator[Claim]:
    """The server's disk as a push shows it that waits for its FLUSHes."""
    seen, rate = flushed(given), given.rate.median
    if seen is None or seen.ratio < MOSTLY_RATIO:
        return
    level = max(rate, seen.bytes_per_second)
    # Whether the bytes were there long before they were durable.
    arrived = (given.details.acknowledged_bytes_per_second or 0.0) >= ARRIVED_RATIO * rate
    yield claim(
        CAUSE,
        "server",
        given.made,
        f"the server needs {seconds_text(seen.seconds)} to flush the data to its disk, which is "
        f"about {rate_text(level)}",
        level=level,
        standing="inferred",
        reached=True if arrived and rate >= CLOSE_RATIO * level else None,
        source="one-end",
        evidence=(
            f"The copy waited {percent_text(seen.ratio)} of its time for the server's disk flush, "
            "after the data had arrived.",
            SAME,
        ),
    )
