"""Time bins of a program that moves a copy, from the looks at its threads; pure.

The rows are like those of our own copies (probes/smb/time_bins.py). A look stands for the time
around it: waits are the share of the looks without a running thread at which one waited for a disk,
or for room in a socket. Run time is not sampled, as the scheduler counts it.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from probes.core.copy_trace import Bin
from probes.watch.thread_calls import OTHER, READ, SEND, WRITE
from probes.watch.thread_states import RUNS
from probes.watch.trace_rows import ThreadSnapshot

LOOKS_OF_A_BIN = 4
MOST_BINS = 96
LEAST_LOOKS = 5
"""Least number of looks from which the time is split."""
KNOWN_RATIO = 0.75
"""Least share of looks with a known wait; fewer may be the exceptions."""


def bins(looks: Sequence[ThreadSnapshot], began: float, ended: float) -> List[Bin]:
    """Returns the bins of a time span: the looks' send, read and write waits, run and wait of the
    busiest thread. Empty: too few looks, or the program's waits are not known."""
    in_time = [each for each in looks if began <= each.clock_seconds <= ended]
    inside = [each for each in in_time if each.waits_for is not None]
    if len(inside) < max(LEAST_LOOKS, KNOWN_RATIO * len(in_time)):
        return []
    used = _seconds_by_look(inside, _busiest(inside))
    step = max(LOOKS_OF_A_BIN, -(-len(inside) // MOST_BINS))
    ends = [*range(0, len(inside) - 1, step), len(inside) - 1]
    rows: List[Bin] = [_row(inside[0].clock_seconds - began, (0.0, 0.0, 0.0), used[0])]
    for first, last in zip(ends, ends[1:]):
        waits = [each.waits_for for each in inside[first : last + 1] if not _runs(each)]
        lasted = (inside[last].clock_seconds - inside[first].clock_seconds) / max(1, len(waits))
        walls = tuple(lasted * waits.count(kind) for kind in (SEND, READ, WRITE))
        rows.append(_row(inside[last].clock_seconds - began, walls, used[last]))
    return rows


def _runs(look: ThreadSnapshot) -> bool:
    """Whether a thread ran and none waited for a disk or for room."""
    return look.waits_for == OTHER and any(each.state == RUNS for each in look.threads)


def _row(elapsed: float, walls: Sequence[float], used: Tuple[float, float]) -> Bin:
    return Bin(*(round(each, 6) for each in (elapsed, 0.0, *walls, 0.0, *used)))


def _busiest(looks: Sequence[ThreadSnapshot]) -> int:
    """Returns the thread that ran, or waited for a core, longest in that time."""
    first: Dict[int, float] = {}
    last: Dict[int, float] = {}
    for look in looks:
        for each in look.threads:
            seconds = each.run_seconds + (each.wait_seconds or 0.0)
            first.setdefault(each.thread, seconds)
            last[each.thread] = seconds
    return max(last, key=lambda thread: last[thread] - first[thread], default=0)


def _seconds_by_look(looks: Sequence[ThreadSnapshot], thread: int) -> List[Tuple[float, float]]:
    """Returns a thread's seconds on a core and in the run queue since its first look, by look."""
    first: Optional[Tuple[float, float]] = None
    used, rows = (0.0, 0.0), []
    for look in looks:
        for each in look.threads:
            if each.thread == thread:
                now = each.run_seconds, each.wait_seconds or 0.0
                first = first or now
                used = now[0] - first[0], now[1] - first[1]
        # A thread that has not begun, or has ended, uses nothing.
        rows.append(used)
    return rows
