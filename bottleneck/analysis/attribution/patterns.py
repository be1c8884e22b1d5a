"""Patterns in the looks at a copy: stalls, losses, growth, a window that stands still."""

from __future__ import annotations

from statistics import median

from bottleneck.analysis.attribution import sender_socket
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import Connection
from probes.core.records import Usage

FOREIGN_RATIO = 0.25
"""Least share of an interface's or a device's bytes at which others share it."""
BUSY_RATIO = 0.7
"""Least share of an interface's rate at which others' bytes leave no room for the copy's."""
HEADERS_RATIO = 1.06
"""Bytes at an interface over payload: Ethernet, IP, TCP and SMB headers."""
LATE_RATIO = 5e-3
"""Least share of segments out of order at which loss matters."""
LASTS_RATIO, LEAST_PARTS = 0.45, 3
"""Share of a copy's tenths that have losses, and fewest parts: measured 0.5 and more where the path
loses packets, 0.4 and less where TCP's start overflows the queue of a full path."""
GROWN_RATIO, GROWS_FROM_SECONDS = 1.4, 5e-3
"""Least rate of the last third over the mean, and least RTT, of a copy that ends in TCP's start."""
STEADY_RATIO, SPARE_RATIO = 1.15, 1.5
"""Sender whose congestion window does not grow although nothing is lost or queues: most upper over
lower tenth of the bytes in flight; least window of the peer over the bytes in flight."""
STEADY_LOOKS = 10
BACKOFFS, BACKED_OFF_RATIO, STALLED_SEGMENTS = 2, 0.3, 64
"""Sender whose full-size packets vanish: least backoffs in a row; least share of the time in them;
most segments acknowledged."""
LEAST_STALLED_LOOKS = 3


def loses_full_packets(copy: TimedCopy, sender: Connection | None) -> bool:
    """Whether full-size packets vanish on the path from the copy's start (RFC 2923)."""
    if sender is None:
        return False
    deep = [each for each in sender.looks if (each.backoffs or 0) >= BACKOFFS]
    counts = sender.values_of("acknowledged_bytes")
    if not counts or not deep or len(deep) < LEAST_STALLED_LOOKS:
        return False
    # Later the kernel may try smaller segments, which pass (RFC 4821).
    few = (deep[-1].acknowledged_bytes or 0.0) - counts[0] < STALLED_SEGMENTS * max(
        1.0, sender.segment_bytes
    )
    return few and deep[-1].elapsed_seconds >= BACKED_OFF_RATIO * copy.seconds


def is_path_shared(copy: TimedCopy) -> bool:
    """Whether others' bytes were a good part of an interface's while the copy ran."""
    for side, name in (
        (copy.sender, "interface_sent_bytes"),
        (copy.receiver, "interface_received_bytes"),
    ):
        usage, full = copy.usages.get(side), copy.link_rates.get(side)
        if usage is not None and _is_shared(copy, usage, getattr(usage, name), full):
            return True
    return False


def cause_by_receiver(copy: TimedCopy) -> str:
    """Returns the network's cause by the looks of its receiver: link-rate, loss or delay."""
    connection = copy.connection(copy.asking)
    if connection is None:
        return "link-rate"
    # Behind a lost segment a part of the window arrives out of order.
    passed = connection.growth("received_bytes") / max(1.0, connection.segment_bytes)
    many = connection.growth("out_of_order_segments") > LATE_RATIO * max(1.0, passed)
    trips, min_rtt = connection.values_of("receive_rtt_seconds"), connection.min_rtt_seconds
    full = sender_socket.is_always_full(trips, min_rtt, sender_socket.FILLED_RECEIVER_RATIO)
    if many and lasts(connection, "out_of_order_segments") and not full:
        return "loss"
    return "delay" if grows(connection, "received_bytes") else "link-rate"


def _is_shared(copy: TimedCopy, usage: Usage, moved_bytes: int | None, full: float | None) -> bool:
    """Whether an interface was busy in the copy's time, and a good part of its bytes were others'.

    full: its nominal rate, bytes per second; None: not known.
    """
    if not moved_bytes or (full and moved_bytes < BUSY_RATIO * full * usage.wall_seconds):
        return False
    copy_bytes = copy.moved_in(usage)
    others = moved_bytes - HEADERS_RATIO * copy_bytes
    if not copy.watched:
        others *= min(1.0, copy.seconds / max(1e-6, usage.wall_seconds))
    return others > FOREIGN_RATIO * (others + copy_bytes)


def lasts(connection: Connection, name: str) -> bool:
    """Whether segments are lost all along the copy, not only where TCP's start fills the queue."""
    parts = connection.growth_by_parts(name, min(10, len(connection.looks) // 3))
    return len(parts) >= LEAST_PARTS and sum(part > 0 for part in parts) >= LASTS_RATIO * len(parts)


def grows(connection: Connection, name: str) -> bool:
    """Whether a counter of a far connection still grew faster when the copy ended."""
    parts = connection.growth_by_parts(name, 3)
    if not parts or connection.min_rtt_seconds < GROWS_FROM_SECONDS:
        return False
    return parts[-1] > GROWN_RATIO * sum(parts) / len(parts)


def is_limited_by_cwnd(copy: TimedCopy) -> bool:
    """Whether the sender's congestion window limits a copy that has the path to itself."""
    sender = copy.connection(copy.sender)
    if sender is None or not copy.loss_based or is_path_shared(copy):
        return False
    flights = sorted(sender.values_of("in_flight_bytes")[len(sender.looks) // 3 :])
    if len(flights) < STEADY_LOOKS:
        return False
    low, high = flights[len(flights) // 10], flights[-1 - len(flights) // 10]
    room = median(sender.values_of("peer_window_bytes") or [0.0])
    queued = (
        sender_socket.queue_ratio(sender) >= sender_socket.EMPTY_QUEUE_RATIO
        or sender.growth("retransmitted_bytes") > 0
    )
    if queued or not 0 < high <= STEADY_RATIO * low or room < SPARE_RATIO * high:
        return False
    return sender_socket.window_limits(high, sender.min_rtt_seconds, copy.rate)


def run_and_wait(copy: TimedCopy, side: str) -> tuple[float, float]:
    """Returns CPU seconds and run-queue seconds of the threads that carry the copy on a side."""
    host = copy.host(side)
    rows = copy.trace.bins if side == copy.asking else host.threads if host else ()
    if not rows:
        return 0.0, 0.0
    first, last = rows[0], rows[-1]
    run = (last.run_seconds or 0.0) - (first.run_seconds or 0.0)
    return run, (last.wait_seconds or 0.0) - (first.wait_seconds or 0.0)
