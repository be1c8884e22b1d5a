"""Finds what blocks the bytes in a sender's socket: path, window, buffer or receiver.

The queues show it; the kernel's chronographs do not (tcp_chrono_start in net/ipv4/tcp_output.c).
"""

from __future__ import annotations

from statistics import median

from bottleneck.analysis.attribution.trace import Connection
from probes.core.copy_trace import SocketLook

NETWORK, WINDOW, SEND_BUFFER, RECEIVER = "network", "window", "send-buffer", "receiver"
NOT_REPORTED = "untold"
"""The kernel does not report the needed figures: tcp_info before Linux 4.6 and 5.4."""
PAUSED = "paused"
"""Bytes are in flight and nothing is acknowledged: the path, or the host behind it, is paused."""
PAUSE_SECONDS, PAUSE_TRIPS, ANSWERED_BYTES = 0.01, 3.0, 128 << 10
"""Least silence of a pause: seconds, round trips, and time of so many bytes, because one ACK may
answer as many where segments are joined (GRO)."""
STANDING_RATIO, STANDING_SECONDS, STANDING_SEGMENTS = 1.5, 1e-3, 16
"""Queue that stands on the path, so that no window or buffer is too small: least RTT over the
shortest, least difference, and least segments in flight."""
UNREAD_RATIO = 0.3
"""Least unread bytes over half the receive buffer at which the receiver is to blame."""
BLOCKS_RATIO = 0.62
"""Least use of the send buffer while a writer waits for room in it (limits.py)."""
FULL_WINDOW_RATIO = 0.8
"""Bytes in flight over the peer's window: a sender waits for room for a long segment
(tcp_tso_should_defer in net/ipv4/tcp_output.c)."""
UNSENT_RATIO = 0.25
"""Least unsent bytes over those in flight at which the buffer has more to send."""
FAR_SECONDS = 2e-3
"""Below this RTT neither a window nor the requests in flight matter."""
EMPTY_QUEUE_RATIO, LOST_RATIO = 0.3, 1e-3
"""Least share of looks with a standing queue; least share of retransmitted bytes at which loss
matters."""
FILLED_RATIO, FILLED_RECEIVER_RATIO, LEAST_TRIPS = 1.17, 1.08, 8
"""RTT over the shortest in three quarters of the looks, at a sender and at a receiver, on a path
that is full at all times, and fewest looks: a sender measures 1.20 and more there, and 1.14 and
less where packets are lost without a queue; a receiver 1.16 and more, and 1.00 and less."""
FLIGHT_RATIO, RISES_RATIO = 1.3, 1.02
"""Least upper over lower tenth of the bytes in flight at which they change; least median RTT with
more in flight over that with less."""
FITS = 0.5, 1.6
"""Rate over bytes in flight per round trip, where these limit the rate (Little's law)."""


def has_standing_queue(look: SocketLook, segment_bytes: float) -> bool:
    """Whether packets of this connection queue on the path: many in flight, and a long RTT.

    The smoothed RTT alone is out of date while nothing is in flight.
    """
    rtt, min_rtt, flying = look.rtt_seconds, look.min_rtt_seconds, look.in_flight_bytes
    if rtt is None or min_rtt is None or not flying:
        return False
    far_above = rtt > STANDING_RATIO * min_rtt and rtt - min_rtt > STANDING_SECONDS
    return far_above and flying >= STANDING_SEGMENTS * segment_bytes


def queue_ratio(connection: Connection) -> float:
    """Returns the share of the looks at a sender with a standing queue."""
    standing = [has_standing_queue(each, connection.segment_bytes) for each in connection.looks]
    return sum(standing) / len(standing)


def is_always_full(trips: list[float], least_seconds: float, filled_ratio: float) -> bool:
    """Whether a path has a queue at all times, so that its losses are that queue's overflow.

    A sender that backs off below the bandwidth-delay product measures the shortest RTT again.
    """
    if len(trips) < LEAST_TRIPS or least_seconds <= 0:
        return False
    low = sorted(trips)[len(trips) // 4]
    return low >= filled_ratio * least_seconds and low - least_seconds >= STANDING_SECONDS


def rises_with_flight(connection: Connection) -> bool:
    """Whether the RTT is longer while more is in flight, as a queue makes it; jitter does not.

    True as well where the bytes in flight hardly change.
    """
    looks = [(each.in_flight_bytes, each.rtt_seconds) for each in connection.looks]
    both = sorted((flying, rtt) for flying, rtt in looks if flying is not None and rtt is not None)
    half = len(both) // 2
    if not half or both[len(both) // 10][0] * FLIGHT_RATIO >= both[-1 - len(both) // 10][0]:
        return True
    few, many = (median(rtt for _, rtt in part) for part in (both[:half], both[half:]))
    return many > RISES_RATIO * few


def is_silent(look: SocketLook, since_seconds: float | None, rate: float) -> bool:
    """Whether nothing has arrived for much longer than usual at this rate.

    since_seconds: since the last acknowledgement, or the last payload. rate: the copy's.
    """
    if since_seconds is None:
        return False
    usual = max(PAUSE_TRIPS * (look.min_rtt_seconds or 0.0), ANSWERED_BYTES / max(1.0, rate))
    return since_seconds > max(PAUSE_SECONDS, usual)


def blocked_by(
    look: SocketLook,
    sender: Connection,
    receiver: SocketLook | None,
    room_bytes: float | None,
    asks: bool,
    rate: float,
) -> str | None:
    """Returns what blocks the bytes in the sender's socket at a look; None: nothing to send.

    receiver, room_bytes: the receiver's look at its socket, and its receive buffer, if observed.
    asks: whether the sending program waits for a reply, and so has no more to write.
    """
    if look.in_flight_bytes is None or look.unsent_bytes is None:
        return NOT_REPORTED
    flying, unsent = look.in_flight_bytes, look.unsent_bytes
    segment = sender.segment_bytes
    standing = has_standing_queue(look, segment)
    if flying and not look.backoffs and is_silent(look, look.since_acknowledged_seconds, rate):
        return PAUSED
    if unsent > segment:
        window = look.peer_window_bytes
        if window is None and not standing:
            return NOT_REPORTED
        if window is not None and flying + segment > FULL_WINDOW_RATIO * window:
            unread = receiver.unread_bytes if receiver else None
            if unread is not None and unread >= UNREAD_RATIO * max(1.0, (room_bytes or 0.0) / 2):
                return RECEIVER
            return NETWORK if standing else WINDOW
    queued, buffer = look.queued_bytes, sender.send_buffer_bytes
    waits = not asks and queued is not None and buffer and queued >= BLOCKS_RATIO * buffer
    # One long write may exceed a small buffer, with nearly all of it in flight.
    if waits and unsent < max(segment, UNSENT_RATIO * flying):
        return NETWORK if standing else SEND_BUFFER
    return NETWORK if unsent > segment else None


def window_limits(window_bytes: float, rtt_seconds: float, rate: float) -> bool:
    """Whether a window of so many bytes explains the rate (window over RTT, Little's law)."""
    if rtt_seconds < FAR_SECONDS or window_bytes <= 0:
        return False
    return FITS[0] <= rate * rtt_seconds / window_bytes <= FITS[1]
