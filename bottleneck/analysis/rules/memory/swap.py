"""memory/swap: a host that moves memory to its disk and back while it copies.

Where swap lies on the copy's own disk it is what others do there; where it does not, the host's
tasks wait for their memory, which the kernel counts (Documentation/accounting/psi.rst).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis.claim import Cause, behind, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import SHORTEST_SECONDS
from bottleneck.analysis.rules.disk import contention
from bottleneck.analysis.rules.disk.alone import Alone
from bottleneck.text.units import percent_text, rate_text, size_text
from probes.core.records import SIDES, Usage

CAUSE = Cause("memory", "swap", "swapping")
LEAST_BYTES_PER_SECOND = 1e6
"""Moved to swap and back; less is what any host puts aside that nobody asks for."""
BACK_RATIO = 0.1
"""Of that, what comes back: what only goes is put aside once."""
SHORT_RATIO = 0.2
"""Of the memory without what is in use: a host that has more is not short of it."""
WAITING_RATIO = 0.3
"""Of the time, that its tasks wait for memory, from which on it may hold the copy."""
MOSTLY_RATIO = 0.7
EXPLAINS_RATIO = 0.7
"""Of others' I/O on the copy's disk, from which on that is swap and nobody else."""


def claims(alone: Alone) -> Iterator[Claim]:
    """What swap leaves of the disk, where it is what else that disk is busy with."""
    usage = alone.best.usage(alone.side)
    swapped = None if usage is None else _bytes(usage)
    if usage is None or swapped is None or not swaps(usage):
        return
    told = alone.best.disk.others
    foreign = (told.read_bytes or 0.0) + (told.written_bytes or 0.0)
    if not foreign or swapped < EXPLAINS_RATIO * foreign:
        return
    for each in contention.claims(alone):
        left = rate_text(each.ceiling.bytes_per_second)
        yield replace(
            each,
            ceiling=behind(each.ceiling, CAUSE, alone.side),
            words=(
                f"the {alone.side} swaps {rate_text(_rate(usage))} to and from {alone.disk}, "
                f"which leaves {left}"
            ),
            evidence=(_evidence(alone.side, usage), *each.evidence),
            remedy=_remedy(alone.side, usage),
        )


def rule(given: Evidence) -> Iterator[Claim | str]:
    """For both hosts: what a copy would give whose host never waits for its own memory.

    Whether the tasks that wait are the copy's is not told: it is named where nothing else is.
    """
    for side in SIDES:
        usage = given.step.usage(side)
        if usage is None or not swaps(usage):
            continue
        waits = min(1.0, usage.memory_waiting_ratio or 0.0)
        if waits < WAITING_RATIO:
            yield f"{_evidence(side, usage)} The copy was not seen to wait for it."
            continue
        rate = given.rate
        yield claim(
            CAUSE,
            side,
            given.step,
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
    """Moved to swap and back; None: the system does not tell."""
    if usage.swapped_in_bytes is None or usage.swapped_out_bytes is None:
        return None
    return usage.swapped_in_bytes + usage.swapped_out_bytes


def _rate(usage: Usage) -> float:
    return (_bytes(usage) or 0) / max(SHORTEST_SECONDS, usage.wall_seconds)


def swaps(usage: Usage) -> bool:
    """Whether a host is short of memory, and moves what it needs to swap and back."""
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
    more = size_text((usage.memory_total_bytes or 0) * (1 + SHORT_RATIO))
    return f"Run fewer programs on the {side}, or give it {more} of memory or more"
