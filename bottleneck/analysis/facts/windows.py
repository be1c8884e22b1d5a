"""Facts and signs of TCP's windows and buffers: bytes per round trip, and the waits for them.

A receiver's window is too small where the sender waited for it while the receiver read all data at
once; a slow reader fills any window. A kernel that tunes a send buffer keeps it well above the
congestion window (tcp_sndbuf_expand: more than 3 times); a smaller one was fixed (SO_SNDBUF), or is
at the maximum of tcp_wmem. A program that writes long blocks, as smbd does, waits until it is
nearly empty, so that bursts go out once a round trip.
Source: tcp_info's tcpi_rwnd_limited, tcpi_sndbuf_limited, tcpi_snd_wnd (include/uapi/linux/tcp.h).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.evidence.copies import Connection, Evidence, host
from bottleneck.analysis.facts.counters import FAR_SECONDS, reads_slowly
from bottleneck.analysis.facts.record import ALLOWS, Fact, Level, Part, Sign, each_part
from bottleneck.analysis.rules.smb.round_trips import is_starved
from bottleneck.analysis.socket_buffers import RECEIVE, SEND, grows_to
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, seconds_text, size_text
from probes.core.records import HostFacts

FILLED_RATIO = 0.6
"""Least bytes in flight / window or buffer at which it counts as full."""
WAITED_RATIO, MOSTLY_RATIO = 0.2, 0.5
"""Least share of time waiting for the window at which it matters; is the main limit."""
CARRIES_MORE_RATIO = 1.3
"""Least ratio of TCP's rate to the copy's at which the path is not the copy's limit."""
ALIKE_RATIOS = 0.75, 1.3
"""Copy's rate over that of TCP by itself, where both may have the same limit."""
FLIES_RATIOS = 0.4, 0.7, 1.15
"""Payload in flight over the send buffer, whose size includes the kernel's own overhead."""
TUNED_RATIO, EMPTY_RATIO, BURSTS_RATIO = 2.0, 0.5, 0.7
"""Least ratios: send buffer to congestion window, if the kernel tunes it; unsent bytes to those in
flight, if more waits; a copy's rate to that of its longest bursts."""
LINK_RATIO = 0.85
"""Least copy's rate / TCP's at which the path limits the copy."""
SHORT_SECONDS, DELAYED_SECONDS, DELAYED_RATIO = 1e-3, 5e-3, 10.0
"""Sender with a tiny buffer: most idle RTT, least RTT with delayed ACKs, their ratio."""
TINY_BYTES = 64 << 10
GROWS_TO_BYTES = {"Linux": (6 << 20, 4 << 20), "Windows 7": (256 << 10, 64 << 10)}
"""Largest receive window and send buffer that a kernel tunes by itself, by system."""
ENDS: tuple[Part, Part] = ("tcp", "client"), ("tcp", "server")


def window_facts(
    report: Report, copy: Copy, timed: TimedCopy | None, rtt: float | None
) -> Iterator[Fact]:
    """Yields the rates that receive window and send buffer allow, each per round trip."""
    if copy.step is None:
        return
    if (bursts := _bursts(Evidence(report, copy))) is not None:
        yield Fact(("tcp", copy.sender), ALLOWS, bursts.level, bursts.words, (copy.step.index,))
    if not rtt or rtt < FAR_SECONDS:
        return
    window, buffer = _sizes(copy, copy.step, timed)
    trip = seconds_text(rtt)
    counts = copy.step.details.sockets
    flying = counts.in_flight_bytes_median or window
    is_waited_for = not counts.sender_seen or counts.receive_window_limited_ratio >= WAITED_RATIO
    is_filled = flying >= FILLED_RATIO * window and (is_waited_for or timed is not None)
    # A reader that is slow fills any window.
    if window and is_filled and not reads_slowly(copy.step, window):
        words = f"the {copy.receiver}'s receive window of {size_text(window)} at an RTT of {trip}"
        level = Level.with_spread(window / rtt, 0.7, 1.1)
        yield Fact(("tcp", copy.receiver), ALLOWS, level, words, (copy.step.index,))
    if buffer:
        low, usual, high = (share * buffer / rtt for share in FLIES_RATIOS)
        words = f"the {copy.sender}'s send buffer of {size_text(buffer)} at an RTT of {trip}"
        level = Level(low, usual, high)
        yield Fact(("tcp", copy.sender), ALLOWS, level, words, (copy.step.index,))


def _sizes(copy: Copy, step: MeasuredStep, timed: TimedCopy | None) -> tuple[float, float]:
    if timed is not None:
        sender, receiver = timed.connection(copy.sender), timed.connection(copy.receiver)
        windows = sender.values_of("peer_window_bytes") if sender else []
        windows = windows or (receiver.values_of("own_window_bytes") if receiver else [])
        return max(windows, default=0.0), (sender.send_buffer_bytes or 0.0) if sender else 0.0
    counts = step.details.sockets
    window = counts.peer_window_bytes_median or counts.own_window_bytes_median or 0.0
    return window, counts.send_buffer_bytes or 0.0


# -- signs -----------------------------------------------------------------------------------------


def window_signs(report: Report, copy: Copy) -> Iterator[Sign]:
    """Yields small-window and small-buffer: the peer, or the program, waited for the window or the
    buffer of the copy's connection, or of TCP alone at the same rate if that was not observed.
    """
    evidence = Evidence(report, copy)
    connection = evidence.connection
    if connection is None or not (connection.is_own or _is_alike(evidence, connection)):
        return
    if _waits_for_window(evidence, connection):
        share = min(1.0, connection.sockets.receive_window_limited_ratio)
        whose = "the copy's connection" if connection.is_own else "TCP by itself"
        waited = (
            f"{whose} waited for the {copy.receiver}'s window {percent_text(share)} of the time"
        )
        words = f"{waited}, although the {copy.receiver} read all data at once"
        yield Sign("small-window", copy.receiver, share, words)
    if (bursts := _bursts(evidence)) is not None and bursts.is_reached:
        yield Sign("small-buffer", copy.sender, 1.0, bursts.sign)


def _is_alike(evidence: Evidence, test: Connection) -> bool:
    low, high = ALIKE_RATIOS
    return low <= evidence.rate.median / test.step.rate.median <= high


def _waits_for_window(evidence: Evidence, connection: Connection) -> bool:
    """Whether the sender waited for a full window, and the path could carry more."""
    sockets, share = connection.sockets, connection.sockets.receive_window_limited_ratio
    window, rtt = sockets.peer_window_bytes_median, sockets.min_rtt_seconds
    if window is None or rtt is None or share < MOSTLY_RATIO or not connection.reader_waits:
        return False
    if (sockets.in_flight_bytes_median or window) < FILLED_RATIO * window:
        return False
    # Bytes queued on the path make any window look too small.
    if not connection.is_own:
        return FILLED_RATIO <= connection.step.rate.median * rtt / window <= 1 / FILLED_RATIO
    rate, usual = evidence.rate.median, window / max(rtt, sockets.rtt_seconds_median or rtt)
    return (evidence.path_rate or 0.0) >= CARRIES_MORE_RATIO * rate >= FILLED_RATIO * usual


@dataclass(frozen=True)
class Bursts:
    """Bursts from a send buffer that is too small: one in each round trip."""

    level: Level
    """Rate of the bursts, bytes per second."""
    is_reached: bool
    """Whether the copy's connection runs at that rate."""
    words: str
    sign: str
    """Observation behind it, as a sentence without its full stop."""


def _bursts(evidence: Evidence) -> Bursts | None:
    """Returns the bursts of a buffer that is smaller than the kernel's tuning makes it."""
    connection = evidence.connection
    # If the server's credits run out, the buffer holds what they allow, and has room for more.
    if connection is None or is_starved(evidence):
        return None
    sockets, path, rate = connection.sockets, evidence.path_rate, connection.step.rate.median
    size, window = sockets.send_buffer_bytes, sockets.congestion_window_bytes_median
    high, rtt = sockets.in_flight_bytes_high, sockets.min_rtt_seconds
    if not size or window is None or high is None or rtt is None or path is None:
        return None
    is_small = size < TUNED_RATIO * window and high >= FILLED_RATIO * size
    is_empty = (sockets.unsent_bytes_median or 0.0) <= EMPTY_RATIO * high
    if not is_small or not is_empty or rate >= LINK_RATIO * path:
        return None
    usual, name = sockets.rtt_seconds_median or rtt, f"the {evidence.sender}'s send buffer of "
    sign = f"the kernel's own tuning makes it larger for a congestion window of {size_text(window)}"
    is_tiny = size <= TINY_BYTES and high <= size and rtt < SHORT_SECONDS
    is_delayed = usual >= max(DELAYED_SECONDS, DELAYED_RATIO * rtt)
    if is_tiny and is_delayed and path >= CARRIES_MORE_RATIO * rate:
        sign = f"{name}{size_text(size)} waits for delayed acknowledgements ({seconds_text(usual)} "
        band = Level.with_spread(2 * high / usual, 0.5, 2.0)
        name = f"{name}{size_text(size)}, with one acknowledgement for a few bursts,"
        return Bursts(band, True, name, f"{sign}instead of {seconds_text(rtt)})")
    level, full = high / (rtt + high / path), sockets.send_queue_full_ratio
    is_seen = sockets.by == "send-buffer" and full >= MOSTLY_RATIO
    # A buffer that was full most of the time allows the copy's rate scaled up to all of it.
    level = max(rate, min(level, rate / full) if is_seen else level)
    band = Level(level, level, max(level, min(path, high / rtt)))
    name = f"{name}{size_text(size)}, empty once per RTT of {seconds_text(rtt)},"
    return Bursts(band, is_seen or rate >= BURSTS_RATIO * level, name, sign)


# -- supplied by a person --------------------------------------------------------------------------


def supplied_windows(
    report: Report, copy: Copy, rtt: float, tests: Iterator[MeasuredStep]
) -> Iterator[Fact]:
    """Yields windows of TCP tests of the copy's client, and the largest buffers of each host."""
    for each in tests:
        window = steps.positive(each.outcome.details, "window_bytes")
        if copy.step is not None and window:
            words = f"the window of the TCP test ({size_text(window)})"
            level = Level.with_spread(window / rtt, 0.8, 1.15)
            yield from each_part(ENDS, ALLOWS, level, words, each.index)
    streams = copy.setting.streams or 1
    for side in ("client", "server"):
        receives = side == copy.receiver
        facts, kind = host(report, side), RECEIVE if receives else SEND
        size = grows_to(facts, kind) or _usual(facts, receives)
        if size:
            words = f"TCP buffers of up to {size_text(size)} on the {side}"
            level = Level.with_spread(streams * size / rtt, 0.45, 1.1)
            yield Fact(("tcp", side), ALLOWS, level, words)


def _usual(facts: HostFacts | None, receives: bool) -> int | None:
    system = facts.system if facts is not None else ""
    sizes = (e for name, e in GROWS_TO_BYTES.items() if system.startswith(name))
    return next((each[0 if receives else 1] for each in sizes), None)
