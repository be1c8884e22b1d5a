"""Rule tcp/receive-window and send-buffer without an agent: what the client's own socket shows.

In a pull it knows the window that it advertises itself, in a push that of the server, and its own
send buffer. What the other end does with what it has cannot be seen; but a window that a slow
reader fills carries less than one window a round trip, and one that is too small just that.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import one_end, socket_buffers, steps, tcp_evidence
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.receive_window import FILLED_RATIO, LARGEST_BYTES, LIMITED_RATIO
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.send_buffer import TUNED_RATIO
from bottleneck.analysis.steps import Copy, Found
from bottleneck.analysis.tcp_evidence import KEEPS_UP_RATIO, Connection
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, rate_text, seconds_text, size_text

LOW_RATIO, HIGH_RATIO = 0.75, 1.2
"""Rate over one window a round trip; a window that the kernel tunes is at least twice as large."""
FULL_RATIO = 0.3
"""Of the looks at the server's window."""
SHORT_SECONDS = 1e-3
"""Below it neither end's own time is small beside the round trip."""
RECEIVE_TRUST, SEND_TRUST = 0.8, 0.75
UNSEEN_TRUST = 0.6
"""Where nobody told whether the window ever was larger."""
FIXED_RATIO = 1.3
"""The largest that a window was over its median, of one that its host does not let grow."""


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The window or the buffer that the copy's round trips show to be all that was in flight."""
    if copy.made is None or not one_end.lone(report, copy) or one_end.bound(copy.made):
        return
    seen = Connection(copy.made, copy.made.outcome.details.get("sockets"), own=True)
    if copy.verb == "pull":
        yield from _own_window(report, copy.made, seen)
    elif steps.flag(seen.told, "sender_seen"):
        yield from _servers_window(report, copy.made, seen)
        yield from _send_buffer(report, copy.made, seen)


def _own_window(report: Report, made: Found, seen: Connection) -> Iterator[Claim]:
    """Of a pull: the client's window, if it takes at once what arrives."""
    window, trip = seen.figure("own_window_bytes_median"), rtt(report, made)
    unread = steps.amount(seen.told, "unread_bytes_median")
    if window is None or unread is None or trip is None or not trip.echoed:
        return
    slow = unread > KEEPS_UP_RATIO * window or seen.share("full_ratio") > KEEPS_UP_RATIO
    if not slow and _fits(made, window, trip.seconds):
        yield _window(report, made, seen, "client", window, trip.seconds, RECEIVE_TRUST)


def _servers_window(report: Report, made: Found, seen: Connection) -> Iterator[Claim]:
    """Of a push: the server's window, if it was full and its path was not."""
    window, least = seen.figure("peer_window_bytes_median"), seen.figure("min_rtt_seconds")
    flying = seen.figure("in_flight_bytes_median")
    full = seen.share("peer_window_full_ratio") >= FULL_RATIO
    limited = full or seen.share("receive_window_limited_ratio") >= LIMITED_RATIO
    if window is None or least is None or flying is None or seen.queued or not limited:
        return
    most = seen.figure("peer_window_bytes_high")
    if most is not None and most > FIXED_RATIO * window:
        # It was larger: who reads slowly lets no more in than he takes in a round trip.
        return
    if flying >= FILLED_RATIO * window and _fits(made, window, least):
        sure = RECEIVE_TRUST if most is not None else UNSEEN_TRUST
        yield _window(report, made, seen, "server", window, least, sure)


def _fits(made: Found, window: float, seconds: float) -> bool:
    level = window / seconds
    right = LOW_RATIO * level <= made.rate.median <= HIGH_RATIO * level
    return right and seconds >= SHORT_SECONDS and window < LARGEST_BYTES


def _window(
    report: Report,
    made: Found,
    seen: Connection,
    side: str,
    window: float,
    seconds: float,
    sure: float,
) -> Claim:
    rate, level = made.rate, max(made.rate.median, window / seconds)
    sender = "server" if side == "client" else "client"
    needed = tcp_evidence.needed_bytes(report, sender, seconds)
    needed = None if needed is None or needed <= window else needed
    doubt = "; a server that reads slowly may look alike: an agent there tells them apart"
    doubt = "" if side == "client" else doubt
    return Claim(
        Ceiling(
            component="tcp",
            side=side,
            cause="receive-window",
            bytes_per_second=level,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=max(level, rate.high),
            steps=(made.index,),
            standing="inferred",
        ),
        words=(
            f"the {side}'s receive window of {size_text(window)} carries no more than "
            f"{rate_text(level)} at a round trip of {seconds_text(seconds)}"
        ),
        reached=True,
        trust=sure,
        evidence=(
            f"It ran at {percent_text(rate.median * seconds / window)} of one such window a round "
            f"trip, as its own socket showed{doubt}.",
        ),
        remedy=socket_buffers.remedy(report, side, socket_buffers.RECEIVE, seen.told, needed),
    )


def _send_buffer(report: Report, made: Found, seen: Connection) -> Iterator[Claim]:
    """Of a push: the client's own send buffer, if it was full of what was on its way."""
    size, trip = seen.figure("send_buffer_bytes"), seen.figure("min_rtt_seconds")
    tuned = seen.figure("congestion_window_bytes_median")
    if size is None or trip is None or tuned is None or trip < SHORT_SECONDS:
        return
    # Where the kernel counted the time itself, the rule of both ends has it.
    counted = seen.share("send_buffer_limited_ratio") >= LIMITED_RATIO
    held = steps.word(seen.told, "by") == "send-buffer" and size < TUNED_RATIO * tuned
    if counted or not held:
        return
    usual = seen.figure("rtt_seconds_median") or trip
    rate = made.rate
    level = max(rate.median, seen.share("in_flight_bytes_median") / usual)
    needed = tcp_evidence.needed_bytes(report, "client", trip)
    needed = None if needed is None or needed <= size else needed
    yield Claim(
        Ceiling(
            component="tcp",
            side="client",
            cause="send-buffer",
            bytes_per_second=level,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=max(level, rate.high),
            steps=(made.index,),
            standing="inferred",
        ),
        words=(
            f"the client's send buffer of {size_text(size)} lets no more be on its way at a round "
            f"trip of {seconds_text(trip)}"
        ),
        reached=True,
        trust=SEND_TRUST,
        evidence=(
            "The buffer was full and all in it was on its way: nothing waited to be sent "
            f"({percent_text(min(1.0, seen.share('send_queue_full_ratio')))} of the looks).",
        ),
        remedy=socket_buffers.remedy(report, "client", socket_buffers.SEND, seen.told, needed),
    )
