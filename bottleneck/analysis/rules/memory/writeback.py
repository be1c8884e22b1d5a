"""memory/writeback: so little written data may wait in memory that the disk idles in between.

A writer is held where the dirty data reach the limit (balance_dirty_pages in mm/page-writeback.c;
Documentation/admin-guide/sysctl/vm.rst, dirty_bytes). That costs nothing where the limit is many
writes long: the disk always has work then, and is the cap itself. It costs where the limit is so
small that the writer stops before the disk has its next write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, rate_text, size_text
from probes.records import Usage

CAUSE = Cause("memory", "writeback", "a larger dirty limit")
SMALL_BYTES = 16 << 20
"""A larger limit is some of the kernel's own writes long (MIN_WRITEBACK_PAGES is 4 MiB)."""
SMALL_SECONDS = 0.1
"""Of the disk's writing: what holds longer keeps it busy."""
BELOW_RATIO = 0.7
"""Of the disk alone, flushed at the end: held writers that lose less explain nothing."""
IDLE_RATIO = 0.7
"""Of the time with I/O in flight, above which the disk itself is busy."""
WAITING_RATIO, MOSTLY_RATIO = 0.3, 0.85
"""Of the time that tasks wait for I/O though the disk idles: it matters; it is the cap."""


@dataclass(frozen=True)
class _Held:
    """A receiver whose dirty limit is too small for its disk."""

    side: str
    limit_bytes: int
    usage: Usage
    """Of the copy."""
    disk: Found
    """Alone, past the page cache."""

    @property
    def waiting_ratio(self) -> float:
        """Share of the copy in which tasks waited for I/O while the disk idled; 0: not seen."""
        busy, waits = self.usage.device_busy_ratio, self.usage.io_waiting_ratio
        return 0.0 if busy is None or waits is None or busy > IDLE_RATIO else min(1.0, waits)


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What the receiver's dirty limit lets through, where that is less than its disk writes."""
    held = _held(report, copy)
    if held is None or copy.made is None:
        return
    most, waits = BELOW_RATIO * held.disk.rate.median, held.waiting_ratio
    through = _through(report, copy.receiver)
    if through is not None:
        if through[1] < most:
            yield _claim(held, *through, measured=True)
    elif waits >= WAITING_RATIO and copy.made.rate.median < most:
        yield _claim(held, copy.made.index, copy.made.rate.median / waits, measured=False)


def _held(report: Report, copy: Copy) -> _Held | None:
    """The receiver's limit; None: it is not too small, or not known."""
    side = copy.receiver
    usage = None if copy.made is None else copy.made.usage(side)
    disk = steps.fastest(disk_steps(report, side, "write", "sequential"))
    if usage is None or usage.memory_dirty_limit_bytes is None or disk is None:
        return None
    limit = usage.memory_dirty_limit_bytes
    small = limit <= min(SMALL_BYTES, SMALL_SECONDS * disk.rate.median)
    return (
        None
        if not small or hindrance(load(disk.usage(side)), side)
        else _Held(side, limit, usage, disk)
    )


def _through(report: Report, side: str) -> tuple[int, float] | None:
    """What a disk takes of a program that never flushes, until all is written; and its step."""
    known = [
        (each.index, each.disk.durable_bytes_per_second)
        for each in disk_steps(report, side, "write", "sustained")
        if each.disk.durable_bytes_per_second is not None
    ]
    return max(known, key=lambda each: each[1], default=None)


def _claim(held: _Held, step: int, level: float, *, measured: bool) -> Claim:
    side, alone = held.side, held.disk.rate.median
    told = f"through the page cache {rate_text(level)}."
    if not measured:
        told = (
            "during the copy tasks waited for I/O "
            f"{percent_text(held.waiting_ratio)} of the time, and the disk had some in flight "
            f"{percent_text(held.usage.device_busy_ratio or 0.0)} of it."
        )
    return claim(
        CAUSE,
        side,
        None,
        f"no more than {size_text(held.limit_bytes)} of written data may wait for the {side}'s "
        "disk, so that writers wait while it idles",
        level=level,
        steps=(step,),
        standing="measured" if measured else "estimated",
        reached=None if measured else held.waiting_ratio >= MOSTLY_RATIO,
        source="measured" if measured else "seen",
        partly=None if measured else "likeness",
        evidence=(
            f"Alone and past the page cache the {side}'s disk writes {rate_text(alone)}; {told}",
        ),
        remedy=(
            f"A dirty limit of {size_text(max(SMALL_BYTES, SMALL_SECONDS * alone))} on the {side} "
            "(vm.dirty_bytes, or the device's own in /sys/class/bdi)"
        ),
    )
