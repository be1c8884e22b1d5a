"""Rule network/delay: the round trip is too long for the largest window that hosts are set up with.

Strict: a window that can be raised is the window's affair, and requests that wait for replies are
SMB's. What is left is one connection with all that TCP is given, and a path that asks for more.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.receive_window import LARGEST_BYTES, limit
from bottleneck.analysis.steps import Copy
from bottleneck.report import Report

TRUST = 0.7


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What the largest window carries at the round trip of the path."""
    found = limit(report, copy)
    if found is None or found.window_bytes < LARGEST_BYTES:
        return
    yield Claim(
        Ceiling(
            component="network",
            side="path",
            cause="delay",
            bytes_per_second=found.bytes_per_second,
            low_bytes_per_second=found.low_bytes_per_second,
            high_bytes_per_second=max(found.bytes_per_second, found.high_bytes_per_second),
            steps=(found.seen.found.index,),
            standing=found.standing,
        ),
        words=f"one connection's window of {found.words}",
        reached=found.reached,
        trust=TRUST,
        evidence=found.evidence,
        remedy="Several connections at once (multichannel, or several copies)",
    )
