"""Turns snapshots of a copy into looks: its connection, its threads, the host's counters; pure."""

from __future__ import annotations

import bisect
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

from probes.core.copy_trace import CountLook, SocketLook, ThreadLook
from probes.sockets.limits import Glimpse, read
from probes.system.proc import counter_growth
from probes.watch.thread_states import RUNS, WAITS_FOR_DISK, ThreadState

T = TypeVar("T")

MOST_ROWS = 128
"""Limit of a copy's rows of one kind, evenly spread."""
AROUND_SECONDS = 0.2
"""Time to either side of a look: the kernel counts a wait at its end, and a quota's are 0.1 s."""


class ThreadSnapshot(NamedTuple):
    """State of all threads at one moment of this host's clock."""

    clock_seconds: float
    threads: Sequence[ThreadState]
    waits_for: Optional[str] = None
    """Result of thread_calls.Calls.program_wait(); None: not known, or not requested."""


class CounterSnapshot(NamedTuple):
    """Counters at one moment of this host's clock."""

    clock_seconds: float
    device: Optional[Tuple[int, Optional[int]]]
    """Bytes written by the device since boot, and flushes of its cache."""
    cores: Dict[int, Tuple[float, float]]
    """Seconds since boot that each core was busy, and idle with a task waiting for a disk."""


def thinned_rows(rows: Sequence[T], limit: int = MOST_ROWS) -> List[T]:
    """Returns at most `limit` of the rows, evenly spaced, and always the last."""
    step = max(1, -(-len(rows) // max(1, limit)))
    return list(rows[::-1][::step][::-1])


def socket_row(glimpse: Glimpse, began: float) -> SocketLook:
    figures = {**read(glimpse), "elapsed_seconds": glimpse.elapsed_seconds - began}
    return SocketLook._make(_rounded_value(figures.get(name)) for name in SocketLook._fields)


def thread_rows(looks: Sequence[ThreadSnapshot], began: float, ended: float) -> List[ThreadLook]:
    """Returns rows of the looks in a time span; needs at least two looks."""
    around = began - AROUND_SECONDS, ended + AROUND_SECONDS
    looks = thinned_rows([each for each in looks if around[0] <= each.clock_seconds <= around[1]])
    if len(looks) < 2:
        return []
    growths = [_growth(*pair) for pair in zip(looks, looks[1:])]
    times = [each.clock_seconds for each in looks]
    run = wait = 0.0
    rows: List[ThreadLook] = []
    for index, look in enumerate(looks):
        if index:
            run += sum(each[0] for each in growths[index - 1].values())
            wait += sum(each[1] for each in growths[index - 1].values())
        if not began <= look.clock_seconds <= ended:
            continue
        first = min(bisect.bisect_left(times, times[index] - AROUND_SECONDS), max(0, index - 1))
        last = max(bisect.bisect_right(times, times[index] + AROUND_SECONDS) - 1, first + 1)
        lasted = max(1e-6, times[last] - times[first])
        used: Dict[int, float] = {}
        for growth in growths[first:last]:
            for thread, both in growth.items():
                used[thread] = used.get(thread, 0.0) + sum(both)
        states = {each.state for each in look.threads}
        row = (
            look.clock_seconds - began,
            int(RUNS in states),
            int(WAITS_FOR_DISK in states),
            min(1.0, max(used.values(), default=0.0) / lasted),
            sum(used.values()) / lasted,
            run,
            wait,
        )
        rows.append(ThreadLook._make(map(_rounded_value, row)))
    return rows


def _growth(first: ThreadSnapshot, second: ThreadSnapshot) -> Dict[int, Tuple[float, float]]:
    """Returns run and wait of each thread between two looks; a new thread's since its start."""
    old = {each.thread: (each.run_seconds, each.wait_seconds or 0.0) for each in first.threads}
    grown = {}
    for each in second.threads:
        run, wait = old.get(each.thread, (0.0, 0.0))
        both = each.run_seconds - run, (each.wait_seconds or 0.0) - wait
        grown[each.thread] = max(0.0, both[0]), max(0.0, both[1])
    return grown


def count_rows(looks: Sequence[CounterSnapshot], began: float, ended: float) -> List[CountLook]:
    """Returns rows of the counters in a time span, and the nearest ones before and after it."""
    times = [each.clock_seconds for each in looks]
    first = max(0, bisect.bisect_right(times, began) - 1)
    inside = looks[first : bisect.bisect_left(times, ended) + 1]
    rows: List[CountLook] = []
    for last, look in zip([*inside[:1], *inside], inside):
        lasted = look.clock_seconds - last.clock_seconds
        waiting = busiest = counts = None
        if lasted > 0 and look.cores:
            pairs = [(look.cores[e], last.cores[e]) for e in look.cores.keys() & last.cores]
            # A core's time of waiting for disks may run backwards (proc(5)).
            waiting = max(0.0, sum(now[1] - was[1] for now, was in pairs)) / lasted
            busiest = max((now[0] - was[0] for now, was in pairs), default=0.0) / lasted
            busiest = min(1.0, max(0.0, busiest))
        if look.device is not None and inside[0].device is not None:
            counts = tuple(map(counter_growth, inside[0].device, look.device))
        # The count before the copy stands for its beginning.
        elapsed = max(0.0, look.clock_seconds - began)
        row = (elapsed, *(counts or (None, None)), waiting, busiest)
        rows.append(CountLook._make(map(_rounded_value, row)))
    return rows


def _rounded_value(value: Optional[float]) -> Optional[float]:
    """Rounds to microseconds, or six digits of a ratio."""
    return value if value is None or isinstance(value, int) else round(value, 6)
