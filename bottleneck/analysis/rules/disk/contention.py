"""disk/contention: somebody else's I/O on the device while this tool measured it.

The kernel counts what a device moves for everybody (Documentation/admin-guide/iostats.rst): what is
beyond this tool's own payload is somebody else's, and so is all of it while this tool moves bytes
from memory to memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps, zones_of
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import SHORTEST_SECONDS
from bottleneck.analysis.rules.disk.alone import Alone
from bottleneck.units import count_text, percent_text, rate_text
from probes.records import Usage

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
IDLE_STAGES = ("loopback", "tcp", "latency", "matrix", "udp")
"""From memory to memory: this tool touches no disk in them."""
IDLE_LEAST_SECONDS = 0.5
PAGE_BYTES = 4096
"""Least that an access of a file system moves; what has less is a count of split requests."""
FULL_RATIO = 0.8
MEETS_RATIO = 0.1
"""Of what a full device moved during the copy, once others' I/O is known from before it."""
SAME_RATIO = 0.95
"""Of what a device moves for everybody, which one alone reaches where it is all that there is."""
MEET_RATIO = 0.4
"""Least of a shared disk's rate that a copy gets of it beside others, who may ask harder."""


@dataclass(frozen=True)
class Others:
    """What others did with the device while a step ran."""

    read_bytes: float
    written_bytes: float
    accesses: float
    share: float
    """Of the bytes that the device moved, or of its time where their seeks take more of that."""


def claims(alone: Alone) -> Iterator[Claim]:
    """What others leave of the disk; nothing where it was this tool's alone."""
    others, before = _during(alone), _before(alone)
    if not _proven(alone.verb, others, before):
        return
    total = _together(alone, others)
    left, reached = _left(alone, total)
    yield claim(
        CAUSE,
        alone.side,
        alone.best,
        f"{_told(alone, others, before)}, which leaves {rate_text(left)}",
        level=left,
        low=min(alone.rate, left),
        high=max(alone.best.rate.high, left),
        reached=True if reached else None,
        source="measured",
        evidence=tuple(_evidence(alone, others, before)),
        remedy=remedy(alone.side),
    )
    by_others = _by_others(alone)
    most = alone.limit or max(total, by_others)
    # Heads that go to and fro move less for everybody than the disk gives one of them.
    known = alone.limit or by_others >= SAME_RATIO * total or not alone.rotational
    if most > alone.rate:
        freed = alone.without("without the other I/O", most, alone.best.index)
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
    seek = _seek_seconds(alone)
    if seek is not None:
        share = max(share, min(1.0, accesses * seek / _seconds(alone)))
    return Others(read or 0.0, written or 0.0, accesses, share)


def _seek_seconds(alone: Alone) -> float | None:
    device = alone.best.disk.device
    known = (zones_of(each) for each in disk_steps(alone.report, alone.side, "read", "zones"))
    same = (each for each in known if each.device and each.device == device)
    return next((each.seek_seconds for each in same), None)


def _before(alone: Alone) -> float | None:
    """The busiest that the device was without this tool; None: nobody looked."""
    looks = (*disk_steps(alone.report, alone.side, "read", "sequential"), alone.best)
    found = (_idle(alone), *(each.disk.before.busy_ratio for each in looks))
    return max((each for each in found if each is not None), default=None)


def _idle(alone: Alone) -> float | None:
    """How busy the device was while bytes went from memory to memory."""
    seen = [
        (usage.wall_seconds, min(1.0, usage.device_busy_ratio))
        for usage in _idle_usages(alone)
        if usage.device_busy_ratio is not None
    ]
    seconds = sum(wall for wall, _ in seen)
    if seconds < IDLE_LEAST_SECONDS:
        return None
    return sum(wall * busy for wall, busy in seen) / seconds


def _by_others(alone: Alone) -> float:
    """The most that others by themselves moved on the device meanwhile, bytes per second."""
    rates = (
        ((each.device_read_bytes or 0) + (each.device_written_bytes or 0)) / each.wall_seconds
        for each in _idle_usages(alone)
        if each.wall_seconds >= IDLE_LEAST_SECONDS
    )
    return max(rates, default=0.0)


def _idle_usages(alone: Alone) -> Iterator[Usage]:
    for stage in IDLE_STAGES:
        for found in steps.measured(alone.report, stage):
            usage = found.usage(alone.side)
            if usage is not None:
                yield usage


def _together(alone: Alone, others: Others | None) -> float:
    """What the device moved for everybody while this tool measured it, bytes per second."""
    usage = alone.best.usage(alone.side)
    if usage is not None and usage.device_read_bytes is not None:
        moved = usage.device_read_bytes + (usage.device_written_bytes or 0.0)
    else:
        foreign = 0.0 if others is None else others.read_bytes + others.written_bytes
        moved = foreign + alone.best.moved_bytes
    return max(alone.rate, moved / _seconds(alone))


def _seconds(alone: Alone) -> float:
    """How long others' I/O was counted: longer than this tool moved its bytes."""
    usage = alone.best.usage(alone.side)
    return max(alone.best.seconds, SHORTEST_SECONDS, 0.0 if usage is None else usage.wall_seconds)


def _left(alone: Alone, total: float) -> tuple[float, bool]:
    """What others leave to the copy, bytes per second, and whether that is what holds it.

    They ask as they like: where they moved bytes beside it, what they left before is no limit.
    """
    made = alone.given.copy.made
    usage = None if made is None else made.usage(alone.side)
    if made is None or usage is None or usage.wall_seconds < SHORTEST_SECONDS:
        return alone.rate, False
    moved = (usage.device_read_bytes or 0) + (usage.device_written_bytes or 0)
    others = moved - made.moved_bytes
    if others <= MEETS_RATIO * moved:
        return alone.rate, False
    # A device that is throttled before its queue seems idle: its bytes show that it is full.
    busy = (usage.device_busy_ratio or 0.0) >= FULL_RATIO
    full = busy or moved / usage.wall_seconds >= FULL_RATIO * total
    left = made.rate.median if full else total - others / usage.wall_seconds
    return max(alone.rate, left), full and made.rate.median > MEET_RATIO * alone.rate


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
