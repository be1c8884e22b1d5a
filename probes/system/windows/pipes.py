"""Writing to a pipe without waiting for its reader, which the system has not before Python 3.12."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import os
import threading
from typing import Dict, Set

_unwaiting: Set[int] = set()
_writers: Dict[int, threading.Thread] = {}
"""By descriptor: what writes for somebody who did not wait."""


def set_blocking(fd: int, blocking: bool) -> None:
    """False: the next write() to this pipe does not wait. Reading never does: select.py looks."""
    if not blocking:
        _unwaiting.add(fd)


def takes(fd: int, data: bytes) -> bool:
    """Whether all of it is being written meanwhile, as set_blocking() asked for."""
    if fd not in _unwaiting:
        return False
    _unwaiting.remove(fd)
    # Closing the descriptor itself would wait for what is being written by it.
    _writers[fd] = threading.Thread(target=_write, args=(os.dup(fd), data), daemon=True)
    _writers[fd].start()
    return True


def _write(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        return  # nobody reads it: whoever waits for an answer sees that end
    finally:
        os.close(fd)


def is_writing(fd: int) -> bool:
    """Whether not all that takes() took is in the pipe yet."""
    return fd in _writers and _writers[fd].is_alive()
