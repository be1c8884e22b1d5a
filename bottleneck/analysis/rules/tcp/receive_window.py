"""tcp/receive-window: the receiver lets too few bytes be in flight for the round trip.

No more than the window that the receiver advertises arrives per round trip. It is the window's
affair where the sender was kept waiting for it while the receiver read everything at once: a
reader that is slow fills the same window, and is its disk's or its CPU's affair. From one end alone
what the other does with what it has cannot be seen; but a window that a slow reader fills carries
less than one window a round trip, and one that is too small just that.
Source: tcp_info's tcpi_rwnd_limited and tcpi_snd_wnd (include/uapi/linux/tcp.h).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import socket_buffers
from bottleneck.analysis.claim import Cause, Source, claim
from bottleneck.analysis.evidence.copies import Connection, Evidence, arrived_rate, client_bound
from bottleneck.analysis.evidence.startup import explains
from bottleneck.analysis.finding import Claim, Standing
from bottleneck.analysis.rtt import rtt
from bottleneck.units import percent_text, rate_text, seconds_text, size_text

CAUSE = Cause(
    *("tcp", "receive-window", "receive window"),
    remedy="Raise the receive buffer on the {side} (`net.ipv4.tcp_rmem`, or SO_RCVBUF in Samba's "
    "`socket options`)",
)
LIMITED_RATIO = 0.2
"""Share of the time that the sender waited for the window, from which on it matters."""
MOSTLY_RATIO = 0.5
FILLED_RATIO = 0.6
"""In flight over the window: what silly window avoidance and late updates leave of a full one."""
CARRIES_MORE_RATIO = 1.3
"""TCP alone over the copy's rate, from which on the path is not what holds the copy."""
LARGEST_BYTES = 16 << 20
"""A window from which on its host is set up for long paths: the delay is the cause."""
LOW_RATIO, HIGH_RATIO = 0.65, 1.2
"""From one end: rate over one window a round trip; one that the kernel tunes is at least twice as
large."""
FULL_RATIO = 0.3
"""Of the looks at the server's window."""
SHORT_SECONDS = 1e-3
"""Below it neither end's own time is small beside the round trip."""
FIXED_RATIO = 1.3
"""The largest that a window was over its median, of one that its host does not let grow."""


@dataclass(frozen=True)
class Limit:
    """A connection that its receiver's window holds."""

    seen: Connection
    window_bytes: float
    rtt_seconds: float
    """The shortest: what lies in a queue on the path would make any window look too small."""
    bytes_per_second: float
    low_bytes_per_second: float
    high_bytes_per_second: float
    reached: bool | None
    standing: Standing
    source: Source
    evidence: str

    @property
    def words(self) -> str:
        """The arithmetic behind it."""
        # The round trips of the copy itself, with the time that window updates take.
        trip = seconds_text(self.window_bytes / self.bytes_per_second)
        return (
            f"({size_text(self.window_bytes)}) allows at most {rate_text(self.bytes_per_second)} "
            f"at an RTT of {trip}"
        )

    def claim(
        self, cause: Cause, side: str, words: str, source: Source, remedy: str, detail: str = ""
    ) -> Claim:
        """It as the ceiling of a cause."""
        return claim(
            cause,
            side,
            self.seen.found,
            f"{words} {self.words}",
            level=self.bytes_per_second,
            low=self.low_bytes_per_second,
            high=max(self.bytes_per_second, self.high_bytes_per_second),
            standing=self.standing,
            reached=self.reached,
            source=source,
            evidence=(self.evidence,),
            remedy=remedy,
            detail=detail,
            window_bytes=self.window_bytes if self.seen.own else 0.0,
        )


def rule(given: Evidence) -> Iterator[Claim]:
    """What the window of the copy's receiver carries at the round trip of the path."""
    if explains(given):
        return
    for each in (limit(given), _from_one_end(given)):
        if each is None or each.window_bytes >= LARGEST_BYTES:
            continue
        found = socket_buffers.fixed(
            *(given, given.receiver, socket_buffers.RECEIVE),
            *(each.seen.sockets, each.rtt_seconds, each.window_bytes),
        )
        whose = f"the {given.receiver}'s TCP receive window"
        yield each.claim(CAUSE, given.receiver, whose, each.source, found.remedy, found.detail)


def limit(given: Evidence) -> Limit | None:
    """The window's ceiling of a copy; None: the window does not hold it, or nobody knows."""
    seen = given.connection
    if seen is None:
        return None
    told = seen.sockets
    window, rtt, share = (
        told.peer_window_bytes_median,
        told.min_rtt_seconds,
        told.receive_window_limited_ratio,
    )
    if window is None or rtt is None or share < LIMITED_RATIO or not seen.reader_waits:
        return None
    in_flight = told.in_flight_bytes_median
    if in_flight is not None and in_flight < FILLED_RATIO * window:
        return None
    evidence = (
        f"{seen.whose} waited for the receiver's window {percent_text(min(1.0, share))} of the "
        "time, although the receiver read all data at once."
    )
    level, rate = window / rtt, given.rate
    if not seen.own:
        alone = seen.found.rate
        if not FILLED_RATIO * level <= alone.median <= level / FILLED_RATIO:
            return None
        figures = (alone.median, alone.low, alone.high)
        return Limit(seen, window, rtt, *figures, None, "measured", "alone", evidence)
    more = (given.path_rate or 0.0) >= CARRIES_MORE_RATIO * rate.median
    # The round trips of the copy itself, with the time that window updates take.
    usual = min(level, window / (told.rtt_seconds_median or rtt))
    reached = None
    if more and share >= MOSTLY_RATIO and rate.median >= FILLED_RATIO * usual:
        reached, usual = True, max(rate.median, usual)
    else:
        usual = level
    return Limit(seen, window, rtt, usual, usual, level, reached, "inferred", "measured", evidence)


def _from_one_end(given: Evidence) -> Limit | None:
    """The window that a copy's round trips show to be all that was in flight."""
    if not given.lone or client_bound(given.made):
        return None
    if given.copy.verb == "pull":
        return _own_window(given)
    return _servers_window(given) if given.own.sockets.sender_seen else None


def _own_window(given: Evidence) -> Limit | None:
    """Of a pull: the client's window, if it takes at once what arrives."""
    window, trip = given.own.sockets.own_window_bytes_median, rtt(given.report, given.made)
    if window is None or trip is None or not trip.echoed or not given.own.keeps_up(window):
        return None
    return _fitting(given, window, trip.seconds, "alone", "")


def _servers_window(given: Evidence) -> Limit | None:
    """Of a push: the server's window, if it was full and its path was not."""
    told = given.own.sockets
    window, least = told.peer_window_bytes_median, told.min_rtt_seconds
    flying, most = told.in_flight_bytes_median, told.peer_window_bytes_high
    full = told.peer_window_full_ratio >= FULL_RATIO
    limited = full or told.receive_window_limited_ratio >= LIMITED_RATIO
    if window is None or least is None or flying is None or given.own.queued or not limited:
        return None
    if most is not None and most > FIXED_RATIO * window:
        # It was larger: who reads slowly lets no more in than he takes in a round trip.
        return None
    if flying < FILLED_RATIO * window:
        return None
    # Where nobody told whether the window ever was larger, it is a rough figure.
    source: Source = "alone" if most is not None else "likeness"
    doubt = " A server that reads slowly can look the same (--agent distinguishes them)."
    return _fitting(given, window, least, source, doubt)


def _fitting(
    given: Evidence, window: float, seconds: float, source: Source, doubt: str
) -> Limit | None:
    rate, level, moved = given.rate, window / seconds, arrived_rate(given.made)
    if seconds < SHORT_SECONDS or not LOW_RATIO * level <= moved <= HIGH_RATIO * level:
        return None
    level = max(rate.median, level)
    before = "Before its flush, the" if moved > rate.median else "The"
    evidence = (
        f"{before} copy moved {percent_text(moved * seconds / window)} of one such window per "
        f"RTT.{doubt}"
    )
    figures = (level, rate.low, rate.high)
    return Limit(given.own, window, seconds, *figures, True, "inferred", source, evidence)
