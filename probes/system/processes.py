"""Descent and CPU time of a host's processes, from lists of them; pure.

Figures that need the previous reading, the CPU time of ended processes and of all others, are added
up here, on the host: a list of every process of a busy machine would not fit a line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, Optional, Tuple

from probes.system.proc import ProcessStat

KERNEL_THREADS_PARENT = 2
"""Pid of kthreadd; where it is visible, every process of the machine is."""


@dataclass(frozen=True)
class ProcessTimes:
    """A process that carries the copy, at one moment."""

    pid: int
    started_ticks: int
    cpu_seconds: float
    reaped_seconds: float


def sees_all(processes: dict[int, ProcessStat]) -> bool:
    """Whether the list is the whole machine's: no PID namespace, no hidepid."""
    kthreadd = processes.get(KERNEL_THREADS_PARENT)
    return kthreadd is not None and kthreadd.kernel


def descendants(processes: dict[int, ProcessStat], ancestor: int) -> set[int]:
    """Returns the children of a process, their children and so on; not the process itself."""
    children: dict[int, list[int]] = {}
    for each in processes.values():
        children.setdefault(each.parent, []).append(each.pid)
    pids: set[int] = set()
    waiting = list(children.get(ancestor, ()))
    while waiting:
        pid = waiting.pop()
        if pid not in pids:
            pids.add(pid)
            waiting.extend(children.get(pid, ()))
    return pids


def ancestors(processes: dict[int, ProcessStat], pid: int) -> set[int]:
    """Returns the parents of a process up to init, and the process itself."""
    pids: set[int] = set()
    while pid in processes and pid not in pids:
        pids.add(pid)
        pid = processes[pid].parent
    return pids


def same(one: ProcessStat | None, other: ProcessStat) -> bool:
    """Whether both are of one process: a pid is used again, a pid with its start time is not."""
    return one is not None and one.started_ticks == other.started_ticks


def inherited_seconds(
    old_stats: dict[int, ProcessStat], new_stats: dict[int, ProcessStat]
) -> dict[int, float]:
    """Returns CPU time since `old_stats` of descendants that ended, by their surviving ancestor.

    Time that an ended process had used before is subtracted: its parent inherits all of it at once.
    Nobody inherits where a parent does not wait; then the process is missing here.
    """
    had: dict[int, float] = {}
    for each in old_stats.values():
        if same(new_stats.get(each.pid), each):
            continue
        heir = old_stats.get(each.parent)
        while heir is not None and not same(new_stats.get(heir.pid), heir):
            heir = old_stats.get(heir.parent) if heir.parent != heir.pid else None
        if heir is not None:
            had[heir.pid] = had.get(heir.pid, 0.0) + each.cpu_seconds + each.reaped_seconds
    seconds = {}
    for each in new_stats.values():
        old = old_stats.get(each.pid)
        reaped = each.reaped_seconds - (old.reaped_seconds if old and same(old, each) else 0.0)
        grown = reaped - had.get(each.pid, 0.0)
        if grown > 0:
            seconds[each.pid] = grown
    return seconds


Key = Tuple[int, int]
"""Pid and start of a process."""


@dataclass
class Account:
    """Sums that one agent keeps from reading to reading."""

    watched: Optional[object] = None
    """Criterion by which the servers were searched; another one begins anew."""
    candidates: FrozenSet[Key] = frozenset()
    """File-server processes among which they were searched."""
    serving: FrozenSet[int] = frozenset()
    """Servers among them: a search costs milliseconds, and a process keeps its connection."""
    clock_seconds: float = 0.0
    processes: Dict[int, ProcessStat] = field(default_factory=dict)
    other_cpu_seconds: float = 0.0
    """CPU time of all others on our cores since the first reading."""
    servers: Dict[Key, ProcessTimes] = field(default_factory=dict)
    """Each file-server process that ever carried the copy, those that ended included."""

    def take(
        self,
        watched: object,
        processes: dict[int, ProcessStat],
        clock_seconds: float,
        servers: set[int],
        ours: set[int],
        cores: set[int],
    ) -> None:
        """Adds one more reading.

        Args:
            watched: criterion by which the servers were searched.
            processes: all processes.
            servers: processes of file servers that carry the copy now.
            ours: processes of ours, which do not count as others.
            cores: another process counts where its last core is one of these, or not known.
        """
        if watched != self.watched:
            self.watched, self.servers = watched, {}
        first = not self.processes
        inherited = {} if first else inherited_seconds(self.processes, processes)
        wall_seconds = clock_seconds - self.clock_seconds
        for (pid, started), last in self.servers.items():
            now, old = processes.get(pid), self.processes.get(pid)
            if now is not None and now.started_ticks == started:
                self.servers[pid, started] = times_of(now)
            elif old is not None and old.started_ticks == started:
                # A process uses one core at most: the rest is of another one that ended with it.
                late = min(wall_seconds, inherited.pop(old.parent, 0.0))
                self.servers[pid, started] = ProcessTimes(
                    pid, started, last.cpu_seconds + late, last.reaped_seconds
                )
        for pid in servers:
            self.servers[pid, processes[pid].started_ticks] = times_of(processes[pid])
        if not first:
            others = (
                each
                for each in processes.values()
                if each.pid not in ours and (each.pid, each.started_ticks) not in self.servers
            )
            self.other_cpu_seconds += sum(
                self._cpu_growth(each) + inherited.get(each.pid, 0.0)
                for each in others
                if not each.kernel and (each.core is None or each.core in cores)
            )
        self.processes, self.clock_seconds = processes, clock_seconds

    def living_servers(self) -> set[int]:
        """Returns the servers that were alive at the last reading."""
        return {
            pid
            for pid, started in self.servers
            if pid in self.processes and self.processes[pid].started_ticks == started
        }

    def _cpu_growth(self, now: ProcessStat) -> float:
        old = self.processes.get(now.pid)
        old_seconds = old.cpu_seconds if old is not None and same(old, now) else 0.0
        return max(0.0, now.cpu_seconds - old_seconds)


def times_of(stat: ProcessStat) -> ProcessTimes:
    """Returns the times of a process that carries the copy."""
    return ProcessTimes(stat.pid, stat.started_ticks, stat.cpu_seconds, stat.reaped_seconds)
