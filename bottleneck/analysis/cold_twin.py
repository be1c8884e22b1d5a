"""Rule disk/read where no disk was measured: the same copy from RAM runs faster.

All that both have in common bears the faster rate; what the slower one has besides is the sender's
disk. How fast that is by itself depends on whether it works beside the rest or before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.link_end import is_told
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import Copy, Found, flag
from bottleneck.report import Report
from bottleneck.reports.units import rate_text

TRUST = 0.75
PATTERNS = ("sequential", "file", "zones", "told")


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The sender's disk as the difference between an uncached copy and its cached twin."""
    made, twin = copy.made, copy.twin
    if made is None or twin is None or not _trusted(report, made, twin):
        return
    if made.rate.median >= twin.rate.median or not differ(made.rate, twin.rate):
        return
    side = copy.sender
    if any(disk_steps(report, side, "read", each) for each in PATTERNS):
        return
    slow, fast = made.rate.median, twin.rate.median
    alone = 1 / (1 / slow - 1 / fast)
    yield Claim(
        Ceiling(
            component="disk",
            side=side,
            cause="read",
            bytes_per_second=slow,
            low_bytes_per_second=made.rate.low,
            high_bytes_per_second=max(made.rate.high, alone),
            steps=(made.index, twin.index),
            standing="inferred",
        ),
        words=(
            f"the {side}'s disk holds it back, since the same copy with the source in that host's "
            f"RAM runs at {rate_text(fast)}"
        ),
        reached=True,
        trust=TRUST,
        evidence=(
            f"Nobody measured that disk alone: it reads {rate_text(slow)} if it works while the "
            f"bytes travel, up to {rate_text(alone)} if each waits for the other.",
        ),
        remedy=f"A disk on the {side} that reads at {rate_text(max(alone, fast))} or more",
    )


def _trusted(report: Report, made: Found, twin: Found) -> bool:
    """Whether the one came from disk and the other from RAM: proven, or as a person told it."""
    proven = all(flag(each.outcome.details, "cache", "proven") for each in (made, twin))
    return proven or is_told(report)
