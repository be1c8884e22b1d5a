"""select(2) for pipes too, which Windows has for sockets alone: it polls them."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import _winapi
import msvcrt
import select as _select
import time
from typing import Any, List, Optional, Sequence, Tuple

from probes.system.windows import pipes

PIPE_BUF = 512
LOOK_SECONDS = 0.005
Found = Tuple[List[Any], List[Any], List[Any]]


def select(
    readers: Sequence[Any],
    writers: Sequence[Any],
    others: Sequence[Any],
    seconds: Optional[float] = None,
) -> Found:
    """Waits for sockets and descriptors of pipes, as select.select() does."""
    if not any(map(_is_pipe, (*readers, *writers))):
        return _select.select(readers, writers, others, seconds)
    sockets = [[each for each in part if not _is_pipe(each)] for part in (readers, writers)]
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        full_pipes = [each for each in readers if _is_pipe(each) and _has_data(each)]
        free_pipes = [each for each in writers if _is_pipe(each) and not _is_full(each)]
        if any(sockets):
            readable, writable, _ = _select.select(*sockets, [], 0)
            full_pipes, free_pipes = full_pipes + readable, free_pipes + writable
        wait_seconds = LOOK_SECONDS if until is None else until - time.monotonic()
        if full_pipes or free_pipes or wait_seconds <= 0:
            return full_pipes, free_pipes, []
        time.sleep(min(LOOK_SECONDS, wait_seconds))


def _is_pipe(each: Any) -> bool:
    """Whether it is a descriptor, or a file that has one."""
    return not hasattr(each, "getsockname")


def _number(pipe: Any) -> int:
    return pipe if isinstance(pipe, int) else int(pipe.fileno())


def _is_full(pipe: Any) -> bool:
    """Whether the last write to a pipe, where known, still waits for its reader."""
    return pipes.is_writing(_number(pipe))


def _has_data(pipe: Any) -> bool:
    try:
        return _winapi.PeekNamedPipe(msvcrt.get_osfhandle(_number(pipe)), 0)[0] > 0
    except OSError:
        return True  # its end, or no pipe: reading says which
