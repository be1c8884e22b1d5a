"""memory/cache-size: a source that should lie in the sender's RAM and does not fit there.

A file that is read in order through a smaller cache evicts itself: each part is gone when it is
read again. The kernel counts the bytes from the disk (Documentation/admin-guide/iostats.rst);
cachestat(2) or mincore(2) report the part of the file in the cache before the copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, hindrance_text
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.text.units import percent_text, rate_text, size_text

CAUSE = Cause("memory", "cache-size", "cache size")
LEAST_SHARE = 0.3
"""Least share of the copy's bytes from the disk at which the disk may limit the copy."""
ALL_SHARE = 0.9
"""Least share of the copy's bytes from the disk at which it counts as uncached."""


@dataclass(frozen=True)
class CacheMiss:
    """A copy that should have been served from the sender's page cache and was not."""

    share: float
    """Share of its bytes that the sender's disk delivered."""
    counted: bool
    """Whether the kernel counted them; else it is the share not in the cache before."""
    kept_ratio: float
    """Share of the source in the cache before the copy."""
    size_bytes: int
    """Copied bytes of the source."""
    memory_bytes: int | None
    """Memory of the sender, or its control group's limit."""
    used_bytes: int | None
    """Memory in use, without the page cache."""

    @property
    def is_memory_short(self) -> bool:
        """Whether the sender's memory has no room for the source, which is the reason."""
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


def cache_miss(copy: Copy) -> CacheMiss | None:
    """Returns the cache miss of a copy that should be cached; None: none, or not observed."""
    if copy.cache != "cached" or copy.step is None:
        return None
    usage, cached = copy.step.usage(copy.sender), copy.step.details.cache.cached_ratio_before
    if usage is None or cached is None or steps.may_be_from_ram(copy.step):
        return None
    read, size = usage.device_read_bytes, copy.step.moved_bytes
    share = 1 - cached if read is None else min(1.0, read / size)
    if share < LEAST_SHARE:
        return None
    memory = (usage.memory_total_bytes, usage.memory_used_bytes)
    return CacheMiss(share, read is not None, cached, size, *memory)


def is_from_disk(copy: Copy) -> bool:
    """Whether a cached copy was read from the sender's disk, although its memory has room."""
    miss = cache_miss(copy)
    return miss is not None and miss.share >= ALL_SHARE and not miss.is_memory_short


def rule(evidence: Evidence) -> Iterator[Claim | str]:
    """Yields the rate of a cached copy whose sender's memory is smaller than the source."""
    miss, side = cache_miss(evidence.copy), evidence.sender
    if miss is None or not miss.is_memory_short:
        return
    disk = _disk(evidence)
    if disk is None:
        yield f"{miss.text(side)} That disk was not measured."
        return
    # One part comes from the disk, and the network limits the other.
    sent = [each.rate.median for each in evidence.believed_steps]
    rest = (1 - miss.share) / max(sent) if sent else 0.0
    yield claim(
        CAUSE,
        side,
        disk,
        f"the {side}'s memory cannot hold this file, so {percent_text(miss.share)} of it comes "
        f"from its disk, which reads {rate_text(disk.rate.median)}",
        level=1 / (miss.share / disk.rate.median + rest),
        standing="at-least" if hindrance_text(disk, side) else "measured",
        evidence=(miss.text(side),),
        remedy=(
            f"Stop programs on the {side} that use memory, or give it "
            f"{size_text(miss.size_bytes + (miss.used_bytes or 0))} of memory or more (now "
            f"{size_text(miss.memory_bytes or 0)})"
        ),
    )


def _disk(evidence: Evidence) -> MeasuredStep | None:
    if evidence.sender == "client" and evidence.details.on_folder_disk is False:
        return None
    pattern = "file" if evidence.copy.is_of_file else "sequential"
    return steps.fastest(
        each
        for each in disk_steps(evidence.report, evidence.sender, "read", pattern)
        if each.setting.cache == "uncached" and each.disk.cache.proven
    )
