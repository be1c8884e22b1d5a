"""Whether a host was the limit while something was measured on it, from its Usage alone."""

from __future__ import annotations

from dataclasses import dataclass

from probes.core.records import Usage

SATURATED_RATIO = 0.9
NEARLY_FULL_RATIO = 0.8
"""Least busy share of a core that may be the limit, by whomever: no process has kernel threads'
time."""
THROTTLED_RATIO = 0.5
STARVED_RATIO = 0.5
"""Share of the time ready to run without a core, beside idle cores, that shows a hidden quota."""
CROWDED_RATIO = 0.3
"""Least share of the cores of other processes that are to blame."""
WAITING_RATIO = 0.2
"""Least share of the time ready to run without a core at which other processes matter."""
FULL_RATIO, HELD_UP_RATIO = 0.95, 0.1
"""Test that may be slowed down: least use of all cores, least time ready to run without one."""
MOSTLY_OWN_RATIO, LEAST_OWN_RATIO = 2.0, 0.25
"""Copy that fills the cores: least ratio to others' use, and least share of all cores: no process
accounts for kernel threads."""
SHORTEST_SECONDS = 1e-6
LEAST_QUOTA_CORES = 1e-6
OWN_RATIO = 0.5
"""Least share of full cores that is the copy's own work, if it did not wait for them."""
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
    """Time ready to run without a core, over the window; None: not known."""
    quota_cores: float | None
    quota_used_ratio: float | None
    """CPU time of the copy over the quota's."""
    throttled_ratio: float | None
    quota_file: str
    """File that sets the quota; empty: not known."""

    @property
    def is_throttled(self) -> bool:
        """Whether a quota stopped the copy most of the time, as counted or deduced."""
        if self.throttled_ratio is not None:
            return self.throttled_ratio > THROTTLED_RATIO
        return self.is_starved

    @property
    def is_starved(self) -> bool:
        """Whether the copy waited for a core although cores were idle and not used by others."""
        return (
            self.throttled_ratio is None
            and self.waiting_ratio is not None
            and self.waiting_ratio > STARVED_RATIO
            and self.all_cores_ratio < IDLE_ENOUGH_RATIO
            and self.others_ratio < 0.1
        )

    @property
    def is_crowded(self) -> bool:
        """Whether the copy had to wait for cores that other processes filled."""
        waited = self.waiting_ratio is None or self.waiting_ratio > WAITING_RATIO
        full = self.all_cores_ratio > SATURATED_RATIO
        return full and self.others_ratio > CROWDED_RATIO and waited

    @property
    def is_deprived(self) -> bool:
        """Whether a quota or other processes kept the copy from the cores."""
        return self.is_throttled or self.is_crowded

    @property
    def is_full(self) -> bool:
        """Whether all cores are full, mostly with the copy, or it had to wait for them."""
        if self.all_cores_ratio < SATURATED_RATIO:
            return False
        waited = self.waiting_ratio is not None and self.waiting_ratio > WAITING_RATIO
        is_own = self.copy_ratio >= max(LEAST_OWN_RATIO, MOSTLY_OWN_RATIO * self.others_ratio)
        is_filled = is_own and self.all_cores_ratio >= FULL_RATIO
        return waited or self.copy_ratio >= OWN_RATIO or is_filled

    @property
    def may_limit(self) -> bool:
        """Whether this host's CPU, and no other component, may have set the rate."""
        return self.is_throttled or self.one_core_ratio > SATURATED_RATIO or self.is_full

    @property
    def is_held_up(self) -> bool:
        """Whether full cores, whoever filled them, may have kept it waiting."""
        waited = self.waiting_ratio is not None and self.waiting_ratio > HELD_UP_RATIO
        return self.all_cores_ratio >= FULL_RATIO and waited

    @property
    def filled_by_others(self) -> bool:
        """Whether others have a good part of full cores."""
        return self.all_cores_ratio >= FULL_RATIO and self.others_ratio > CROWDED_RATIO


def hindrance(cpu: Load | None, side: str) -> str | None:
    """Returns in words why a host's CPU may have set a stage's rate; None: it did not."""
    if cpu is None or not cpu.may_limit:
        return None
    if cpu.is_throttled:
        return f"the {side}'s CPU quota was used up"
    return f"the {side}'s CPU was fully used"


def load(usage: Usage | None) -> Load | None:
    """Computes the load from a usage; None: it has no figures."""
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
    """Whether a host's busiest core may be the limit; False as well if it is unknown."""
    return usage is not None and usage.busiest_core_ratio >= NEARLY_FULL_RATIO
