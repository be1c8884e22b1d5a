"""Waiting for a file system that may never answer, no longer than a deadline.

A call into a mount whose server is gone can wait in the kernel where no signal ends it, SIGKILL
included. It is left behind in a thread: the caller goes on, says so, and ends.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Callable, List, TypeVar

T = TypeVar("T")

HANGS = "it waits in the kernel (state D), where no signal ends it: it goes when the mount answers"


class NoAnswer(Exception):
    """A call did not come back in time; the text names it in one line."""


def answered(what: str, until: float, work: Callable[[], T]) -> T:
    """What work() returns or raises, if it does so until then by time.monotonic().

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
    thread.join(max(0.0, until - began))
    if errors:
        raise errors[0]
    if not values:
        waited = time.monotonic() - began
        held = f"; {HANGS}" if is_held(f"{os.getpid()}/task/{thread.native_id}") else ""
        raise NoAnswer(f"{what}: no answer within {waited:.1f} s{held}")
    return values[0]


def is_held(task: str) -> bool:
    """Whether a process (PID) or thread (PID/task/TID) waits uninterruptibly: proc(5), state D."""
    try:
        text = Path("/proc", task, "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] == ["D"]
