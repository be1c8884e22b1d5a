"""Whether a host was the limit while something was measured on it, from its Usage alone."""

from __future__ import annotations

from dataclasses import dataclass

from probes.core.records import Usage

SATURATED_RATIO = 0.9
NEARLY_FULL_RATIO = 0.8
"""Busy share of a core from which on it may be what limits, whoever uses it: a kernel thread's time
is in no process's account."""
THROTTLED_RATIO = 0.5
STARVED_RATIO = 0.5
"""Ready to run and not let, as a share of the window, with idle cores beside: a quota unseen."""
CROWDED_RATIO = 0.3
"""Share of the cores that other processes must take to be blamed."""
WAITING_RATIO = 0.2
"""Ready to run and not let, from which on a crowd of others matters."""
FULL_RATIO, HELD_UP_RATIO = 0.95, 0.1
"""Of all cores; ready to run and not let there, from which on a test may have been slowed down."""
MOSTLY_OWN_RATIO, LEAST_OWN_RATIO = 2.0, 0.25
"""The copy's share of full cores over the others', and of the cores, from which on it is the copy
that fills them: what kernel threads do is in nobody's account."""
SHORTEST_SECONDS = 1e-6
LEAST_QUOTA_CORES = 1e-6
OWN_RATIO = 0.5
"""Share of full cores that must be the copy's own work where it did not wait for them."""
IDLE_ENOUGH_RATIO = 0.7


@dataclass(frozen=True)
class Load:
    """A host's load over one window, as shares of it."""

    cores: int
    all_cores_ratio: float
    one_core_ratio: float
    """The busiest thread of the copy, or the core that serves the interrupts."""
    process_ratio: float
    """The busiest thread of the copy alone."""
    others_ratio: float
    """Share of all cores that other processes took."""
    copy_ratio: float
    """Share of all cores that the copy's own processes and the interrupts took."""
    waiting_ratio: float | None
    """Time ready to run and not let, over the window; None: not told."""
    quota_cores: float | None
    quota_used_ratio: float | None
    """CPU time of the copy over what the quota allows."""
    throttled_ratio: float | None
    quota_file: str
    """That sets it; empty: not told."""

    @property
    def throttled(self) -> bool:
        """Stopped by its quota most of the time, seen or deduced."""
        if self.throttled_ratio is not None:
            return self.throttled_ratio > THROTTLED_RATIO
        return self.starved

    @property
    def starved(self) -> bool:
        """Kept waiting although cores were idle and nobody else used them."""
        return (
            self.throttled_ratio is None
            and self.waiting_ratio is not None
            and self.waiting_ratio > STARVED_RATIO
            and self.all_cores_ratio < IDLE_ENOUGH_RATIO
            and self.others_ratio < 0.1
        )

    @property
    def crowded(self) -> bool:
        """Other processes take so much of full cores that the copy had to wait for them."""
        waited = self.waiting_ratio is None or self.waiting_ratio > WAITING_RATIO
        full = self.all_cores_ratio > SATURATED_RATIO
        return full and self.others_ratio > CROWDED_RATIO and waited

    @property
    def taken(self) -> bool:
        """Whether a quota or other processes kept from the copy what the cores would give it."""
        return self.throttled or self.crowded

    @property
    def full(self) -> bool:
        """All cores are full, and it matters to the copy: it is most of that, or had to wait."""
        if self.all_cores_ratio < SATURATED_RATIO:
            return False
        waited = self.waiting_ratio is not None and self.waiting_ratio > WAITING_RATIO
        own = self.copy_ratio >= max(LEAST_OWN_RATIO, MOSTLY_OWN_RATIO * self.others_ratio)
        return waited or self.copy_ratio >= OWN_RATIO or own and self.all_cores_ratio >= FULL_RATIO

    @property
    def bound(self) -> bool:
        """Whether this host's CPU, and no other component, may have set the rate."""
        return self.throttled or self.one_core_ratio > SATURATED_RATIO or self.full

    @property
    def held_up(self) -> bool:
        """Whether full cores, whoever filled them, may have kept it waiting."""
        waited = self.waiting_ratio is not None and self.waiting_ratio > HELD_UP_RATIO
        return self.all_cores_ratio >= FULL_RATIO and waited

    @property
    def filled_by_others(self) -> bool:
        """Whether others have a good part of full cores."""
        return self.all_cores_ratio >= FULL_RATIO and self.others_ratio > CROWDED_RATIO


def hindrance(seen: Load | None, side: str) -> str | None:
    """How a host's CPU may have set the rate of a stage, in words; None: it did not."""
    if seen is None or not seen.bound:
        return None
    if seen.throttled:
        return f"the {side}'s CPU quota was used up"
    return f"the {side}'s CPU was fully used"


def load(usage: Usage | None) -> Load | None:
    """The load that a usage tells of; None: nothing was told."""
    if usage is None or not usage.core_busy_ratios or usage.wall_seconds < SHORTEST_SECONDS:
        return None
    cores = len(usage.core_busy_ratios)
    wall = usage.wall_seconds
    interrupts = min(usage.busiest_core_ratio, usage.softirq_ratio * cores)
    limit = usage.quota_cores or 0.0
    quota = limit if LEAST_QUOTA_CORES <= limit < cores else None
    return Load(
        cores=cores,
        all_cores_ratio=sum(usage.core_busy_ratios) / cores,
        one_core_ratio=max(usage.busiest_process_ratio, interrupts),
        process_ratio=usage.busiest_process_ratio,
        others_ratio=usage.other_cpu_seconds / (wall * cores),
        copy_ratio=usage.copy_cpu_seconds / (wall * cores) + usage.softirq_ratio,
        waiting_ratio=None if usage.run_delay_seconds is None else usage.run_delay_seconds / wall,
        quota_cores=quota,
        quota_used_ratio=quota and usage.copy_cpu_seconds / (wall * quota),
        throttled_ratio=usage.throttled_ratio,
        quota_file=usage.quota_file or "",
    )


def is_nearly_full(usage: Usage | None) -> bool:
    """Whether a host's busiest core may be what limits; False as well where it is unknown."""
    return usage is not None and usage.busiest_core_ratio >= NEARLY_FULL_RATIO
