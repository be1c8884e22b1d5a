"""Secrets in the environment: taken out of it, and out of what /proc shows of it."""

from __future__ import annotations

import ctypes
import os


def take(name: str) -> str | None:
    """The variable's value, gone from the environment; None: it is not set.

    No process that we start inherits it. /proc/PID/environ shows the block that this process began
    with, whatever os.environ says by now: there the value is overwritten.
    """
    if name not in os.environ:
        return None
    _overwrite(os.fsencode(name))
    return os.environ.pop(name)


def _overwrite(name: bytes) -> None:
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    address = library.getenv(name)
    if address:
        ctypes.memset(address, 0, len(ctypes.string_at(address)))
