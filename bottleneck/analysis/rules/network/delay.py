"""network/delay: the round trip is too long for the largest window that hosts are set up with.

Strict: a window that can be raised is the window's affair, and requests that wait for replies are
SMB's. What is left is one connection with all that TCP is given, and a path that asks for more.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import Cause
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.tcp.receive_window import LARGEST_BYTES, limit

CAUSE = Cause("network", "delay", "delay", stays=True)


def rule(given: Evidence) -> Iterator[Claim]:
    """What the largest window carries at the round trip of the path."""
    found = limit(given)
    if found is not None and found.window_bytes >= LARGEST_BYTES:
        remedy = "Use several connections (SMB multichannel), or several copies in parallel"
        yield found.claim(CAUSE, "path", "one connection's TCP window", "law", remedy)
