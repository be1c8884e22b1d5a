"""Rule tcp/receive-window: the receiver lets too few bytes be in flight for the round trip.

No more than the window that the receiver advertises arrives per round trip. It is the window's
affair where the sender was kept waiting for it while the receiver read everything at once: a
reader that is slow fills the same window, and is its disk's or its CPU's affair.
Source: tcp_info's tcpi_rwnd_limited and tcpi_snd_wnd (include/uapi/linux/tcp.h).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import socket_buffers, tcp_evidence
from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.steps import Copy
from bottleneck.analysis.tcp_evidence import Connection
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, rate_text, seconds_text, size_text

LIMITED_RATIO = 0.2
"""Share of the time that the sender waited for the window, from which on it matters."""
MOSTLY_RATIO = 0.5
FILLED_RATIO = 0.6
"""In flight over the window: what silly window avoidance and late updates leave of a full one."""
CARRIES_MORE_RATIO = 1.3
"""TCP alone over the copy's rate, from which on the path is not what holds the copy."""
LARGEST_BYTES = 16 << 20
"""A window from which on its host is set up for long paths: the delay is the cause."""
OWN_TRUST, ALONE_TRUST = 0.9, 0.8


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

    @property
    def words(self) -> str:
        """The arithmetic behind it."""
        return (
            f"{size_text(self.window_bytes)} carries no more than "
            f"{rate_text(self.bytes_per_second)} at a round trip of "
            f"{seconds_text(self.rtt_seconds)}"
        )

    @property
    def evidence(self) -> tuple[str, ...]:
        """What was seen."""
        share = percent_text(min(1.0, self.seen.share("receive_window_limited_ratio")))
        whose = "The copy's own connection" if self.seen.own else "TCP alone"
        return (
            f"{whose} waited for the receiver's window {share} of the time, though what arrived "
            "was read at once.",
        )


def limit(report: Report, copy: Copy) -> Limit | None:
    """The window's ceiling of a copy; None: the window does not hold it, or nobody knows."""
    seen = tcp_evidence.connection(report, copy)
    if seen is None or copy.made is None:
        return None
    window, rtt = seen.figure("peer_window_bytes_median"), seen.figure("min_rtt_seconds")
    share = seen.share("receive_window_limited_ratio")
    if window is None or rtt is None or share < LIMITED_RATIO or not seen.reader_waits:
        return None
    in_flight = seen.figure("in_flight_bytes_median")
    if in_flight is not None and in_flight < FILLED_RATIO * window:
        return None
    level, rate = window / rtt, copy.made.rate
    if not seen.own:
        alone = seen.found.rate
        if not FILLED_RATIO * level <= alone.median <= level / FILLED_RATIO:
            return None
        return Limit(*(seen, window, rtt, alone.median, alone.low, alone.high), None, "measured")
    carried = tcp_evidence.path_rate(report, copy.sender)
    more = carried is not None and carried >= CARRIES_MORE_RATIO * rate.median
    # The round trips of the copy itself, with the time that window updates take.
    usual = min(level, window / (seen.figure("rtt_seconds_median") or rtt))
    if more and share >= MOSTLY_RATIO and rate.median >= FILLED_RATIO * usual:
        usual = max(rate.median, usual)
        return Limit(seen, window, rtt, usual, usual, level, True, "inferred")
    return Limit(seen, window, rtt, level, level, level, None, "inferred")


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What the window of the copy's receiver carries at the round trip of the path."""
    found = limit(report, copy)
    if found is None or found.window_bytes >= LARGEST_BYTES:
        return
    needed = tcp_evidence.needed_bytes(report, copy.sender, found.rtt_seconds)
    if needed is not None and needed <= found.window_bytes:
        needed = None
    kind = socket_buffers.RECEIVE
    yield Claim(
        Ceiling(
            component="tcp",
            side=copy.receiver,
            cause="receive-window",
            bytes_per_second=found.bytes_per_second,
            low_bytes_per_second=found.low_bytes_per_second,
            high_bytes_per_second=max(found.bytes_per_second, found.high_bytes_per_second),
            steps=(found.seen.found.index,),
            standing=found.standing,
        ),
        words=f"the {copy.receiver}'s receive window of {found.words}",
        reached=found.reached,
        trust=OWN_TRUST if found.seen.own else ALONE_TRUST,
        evidence=found.evidence,
        remedy=socket_buffers.remedy(report, copy.receiver, kind, found.seen.told, needed),
    )
