"""CPU time and run delay of processes and threads, from /proc/PID/stat and schedstat."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import NamedTuple, Optional

KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of /proc/PID/stat (include/linux/sched.h)."""

KERNEL_THREADS_PARENT = 2
"""kthreadd; who sees it sees every process of the machine."""

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


class ProcessStat(NamedTuple):
    """What one line of /proc/PID/stat tells (proc(5))."""

    pid: int
    name: str
    parent: int
    kernel: bool
    cpu_seconds: float
    reaped_seconds: float
    """CPU time of its children that ended and were waited for."""
    threads: int
    started_ticks: int
    core: int
    """Where it ran last."""


@dataclass(frozen=True)
class ProcessTimes:
    """A process that carries the copy, at one moment."""

    pid: int
    started_ticks: int
    cpu_seconds: float
    reaped_seconds: float


@dataclass(frozen=True)
class ThreadTimes:
    """A thread of a process that carries the copy, at one moment."""

    thread: int
    cpu_seconds: float
    run_delay_seconds: Optional[float]
    """Ready to run and not let, since its start: other work, or its cgroup's quota."""


def parse_stat(text: str) -> ProcessStat | None:
    """One /proc/PID/stat; None: no such line. The name may hold blanks and parentheses."""
    head, _, tail = text.rpartition(")")
    pid, _, name = head.partition("(")
    fields = tail.split()
    if len(fields) < 37:
        return None
    own = (int(fields[11]) + int(fields[12])) * TICK_SECONDS
    reaped = (int(fields[13]) + int(fields[14])) * TICK_SECONDS
    return ProcessStat(
        pid=int(pid),
        name=name,
        parent=int(fields[1]),
        kernel=bool(int(fields[6]) & KERNEL_THREAD),
        cpu_seconds=own,
        reaped_seconds=reaped,
        threads=int(fields[17]),
        started_ticks=int(fields[19]),
        core=int(fields[36]),
    )


def parse_schedstat(text: str) -> tuple[float, float] | None:
    """CPU seconds and run delay seconds of /proc/PID/schedstat (sched-stats.rst)."""
    words = text.split()
    if len(words) < 2:
        return None
    return int(words[0]) / 1e9, int(words[1]) / 1e9


def read_all() -> dict[int, ProcessStat]:
    """Every process that can be seen; one that ends meanwhile is left out."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        stat = parse_stat(_text(f"/proc/{name}/stat"))
        if stat is not None:
            found[stat.pid] = stat
    return found


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


def thread_times(stat: ProcessStat) -> list[ThreadTimes]:
    """Times of every thread of a process; empty where it ended meanwhile."""
    threads = [stat.pid]
    if stat.threads > 1:
        with contextlib.suppress(OSError):
            threads = [int(name) for name in os.listdir(f"/proc/{stat.pid}/task")]
    found = []
    for thread in threads:
        told = parse_schedstat(_text(f"/proc/{stat.pid}/task/{thread}/schedstat"))
        if told is not None:
            found.append(ThreadTimes(thread, told[0], told[1]))
            continue
        # a kernel without CONFIG_SCHED_INFO knows the CPU time alone
        own = parse_stat(_text(f"/proc/{stat.pid}/task/{thread}/stat"))
        if own is not None:
            found.append(ThreadTimes(thread, own.cpu_seconds, None))
    return found


def _text(path: str) -> str:
    """A file of /proc; empty where it cannot be read or its process ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""
