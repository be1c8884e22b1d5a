"""What this host is busy with right now, for a person who watches a run.

Two small files of /proc at most once a second, read by the coordinator: the processes that move
bytes are not asked. Elsewhere than on Linux nothing is known.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from probes.host.counters import CoreTimes, parse_cores
from probes.host.memory import read_memory

LEAST_SECONDS = 1.0


@dataclass(frozen=True)
class Load:
    """A host's busiest core and its RAM in use; None where the system does not tell."""

    busiest_core_ratio: float | None
    memory_used_bytes: int | None


@dataclass
class OwnLoad:
    """Readings of this host, each told as what changed since the one before it."""

    read_at: float = 0.0
    cores: dict[int, CoreTimes] = field(default_factory=dict)
    load: Load = Load(None, None)  # noqa: RUF009 - frozen

    def now(self) -> Load:
        """The load over the last second or more."""
        moment = time.monotonic()
        if moment - self.read_at >= LEAST_SECONDS:
            cores = _cores()
            memory = read_memory()
            used = None if memory is None else memory.used_bytes
            self.load = Load(_busiest(self.cores, cores), used)
            self.read_at, self.cores = moment, cores
        return self.load


def _cores() -> dict[int, CoreTimes]:
    """Those that a child of this process may use."""
    try:
        text = Path("/proc/stat").read_text(encoding="ascii", errors="replace")
        usable = os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return {}
    return {number: times for number, times in parse_cores(text).items() if number in usable}


def _busiest(before: dict[int, CoreTimes], after: dict[int, CoreTimes]) -> float | None:
    ratios = [
        (now.busy_seconds - was.busy_seconds) / (now.total_seconds - was.total_seconds)
        for number, now in after.items()
        if (was := before.get(number)) and now.total_seconds > was.total_seconds
    ]
    return max(ratios, default=None)
