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
from bottleneck.analysis.evidence.copies import Connection, Evidence
from bottleneck.analysis.finding import Claim, Standing
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
    each = limit(given)
    if each is None:
        return
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
