"""How long the kernel lets a call on a socket wait: SO_RCVTIMEO and SO_SNDTIMEO."""

from __future__ import annotations

import socket
import struct
from typing import Tuple

RECEIVING = (socket.SO_RCVTIMEO,)
BOTH = (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
_LARGEST_BYTES = 64


def wait_at_most(connection: socket.socket, seconds: float, calls: Tuple[int, ...] = BOTH) -> None:
    """Calls (RECEIVING, or BOTH those and sending) raise BlockingIOError after so many seconds.

    The socket stays blocking, so that MSG_WAITALL means something. Errors: ValueError where it is
    no time at all, which the kernel would take for none set.
    """
    if not seconds > 0:
        raise ValueError(f"no time to wait: {seconds} s")
    for option in calls:
        # Its size depends on the width of time_t that the option's number stands for, and not on
        # that of a long (asm-generic/socket.h: SO_RCVTIMEO_OLD, SO_RCVTIMEO_NEW): the kernel knows.
        size = len(connection.getsockopt(socket.SOL_SOCKET, option, _LARGEST_BYTES))
        connection.setsockopt(socket.SOL_SOCKET, option, timeval(seconds, size))


def timeval(seconds: float, size_bytes: int) -> bytes:
    """A struct timeval of 8 or 16 bytes; pure."""
    whole, micro = divmod(max(1, round(seconds * 1e6)), 1_000_000)
    return struct.pack({8: "@ii", 16: "@qq"}[size_bytes], whole, micro)
