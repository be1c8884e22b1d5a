"""Writing to a pipe without waiting for its reader, which Python lacks here before 3.12."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import os
import threading
from typing import Dict, Set

_unwaiting: Set[int] = set()
_writers: Dict[int, threading.Thread] = {}
"""Threads by descriptor that write for a caller that did not wait."""


def set_blocking(fd: int, blocking: bool) -> None:
    """Sets, for False, that the next write() to this pipe does not wait; select.py serves reads."""
    if not blocking:
        _unwaiting.add(fd)


def takes(fd: int, data: bytes) -> bool:
    """Whether a thread writes all of it meanwhile, as set_blocking() asked for."""
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
        return  # nobody reads it: the caller that waits for an answer gets end-of-file
    finally:
        os.close(fd)


def is_writing(fd: int) -> bool:
    """Whether data that takes() accepted is not all in the pipe yet."""
    return fd in _writers and _writers[fd].is_alive()
