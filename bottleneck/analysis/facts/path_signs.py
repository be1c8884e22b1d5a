"""Signs of a copy's TCP connection and of the links between the hosts."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.attribution import patterns, sender_socket
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import Connection
from bottleneck.analysis.evidence.copies import BACKLOG_SEGMENTS, LOSS_BASED, smb_steps
from bottleneck.analysis.facts.record import Sign
from bottleneck.analysis.facts.windows import MOSTLY_RATIO
from bottleneck.analysis.link_end import is_supplied, slower_link
from bottleneck.analysis.rules.network import mtu
from bottleneck.analysis.rules.network.wrong_path import faster
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report

LOST_RATIO = 1e-3
SCALES_RATIO = 1.5
"""Least ratio of several connections to one at which each is limited by itself."""
LEAST_WAIT_RATIO = 0.1
"""Share of the copy's time that its sender waited for retransmission timers, to count."""
FULL_TRIP_RATIO, FULL_TRIP_SECONDS = 1.17, 5e-4
"""Least median RTT of a standing queue: times the shortest, and seconds more."""
NEAR_SECONDS = 1e-3
"""Least RTT at which segments out of order were lost: hosts and cards reorder, too."""


def connection_signs(step: MeasuredStep, timed: TimedCopy | None) -> Iterator[Sign]:
    """Yields lost, grows, stalled, pinned, timeouts and ignores-loss."""
    sender = timed.connection(timed.sender) if timed is not None else None
    connection = timed.connection(timed.asking) if timed is not None else None
    if timed is not None and sender is not None:
        yield from _sender_signs(timed, sender)
    elif timed is not None and connection is not None:
        yield from _receiver_signs(timed, connection)
    else:
        yield from _counter_signs(step)
    counts = step.details.sockets
    waited = min(1.0, counts.rto_seconds / max(1e-6, step.seconds))
    if waited > LEAST_WAIT_RATIO and counts.retransmitted_segments:
        words = f"it waited for retransmissions for {waited:.0%} of the time"
        yield Sign("timeouts", None, waited, words)
    control = counts.congestion_control
    if control is not None and control not in LOSS_BASED:
        yield Sign("ignores-loss", words=f"{control} does not slow down for single losses")


def _sender_signs(timed: TimedCopy, sender: Connection) -> Iterator[Sign]:
    again, through = sender.total("retransmitted_bytes"), sender.total("acknowledged_bytes")
    ratio = again / through if through else 0.0
    trips, min_rtt = sender.values_of("rtt_seconds"), sender.min_rtt_seconds
    is_full = sender_socket.is_always_full(trips, min_rtt, sender_socket.FILLED_RATIO)
    is_full = is_full and sender_socket.rises_with_flight(sender)
    is_empty = sender_socket.queue_ratio(sender) < sender_socket.EMPTY_QUEUE_RATIO
    recurs = patterns.lasts(sender, "retransmitted_bytes") or (is_empty and _recurs(sender))
    if ratio > LOST_RATIO and recurs and not is_full:
        words = f"{ratio:.2%} of the bytes were retransmitted, with no standing queue"
        yield Sign("lost", None, ratio, words)
    if is_empty and patterns.grows(sender, "acknowledged_bytes"):
        yield Sign("grows", words="TCP still grew when the copy ended")
    if patterns.loses_full_packets(timed, sender):
        yield Sign("stalled", words="retransmissions backed off, and nothing was acknowledged")
    if patterns.is_limited_by_cwnd(timed):
        yield Sign("pinned", words="the congestion window did not grow, and nothing was lost")


def _recurs(sender: Connection) -> bool:
    """Whether segments are lost again after TCP's start, which overflows any queue once."""
    parts = sender.growth_by_parts("retransmitted_bytes", min(10, len(sender.looks) // 3))
    return sum(part > 0 for part in parts) > 1


def _receiver_signs(timed: TimedCopy, connection: Connection) -> Iterator[Sign]:
    cause = patterns.cause_by_receiver(timed)
    if cause == "loss" and connection.min_rtt_seconds >= NEAR_SECONDS:
        yield Sign("lost", None, 10 * LOST_RATIO, "segments arrived out of order, all along")
    elif cause == "delay":
        yield Sign("grows", words="TCP still grew when the copy ended")


def _counter_signs(step: MeasuredStep) -> Iterator[Sign]:
    counts = step.details.sockets
    trip, lost = counts.rtt_seconds_median, counts.loss_ratio or 0.0
    limit = FULL_TRIP_RATIO * (counts.min_rtt_seconds or 0.0) + FULL_TRIP_SECONDS
    is_empty = None not in (trip, counts.min_rtt_seconds) and (trip or 0.0) <= limit
    unsent = counts.unsent_bytes_median
    least_unsent = BACKLOG_SEGMENTS * (counts.segment_bytes or 0)
    # A sender that has nothing more to send does not wait for lost segments.
    has_backlog = unsent is None or unsent >= least_unsent
    # Nor does one that waits for the receiver's window, which is smaller than its own.
    has_backlog = has_backlog and counts.receive_window_limited_ratio < MOSTLY_RATIO
    if lost > LOST_RATIO and has_backlog and is_empty:
        words = f"{lost:.2%} of the segments were lost, with no standing queue"
        yield Sign("lost", None, lost, words)


UNEQUAL_RATIO = 1.2
FILLED_RATIOS = 0.88, 1.03
"""Rate of a transfer over its link's payload, where it fills the link."""


def link_signs(report: Report, copy: Copy) -> Iterator[Sign]:
    """Yields signs of the links that a copy's bytes pass."""
    tests = hardware_limits.believed_steps(report, copy.sender)
    several = [each.rate.median for each in tests if (each.setting.streams or 1) > 1]
    if several:
        yield Sign("several-carry", None, max(several))
    for each in tests:
        limits = each.details.limits
        lost = (limits.loss_ratio if limits is not None else None) or 0.0
        # A full path loses packets too, but several connections get no more of it than one.
        if lost > LOST_RATIO and max(several, default=0.0) >= SCALES_RATIO * each.rate.median:
            words = f"TCP by itself lost {lost:.2%} of its segments in this direction"
            yield Sign("tests-lost", None, lost, words)
    if steps.on_one_host(report):
        yield Sign("one-host", words="both ends are on one host")
    back = [each.rate.median for each in hardware_limits.believed_steps(report, copy.receiver)]
    back += [each.rate.median for each in smb_steps(report, copy.receiver, copy.initiator)]
    if back:
        yield Sign("other-way", None, max(back))
    for side, link in hardware_limits.interfaces(report):
        if link.kind == "wifi" or link.wifi:
            yield Sign("radio", side, words="it is on Wi-Fi")
    sizes = {each.mtu_bytes for _, each in hardware_limits.interfaces(report) if each.mtu_bytes}
    if len(sizes) == 2 and max(sizes) > UNEQUAL_RATIO * min(sizes):
        yield Sign("mtu-differs", words=f"the MTUs differ: {min(sizes)} and {max(sizes)}")
    hole = mtu.hole(report, copy.sender)
    if hole is not None:
        words = f"packets of {hole[1]:.0f} bytes vanish, and {hole[0]:.0f} pass"
        yield Sign("hole", None, hole[1], words)
    way = faster(report, copy.sender)
    if way is not None:
        carried = way.better.rate_from(copy.sender)
        yield Sign("faster-path", None, carried, f"the path by {way.better.words} carries more")
    yield from _slower_end(report, copy, max((e.rate.median for e in tests), default=0.0))


def _slower_end(report: Report, copy: Copy, tested: float) -> Iterator[Sign]:
    slow = slower_link(report)
    if slow is None or slow.side == "path" or not is_supplied(report):
        return
    level = max(tested, copy.step.rate.median if copy.step is not None else 0.0)
    mtu_bytes = steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES
    payload = slow.bits_per_second / 8 * model.payload_efficiency(mtu_bytes)
    if not level or FILLED_RATIOS[0] <= level / payload <= FILLED_RATIOS[1]:
        words = f"the {slow.side}'s link is the slower one"
        yield Sign("slower-end", slow.side, slow.bits_per_second / 8, words)
