"""Counts the bytes that some processes read and wrote, by the kernel's account (/proc/PID/io)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple

from probes.system.proc import Moved
from probes.system.reader import reader


@dataclass
class Tally:
    """What processes moved, those of them that end meanwhile included: it never falls."""

    pids: Tuple[int, ...]
    last: Dict[int, Moved] = field(default_factory=dict)
    parents: Dict[int, int] = field(default_factory=dict)
    most: Optional[Moved] = None

    def __post_init__(self) -> None:
        seen = reader().processes() if self.pids else {}
        self.parents = {pid: seen[pid].parent for pid in self.pids if pid in seen}

    def moved(self) -> Optional[Moved]:
        """The sum by now; None: none of them ever let us ask."""
        gone = set()
        for pid in self.pids:
            try:
                told = reader().moved(pid)
            except ProcessLookupError:
                gone.add(pid)
                continue
            except OSError:
                continue
            if told is not None:
                self.last[pid] = told
        for pid in gone:
            # A parent that waits for a child takes its account over (kernel/exit.c,
            # wait_task_zombie).
            if self.parents.get(pid) in set(self.pids) - gone:
                self.last.pop(pid, None)
        if self.last:
            total = Moved(*map(sum, zip(*self.last.values())))
            self.most = total if self.most is None else Moved(*map(max, zip(self.most, total)))
        return self.most
