"""Reads state and CPU time of the threads of some processes: running, waiting for a disk, asleep.

Every user may read them, unlike the call that a thread waits in (/proc/PID/task/TID/syscall).
Source: proc(5); sched-stats.rst of the kernel.
"""

from __future__ import annotations

import contextlib
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from probes.system.platform import os
from probes.system.proc import TICK_SECONDS, names

MOST_THREADS = 256
"""Limit of the threads of one look, some 5 us each."""
RUNS, WAITS_FOR_DISK = "R", "D"
"""States: running or ready to run; in an uninterruptible wait."""
_STATE, _USER, _SYSTEM = 0, 11, 12
"""Indexes of the words behind the name in /proc/PID/stat."""


class ThreadState(NamedTuple):
    thread: int
    state: str
    run_seconds: float
    """Time on a core since its start."""
    wait_seconds: Optional[float]
    """Time ready to run without a core since its start; None: this kernel does not count it."""


class Threads:
    """Reader of the threads of some processes, by descriptors that stay open."""

    def __init__(self) -> None:
        self._files: Dict[int, Tuple[int, int]] = {}

    def look(self, pids: Iterable[int]) -> List[ThreadState]:
        """Reads each thread; omits those that end meanwhile or may not be read."""
        states: List[ThreadState] = []
        living: Set[int] = set()
        for pid in pids:
            for name in names(f"/proc/{pid}/task"):
                if len(states) >= MOST_THREADS:
                    break
                living.add(int(name))
                state = self._read(pid, int(name))
                if state is not None:
                    states.append(state)
        for thread in set(self._files) - living:
            self._forget(thread)
        return states

    def _read(self, pid: int, thread: int) -> Optional[ThreadState]:
        try:
            if thread not in self._files:
                self._open_files(pid, thread)
            stat, schedstat = self._files[thread]
            counted = os.pread(schedstat, 80, 0) if schedstat >= 0 else b""
            return parse(thread, os.pread(stat, 512, 0), counted)
        except OSError:
            self._forget(thread)
            return None

    def _open_files(self, pid: int, thread: int) -> None:
        folder = f"/proc/{pid}/task/{thread}"
        stat = os.open(f"{folder}/stat", os.O_RDONLY)
        schedstat = -1
        with contextlib.suppress(OSError):
            schedstat = os.open(f"{folder}/schedstat", os.O_RDONLY)
        self._files[thread] = stat, schedstat

    def _forget(self, thread: int) -> None:
        for each in self._files.pop(thread, ()):
            if each >= 0:
                os.close(each)

    def close(self) -> None:
        """Closes all descriptors."""
        for thread in list(self._files):
            self._forget(thread)


def parse(thread: int, stat: bytes, schedstat: bytes) -> Optional[ThreadState]:
    """Parses a thread's stat and schedstat, which may be empty; None: it has no state."""
    words = stat.rpartition(b")")[2].split()
    counted = schedstat.split()
    if len(words) <= _SYSTEM:
        return None
    state = words[_STATE].decode("ascii", "replace")
    ticks = int(words[_USER]) + int(words[_SYSTEM])
    # A kernel without CONFIG_SCHEDSTATS may print the file, with zeros.
    if len(counted) >= 2 and (int(counted[0]) or not ticks):
        return ThreadState(thread, state, int(counted[0]) / 1e9, int(counted[1]) / 1e9)
    return ThreadState(thread, state, ticks * TICK_SECONDS, None)
