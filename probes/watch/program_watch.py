"""Watches a program that we started while it copies: what its threads wait for, and their CPU.

Whoever starts a program may ask which call it waits in, with Yama's ptrace_scope 1 too.
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
from probes.watch.look_rows import ThreadSnapshot
from probes.watch.program_time import bins
from probes.watch.thread_calls import Calls
from probes.watch.thread_states import Threads

LOOK_SECONDS, FIRST_LOOK_SECONDS = 0.05, 0.02
"""Between two looks; and while a copy is young: it may be a short one."""
FIRST_LOOKS, MOST_LOOKS = 50, 1024
"""Of a longer copy every second one goes."""
JOIN_SECONDS = 2.0
REST_RATIO = 100
"""The least that a look is rested after, over the CPU time that it took."""
LONG_RATIO = 0.5
"""Of a copy's time, the flush: then it alone says where that went."""


@contextlib.contextmanager
def watched(pids: Callable[[], Sequence[int]], disk_verb: str) -> Iterator[List[ThreadSnapshot]]:
    """Looks at a program's processes until the block ends; the list grows meanwhile.

    disk_verb: as thread_calls.Calls.of_program takes it.
    """
    looks: List[ThreadSnapshot] = []
    done = threading.Event()
    thread = threading.Thread(target=_look, args=(pids, disk_verb, looks, done), daemon=True)
    thread.start()
    try:
        yield looks
    finally:
        done.set()
        # A program that hangs in the kernel may hold up who asks for its call.
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
            found = threads.look(pids())
            if found:
                waits_for = calls.of_program(found, disk_verb)
                looks.append(ThreadSnapshot(time.monotonic(), found, waits_for))
                if len(looks) > MOST_LOOKS:
                    del looks[1::2]
            rest = REST_RATIO * (time.thread_time() - used)
            usual = FIRST_LOOK_SECONDS if len(looks) < FIRST_LOOKS else LOOK_SECONDS
            pause = max(random.uniform(0.6, 1.4) * usual, rest)


def trace(looks: Sequence[ThreadSnapshot], window: Window, pushes: bool) -> Details:
    """Where the time of a copy went, as probes/smb/time_bins.py tells of our own.

    Its one request is the flush at the end of a push; that of a pull is a wait for our own disk.
    Empty: too little was seen.
    """
    lasted, flushed = window.closed - window.opened, window.closed - window.acknowledged
    rows = bins(looks, window.opened, window.acknowledged)
    if not rows and flushed >= LONG_RATIO * lasted:
        rows = [IDLE._replace(elapsed_seconds=at) for at in (0.0, lasted - flushed)]
    if not rows:
        return {}
    flush, (*_, run, wait) = 0.0 if pushes else flushed, rows[-1]
    last = IDLE._replace(elapsed_seconds=lasted, flush=flush, run_seconds=run, wait_seconds=wait)
    began = lasted - flushed
    requests = [["flush", began, lasted, lasted, 0, 0]] if pushes and flushed > 0 else []
    found = {"clock_seconds": window.opened, "lasted_seconds": lasted}
    return {"trace": {**found, "bins": [*rows, last], "requests": requests}}
