"""Who limits a TCP transfer, from looks at its two sockets; pure.

What counts is where the bytes wait. Unread at the receiver: its application is slow. A send queue
that is not full: the sending application is. A full one of which all is in flight: the send buffer
is too small. All that the peer's window lets through in flight: that is too small. A full queue
with unsent bytes: the path. The kernel's chronographs (tcp_chrono_start in net/ipv4/tcp_output.c)
help, and mislead alone: the one for the window runs only while that blocks a transmission, the one
for the buffer hardly ever, and busy_seconds while anything is unacknowledged.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import List, Optional, Sequence, Tuple

from probes.core.records import Details
from probes.sockets.tcp_info import Figures

LEAST_GLIMPSES = 5
"""Fewer tell nothing of who limits."""
UNREAD_BYTES = 16 << 10
UNREAD_RATIO = 0.25
"""Of a receive buffer that is smaller than UNREAD_BYTES would ask for."""
UNSENT_BYTES = 64 << 10
"""One write of an application: what a sender that keeps up has at least waiting."""
LIMITED_RATIO = 0.2
"""Of the time; the chronographs count in jiffies of 1 to 10 ms."""
FULL_RATIO = 0.5
"""Of the looks: it is the usual state."""
WINDOW_FULL_RATIO = 0.3
"""The same of the peer's window: a sender that paces itself, as BBR does, is often just below it;
one that something else holds is never there."""
BLOCKS_RATIO, WAKES_RATIO = 0.93, 0.62
"""Of the send buffer: a writer waits from the moment that its queue has filled it until that is
back at two thirds (sk_stream_write_space), and fills it again; it is seen anywhere between. What
never comes near the first is the queue of a writer that does not wait."""
PAYLOAD_RATIO = 0.92
"""Payload over what it takes of the buffer, where that is not known; measured with frames of
1500 bytes."""
FLYING_RATIO = 0.25
"""Unsent bytes over those in flight below which all is under way: a buffer that the kernel sizes
has as much unsent as in flight."""
OPEN_RATIO = 0.15
"""Of the looks, and as much of the time: less, and the peer's window does not hold the sender."""
STANDING_SEGMENTS = 32
STANDING_SECONDS = 0.001
WINDOW_STANDING_RATIO, BUFFER_STANDING_RATIO = 1.3, 2.0
"""A loaded RTT so far above the least one, with so much in flight, is a queue on the path. A writer
with a small buffer sends in bursts, which wait for themselves there though the path is idle then.
"""
_COUNTED = (
    ("retransmitted_segments", "retransmitted_segments"),
    ("sent_bytes", "sent_bytes"),
    ("retransmitted_bytes", "retransmitted_bytes"),
    ("rto_time_seconds", "rto_seconds"),
    ("duplicates_reported", "spurious_segments"),
)
"""Counters of tcp_info whose growth is told, and its names."""


@dataclass(frozen=True)
class Glimpse:
    """One look at one socket."""

    elapsed_seconds: float
    figures: Figures
    """tcp_info.read: the queues and buffers may be missing."""
    unread_bytes: Optional[int]
    unsent_bytes: Optional[int]


def of_sender(glimpses: Sequence[Glimpse]) -> Details:
    """What the sender's socket tells of a span of time; what is not known is absent.

    busy_ratio and those ending in limited_ratio are shares of the span (busy includes the others),
    those of full shares of the looks; send_queue_full: the writer waits. The segments
    and bytes sent and retransmitted and rto_seconds are what came to be in the span. high is the
    highest look.
    """
    told: Details = {"glimpses": len(glimpses)}
    if not glimpses:
        return told
    seen = [read(each) for each in glimpses]
    seconds = glimpses[-1].elapsed_seconds - glimpses[0].elapsed_seconds
    for name in ("busy", "receive_window_limited", "send_buffer_limited"):
        grown = _grown(f"{name}_seconds", seen)
        if grown is not None and seconds > 0:
            told[f"{name}_ratio"] = min(1.0, grown / seconds)
    for name, key in _COUNTED:
        grown = _grown(name, seen)
        if grown is not None:
            told[key] = grown
    for name in ("unsent_bytes", "congestion_window_bytes"):
        _spread(told, name, seen)
    for name in ("in_flight_bytes", "rtt_seconds", "peer_window_bytes"):
        _spread(told, name, seen, high=True)
    for name in ("min_rtt_seconds", "segment_bytes", "path_mtu_bytes", "send_buffer_bytes"):
        if name in seen[-1]:
            told[name] = seen[-1][name]
    queue = _each("queue_of_buffer", seen)
    waits = bool(queue) and max(queue) >= BLOCKS_RATIO
    _share(told, "send_queue_full_ratio", [waits and each >= WAKES_RATIO for each in queue])
    _share(told, "peer_window_full_ratio", _each("peer_window_full", seen))
    lost = loss_ratio(told)
    if lost is not None:
        told["loss_ratio"] = lost
    return told


def loss_ratio(told: Details) -> Optional[float]:
    """Lost over sent bytes, of what of_sender told; None: not known.

    What the receiver had twice (RFC 2883) was late or reordered, and not lost.
    """
    if not told.get("sent_bytes") or "retransmitted_bytes" not in told:
        return None
    needless = told.get("spurious_segments", 0) * told.get("segment_bytes", 0)
    return float(max(0, told["retransmitted_bytes"] - needless) / told["sent_bytes"])


def of_receiver(glimpses: Sequence[Glimpse]) -> Details:
    """What the receiver's socket tells of a span of time; what is not known is absent."""
    told: Details = {}
    seen = [read(each) for each in glimpses]
    unread = _each("unread_bytes", seen)
    _spread(told, "unread_bytes", seen)
    if unread:
        told["full_ratio"] = sum(each >= UNREAD_BYTES for each in unread) / len(unread)
        told["receiver_glimpses"] = len(unread)
        grown = _grown("out_of_order_segments", seen)
        if grown is not None:
            told["out_of_order_segments"] = grown
    told.update(moved(glimpses, "received_bytes"))
    _spread(told, "own_window_bytes", seen)
    buffers = _each("receive_buffer_bytes", seen)
    if buffers:
        told["receive_buffer_bytes"] = buffers[-1]
    return told


def moved(glimpses: Sequence[Glimpse], counter: str) -> Details:
    """movement.of_counter of a figure that counts bytes."""
    return of_counter([(each.elapsed_seconds, each.figures.get(counter)) for each in glimpses])


def who_limits(sender: Details, receiver: Details) -> str:
    """network, receiver, sender, send-buffer, receive-window or unknown.

    An end that was not seen is an empty Details; what the other cannot tell alone is unknown.
    """
    if sender.get("glimpses", LEAST_GLIMPSES) < LEAST_GLIMPSES or "busy_ratio" not in sender:
        sender = {}
    if receiver.get("receiver_glimpses", LEAST_GLIMPSES) < LEAST_GLIMPSES:
        receiver = {}
    if _much_is_unread(receiver) and not _path_holds(sender):
        return "receiver"
    if not sender:
        return "unknown"
    if _window_holds(sender, WINDOW_FULL_RATIO, LIMITED_RATIO):
        if not _queue_stands(sender, WINDOW_STANDING_RATIO):
            # Of a peer that was not seen, its application may be what keeps the window shut.
            return "receive-window" if "unread_bytes_median" in receiver else "unknown"
    elif _buffer_is_full(sender) and not _queue_stands(sender, BUFFER_STANDING_RATIO):
        return "send-buffer"
    waits = _writer_waits(sender)
    return "unknown" if waits is None else "network" if waits else "sender"


def told(sender: Details, receiver: Details, congestion_control: Optional[str]) -> Details:
    """What stands in a step's details."""
    by = who_limits(sender, receiver)
    return {"by": by, "congestion_control": congestion_control, **sender, **receiver}


def _much_is_unread(receiver: Details) -> bool:
    unread: float = receiver.get("unread_bytes_median", 0)
    buffer: float = receiver.get("receive_buffer_bytes", float("inf"))
    return unread > 0 and unread >= min(UNREAD_BYTES, UNREAD_RATIO * buffer)


def _path_holds(sender: Details) -> bool:
    """Whether the sender is kept waiting, and not by the peer's window: at a high rate a good deal
    is unread at any moment, though the receiver keeps up."""
    return bool(_writer_waits(sender)) and not _window_holds(sender, OPEN_RATIO, OPEN_RATIO)


def _queue_stands(sender: Details, ratio: float) -> bool:
    """Whether more is in flight than fits on the path: no window is too small then."""
    try:
        least, usual = sender["min_rtt_seconds"], sender["rtt_seconds_median"]
        segments = sender["in_flight_bytes_median"] / sender["segment_bytes"]
    except KeyError:
        return False
    stands = usual > ratio * least and usual - least > STANDING_SECONDS
    return bool(stands and segments >= STANDING_SEGMENTS)


def _window_holds(sender: Details, full_ratio: float, limited_ratio: float) -> bool:
    full: float = sender.get("peer_window_full_ratio", 0.0)
    limited: float = sender.get("receive_window_limited_ratio", 0.0)
    return full >= full_ratio or limited > limited_ratio


def _buffer_is_full(sender: Details) -> bool:
    """Whether the writer waits though all that it has written is under way."""
    if sender.get("send_queue_full_ratio", 1.0) < FULL_RATIO:
        return False
    if sender.get("send_buffer_limited_ratio", 0.0) > LIMITED_RATIO:
        return True
    try:
        unsent, segment = sender["unsent_bytes_median"], sender["segment_bytes"]
        flying = sender["in_flight_bytes_median"]
    except KeyError:
        return False
    under_way = unsent < max(segment, FLYING_RATIO * flying)
    return bool("send_queue_full_ratio" in sender and under_way)


def _writer_waits(sender: Details) -> Optional[bool]:
    """Whether the sending application has more than the socket takes; None: not known.

    Where the buffer is not known, few unsent bytes are a slow writer's or a small buffer's.
    """
    if "send_queue_full_ratio" in sender:
        return bool(sender["send_queue_full_ratio"] >= FULL_RATIO)
    return True if sender.get("unsent_bytes_median", 0) >= UNSENT_BYTES else None


def read(glimpse: Glimpse) -> Figures:
    """The figures of one look, and what follows from them; what is not known is absent."""
    known = dict(glimpse.figures)
    for name in ("unread_bytes", "unsent_bytes"):
        value = getattr(glimpse, name)
        if value is not None:
            known[name] = value
    segment = known.get("segment_bytes")
    if {"sent_bytes", "retransmitted_bytes", "acknowledged_bytes"} <= set(known):
        sent = known["sent_bytes"] - known["retransmitted_bytes"]
        known["in_flight_bytes"] = max(0, sent - known["acknowledged_bytes"])
    elif segment is not None and "unacknowledged_segments" in known:
        known["in_flight_bytes"] = known["unacknowledged_segments"] * segment
    if segment is not None and "congestion_window_segments" in known:
        known["congestion_window_bytes"] = known["congestion_window_segments"] * segment
    flying, queue = known.get("in_flight_bytes"), known.get("send_queue_bytes")
    if flying is not None and segment is not None and "peer_window_bytes" in known:
        # it has no room for one more segment
        known["peer_window_full"] = flying + segment > known["peer_window_bytes"]
    if queue is None and flying is not None and "unsent_bytes" in known:
        queue = (flying + known["unsent_bytes"]) / PAYLOAD_RATIO
    if queue is not None and known.get("send_buffer_bytes"):
        known["queue_of_buffer"] = queue / known["send_buffer_bytes"]
    return known


def _each(name: str, seen: Sequence[Figures]) -> List[float]:
    return [figures[name] for figures in seen if name in figures]


def _grown(name: str, seen: Sequence[Figures]) -> Optional[float]:
    if not seen or name not in seen[0] or name not in seen[-1]:
        return None
    return seen[-1][name] - seen[0][name]


def _spread(told: Details, name: str, seen: Sequence[Figures], high: bool = False) -> None:
    values = _each(name, seen)
    if values:
        told[f"{name}_median"] = statistics.median(values)
        if high:
            told[f"{name}_high"] = max(values)


def _share(told: Details, name: str, values: Sequence[float]) -> None:
    if values:
        told[name] = sum(values) / len(values)


LEAST_DISTANCES = 4
"""Fewer tell nothing of how even they are."""
SILENCE_SECONDS = 0.04
"""Between two replies: of a period of 100 ms, a quota of half a core leaves more than that."""


def of_counter(looks: Sequence[Tuple[float, Optional[float]]]) -> Details:
    """What a counter of bytes tells, from looks: when (seconds), and the counter then.

    silent_ratio: share of the time between looks in which it stood still; absent: not known.
    """
    known = [(when, count) for when, count in looks if count is not None]
    if len(known) < 2 or known[-1][0] <= known[0][0]:
        return {}
    pairs = list(zip(known, known[1:]))
    silent = sum(now - before for (before, less), (now, more) in pairs if more <= less)
    return {"silent_ratio": silent / (known[-1][0] - known[0][0])}


def of_moments(moments: Sequence[float]) -> Details:
    """What the moments tell at which something arrived, in seconds; empty: too few.

    silent_ratio: share of the time in gaps of SILENCE_SECONDS and more. bursts: how many such gaps
    ended; burst_count_median: arrivals in one. burst_seconds_median, with _low and _high
    (quartiles): from the start of one burst to that of the next, where there are several.
    """
    if len(moments) < 2 or moments[-1] <= moments[0]:
        return {}
    silent, starts = 0.0, []
    for index, (before, now) in enumerate(zip(moments, moments[1:])):
        if now - before >= SILENCE_SECONDS:
            silent += now - before
            starts.append(index + 1)
    told: Details = {"silent_ratio": silent / (moments[-1] - moments[0]), "bursts": len(starts)}
    pairs = list(zip(starts, starts[1:]))
    apart: List[float] = [moments[later] - moments[earlier] for earlier, later in pairs]
    if len(apart) >= LEAST_DISTANCES:
        low, middle, high = statistics.quantiles(apart, n=4)
        told.update(burst_seconds_median=middle, burst_seconds_low=low, burst_seconds_high=high)
        told["burst_count_median"] = statistics.median(last - first for first, last in pairs)
    return told
