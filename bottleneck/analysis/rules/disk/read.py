"""disk/read where no disk was measured: the same copy from RAM runs faster.

All that both have in common bears the faster rate; what the slower one has besides is the sender's
disk. How fast that is by itself depends on whether it works beside the rest or before it. What a
disk reads alone is in alone.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import GAP, SURE, Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.link_end import is_told
from bottleneck.analysis.noise import differ
from bottleneck.text.units import rate_text

CAUSE = Cause("disk", "read", "read")
PATTERNS = ("sequential", "file", "zones", "told")


def rule(given: Evidence) -> Iterator[Claim]:
    """The sender's disk as the difference between an uncached copy and its cached twin."""
    made, twin, side = given.made, given.copy.twin, given.sender
    if twin is None or not differ(made.rate, twin.rate) or made.rate.median >= twin.rate.median:
        return
    proven = all(each.details.cache.proven for each in (made, twin))
    cold = made.details.cache.cold_source
    known = any(disk_steps(given.report, side, "read", each) for each in PATTERNS)
    if known or not (proven or cold or is_told(given.report)):
        return
    slow, fast = made.rate.median, twin.rate.median
    alone = 1 / (1 / slow - 1 / fast)
    yield claim(
        CAUSE,
        side,
        made,
        f"the {side}'s disk is slower than its memory ({rate_text(fast)})",
        high=max(made.rate.high, alone),
        steps=(made.index, twin.index),
        standing="inferred",
        reached=True,
        trust=GAP if cold else SURE,
        evidence=(
            f"That disk was not measured separately. It reads {rate_text(slow)} if disk and "
            f"network work in parallel, up to {rate_text(alone)} if they take turns.",
        ),
        remedy=f"Use a disk on the {side} that reads {rate_text(max(alone, fast))} or more",
    )
