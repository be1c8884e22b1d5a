"""disk/contention: somebody else's I/O on the device while this tool measured it.

The kernel counts what a device moves for everybody (Documentation/admin-guide/iostats.rst): what is
beyond this tool's own payload is somebody else's, and so is all of it while this tool moves bytes
from memory to memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import SHORTEST_SECONDS
from bottleneck.analysis.rules.disk.alone import Alone
from bottleneck.text.units import count_text, percent_text, rate_text

CAUSE = Cause(
    *("disk", "contention", "other I/O"),
    stays=True,
    remedy="Find the other I/O with `iotop -o` on the {side}. Then stop it or move it to another "
    "time",
)
SHARE_RATIO = 0.25
"""Of the bytes, or of the time in seeks, from which on others' I/O is what slows a disk."""
BUSY_RATIO = 0.3
QUIET_RATIO = 0.1
"""A device that was idle right before was busy with what our own writes brought along."""
ALONE_RATIO = 0.05
PAGE_BYTES = 4096
"""Least that an access of a file system moves; what has less is a count of split requests."""


@dataclass(frozen=True)
class Others:
    """What others did with the device while a step ran."""

    read_bytes: float
    written_bytes: float
    accesses: float
    share: float
    """Of the bytes that the device moved."""


def claims(alone: Alone) -> Iterator[Claim]:
    """What others leave of the disk; nothing where it was this tool's alone."""
    others, before = _during(alone), _before(alone)
    if not _proven(alone.verb, others, before):
        return
    yield claim(
        CAUSE,
        alone.side,
        alone.best,
        f"{_told(alone, others, before)}, which leaves {rate_text(alone.rate)}",
        evidence=tuple(_evidence(alone, others, before)),
        remedy=remedy(alone.side),
    )
    foreign = 0.0 if others is None else others.read_bytes + others.written_bytes
    most = alone.limit or alone.rate + foreign / _seconds(alone)
    if most > alone.rate:
        freed = alone.without("without the other I/O", most, alone.best.index)
        # Heads that go to and fro move less for everybody than the disk gives one of them.
        known = alone.limit or not alone.rotational
        floor = replace(freed.ceiling, standing="at-least")
        yield freed if known else replace(freed, ceiling=floor)


def remedy(side: str) -> str:
    """What to do about others' I/O on a side."""
    return CAUSE.remedy.format(side=side)


def _proven(verb: str, others: Others | None, before: float | None) -> bool:
    if others is None:
        return before is not None and before > BUSY_RATIO
    if others.share <= ALONE_RATIO:
        return False
    if before is not None and before > BUSY_RATIO:
        return True
    # A file system writes more than it is given: a journal, copies of its own.
    own = verb == "write" and (before is None or before < QUIET_RATIO)
    return others.share > SHARE_RATIO and not own


def _during(alone: Alone) -> Others | None:
    told = alone.best.disk.others
    read, written = told.read_bytes, told.written_bytes
    if read is None and written is None:
        return None
    moved = (read or 0.0) + (written or 0.0)
    counted = told.reads + told.writes
    accesses = min(counted, moved / PAGE_BYTES)
    share = moved / (moved + alone.best.moved_bytes) if moved else 0.0
    return Others(read or 0.0, written or 0.0, accesses, share)


def _before(alone: Alone) -> float | None:
    """The busiest that the device was without this tool; None: nobody looked."""
    looks = (*disk_steps(alone.report, alone.side, "read", "sequential"), alone.best)
    found = (each.disk.before.busy_ratio for each in looks)
    return max((each for each in found if each is not None), default=None)


def _seconds(alone: Alone) -> float:
    """How long others' I/O was counted: longer than this tool moved its bytes."""
    usage = alone.best.usage(alone.side)
    return max(alone.best.seconds, SHORTEST_SECONDS, 0.0 if usage is None else usage.wall_seconds)


def _told(alone: Alone, others: Others | None, before: float | None) -> str:
    """What other processes do, as a sentence's start."""
    parts = []
    if others is not None:
        total = others.read_bytes + others.written_bytes
        if others.read_bytes > ALONE_RATIO * total:
            parts.append(f"read {rate_text(others.read_bytes / _seconds(alone))} from")
        if others.written_bytes > ALONE_RATIO * total:
            parts.append(f"write {rate_text(others.written_bytes / _seconds(alone))} to")
    if parts:
        return f"other processes {' and '.join(parts)} {alone.disk}"
    busy = percent_text(min(1.0, before or 0.0))
    return f"other processes keep {alone.disk} busy {busy} of the time"


def _evidence(alone: Alone, others: Others | None, before: float | None) -> Iterator[str]:
    if others is not None:
        rate = rate_text((others.read_bytes + others.written_bytes) / _seconds(alone))
        count = count_text(others.accesses / _seconds(alone))
        accesses = f" in {count} accesses per second" if others.accesses else ""
        yield (
            f"While this tool {'read from' if alone.verb == 'read' else 'wrote to'} {alone.disk}, "
            f"other processes moved {rate}{accesses}."
        )
    if before is not None and before > BUSY_RATIO:
        busy = percent_text(min(1.0, before))
        yield f"With this tool idle, {alone.disk} had I/O in flight {busy} of the time."
