"""A child process for work at a peer or a disk: bounded memory, its own group, dies with us.

The libraries behind a probe can be made to hang or to eat memory by a hostile reply; the child
bounds both, and a clean process makes a clean measurement.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import Callable, Iterator, List, TypeVar

from probes.system.proc import text
from probes.system.waiting import signal

if sys.platform == "win32":
    from probes.system.windows.process import (
        Child,
        detached_arguments,
        end_with_parent,
        keep_private,
        overwrite_variable,
        spawn,
    )
else:
    from probes.system.forked import (
        Child,
        detached_arguments,
        end_with_parent,
        keep_private,
        overwrite_variable,
        spawn,
    )

__all__ = [
    "Child",
    "detached_arguments",
    "end_with_parent",
    "keep_private",
    "overwrite_variable",
    "spawn",
]

T = TypeVar("T")

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HANGS = "it waits in the kernel (state D) and ends when the mount answers"


@contextmanager
def delay_signals() -> Iterator[None]:
    """Delays signals to the end of the block: a handler's exception in a fork would be lost."""
    pending: List[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        old_handlers = {each: signal.getsignal(each) for each in INTERRUPTS}
        handlers = {each: handler for each, handler in old_handlers.items() if callable(handler)}
    for each in handlers:
        signal.signal(each, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        # SIGINT last: a second Ctrl-C may end this.
        for each, handler in reversed(list(handlers.items())):
            signal.signal(each, handler)
        for number in pending:
            signal.raise_signal(number)


class NoAnswer(Exception):
    """A call did not come back in time; the text names it in one line."""


def call_until(what: str, deadline: float, work: Callable[[], T]) -> T:
    """Returns the result of work(), if it comes before the deadline by time.monotonic().

    what: the place and the call, for the message. Errors: NoAnswer; those of work().
    """
    values: List[T] = []
    errors: List[BaseException] = []

    def run() -> None:
        try:
            values.append(work())
        except BaseException as error:  # raised again by whoever waits
            errors.append(error)

    began = time.monotonic()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - began))
    if errors:
        raise errors[0]
    if not values:
        waited = time.monotonic() - began
        hint = f"; {HANGS}" if is_held(f"{os.getpid()}/task/{thread.native_id}") else ""
        raise NoAnswer(f"{what}: no answer within {waited:.1f} s{hint}")
    return values[0]


def is_held(task: str) -> bool:
    """Whether a process (PID) or thread (PID/task/TID) waits uninterruptibly: proc(5), state D."""
    return text(f"/proc/{task}/stat").rpartition(")")[2].split()[:1] == ["D"]
