"""disk/contention: other processes' I/O on the device while this tool measured it.

The kernel counts a device's bytes of all processes (Documentation/admin-guide/iostats.rst): those
beyond this tool's own payload are others', and so are all of them while this tool moves bytes from
memory to memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import SHORTEST_SECONDS
from bottleneck.analysis.rules.disk.alone import DiskTest
from bottleneck.text.units import count_text, percent_text, rate_text

CAUSE = Cause(
    "disk",
    "contention",
    "other I/O",
    limits_without_fault=True,
    remedy="Find the other I/O with `iotop -o` on the {side}. Then stop it or move it to another "
    "time",
)
SHARE_RATIO = 0.25
"""Least share of others' bytes at which their I/O slows a disk down."""
BUSY_RATIO = 0.3
QUIET_RATIO = 0.1
"""Least busy share right before at which others' writes are not side effects of this tool's."""
ALONE_RATIO = 0.05
PAGE_BYTES = 4096
"""Least bytes of an access of a file system; with fewer, the count is of split requests."""


@dataclass(frozen=True)
class Others:
    """Others' I/O on the device while a step ran."""

    read_bytes: float
    written_bytes: float
    accesses: float
    share: float
    """Others' share of the device's bytes."""


def claims(test: DiskTest) -> Iterator[Claim]:
    """Yields the rate that others leave of the disk; nothing if there was no other I/O."""
    others, earlier = _others_during(test), _busy_before(test)
    if not _is_proven(test.verb, others, earlier):
        return
    yield claim(
        CAUSE,
        test.side,
        test.best,
        f"{_words(test, others, earlier)}, which leaves {rate_text(test.rate)}",
        evidence=tuple(_evidence(test, others, earlier)),
        remedy=remedy(test.side),
    )
    foreign = 0.0 if others is None else others.read_bytes + others.written_bytes
    highest = test.limit or test.rate + foreign / _seconds(test)
    if highest > test.rate:
        freed = test.without("without the other I/O", highest, test.best.index)
        # Heads that seek between several readers move fewer bytes than the disk does for one.
        is_known = test.limit or not test.is_rotational
        floor = replace(freed.ceiling, standing="at-least")
        yield freed if is_known else replace(freed, ceiling=floor)


def remedy(side: str) -> str:
    """Returns the remedy against others' I/O on a side."""
    return CAUSE.remedy.format(side=side)


def _is_proven(verb: str, others: Others | None, earlier: float | None) -> bool:
    if others is None:
        return earlier is not None and earlier > BUSY_RATIO
    if others.share <= ALONE_RATIO:
        return False
    if earlier is not None and earlier > BUSY_RATIO:
        return True
    # A file system writes more than the payload: its journal, its own copies.
    is_own = verb == "write" and (earlier is None or earlier < QUIET_RATIO)
    return others.share > SHARE_RATIO and not is_own


def _others_during(test: DiskTest) -> Others | None:
    others = test.best.disk.others
    read, written = others.read_bytes, others.written_bytes
    if read is None and written is None:
        return None
    total = (read or 0.0) + (written or 0.0)
    accesses = min(others.reads + others.writes, total / PAGE_BYTES)
    share = total / (total + test.best.moved_bytes) if total else 0.0
    return Others(read or 0.0, written or 0.0, accesses, share)


def _busy_before(test: DiskTest) -> float | None:
    """Returns the device's highest busy ratio without this tool; None: not observed."""
    looks = (*disk_steps(test.report, test.side, "read", "sequential"), test.best)
    ratios = (each.disk.before.busy_ratio for each in looks)
    return max((each for each in ratios if each is not None), default=None)


def _seconds(test: DiskTest) -> float:
    """Returns the time in which others' I/O was counted: longer than this tool's transfer."""
    usage = test.best.usage(test.side)
    return max(test.best.seconds, SHORTEST_SECONDS, 0.0 if usage is None else usage.wall_seconds)


def _words(test: DiskTest, others: Others | None, earlier: float | None) -> str:
    parts = []
    if others is not None:
        total = others.read_bytes + others.written_bytes
        if others.read_bytes > ALONE_RATIO * total:
            parts.append(f"read {rate_text(others.read_bytes / _seconds(test))} from")
        if others.written_bytes > ALONE_RATIO * total:
            parts.append(f"write {rate_text(others.written_bytes / _seconds(test))} to")
    if parts:
        return f"other processes {' and '.join(parts)} {test.disk}"
    busy = percent_text(min(1.0, earlier or 0.0))
    return f"other processes keep {test.disk} busy {busy} of the time"


def _evidence(test: DiskTest, others: Others | None, earlier: float | None) -> Iterator[str]:
    if others is not None:
        rate = rate_text((others.read_bytes + others.written_bytes) / _seconds(test))
        count = count_text(others.accesses / _seconds(test))
        accesses = f" in {count} accesses per second" if others.accesses else ""
        yield (
            f"While this tool {'read from' if test.verb == 'read' else 'wrote to'} {test.disk}, "
            f"other processes moved {rate}{accesses}."
        )
    if earlier is not None and earlier > BUSY_RATIO:
        busy = percent_text(min(1.0, earlier))
        yield f"With this tool idle, {test.disk} had I/O in flight {busy} of the time."
