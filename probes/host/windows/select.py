"""select(2) for pipes too, which Windows has for sockets alone: it looks again and again."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import _winapi
import msvcrt
import select as _select
import time
from typing import Any, List, Optional, Sequence, Tuple

PIPE_BUF = 512
LOOK_SECONDS = 0.005
Found = Tuple[List[Any], List[Any], List[Any]]


def select(
    readers: Sequence[Any],
    writers: Sequence[Any],
    others: Sequence[Any],
    seconds: Optional[float] = None,
) -> Found:
    """Sockets, and descriptors of pipes; one that is written to never waits here."""
    pipes = [each for each in readers if _is_pipe(each)]
    ready = [each for each in writers if _is_pipe(each)]
    if not pipes and not ready:
        return _select.select(readers, writers, others, seconds)
    sockets = [each for each in readers if not _is_pipe(each)]
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        found = [each for each in pipes if _has_data(each)]
        if sockets:
            found += _select.select(sockets, [], [], 0)[0]
        left = LOOK_SECONDS if until is None else until - time.monotonic()
        if found or ready or left <= 0:
            return found, ready, []
        time.sleep(min(LOOK_SECONDS, left))


def _is_pipe(each: Any) -> bool:
    """Whether it is a descriptor, or a file that has one."""
    return not hasattr(each, "getsockname")


def _has_data(pipe: Any) -> bool:
    fd = pipe if isinstance(pipe, int) else pipe.fileno()
    try:
        return _winapi.PeekNamedPipe(msvcrt.get_osfhandle(fd), 0)[0] > 0
    except OSError:
        return True  # its end, or no pipe: reading says which
