"""memory/writeback: so little dirty data may wait in memory that the disk idles between writes.

A writer has to wait when the dirty data reach the limit (balance_dirty_pages in
mm/page-writeback.c; Documentation/admin-guide/sysctl/vm.rst, dirty_bytes). That costs nothing if
the limit is many writes long: the disk always has work then, and is the cap itself. It costs if the
limit is so small that the writer stops before the disk has its next write.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, hindrance_text
from bottleneck.analysis.finding import Claim
from bottleneck.text.units import percent_text, rate_text, size_text

CAUSE = Cause("memory", "writeback", "dirty-page limit")
SMALL_BYTES = 16 << 20
"""Small limit: a larger one is several of the kernel's writes long (MIN_WRITEBACK_PAGES: 4 MiB)."""
SMALL_SECONDS = 0.1
"""Small limit in seconds of the disk's writing: a larger one keeps it busy."""
BELOW_RATIO = 0.7
"""Least rate / the disk's alone, with a final flush, at which the limit costs little."""
IDLE_RATIO = 0.7
"""Least share of the time with I/O in flight of a disk that is busy itself."""
WAITING_RATIO, MOSTLY_RATIO = 0.3, 0.85
"""Least share of time waiting for I/O of an idle disk at which it matters; is the cap."""


def rule(evidence: Evidence) -> Iterator[Claim]:
    """Yields the rate under the receiver's dirty-page limit, if its disk writes faster."""
    side, usage = evidence.receiver, evidence.step.usage(evidence.receiver)
    disk = steps.fastest(disk_steps(evidence.report, side, "write", "sequential"))
    if usage is None or usage.memory_dirty_limit_bytes is None or disk is None:
        return
    limit, disk_rate = usage.memory_dirty_limit_bytes, disk.rate.median
    if limit > min(SMALL_BYTES, SMALL_SECONDS * disk_rate) or hindrance_text(disk, side):
        return
    # Rate of a program that never flushes, until all is written.
    sustained = disk_steps(evidence.report, side, "write", "sustained")
    rates = ((each.disk.durable_bytes_per_second, each.index) for each in sustained)
    measured = [(rate, index) for rate, index in rates if rate is not None]
    level, step = evidence.rate.median, evidence.step.index
    busy, waits = usage.device_busy_ratio or 0.0, min(1.0, usage.io_waiting_ratio or 0.0)
    if measured:
        level, step = max(measured)
        how = f"Through the page cache it wrote {rate_text(level)}."
    elif usage.device_busy_ratio is None or busy > IDLE_RATIO or waits < WAITING_RATIO:
        return
    else:
        how = (
            f"During the copy, tasks waited for I/O {percent_text(waits)} of the time, but the "
            f"disk had I/O in flight only {percent_text(busy)} of the time."
        )
    if level >= BELOW_RATIO * disk_rate:
        return
    yield claim(
        CAUSE,
        side,
        None,
        f"the {side}'s dirty-page limit ({size_text(limit)}) makes writers wait while its disk is "
        "idle",
        level=level if measured else level / waits,
        steps=(step,),
        standing="measured" if measured else "estimated",
        reached=None if measured else waits >= MOSTLY_RATIO,
        partly=not measured,
        evidence=(
            f"By itself and past the page cache, the {side}'s disk wrote {rate_text(disk_rate)}. "
            f"{how}",
        ),
        remedy=(
            f"Raise the dirty-page limit on the {side} to "
            f"{size_text(max(SMALL_BYTES, SMALL_SECONDS * disk_rate))} (`vm.dirty_bytes`, or the "
            "device's own in /sys/class/bdi)"
        ),
        detail=f"limited to {size_text(limit)}",
    )
