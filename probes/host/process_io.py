"""What processes read and wrote, and how often they were seen to wait for a disk.

Source: proc(5), /proc/PID/io and /proc/PID/task/TID/stat.
"""

from __future__ import annotations

import contextlib
import os
import random
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

from probes.host import processes

MOST_THREADS = 256
"""Of those that one look for waiting ones asks."""
T = TypeVar("T")


class Moved(NamedTuple):
    """Since the process began, bytes."""

    read_bytes: int
    """Asked for with read(2) and its kin, from files and sockets alike, cached or not."""
    written_bytes: int
    disk_read_bytes: int
    """Fetched from disks for it."""
    disk_written_bytes: int
    """Made dirty by it, to be written to disks."""


def parse_io(text: str) -> Optional[Moved]:
    """One /proc/PID/io; None: it is empty or no such file."""
    told = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if value.strip().isdigit():
            told[name] = int(value)
    try:
        return Moved(told["rchar"], told["wchar"], told["read_bytes"], told["write_bytes"])
    except KeyError:
        return None


def moved(pids: Iterable[int]) -> Optional[Moved]:
    """The sum over processes; None: none of them lets us ask (it needs their user, or root)."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            told = parse_io(_text(f"/proc/{pid}/io"))
            if told is not None:
                found.append(told)
    return Moved(*map(sum, zip(*found))) if found else None


@dataclass
class Tally:
    """What processes moved, those of them that end meanwhile included: it never falls."""

    pids: Tuple[int, ...]
    last: Dict[int, Moved] = field(default_factory=dict)
    parents: Dict[int, int] = field(default_factory=dict)
    most: Optional[Moved] = None

    def moved(self) -> Optional[Moved]:
        """The sum by now; None: none of them ever let us ask."""
        gone = set()
        for pid in self.pids:
            try:
                told = parse_io(_text(f"/proc/{pid}/io"))
                stat = processes.parse_stat(_text(f"/proc/{pid}/stat"))
            except (FileNotFoundError, ProcessLookupError):
                gone.add(pid)
                continue
            except OSError:
                continue
            if told is not None:
                self.last[pid] = told
            if stat is not None:
                self.parents[pid] = stat.parent
        for pid in gone:
            # A parent that waits for a child takes its account over (kernel/exit.c,
            # wait_task_zombie).
            if self.parents.get(pid) in set(self.pids) - gone:
                self.last.pop(pid, None)
        if self.last:
            total = Moved(*map(sum, zip(*self.last.values())))
            self.most = total if self.most is None else Moved(*map(max, zip(self.most, total)))
        return self.most


def parse_state(stat: str) -> str:
    """The state in a line of /proc/PID/stat; empty: there is no such line."""
    return stat.rpartition(")")[2].strip()[:1]


def waits_for_disk(pids: Iterable[int]) -> Optional[bool]:
    """Whether any thread of the processes is in uninterruptible sleep now; None: none is left.

    A file server has threads for its disk beside the one that hears the network. Of more than
    MOST_THREADS each look asks others.
    """
    seen = None
    left = MOST_THREADS
    for pid in _turned(list(pids)):
        with contextlib.suppress(OSError):
            for thread in _turned(os.listdir(f"/proc/{pid}/task"))[:left]:
                left -= 1
                with contextlib.suppress(OSError):
                    seen = parse_state(_text(f"/proc/{pid}/task/{thread}/stat")) == "D"
                    if seen:
                        return True
        if not left:
            break
    return seen


def _turned(items: Sequence[T]) -> List[T]:
    """The same, begun anywhere."""
    at = random.randrange(len(items)) if items else 0
    return [*items[at:], *items[:at]]


def _text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123 - a tenth of Path's time
        return file.read()
