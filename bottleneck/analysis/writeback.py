"""Rule memory/writeback: so little written data may wait in memory that the disk idles in between.

A writer is held where the dirty data reach the limit (balance_dirty_pages in mm/page-writeback.c;
Documentation/admin-guide/sysctl/vm.rst, dirty_bytes). That costs nothing where the limit is many
writes long: the disk always has work then, and is the cap itself. It costs where the limit is so
small that the writer stops before the disk has its next write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, rate_text, size_text
from probes.records import Usage

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
MEASURED_TRUST, SEEN_TRUST, PARTIAL_TRUST = 0.9, 0.85, 0.6


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
        if busy is None or waits is None or busy > IDLE_RATIO:
            return 0.0
        return min(1.0, waits)


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What the receiver's dirty limit lets through, where that is less than its disk writes."""
    held = _held(report, copy)
    if held is None or copy.made is None:
        return
    most = BELOW_RATIO * held.disk.rate.median
    through = _through(report, copy.receiver)
    if through is not None:
        index, rate = through
        if rate < most:
            yield _claim(held, Ceiling(*_part(held), rate, rate, rate, (index,), "measured"))
        return
    rate, waits = copy.made.rate.median, held.waiting_ratio
    if waits >= WAITING_RATIO and rate < most:
        level = rate / waits
        index = copy.made.index
        yield _claim(held, Ceiling(*_part(held), level, level, level, (index,), "estimated"))


def _part(held: _Held) -> tuple[str, str, str]:
    return "memory", held.side, "writeback"


def _held(report: Report, copy: Copy) -> _Held | None:
    """The receiver's limit; None: it is not too small, or not known."""
    side = copy.receiver
    usage = None if copy.made is None else copy.made.usage(side)
    written = disk_steps(report, side, "write", "sequential")
    disk = max(written, key=lambda each: each.rate.median, default=None)
    if usage is None or usage.memory_dirty_limit_bytes is None or disk is None:
        return None
    limit = usage.memory_dirty_limit_bytes
    if limit > min(SMALL_BYTES, SMALL_SECONDS * disk.rate.median):
        return None
    if hindrance(load(disk.usage(side)), side):
        return None
    return _Held(side, limit, usage, disk)


def _through(report: Report, side: str) -> tuple[int, float] | None:
    """What a disk takes of a program that never flushes, until all is written; and its step."""
    found = [
        (each.index, steps.positive(each.outcome.details, "durable_bytes_per_second"))
        for each in disk_steps(report, side, "write", "sustained")
    ]
    known = [(index, rate) for index, rate in found if rate is not None]
    return max(known, key=lambda each: each[1], default=None)


def _claim(held: _Held, ceiling: Ceiling) -> Claim:
    side, alone = held.side, held.disk.rate.median
    measured = ceiling.standing == "measured"
    told = f"through the page cache {rate_text(ceiling.bytes_per_second)}."
    if not measured:
        told = (
            "during the copy tasks waited for I/O "
            f"{percent_text(held.waiting_ratio)} of the time, and the disk had some in flight "
            f"{percent_text(held.usage.device_busy_ratio or 0.0)} of it."
        )
    return Claim(
        ceiling,
        words=(
            f"no more than {size_text(held.limit_bytes)} of written data may wait for the {side}'s "
            "disk, so that writers wait while it idles"
        ),
        reached=None if measured else held.waiting_ratio >= MOSTLY_RATIO,
        trust=MEASURED_TRUST if measured else SEEN_TRUST,
        partial_trust=0.0 if measured else PARTIAL_TRUST,
        evidence=(
            f"Alone and past the page cache the {side}'s disk writes {rate_text(alone)}; {told}",
        ),
        remedy=(
            f"A dirty limit of {size_text(max(SMALL_BYTES, SMALL_SECONDS * alone))} on the {side} "
            "(vm.dirty_bytes, or the device's own in /sys/class/bdi)"
        ),
    )
