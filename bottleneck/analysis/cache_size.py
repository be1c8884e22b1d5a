"""Rule memory/cache-size: a source that should lie in the sender's RAM and does not fit there.

A file that is read in order through a cache that is smaller evicts itself: each part is gone when
it is asked for again. How much of the copy came from the disk is counted by the kernel
(Documentation/admin-guide/iostats.rst), how much of the file was in the cache before it by
cachestat(2) or mincore(2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import physics, steps
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.reports.units import percent_text, rate_text, size_text

LEAST_SHARE = 0.3
"""Of the copy's bytes that the disk had to deliver, from which on it may hold the copy."""
ALL_SHARE = 0.9
"""The same, from which on the copy is no more cached than an uncached one."""
COUNTED_TRUST, TOLD_TRUST = 0.95, 0.8


@dataclass(frozen=True)
class Missed:
    """A copy that should have been served from the sender's page cache and was not."""

    share: float
    """Of its bytes, that its sender's disk delivered."""
    counted: bool
    """Whether the kernel counted them; else it is what the cache lacked before."""
    kept_ratio: float
    """Of the source, that the cache held before the copy."""
    size_bytes: int
    """Of the source, as far as it was copied."""
    memory_bytes: int | None
    """The sender's, or its control group's limit."""
    used_bytes: int | None
    """Of that, without the page cache."""

    @property
    def short(self) -> bool:
        """Whether the sender's memory has no room for the source: that is why."""
        if self.memory_bytes is None or self.used_bytes is None:
            return False
        return self.memory_bytes - self.used_bytes < self.size_bytes


def missed(copy: Copy) -> Missed | None:
    """How a copy missed the cache that it was asked to be in; None: it did not, or nobody saw."""
    if copy.cache != "cached" or copy.made is None:
        return None
    told, usage = copy.made.outcome.details, copy.made.usage(copy.sender)
    kept = steps.amount(told, "cache", "cached_ratio_before")
    if usage is None or kept is None or steps.from_ram(copy.made):
        return None
    run = median_run(copy.made.outcome)
    size = run[-1].moved_bytes - run[0].moved_bytes
    read = usage.device_read_bytes
    share = 1 - kept if read is None else min(1.0, read / size)
    if share < LEAST_SHARE:
        return None
    return Missed(
        share, read is not None, kept, size, usage.memory_total_bytes, usage.memory_used_bytes
    )


def from_disk(copy: Copy) -> bool:
    """Whether a cached copy was read from the sender's disk, though its memory has the room."""
    found = missed(copy)
    return found is not None and found.share >= ALL_SHARE and not found.short


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What a cached copy gets where its sender's memory is smaller than the source."""
    found = missed(copy)
    if found is None or not found.short:
        return
    disk = _disk(report, copy)
    if disk is None:
        yield f"{_evidence(copy.sender, found)} What that disk gives is not known."
        return
    side = copy.sender
    limited = hindrance(load(disk.usage(side)), side)
    level = _in_parts(report, copy, found, disk.rate.median)
    yield Claim(
        Ceiling(
            component="memory",
            side=side,
            cause="cache-size",
            bytes_per_second=level,
            low_bytes_per_second=min(level, disk.rate.low),
            high_bytes_per_second=max(level, disk.rate.high),
            steps=(disk.index,),
            standing="at-least" if limited else "measured",
        ),
        words=(
            f"the {side}'s memory does not hold this file, so that {percent_text(found.share)} of "
            f"it comes from its disk, which reads {rate_text(disk.rate.median)}"
        ),
        trust=COUNTED_TRUST if found.counted else TOLD_TRUST,
        evidence=(_evidence(side, found),),
        remedy=(
            f"{size_text(found.size_bytes + (found.used_bytes or 0))} of memory or more for the "
            f"{side} (now {size_text(found.memory_bytes or 0)})"
        ),
    )


def _disk(report: Report, copy: Copy) -> Found | None:
    """The sender's disk alone, at its best; None: it was not measured, or is not the copy's."""
    told = copy.made and copy.made.outcome.details
    if copy.sender == "client" and steps.flag(told, "on_folder_disk") is False:
        return None
    proven = [
        each
        for each in disk_steps(
            report, copy.sender, "read", "file" if copy.of_file else "sequential"
        )
        if steps.word(each.step.setting, "cache") == "uncached"
        and steps.flag(each.outcome.details, "cache", "proven")
    ]
    return max(proven, key=lambda each: each.rate.median, default=None)


def _in_parts(report: Report, copy: Copy, found: Missed, disk_rate: float) -> float:
    """Rate of a copy whose one part comes from the disk and whose other part the network caps."""
    sent = [each.rate.median for each in physics.believed(report, copy.sender)]
    rest = (1 - found.share) / max(sent) if sent else 0.0
    return 1 / (found.share / disk_rate + rest)


def _evidence(side: str, found: Missed) -> str:
    whence = (
        f"{percent_text(found.share)} of the copy was read from its disk."
        if found.counted
        else "the rest has to come from its disk."
    )
    return (
        f"The {side} has {size_text(found.memory_bytes or 0)} of memory, "
        f"{size_text(found.used_bytes or 0)} of it in use without the page cache, and the file has "
        f"{size_text(found.size_bytes)}: the cache kept {percent_text(found.kept_ratio)} of that, "
        f"and {whence}"
    )
