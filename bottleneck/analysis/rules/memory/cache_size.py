"""memory/cache-size: a source that should lie in the sender's RAM and does not fit there.

A file that is read in order through a cache that is smaller evicts itself: each part is gone when
it is asked for again. How much of the copy came from the disk is counted by the kernel
(Documentation/admin-guide/iostats.rst), how much of the file was in the cache before it by
cachestat(2) or mincore(2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, hindered
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.steps import Copy, Found
from bottleneck.text.units import percent_text, rate_text, size_text

CAUSE = Cause("memory", "cache-size", "cache size")
LEAST_SHARE = 0.3
"""Of the copy's bytes that the disk had to deliver, from which on it may hold the copy."""
ALL_SHARE = 0.9
"""The same, from which on the copy is no more cached than an uncached one."""


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

    def text(self, side: str) -> str:
        whence = "the rest came from its disk."
        if self.counted:
            whence = f"{percent_text(self.share)} of the copy was read from its disk."
        return (
            f"The {side} had {size_text(self.memory_bytes or 0)} of memory, "
            f"{size_text(self.used_bytes or 0)} of it in use without the page cache. Its cache "
            f"kept {percent_text(self.kept_ratio)} of {size_text(self.size_bytes)}; {whence}"
        )


def missed(copy: Copy) -> Missed | None:
    """How a copy missed the cache that it was asked to be in; None: it did not, or nobody saw."""
    if copy.cache != "cached" or copy.step is None:
        return None
    usage, kept = copy.step.usage(copy.sender), copy.step.details.cache.cached_ratio_before
    if usage is None or kept is None or steps.from_ram(copy.step):
        return None
    read, size = usage.device_read_bytes, copy.step.moved_bytes
    share = 1 - kept if read is None else min(1.0, read / size)
    if share < LEAST_SHARE:
        return None
    memory = (usage.memory_total_bytes, usage.memory_used_bytes)
    return Missed(share, read is not None, kept, size, *memory)


def from_disk(copy: Copy) -> bool:
    """Whether a cached copy was read from the sender's disk, though its memory has the room."""
    found = missed(copy)
    return found is not None and found.share >= ALL_SHARE and not found.short


def rule(given: Evidence) -> Iterator[Claim | str]:
    """What a cached copy gets where its sender's memory is smaller than the source."""
    found, side = missed(given.copy), given.sender
    if found is None or not found.short:
        return
    disk = _disk(given)
    if disk is None:
        yield f"{found.text(side)} That disk was not measured."
        return
    # The one part comes from the disk, and the network caps the other.
    sent = [each.rate.median for each in given.believed]
    rest = (1 - found.share) / max(sent) if sent else 0.0
    yield claim(
        CAUSE,
        side,
        disk,
        f"the {side}'s memory cannot hold this file, so {percent_text(found.share)} of it comes "
        f"from its disk, which reads {rate_text(disk.rate.median)}",
        level=1 / (found.share / disk.rate.median + rest),
        standing="at-least" if hindered(disk, side) else "measured",
        evidence=(found.text(side),),
        remedy=(
            f"Stop programs on the {side} that use memory, or give it "
            f"{size_text(found.size_bytes + (found.used_bytes or 0))} of memory or more (now "
            f"{size_text(found.memory_bytes or 0)})"
        ),
    )


def _disk(given: Evidence) -> Found | None:
    """The sender's disk alone, at its best; None: it was not measured, or is not the copy's."""
    if given.sender == "client" and given.details.on_folder_disk is False:
        return None
    pattern = "file" if given.copy.of_file else "sequential"
    return steps.fastest(
        each
        for each in disk_steps(given.report, given.sender, "read", pattern)
        if each.setting.cache == "uncached" and each.disk.cache.proven
    )
