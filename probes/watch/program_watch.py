"""Watches a program that we started while it copies: its threads' waits and CPU time.

The parent of a program may read which call it waits in, with Yama's ptrace_scope 1 too.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Callable, Iterator, List, Sequence

from probes.core.copy_trace import IDLE
from probes.core.records import Details
from probes.core.stage import Window
from probes.watch.program_time import bins
from probes.watch.thread_calls import Calls
from probes.watch.thread_states import Threads
from probes.watch.trace_rows import ThreadSnapshot

LOOK_SECONDS, FIRST_LOOK_SECONDS = 0.05, 0.02
"""Interval of the looks, and of the first ones: the copy may be a short one."""
FIRST_LOOKS, MOST_LOOKS = 50, 1024
"""Number of first looks; limit of looks, at which every second one is dropped."""
JOIN_SECONDS = 2.0
REST_RATIO = 100
"""Least rest after a look over the CPU time that it took."""
LONG_RATIO = 0.5
"""Least share of a copy's time at which the flush alone explains it."""


@contextlib.contextmanager
def watch_threads(
    pids: Callable[[], Sequence[int]], disk_verb: str
) -> Iterator[List[ThreadSnapshot]]:
    """Looks at a program's processes until the block ends; yields the growing list of looks.

    disk_verb: see thread_calls.Calls.program_wait().
    """
    looks: List[ThreadSnapshot] = []
    done = threading.Event()
    thread = threading.Thread(target=_look, args=(pids, disk_verb, looks, done), daemon=True)
    thread.start()
    try:
        yield looks
    finally:
        done.set()
        # A program that hangs in the kernel may block the reader of its call.
        thread.join(JOIN_SECONDS)


def _look(
    pids: Callable[[], Sequence[int]],
    disk_verb: str,
    looks: List[ThreadSnapshot],
    done: threading.Event,
) -> None:
    calls, pause = Calls(), 0.0
    with contextlib.closing(Threads()) as threads:
        while not done.wait(pause):
            used = time.thread_time()
            states = threads.look(pids())
            if states:
                waits_for = calls.program_wait(states, disk_verb)
                looks.append(ThreadSnapshot(time.monotonic(), states, waits_for))
                if len(looks) > MOST_LOOKS:
                    del looks[1::2]
            rest = REST_RATIO * (time.thread_time() - used)
            usual = FIRST_LOOK_SECONDS if len(looks) < FIRST_LOOKS else LOOK_SECONDS
            pause = max(random.uniform(0.6, 1.4) * usual, rest)


def trace(looks: Sequence[ThreadSnapshot], window: Window, pushes: bool) -> Details:
    """Returns the trace of a copy, as probes/smb/time_bins.py does of our own.

    Its only request is the flush at the end of a push; a pull's flush is a wait for our own disk.
    Empty: too few looks.
    """
    lasted, flushed = window.closed - window.opened, window.closed - window.acknowledged
    rows = bins(looks, window.opened, window.acknowledged)
    if not rows and flushed >= LONG_RATIO * lasted:
        rows = [IDLE._replace(elapsed_seconds=elapsed) for elapsed in (0.0, lasted - flushed)]
    if not rows:
        return {}
    flush, (*_, run, wait) = 0.0 if pushes else flushed, rows[-1]
    last = IDLE._replace(elapsed_seconds=lasted, flush=flush, run_seconds=run, wait_seconds=wait)
    began = lasted - flushed
    requests = [["flush", began, lasted, lasted, 0, 0]] if pushes and flushed > 0 else []
    times = {"clock_seconds": window.opened, "lasted_seconds": lasted}
    return {"trace": {**times, "bins": [*rows, last], "requests": requests}}
