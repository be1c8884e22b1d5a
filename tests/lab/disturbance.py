"""Whether the lab had the machine to itself: CPU time that went to processes outside of it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cgroups

WINDOW_SECONDS = 1.0
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD (include/linux/sched.h): its work is done for the lab as well, and not counted."""
TOO_MUCH_CORES = 0.3
"""Share of the lab's two cores: beyond it a verdict may be true of the neighbour, not the plant."""


@dataclass
class Foreign:
    """CPU time of others, in cores, over consecutive windows."""

    windows_cores: list[float] = field(default_factory=list)

    @property
    def peak_cores(self) -> float:
        return max(self.windows_cores, default=0.0)

    @property
    def disturbed(self) -> bool:
        """Whether others took enough to be a cap themselves."""
        return self.peak_cores > TOO_MUCH_CORES


@contextlib.contextmanager
def watch_machine(groups: Sequence[str]) -> Iterator[Foreign]:
    """Watch the machine until the block ends; groups: the names of the lab's own cgroups."""
    foreign, stop = Foreign(), threading.Event()
    watcher = threading.Thread(target=_watch, args=(groups, foreign, stop), daemon=True)
    watcher.start()
    try:
        yield foreign
    finally:
        stop.set()
        watcher.join()


def _watch(groups: Sequence[str], foreign: Foreign, stop: threading.Event) -> None:
    earlier = _read(groups)
    while not stop.wait(WINDOW_SECONDS):
        later = _read(groups)
        foreign.windows_cores.append(foreign_cores(earlier, later))
        earlier = later


@dataclass(frozen=True)
class Moment:
    """CPU time so far: of all but the lab, and of each of the kernel's own threads."""

    clock_seconds: float
    others_seconds: float
    kernel_seconds: dict[int, float]


def foreign_cores(earlier: Moment, later: Moment) -> float:
    """CPU time of other processes between two moments, in cores; ended threads left out."""
    kernel = sum(
        seconds - earlier.kernel_seconds.get(pid, 0.0)
        for pid, seconds in later.kernel_seconds.items()
    )
    others = later.others_seconds - earlier.others_seconds - kernel
    return max(0.0, others) / (later.clock_seconds - earlier.clock_seconds)


def _read(groups: Sequence[str]) -> Moment:
    root = cgroups.ROOT / "cpuacct"
    ours = sum(_usage_seconds(root / group) for group in groups)
    return Moment(time.monotonic(), _usage_seconds(root) - ours, _kernel_threads())


def _usage_seconds(folder: Path) -> float:
    return int((folder / "cpuacct.usage").read_text()) / 1e9


def _kernel_threads() -> dict[int, float]:
    tick = 1 / os.sysconf("SC_CLK_TCK")
    seconds = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                ticks = kernel_ticks((process / "stat").read_text())
                if ticks is not None:
                    seconds[int(process.name)] = ticks * tick
    return seconds


def kernel_ticks(stat: str) -> int | None:
    """User and system ticks of a kernel thread's /proc/PID/stat; None for any other process."""
    fields = stat.rpartition(")")[2].split()
    if not int(fields[6]) & KERNEL_THREAD:
        return None
    return int(fields[11]) + int(fields[12])
