"""memory/swap: a host that moves memory to its disk and back while it copies.

If swap lies on the copy's own disk it is others' I/O there; if not, the host's tasks wait for their
memory, which the kernel counts (Documentation/accounting/psi.rst).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis.claim import Cause, behind, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import SHORTEST_SECONDS
from bottleneck.analysis.rules.disk import contention
from bottleneck.analysis.rules.disk.alone import DiskTest
from bottleneck.text.units import percent_text, rate_text, size_text
from probes.core.records import SIDES, Usage

CAUSE = Cause("memory", "swap", "swapping")
LEAST_BYTES_PER_SECOND = 1e6
"""Least rate to swap and back; below it any host swaps out unused memory."""
BACK_RATIO = 0.1
"""Least share of it that comes back: memory that only goes is not needed."""
SHORT_RATIO = 0.2
"""Least free share of memory of a host that is not short of it."""
WAITING_RATIO = 0.3
"""Least share of the time in which tasks wait for memory that may limit the copy."""
MOSTLY_RATIO = 0.7
EXPLAINS_RATIO = 0.7
"""Least share of others' I/O on the copy's disk that swap explains."""


def claims(test: DiskTest) -> Iterator[Claim]:
    """Yields the rate that swap leaves of the disk, if swap is the other I/O there."""
    usage = test.best.usage(test.side)
    swapped = None if usage is None else _bytes(usage)
    if usage is None or swapped is None or not swaps(usage):
        return
    others = test.best.disk.others
    foreign = (others.read_bytes or 0.0) + (others.written_bytes or 0.0)
    if not foreign or swapped < EXPLAINS_RATIO * foreign:
        return
    for each in contention.claims(test):
        remaining = rate_text(each.ceiling.bytes_per_second)
        yield replace(
            each,
            ceiling=behind(each.ceiling, CAUSE, test.side),
            words=(
                f"the {test.side} swaps {rate_text(_rate(usage))} to and from {test.disk}, "
                f"which leaves {remaining}"
            ),
            evidence=(_evidence(test.side, usage), *each.evidence),
            remedy=_remedy(test.side, usage),
        )


def rule(evidence: Evidence) -> Iterator[Claim | str]:
    """Yields for both hosts the rate of a copy whose host never waits for its own memory.

    Whether the waiting tasks are the copy's is not known: it is named only if nothing else is.
    """
    for side in SIDES:
        usage = evidence.step.usage(side)
        if usage is None or not swaps(usage):
            continue
        waits = min(1.0, usage.memory_waiting_ratio or 0.0)
        if waits < WAITING_RATIO:
            yield f"{_evidence(side, usage)} The copy was not seen to wait for it."
            continue
        rate = evidence.rate
        yield claim(
            CAUSE,
            side,
            evidence.step,
            f"the {side} swaps {rate_text(_rate(usage))} and waits for memory "
            f"{percent_text(waits)} of the time",
            level=rate.median / waits,
            low=rate.low / waits,
            high=rate.high / waits,
            standing="estimated",
            reached=False,
            partly=True,
            evidence=(_evidence(side, usage),),
            remedy=_remedy(side, usage),
        )


def _bytes(usage: Usage) -> int | None:
    """Returns the bytes moved to swap and back; None: the system does not count them."""
    if usage.swapped_in_bytes is None or usage.swapped_out_bytes is None:
        return None
    return usage.swapped_in_bytes + usage.swapped_out_bytes


def _rate(usage: Usage) -> float:
    return (_bytes(usage) or 0) / max(SHORTEST_SECONDS, usage.wall_seconds)


def swaps(usage: Usage) -> bool:
    """Whether a host is short of memory, and moves memory that it needs to swap and back."""
    total, used = usage.memory_total_bytes, usage.memory_used_bytes
    if total is None or used is None or total - used > SHORT_RATIO * total:
        return False
    back = usage.swapped_in_bytes or 0
    return _rate(usage) >= LEAST_BYTES_PER_SECOND and back >= BACK_RATIO * (_bytes(usage) or 0)


def _evidence(side: str, usage: Usage) -> str:
    return (
        f"The {side} used {size_text(usage.memory_used_bytes or 0)} of its "
        f"{size_text(usage.memory_total_bytes or 0)} of memory. It moved "
        f"{size_text(usage.swapped_out_bytes or 0)} to swap and "
        f"{size_text(usage.swapped_in_bytes or 0)} back during the copy."
    )


def _remedy(side: str, usage: Usage) -> str:
    target = size_text((usage.memory_total_bytes or 0) * (1 + SHORT_RATIO))
    return f"Run fewer programs on the {side}, or give it {target} of memory or more"
