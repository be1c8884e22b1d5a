"""The round trip while a transfer fills the path: what waits in its queues, as others see it.

A thread carries one stream, as a file copy is one; beside it handshakes are made with the same
port. The kernel times them, so that the stream's own work in this process is not in them.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Optional

from probes.net import rtt, transfer
from probes.net.transfer import Moved, Shape
from probes.records import Details, Endpoint, run_rate
from probes.stage import Unavailable

PACE_SECONDS = 0.025
MOST_HANDSHAKES = 40
OPENING_SECONDS = 15.0
"""Until the stream has its connections and has warmed up; a broken one says so before."""


def respond(address: str, most_seconds: float) -> AbstractContextManager[Endpoint]:
    """The far end of the stream, for streams of up to most_seconds."""
    return transfer.respond(address, most_seconds)


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


def loaded(verb: str, peer: Endpoint, seconds: float, unloaded_seconds: float) -> Details:
    """Round trips while one stream fills the path in one direction for so many seconds.

    unloaded_seconds: the median round trip without it.

    Returns:
        rtt_seconds_median, rtt_seconds_high, count, lost (handshakes of which a packet was),
        buffer_delay_seconds: how much longer than unloaded; buffer_delay_ratio: the same over the
        unloaded one (RFC 6349 4.3, of medians); streams, congestion_control and bytes_per_second
        of the load; stream_rtt_seconds_median: the stream's own, where a queue of each flow's own
        would hide it from the handshakes.

    Raises Unavailable where no stream can be opened or no handshake was answered, RuntimeError
    where the stream broke.
    """
    stream = _Stream(Shape(verb, 1, seconds=seconds), peer)
    thread = threading.Thread(target=stream.run, daemon=True)
    thread.start()
    stream.opened.wait(OPENING_SECONDS + seconds)
    seen = rtt.handshakes(
        peer.host, peer.port, MOST_HANDSHAKES, PACE_SECONDS, seconds, stream.ended.is_set
    )
    thread.join(OPENING_SECONDS + seconds)
    if stream.error is not None:
        raise stream.error
    if stream.moved is None:
        raise RuntimeError("the stream did not end in its time")
    spread = seen.spread()
    if not spread:
        raise Unavailable("no handshake was answered while the path was full")
    delay = max(0.0, spread["median_seconds"] - unloaded_seconds)
    told = {
        "rtt_seconds_median": spread["median_seconds"],
        "rtt_seconds_high": spread["high_seconds"],
        "count": spread["count"],
        "lost": spread["lost"],
        "buffer_delay_seconds": delay,
        "buffer_delay_ratio": delay / unloaded_seconds,
        "streams": stream.shape.streams,
        "congestion_control": stream.moved.congestion_control,
        "bytes_per_second": run_rate(stream.moved.samples),
    }
    own = stream.moved.limits.get("rtt_seconds_median")
    return told if own is None else {**told, "stream_rtt_seconds_median": own}
