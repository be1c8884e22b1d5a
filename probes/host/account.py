"""What only a look at the reading before tells: time of processes that ended, and of all others.

It is added up here, on the host: a list of every process of a busy machine would not fit a line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, Optional, Tuple

from probes.host import processes
from probes.host.processes import ProcessStat, ProcessTimes

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
            cores: an other process counts where its last core is one of these.
        """
        if watched != self.watched:
            self.watched, self.servers = watched, {}
        first = not self.seen
        inherited = {} if first else processes.inherited_seconds(self.seen, seen)
        wall_seconds = clock_seconds - self.clock_seconds
        for (pid, started), last in self.servers.items():
            now, was = seen.get(pid), self.seen.get(pid)
            if now is not None and now.started_ticks == started:
                self.servers[pid, started] = _times(now)
            elif was is not None and was.started_ticks == started:
                # A process has one core at most: the rest is of another one that ended with it.
                late = min(wall_seconds, inherited.pop(was.parent, 0.0))
                self.servers[pid, started] = ProcessTimes(
                    pid, started, last.cpu_seconds + late, last.reaped_seconds
                )
        for pid in servers:
            self.servers[pid, seen[pid].started_ticks] = _times(seen[pid])
        if not first:
            others = (each for each in seen.values() if each.pid not in ours and not each.kernel)
            self.other_cpu_seconds += sum(
                self._grown(each) + inherited.get(each.pid, 0.0)
                for each in others
                if each.core in cores and (each.pid, each.started_ticks) not in self.servers
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
        before = was.cpu_seconds if was is not None and processes.same(was, now) else 0.0
        return max(0.0, now.cpu_seconds - before)


def _times(stat: ProcessStat) -> ProcessTimes:
    return ProcessTimes(stat.pid, stat.started_ticks, stat.cpu_seconds, stat.reaped_seconds)
