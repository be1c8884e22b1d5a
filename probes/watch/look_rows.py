"""Turns snapshots of a copy into looks: its connection, its threads, the host's counters; pure."""

from __future__ import annotations

import bisect
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

from probes.core.copy_trace import CountLook, SocketLook, ThreadLook
from probes.sockets.limits import Glimpse, read
from probes.watch.thread_states import RUNS, WAITS_FOR_DISK, ThreadState

T = TypeVar("T")

MOST_ROWS = 128
"""Of a kind, of a copy: evenly spread."""
AROUND_SECONDS = 0.2
"""To either side of a look: the kernel books a wait when it ends, and a quota's are 0.1 s."""


class ThreadSnapshot(NamedTuple):
    """All threads at one moment of this host's clock."""

    clock_seconds: float
    threads: Sequence[ThreadState]
    waits_for: Optional[str] = None
    """As thread_calls.Calls.of_program tells of them; None: not known, or not asked for."""


class CounterSnapshot(NamedTuple):
    """What is counted at one moment of this host's clock."""

    clock_seconds: float
    device: Optional[Tuple[int, Optional[int]]]
    """Bytes written since boot, and flushes of its cache."""
    cores: Dict[int, Tuple[float, float]]
    """Seconds that each was busy, and idle with a task that waited for a disk, since boot."""


def thinned(rows: Sequence[T], most: int = MOST_ROWS) -> List[T]:
    """Keeps at most so many, evenly spaced, and always the last."""
    step = max(1, -(-len(rows) // max(1, most)))
    return list(rows[::-1][::step][::-1])


def socket_row(glimpse: Glimpse, began: float) -> SocketLook:
    """One look at a connection."""
    told = {**read(glimpse), "elapsed_seconds": glimpse.elapsed_seconds - began}
    return SocketLook._make(_short(told.get(name)) for name in SocketLook._fields)


def thread_rows(looks: Sequence[ThreadSnapshot], began: float, ended: float) -> List[ThreadLook]:
    """Rows of the looks in a time span; needs at least two looks."""
    around = began - AROUND_SECONDS, ended + AROUND_SECONDS
    looks = thinned([each for each in looks if around[0] <= each.clock_seconds <= around[1]])
    if len(looks) < 2:
        return []
    growths = [_growth(before, after) for before, after in zip(looks, looks[1:])]
    times = [each.clock_seconds for each in looks]
    run = wait = 0.0
    rows: List[ThreadLook] = []
    for at, look in enumerate(looks):
        if at:
            run += sum(each[0] for each in growths[at - 1].values())
            wait += sum(each[1] for each in growths[at - 1].values())
        if not began <= look.clock_seconds <= ended:
            continue
        first = min(bisect.bisect_left(times, times[at] - AROUND_SECONDS), max(0, at - 1))
        last = max(bisect.bisect_right(times, times[at] + AROUND_SECONDS) - 1, first + 1)
        lasted = max(1e-6, times[last] - times[first])
        wanted: Dict[int, float] = {}
        for growth in growths[first:last]:
            for thread, both in growth.items():
                wanted[thread] = wanted.get(thread, 0.0) + sum(both)
        states = {each.state for each in look.threads}
        row = (
            look.clock_seconds - began,
            int(RUNS in states),
            int(WAITS_FOR_DISK in states),
            min(1.0, max(wanted.values(), default=0.0) / lasted),
            sum(wanted.values()) / lasted,
            run,
            wait,
        )
        rows.append(ThreadLook._make(map(_short, row)))
    return rows


def _growth(before: ThreadSnapshot, after: ThreadSnapshot) -> Dict[int, Tuple[float, float]]:
    """Run and wait of each thread between two looks; of a new thread since its start."""
    was = {each.thread: (each.run_seconds, each.wait_seconds or 0.0) for each in before.threads}
    grown = {}
    for each in after.threads:
        run, wait = was.get(each.thread, (0.0, 0.0))
        both = each.run_seconds - run, (each.wait_seconds or 0.0) - wait
        grown[each.thread] = max(0.0, both[0]), max(0.0, both[1])
    return grown


def count_rows(looks: Sequence[CounterSnapshot], began: float, ended: float) -> List[CountLook]:
    """Rows of the counters in a time span, and of the nearest ones before and after it."""
    times = [each.clock_seconds for each in looks]
    first = max(0, bisect.bisect_right(times, began) - 1)
    kept = looks[first : bisect.bisect_left(times, ended) + 1]
    rows: List[CountLook] = []
    for before, look in zip([*kept[:1], *kept], kept):
        lasted = look.clock_seconds - before.clock_seconds
        waiting = busiest = moved = None
        if lasted > 0 and look.cores:
            pairs = [
                (look.cores[each], before.cores[each]) for each in look.cores.keys() & before.cores
            ]
            # What a core waited for disks may run backwards (proc(5)).
            waiting = max(0.0, sum(now[1] - was[1] for now, was in pairs)) / lasted
            busiest = max((now[0] - was[0] for now, was in pairs), default=0.0) / lasted
            busiest = min(1.0, max(0.0, busiest))
        if look.device is not None and kept[0].device is not None:
            pairs_of_counts = zip(look.device, kept[0].device)
            moved = tuple(_since(now, was) for now, was in pairs_of_counts)
        # The count before the copy stands for its beginning.
        elapsed = max(0.0, look.clock_seconds - began)
        row = (elapsed, *(moved or (None, None)), waiting, busiest)
        rows.append(CountLook._make(map(_short, row)))
    return rows


def _since(now: Optional[int], was: Optional[int]) -> Optional[int]:
    """None: not counted, or the device was made anew."""
    return None if now is None or was is None or now < was else now - was


def _short(value: Optional[float]) -> Optional[float]:
    """Rounds to microseconds, or six digits of a ratio."""
    return value if value is None or isinstance(value, int) else round(value, 6)
