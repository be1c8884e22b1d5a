"""Measures round-trip times by TCP handshakes: SYN out, SYN-ACK back, no data.

The kernel times each handshake itself (tcp_info's rtt: from the SYN to its answer), so that a busy
process does not make a path seem longer. The far end's kernel answers: its server need not run.

Under load one stream runs in a thread, as a file copy would, while handshakes are made with the
same port: they show the queueing delay that other connections see.
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
from probes.net.transfer import Shape, Transfer
from probes.sockets import tcp_info
from probes.system.waiting import selectors

LATE_SECONDS, LATE_TIMES = 0.25, 4.0
"""Time after which a handshake counts as lost: so long, and so many of the slowest round trips."""
_WORDS = {
    errno.ECONNREFUSED: "Connection refused",
    errno.ETIMEDOUT: "Connection timed out",
    errno.EHOSTUNREACH: "No route to host",
    errno.ENETUNREACH: "Network is unreachable",
}
"""Texts of socket errors that Windows' C library does not have."""
_UNDER_WAY = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


@dataclass(frozen=True)
class Handshakes:
    """The figures of a series of handshakes with one port."""

    seconds: Tuple[float, ...]
    """Round trips, in the order of their answers."""
    lost: int
    """Handshakes of which a packet was lost; their time includes the wait until it was resent."""
    late: int = 0
    """Lost handshakes that were answered after all: after a second or more, when the first packet
    is sent again (RFC 6298)."""

    def spread(self) -> Details:
        """Returns low_seconds, median_seconds, high_seconds, count, lost; empty: no answer."""
        if not self.seconds:
            return {}
        return {
            "low_seconds": min(self.seconds),
            "median_seconds": statistics.median(self.seconds),
            "high_seconds": max(self.seconds),
            "count": len(self.seconds),
            "lost": self.lost,
        }


def measure_handshakes(
    host: str,
    port: int,
    limit: int,
    pace_seconds: float,
    seconds: float,
    ended: Callable[[], bool] = lambda: False,
) -> Handshakes:
    """Opens and closes at most `limit` connections, one every pace_seconds.

    seconds: for all of them, answers included; ended: no more are started once it returns true.
    Raises Unavailable where the port is closed or there is no route.
    """
    family, _, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    deadline = time.monotonic() + seconds
    due = last = time.monotonic()
    times: List[float] = []
    started = failure = late = 0
    with selectors.DefaultSelector() as waiting:
        try:
            while True:
                now = time.monotonic()
                if now >= deadline:
                    break
                can_start = started < limit and not ended()
                if can_start and now >= due:
                    error = _start(waiting, socket.socket(family, socket.SOCK_STREAM), target)
                    if error:
                        raise _unavailable(error, host, port)
                    started += 1
                    due = max(due + pace_seconds, now + pace_seconds / 2)
                    last = now
                elif not can_start and not waiting.get_map():
                    break
                if not can_start and times:
                    deadline = min(deadline, last + max(LATE_SECONDS, LATE_TIMES * max(times)))
                until = min(due, deadline) if can_start else deadline
                for error, took in _finish_ready(waiting, until):
                    if took is not None:
                        times.append(took)
                    late += not error and took is None
                    failure = error or failure
                if failure == errno.ECONNREFUSED and not times:
                    break
        finally:
            for key in list(waiting.get_map().values()):
                key.data[0].close()
    if failure and not times:
        raise _unavailable(failure, host, port)
    return Handshakes(tuple(times), started - len(times), late)


def _start(waiting: selectors.BaseSelector, connection: socket.socket, target: Any) -> int:
    """Begins a handshake; returns its error number, 0 for none."""
    connection.setblocking(False)
    began = time.monotonic()
    error = connection.connect_ex(target)
    if error in _UNDER_WAY:
        waiting.register(connection, selectors.EVENT_WRITE, (connection, began))
        return 0
    connection.close()
    return error


def _finish_ready(
    waiting: selectors.BaseSelector, until: float
) -> Iterator[Tuple[int, Optional[float]]]:
    """Yields error and seconds of each finished handshake; neither: it took a second SYN."""
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
"""Longest time until the stream is connected and warmed up; a broken one ends sooner."""


@dataclass
class _Stream:
    """A transfer that runs in a thread."""

    shape: Shape
    peer: Endpoint
    opened: threading.Event = field(default_factory=threading.Event)
    """Its window is open, or it has ended."""
    ended: threading.Event = field(default_factory=threading.Event)
    outcome: Optional[Transfer] = None
    error: Optional[Exception] = None

    def run(self) -> None:
        running = transfer.initiate(self.shape, self.peer)
        try:
            while True:
                next(running)
                self.opened.set()
        except StopIteration as end:
            self.outcome = end.value
        except (RuntimeError, OSError, Unavailable) as error:
            self.error = error
        finally:
            self.ended.set()
            self.opened.set()


def transfer_with_handshakes(
    shape: Shape, peer: Endpoint, limit: int, pace_seconds: float
) -> Tuple[Transfer, Handshakes]:
    """Runs a transfer, and handshakes with its own port while its window is open.

    Raises as transfer.initiate.
    """
    stream = _Stream(shape, peer)
    thread = threading.Thread(target=stream.run, daemon=True)
    thread.start()
    stream.opened.wait(OPENING_SECONDS + shape.seconds)
    series = Handshakes((), 0)
    # A port that accepts no more connections gives no round trips; the transfer reports the rest.
    with suppress(Unavailable):
        series = measure_handshakes(
            peer.host, peer.port, limit, pace_seconds, shape.seconds, stream.ended.is_set
        )
    thread.join(OPENING_SECONDS + shape.seconds)
    if stream.error is not None:
        raise stream.error
    if stream.outcome is None:
        raise RuntimeError("the stream did not end in time")
    return stream.outcome, series


def measure_loaded(verb: str, peer: Endpoint, seconds: float, unloaded_seconds: float) -> Details:
    """Measures round trips while one stream fills the path in one direction for so many seconds.

    unloaded_seconds: the median round trip without it.

    Returns:
        rtt_seconds_median, rtt_seconds_high, count, lost (handshakes of which a packet was),
        buffer_delay_seconds: how much longer than unloaded; buffer_delay_ratio: this delay over
        the unloaded round trip (RFC 6349 4.3, of medians); streams, congestion_control and
        bytes_per_second of the load.

    Raises Unavailable where no stream can be opened or no handshake was answered, RuntimeError
    where the stream broke.
    """
    shape = Shape(verb, 1, seconds=seconds)
    load, series = transfer_with_handshakes(shape, peer, MOST_HANDSHAKES, PACE_SECONDS)
    spread = series.spread()
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
        "congestion_control": load.congestion_control,
        "bytes_per_second": run_rate(load.samples),
    }
