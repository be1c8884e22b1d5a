"""Round-trip time by TCP handshakes: SYN out, SYN-ACK back, nothing is sent on the connection.

The kernel times each handshake itself (tcp_info's rtt: from the SYN to its answer), so that a busy
process does not make a path seem longer. The far end's kernel answers: its server need not run.

Under load a thread carries one stream, as a file copy is one; beside it handshakes are made with
the same port: what waits in the path's queues, as others see it.
"""

from __future__ import annotations

import errno
import os
import socket
import statistics
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, List, Optional, Tuple

from probes.core.records import Details, Endpoint, run_rate
from probes.core.stage import Unavailable
from probes.net import transfer
from probes.net.transfer import Moved, Shape
from probes.sockets import tcp_info
from probes.system.waiting import selectors

LATE_SECONDS, LATE_TIMES = 0.25, 4.0
"""An answer that comes later than that, or than so many of the slowest round trips, is lost."""
_WORDS = {
    errno.ECONNREFUSED: "Connection refused",
    errno.ETIMEDOUT: "Connection timed out",
    errno.EHOSTUNREACH: "No route to host",
    errno.ENETUNREACH: "Network is unreachable",
}
"""What Windows' C library does not know of its sockets' codes."""
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

    seconds: for all of them, answers included; ended: no more are started once it says so. Raises
    Unavailable where the port is closed or there is no route.
    """
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
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
                    error = _start(waiting, socket.socket(family, socket.SOCK_STREAM), where)
                    if error:
                        raise _unavailable(error, host, port)
                    started += 1
                    due = max(due + pace_seconds, now + pace_seconds / 2)
                    last = now
                elif not more and not waiting.get_map():
                    break
                if not more and found:
                    deadline = min(deadline, last + max(LATE_SECONDS, LATE_TIMES * max(found)))
                until = min(due, deadline) if more else deadline
                for error, took in _ended(waiting, until):
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


def _start(waiting: selectors.BaseSelector, connection: socket.socket, where: Any) -> int:
    """Begins one; the error where it cannot be."""
    connection.setblocking(False)
    began = time.monotonic()
    error = connection.connect_ex(where)
    if error in _UNDER_WAY:
        waiting.register(connection, selectors.EVENT_WRITE, (connection, began))
        return 0
    connection.close()
    return error


def _ended(waiting: selectors.BaseSelector, until: float) -> Iterator[Tuple[int, Optional[float]]]:
    """The error that each ended with, or else its seconds; without both, it took a second SYN."""
    for key, _ in waiting.select(max(0.0, until - time.monotonic())):
        waiting.unregister(key.fileobj)
        yield _finish(key)


def _finish(key: selectors.SelectorKey) -> Tuple[int, Optional[float]]:
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
    why = _WORDS.get(error) or os.strerror(error)
    return Unavailable(f"{host} port {port} cannot be reached ({why})")


PACE_SECONDS = 0.025
MOST_HANDSHAKES = 40
OPENING_SECONDS = 15.0
"""Until the stream has its connections and has warmed up; a broken one says so before."""


@dataclass
class _Stream:
    """A transfer that runs in a thread."""

    shape: Shape
    peer: Endpoint
    opened: threading.Event = field(default_factory=threading.Event)
    """Its window is open, or it has ended."""
    ended: threading.Event = field(default_factory=threading.Event)
    moved: Optional[Moved] = None
    error: Optional[Exception] = None

    def run(self) -> None:
        running = transfer.initiate(self.shape, self.peer)
        try:
            while True:
                next(running)
                self.opened.set()
        except StopIteration as end:
            self.moved = end.value
        except (RuntimeError, OSError, Unavailable) as error:
            self.error = error
        finally:
            self.ended.set()
            self.opened.set()


def beside(
    shape: Shape, peer: Endpoint, most: int, pace_seconds: float
) -> Tuple[Moved, Handshakes]:
    """A transfer, and handshakes with its own port while its window is open.

    Raises as transfer.initiate.
    """
    stream = _Stream(shape, peer)
    thread = threading.Thread(target=stream.run, daemon=True)
    thread.start()
    stream.opened.wait(OPENING_SECONDS + shape.seconds)
    seen = Handshakes((), 0)
    # a port that takes no more calls tells no round trip: the transfer tells the rest
    with suppress(Unavailable):
        seen = handshakes(
            peer.host, peer.port, most, pace_seconds, shape.seconds, stream.ended.is_set
        )
    thread.join(OPENING_SECONDS + shape.seconds)
    if stream.error is not None:
        raise stream.error
    if stream.moved is None:
        raise RuntimeError("the stream did not end in time")
    return stream.moved, seen


def loaded(verb: str, peer: Endpoint, seconds: float, unloaded_seconds: float) -> Details:
    """Round trips while one stream fills the path in one direction for so many seconds.

    unloaded_seconds: the median round trip without it.

    Returns:
        rtt_seconds_median, rtt_seconds_high, count, lost (handshakes of which a packet was),
        buffer_delay_seconds: how much longer than unloaded; buffer_delay_ratio: the same over the
        unloaded one (RFC 6349 4.3, of medians); streams, congestion_control and bytes_per_second
        of the load.

    Raises Unavailable where no stream can be opened or no handshake was answered, RuntimeError
    where the stream broke.
    """
    shape = Shape(verb, 1, seconds=seconds)
    moved, seen = beside(shape, peer, MOST_HANDSHAKES, PACE_SECONDS)
    spread = seen.spread()
    if not spread:
        raise Unavailable("no handshake was answered under load")
    delay = max(0.0, spread["median_seconds"] - unloaded_seconds)
    return {
        "rtt_seconds_median": spread["median_seconds"],
        "rtt_seconds_high": spread["high_seconds"],
        "count": spread["count"],
        "lost": spread["lost"],
        "buffer_delay_seconds": delay,
        "buffer_delay_ratio": delay / unloaded_seconds,
        "streams": shape.streams,
        "congestion_control": moved.congestion_control,
        "bytes_per_second": run_rate(moved.samples),
    }
