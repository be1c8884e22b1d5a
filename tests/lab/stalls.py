"""A file server that stands still again and again, though its host has nothing else to do."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

WORKS_SECONDS = 0.01
"""Between two stops."""


@contextlib.contextmanager
def stalls(group: int, stop_seconds: float) -> Iterator[None]:
    """Stop all processes of a group for so long, and again, until the block ends; 0: never.

    What is stopped uses no CPU time and does not wait for any.
    """
    if not stop_seconds:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_stop_and_go, args=(group, stop_seconds, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _stop_and_go(group: int, stop_seconds: float, ended: threading.Event) -> None:
    """Ends with the group at work; a group that is gone ends it too."""
    with contextlib.suppress(ProcessLookupError):
        while not ended.wait(WORKS_SECONDS):
            os.killpg(group, signal.SIGSTOP)
            time.sleep(stop_seconds)
            os.killpg(group, signal.SIGCONT)
