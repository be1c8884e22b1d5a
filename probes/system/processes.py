"""What lists of a host's processes tell: who descends from whom, who used how much time; pure.

What only the reading before tells, the time of processes that ended and that of all others, is
added up here, on the host: a list of every process of a busy machine would not fit a line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, Optional, Tuple

from probes.system.proc import ProcessStat

KERNEL_THREADS_PARENT = 2
"""kthreadd; who sees it sees every process of the machine."""


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
    """The children of a process, their children and so on; not the process itself."""
    children: dict[int, list[int]] = {}
    for each in processes.values():
        children.setdefault(each.parent, []).append(each.pid)
    found: set[int] = set()
    waiting = list(children.get(ancestor, ()))
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, ()))
    return found


def ancestors(processes: dict[int, ProcessStat], pid: int) -> set[int]:
    """The parents of a process up to init, and the process itself."""
    found: set[int] = set()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def same(one: ProcessStat | None, other: ProcessStat) -> bool:
    """Whether both tell of one process: a pid is given again, a pid with its start is not."""
    return one is not None and one.started_ticks == other.started_ticks


def inherited_seconds(
    before: dict[int, ProcessStat], after: dict[int, ProcessStat]
) -> dict[int, float]:
    """CPU time since `before` of descendants that ended in between, by the process that lives on.

    What an ended process had used before is taken off again: a parent inherits a whole life at
    once. Nobody inherits where a parent does not wait; then the process is missing here.
    """
    had: dict[int, float] = {}
    for each in before.values():
        if same(after.get(each.pid), each):
            continue
        heir = before.get(each.parent)
        while heir is not None and not same(after.get(heir.pid), heir):
            heir = before.get(heir.parent) if heir.parent != heir.pid else None
        if heir is not None:
            had[heir.pid] = had.get(heir.pid, 0.0) + each.cpu_seconds + each.reaped_seconds
    found = {}
    for each in after.values():
        was = before.get(each.pid)
        reaped = each.reaped_seconds - (was.reaped_seconds if was and same(was, each) else 0.0)
        grown = reaped - had.get(each.pid, 0.0)
        if grown > 0:
            found[each.pid] = grown
    return found


Key = Tuple[int, int]
"""Pid and start of a process."""


@dataclass
class Account:
    """Kept from reading to reading, for as long as one agent lives."""

    watched: Optional[object] = None
    """What the servers were looked for by; another look begins anew."""
    candidates: FrozenSet[Key] = frozenset()
    """The file-server processes among which they were looked for."""
    serving: FrozenSet[int] = frozenset()
    """What was found there: to look costs milliseconds, and a connection's process keeps it."""
    clock_seconds: float = 0.0
    seen: Dict[int, ProcessStat] = field(default_factory=dict)
    other_cpu_seconds: float = 0.0
    """CPU time of all others on our cores since the first reading."""
    servers: Dict[Key, ProcessTimes] = field(default_factory=dict)
    """Each file-server process that ever carried the copy, those that ended included."""

    def take(
        self,
        watched: object,
        seen: dict[int, ProcessStat],
        clock_seconds: float,
        servers: set[int],
        ours: set[int],
        cores: set[int],
    ) -> None:
        """One more reading.

        Args:
            watched: what the servers were looked for by.
            seen: all processes.
            servers: those of file servers that carry the copy now.
            ours: those that are not others, servers aside.
            cores: an other process counts where its last core is one of these, or not known.
        """
        if watched != self.watched:
            self.watched, self.servers = watched, {}
        first = not self.seen
        inherited = {} if first else inherited_seconds(self.seen, seen)
        wall_seconds = clock_seconds - self.clock_seconds
        for (pid, started), last in self.servers.items():
            now, was = seen.get(pid), self.seen.get(pid)
            if now is not None and now.started_ticks == started:
                self.servers[pid, started] = times_of(now)
            elif was is not None and was.started_ticks == started:
                # A process has one core at most: the rest is of another one that ended with it.
                late = min(wall_seconds, inherited.pop(was.parent, 0.0))
                self.servers[pid, started] = ProcessTimes(
                    pid, started, last.cpu_seconds + late, last.reaped_seconds
                )
        for pid in servers:
            self.servers[pid, seen[pid].started_ticks] = times_of(seen[pid])
        if not first:
            others = (
                each
                for each in seen.values()
                if each.pid not in ours and (each.pid, each.started_ticks) not in self.servers
            )
            self.other_cpu_seconds += sum(
                self._grown(each) + inherited.get(each.pid, 0.0)
                for each in others
                if not each.kernel and (each.core is None or each.core in cores)
            )
        self.seen, self.clock_seconds = seen, clock_seconds

    def living(self) -> set[int]:
        """The servers that were alive at the last reading."""
        return {
            pid
            for pid, started in self.servers
            if pid in self.seen and self.seen[pid].started_ticks == started
        }

    def _grown(self, now: ProcessStat) -> float:
        was = self.seen.get(now.pid)
        before = was.cpu_seconds if was is not None and same(was, now) else 0.0
        return max(0.0, now.cpu_seconds - before)


def times_of(stat: ProcessStat) -> ProcessTimes:
    """The process as one that carries the copy."""
    return ProcessTimes(stat.pid, stat.started_ticks, stat.cpu_seconds, stat.reaped_seconds)
