"""Limiting end or buffer of a TCP transfer, from looks at its two sockets; pure.

The place where bytes wait decides. Unread at the receiver: its application is slow. A send queue
that is not full: the sending application is. A full queue that is all in flight: the send buffer is
too small. In flight as much as the peer's window allows: that window is too small. A full queue
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
"""Least number of looks from which a limit is inferred."""
UNREAD_BYTES = 16 << 10
UNREAD_RATIO = 0.25
"""Unread share of a small receive buffer that counts as UNREAD_BYTES of a large one."""
UNSENT_BYTES = 64 << 10
"""Least bytes that wait at a sender that keeps up: one write of an application."""
LIMITED_RATIO = 0.2
"""Share of the time; the chronographs count in jiffies of 1 to 10 ms."""
FULL_RATIO = 0.5
"""Least share of the looks with a state that counts as the usual one."""
WINDOW_FULL_RATIO = 0.3
"""Share of the looks for the peer's window: a sender that paces itself, as BBR does, is often just
below the window; a sender with another limit never reaches it."""
BLOCKS_RATIO, WAKES_RATIO = 0.93, 0.62
"""Queue over send buffer: a writer waits from the moment that its queue fills the buffer until it
is back at two thirds (sk_stream_write_space); looks find it anywhere between. The queue of a writer
that does not wait never comes near the first."""
PAYLOAD_RATIO = 0.92
"""Payload over its part of the buffer, where that is unknown; measured with 1500-byte frames."""
FLYING_RATIO = 0.25
"""Unsent bytes over those in flight below which all counts as in flight: a buffer that the kernel
sizes has as much unsent as in flight."""
OPEN_RATIO = 0.15
"""Share of the looks, and of the time, below which the peer's window does not limit the sender."""
STANDING_SEGMENTS = 32
STANDING_SECONDS = 0.001
WINDOW_STANDING_RATIO, BUFFER_STANDING_RATIO = 1.3, 2.0
"""Loaded over least RTT above which, with so much in flight, a queue stands on the path. A writer
with a small buffer sends in bursts, which queue on the path though it is idle otherwise."""
_COUNTED = (
    ("retransmitted_segments", "retransmitted_segments"),
    ("sent_bytes", "sent_bytes"),
    ("retransmitted_bytes", "retransmitted_bytes"),
    ("rto_time_seconds", "rto_seconds"),
    ("duplicates_reported", "spurious_segments"),
)
"""Counters of tcp_info whose growth is reported, and the names of that."""


@dataclass(frozen=True)
class Glimpse:
    """One look at one socket."""

    elapsed_seconds: float
    figures: Figures
    """Figures of tcp_info.read(); queues and buffers may be missing."""
    unread_bytes: Optional[int]
    unsent_bytes: Optional[int]


def sender_details(glimpses: Sequence[Glimpse]) -> Details:
    """Returns the figures of the sender's socket in a span of time; unknown ones are absent.

    busy_ratio and keys with limited_ratio are shares of the span (busy includes the others), keys
    with full_ratio shares of the looks; send_queue_full: the writer waits. Segments and bytes sent
    and retransmitted, and rto_seconds, are growth in the span. high is the highest look.
    """
    details: Details = {"glimpses": len(glimpses)}
    if not glimpses:
        return details
    looks = [read(each) for each in glimpses]
    seconds = glimpses[-1].elapsed_seconds - glimpses[0].elapsed_seconds
    for name in ("busy", "receive_window_limited", "send_buffer_limited"):
        grown = _growth(f"{name}_seconds", looks)
        if grown is not None and seconds > 0:
            details[f"{name}_ratio"] = min(1.0, grown / seconds)
    for name, key in _COUNTED:
        grown = _growth(name, looks)
        if grown is not None:
            details[key] = grown
    for name in ("unsent_bytes", "congestion_window_bytes"):
        _spread(details, name, looks)
    for name in ("in_flight_bytes", "rtt_seconds", "peer_window_bytes"):
        _spread(details, name, looks, high=True)
    for name in ("min_rtt_seconds", "segment_bytes", "path_mtu_bytes", "send_buffer_bytes"):
        if name in looks[-1]:
            details[name] = looks[-1][name]
    queue = _each("queue_of_buffer", looks)
    waits = bool(queue) and max(queue) >= BLOCKS_RATIO
    _share(details, "send_queue_full_ratio", [waits and each >= WAKES_RATIO for each in queue])
    _share(details, "peer_window_full_ratio", _each("peer_window_full", looks))
    lost = loss_ratio(details)
    if lost is not None:
        details["loss_ratio"] = lost
    return details


def loss_ratio(details: Details) -> Optional[float]:
    """Returns lost over sent bytes, by sender_details()'s details; None: not known.

    Segments that the receiver got twice (RFC 2883) were late or reordered, and not lost.
    """
    if not details.get("sent_bytes") or "retransmitted_bytes" not in details:
        return None
    needless = details.get("spurious_segments", 0) * details.get("segment_bytes", 0)
    return float(max(0, details["retransmitted_bytes"] - needless) / details["sent_bytes"])


def receiver_details(glimpses: Sequence[Glimpse]) -> Details:
    """Returns the figures of the receiver's socket in a span of time; unknown ones are absent."""
    details: Details = {}
    looks = [read(each) for each in glimpses]
    unread = _each("unread_bytes", looks)
    _spread(details, "unread_bytes", looks)
    if unread:
        details["full_ratio"] = sum(each >= UNREAD_BYTES for each in unread) / len(unread)
        details["receiver_glimpses"] = len(unread)
        grown = _growth("out_of_order_segments", looks)
        if grown is not None:
            details["out_of_order_segments"] = grown
    received = [(each.elapsed_seconds, each.figures.get("received_bytes")) for each in glimpses]
    details.update(counter_silence(received))
    _spread(details, "own_window_bytes", looks)
    buffers = _each("receive_buffer_bytes", looks)
    if buffers:
        details["receive_buffer_bytes"] = buffers[-1]
    return details


def who_limits(sender: Details, receiver: Details) -> str:
    """Returns network, receiver, sender, send-buffer, receive-window or unknown.

    An end without looks is an empty Details; unknown: the other end's do not suffice.
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
            # The application of a peer without looks may be the reason for the full window.
            return "receive-window" if "unread_bytes_median" in receiver else "unknown"
    elif _buffer_is_full(sender) and not _queue_stands(sender, BUFFER_STANDING_RATIO):
        return "send-buffer"
    waits = _writer_waits(sender)
    return "unknown" if waits is None else "network" if waits else "sender"


def step_details(sender: Details, receiver: Details, congestion_control: Optional[str]) -> Details:
    """Returns a step's details: the limit and both ends' figures."""
    by = who_limits(sender, receiver)
    return {"by": by, "congestion_control": congestion_control, **sender, **receiver}


def _much_is_unread(receiver: Details) -> bool:
    unread: float = receiver.get("unread_bytes_median", 0)
    buffer: float = receiver.get("receive_buffer_bytes", float("inf"))
    return unread > 0 and unread >= min(UNREAD_BYTES, UNREAD_RATIO * buffer)


def _path_holds(sender: Details) -> bool:
    """Whether the sender waits, and not for the peer's window: at a high rate much is unread at any
    moment, though the receiver keeps up."""
    return bool(_writer_waits(sender)) and not _window_holds(sender, OPEN_RATIO, OPEN_RATIO)


def _queue_stands(sender: Details, ratio: float) -> bool:
    """Whether more is in flight than fits on the path: no window is too small then."""
    try:
        min_rtt, rtt = sender["min_rtt_seconds"], sender["rtt_seconds_median"]
        segments = sender["in_flight_bytes_median"] / sender["segment_bytes"]
    except KeyError:
        return False
    stands = rtt > ratio * min_rtt and rtt - min_rtt > STANDING_SECONDS
    return bool(stands and segments >= STANDING_SEGMENTS)


def _window_holds(sender: Details, full_ratio: float, limited_ratio: float) -> bool:
    full: float = sender.get("peer_window_full_ratio", 0.0)
    limited: float = sender.get("receive_window_limited_ratio", 0.0)
    return full >= full_ratio or limited > limited_ratio


def _buffer_is_full(sender: Details) -> bool:
    """Whether the writer waits though all that it has written is in flight."""
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
    """Returns the figures of one look, with derived ones; unknown ones are absent."""
    figures = dict(glimpse.figures)
    for name in ("unread_bytes", "unsent_bytes"):
        value = getattr(glimpse, name)
        if value is not None:
            figures[name] = value
    segment = figures.get("segment_bytes")
    if {"sent_bytes", "retransmitted_bytes", "acknowledged_bytes"} <= set(figures):
        sent = figures["sent_bytes"] - figures["retransmitted_bytes"]
        figures["in_flight_bytes"] = max(0, sent - figures["acknowledged_bytes"])
    elif segment is not None and "unacknowledged_segments" in figures:
        figures["in_flight_bytes"] = figures["unacknowledged_segments"] * segment
    if segment is not None and "congestion_window_segments" in figures:
        figures["congestion_window_bytes"] = figures["congestion_window_segments"] * segment
    flying, queue = figures.get("in_flight_bytes"), figures.get("send_queue_bytes")
    if flying is not None and segment is not None and "peer_window_bytes" in figures:
        # it has no room for one more segment
        figures["peer_window_full"] = flying + segment > figures["peer_window_bytes"]
    if queue is None and flying is not None and "unsent_bytes" in figures:
        queue = (flying + figures["unsent_bytes"]) / PAYLOAD_RATIO
    if queue is not None and figures.get("send_buffer_bytes"):
        figures["queue_of_buffer"] = queue / figures["send_buffer_bytes"]
    return figures


def _each(name: str, looks: Sequence[Figures]) -> List[float]:
    return [figures[name] for figures in looks if name in figures]


def _growth(name: str, looks: Sequence[Figures]) -> Optional[float]:
    if not looks or name not in looks[0] or name not in looks[-1]:
        return None
    return looks[-1][name] - looks[0][name]


def _spread(details: Details, name: str, looks: Sequence[Figures], high: bool = False) -> None:
    values = _each(name, looks)
    if values:
        details[f"{name}_median"] = statistics.median(values)
        if high:
            details[f"{name}_high"] = max(values)


def _share(details: Details, name: str, values: Sequence[float]) -> None:
    if values:
        details[name] = sum(values) / len(values)


LEAST_DISTANCES = 4
"""Least number of distances between bursts from which a period is inferred."""
SILENCE_SECONDS = 0.04
"""Least gap between two replies: a quota of half a core in 100 ms causes longer ones."""


def counter_silence(looks: Sequence[Tuple[float, Optional[float]]]) -> Details:
    """Returns the silence in looks at a counter of bytes: (seconds, count) each.

    silent_ratio: share of the time between looks in which it stood still; absent: not known.
    """
    points = [(when, count) for when, count in looks if count is not None]
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return {}
    pairs = list(zip(points, points[1:]))
    silent = sum(end - start for (start, old), (end, new) in pairs if new <= old)
    return {"silent_ratio": silent / (points[-1][0] - points[0][0])}


def moment_silence(moments: Sequence[float]) -> Details:
    """Returns silence and bursts in the moments of arrivals, in seconds; empty: too few.

    silent_ratio: share of the time in gaps of SILENCE_SECONDS and more. bursts: how many such gaps
    ended; burst_count_median: arrivals in one. burst_seconds_median, with _low and _high
    (quartiles): from the start of one burst to that of the next, where there are several.
    """
    if len(moments) < 2 or moments[-1] <= moments[0]:
        return {}
    silent, starts = 0.0, []
    for index, (previous, now) in enumerate(zip(moments, moments[1:])):
        if now - previous >= SILENCE_SECONDS:
            silent += now - previous
            starts.append(index + 1)
    details: Details = {"silent_ratio": silent / (moments[-1] - moments[0]), "bursts": len(starts)}
    pairs = list(zip(starts, starts[1:]))
    apart: List[float] = [moments[later] - moments[earlier] for earlier, later in pairs]
    if len(apart) >= LEAST_DISTANCES:
        low, middle, high = statistics.quantiles(apart, n=4)
        details.update(burst_seconds_median=middle, burst_seconds_low=low, burst_seconds_high=high)
        details["burst_count_median"] = statistics.median(last - first for first, last in pairs)
    return details
