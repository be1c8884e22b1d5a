"""Round-trip time by TCP handshakes: SYN out, SYN-ACK back, nothing is sent on the connection.

The kernel times each handshake itself (tcp_info's rtt: from the SYN to its answer), so that a busy
process does not make a path seem longer. The far end's kernel answers: its server need not run.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import statistics
import time
from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple

from probes.host import tcp_info
from probes.records import Details
from probes.stage import Unavailable

LATE_SECONDS, LATE_TIMES = 0.25, 4.0
"""An answer that comes later than that, or than so many of the slowest round trips, is lost."""
_UNDER_WAY = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


@dataclass(frozen=True)
class Handshakes:
    """What a series of handshakes with one port came to."""

    seconds: Tuple[float, ...]
    """Round trips, in the order of their answers."""
    lost: int
    """Handshakes of which a packet was lost: the time until it was sent again is no round trip."""
    late: int = 0
    """Those of them that were answered after all; so is each one after a second or more, when the
    first packet is sent again (RFC 6298)."""

    def spread(self) -> Details:
        """low_seconds, median_seconds, high_seconds, count, lost; nothing without an answer."""
        if not self.seconds:
            return {}
        return {
            "low_seconds": min(self.seconds),
            "median_seconds": statistics.median(self.seconds),
            "high_seconds": max(self.seconds),
            "count": len(self.seconds),
            "lost": self.lost,
        }


def handshakes(
    host: str,
    port: int,
    most: int,
    pace_seconds: float,
    seconds: float,
    ended: Callable[[], bool] = lambda: False,
) -> Handshakes:
    """Opens and closes at most so many connections, one every pace_seconds.

    seconds: for all of them, answers included; ended: no more are started once it says so. host is
    an IP address. Raises Unavailable where the port is closed or there is no route.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    deadline = time.monotonic() + seconds
    due = last = time.monotonic()
    found: List[float] = []
    started = failure = late = 0
    with selectors.DefaultSelector() as waiting:
        try:
            while True:
                now = time.monotonic()
                if now >= deadline:
                    break
                more = started < most and not ended()
                if more and now >= due:
                    _start(waiting, family, host, port)
                    started += 1
                    due = max(due + pace_seconds, now + pace_seconds / 2)
                    last = now
                elif not more and not waiting.get_map():
                    break
                if not more and found:
                    deadline = min(deadline, last + max(LATE_SECONDS, LATE_TIMES * max(found)))
                until = min(due, deadline) if more else deadline
                for key, _ in waiting.select(max(0.0, until - time.monotonic())):
                    waiting.unregister(key.fileobj)
                    error, took = _finish(key)
                    if took is not None:
                        found.append(took)
                    late += not error and took is None
                    failure = error or failure
                if failure == errno.ECONNREFUSED and not found:
                    break
        finally:
            for key in list(waiting.get_map().values()):
                key.data[0].close()
    if failure and not found:
        raise _unavailable(failure, host, port)
    return Handshakes(tuple(found), started - len(found), late)


def _start(waiting: selectors.BaseSelector, family: int, host: str, port: int) -> None:
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.setblocking(False)
    began = time.monotonic()
    error = connection.connect_ex((host, port))
    if error not in _UNDER_WAY:
        connection.close()
        raise _unavailable(error, host, port)
    waiting.register(connection, selectors.EVENT_WRITE, (connection, began))


def _finish(key: selectors.SelectorKey) -> Tuple[int, Optional[float]]:
    """The error that one ended with, or else its seconds; without both, it took a second SYN."""
    connection, began = key.data
    with connection:
        took = time.monotonic() - began
        error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            return error, None
        figures = tcp_info.read(connection)
    if figures.get("retransmitted_segments"):
        return 0, None
    return 0, float(figures.get("rtt_seconds") or took)


def _unavailable(error: int, host: str, port: int) -> Unavailable:
    return Unavailable(f"{host} port {port} cannot be reached ({os.strerror(error)})")
