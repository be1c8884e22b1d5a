"""Facts and signs of a copy in a packet capture: whose turn it was, sizes, windows, losses.

The wire shows that a host had to act, and not whether by its disk or its CPU: both get that time.
Bytes on their way are the path's time, unless requests, a buffer or a window hold their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bottleneck.analysis import model, steps
from bottleneck.analysis.attribution.attribution import Attribution
from bottleneck.analysis.attribution.shares import Time
from bottleneck.analysis.evidence.capture import Capture, Turns
from bottleneck.analysis.facts.busy import ViewFacts
from bottleneck.analysis.facts.record import (
    ALLOWS,
    ALONE,
    BUSY,
    NETWORK,
    OTHERS_RATIO,
    SHOWN,
    UNKNOWN,
    Fact,
    Level,
    Part,
    Sign,
    each_part,
)
from bottleneck.analysis.finding import TimeShare
from bottleneck.analysis.steps import Copy, MeasuredStep, other
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, seconds_text, size_text
from probes.core.records import SIDES

FAR_SECONDS = 1.5e-3
"""Round trip from which on windows, buffers and requests in flight can hold a copy."""
ASKED_RATIOS = 0.6, 1.5
"""Requested bytes per round trip over the copy's rate, between which requests are too few."""
QUEUE_RATIO, QUEUE_SECONDS = 0.2, 4e-4
"""Time in queues over the round trip, and in seconds: above both, the path is full."""
EVEN_RATIO, FEW_LOST = 0.06, 30
"""Spread of the rate, and count of lost segments, up to which the losses did not slow the copy."""
STEADY_RATIO = 0.1
"""Spread of the rate below which a sender without time stamps may wait for a shaper of its own."""
START_LOSSES_RATIO = 0.7
"""Share of the losses in one episode, from which on they may all be of TCP's start."""
PAUSES_RATIO, HELD_PAUSES_RATIO = 0.3, 0.14
"""Least share of pauses in the time under way, where a sender has few bytes in flight: captured at
the sender, where even a full path has pauses, which its queue fills; and elsewhere."""
LOST_RATIO, LEAST_LOST = 1e-4, 5
"""Least share and count of lost segments that slow a copy."""
SLOW_COMMANDS_RATIO = 0.4
"""Share of commands without a disk that were slow, from which on the CPU is."""
FULL_WINDOW_RATIO = 0.2
"""Share of the time with a full window, from which on its size is that of the window."""
SMALL_REQUEST_BYTES, TRIPS_RATIO = 256 << 10, 0.4
"""Largest request of a program that asks for one at a time, and its least share of round trips."""
HOST_TRUST, SETTLED_HOST_TRUST, SYN_TRUST, LOSSY_CAPTURE_TRUST = 0.65, 0.8, 0.5, 0.6
"""Highest confidence: a host's disk or CPU, without and with the disk's rate by itself; TCP's ends
without the SYN, or without a sign; a capture with gaps, or of less than a second."""
UNANSWERED_TRUST = 0.5
"""Highest confidence in a path from which no reply came: the server may hang as well."""
HELD_TRUST, IDLE_WINDOW_RATIO = 0.7, 0.4
"""Highest confidence in a sender whose bytes in flight stand still; share of the time with a full
window, below which the window is not the limit."""
LOSSY_PATH_TRUST, FAR_PATH_TRUST, NEAR_PATH_TRUST = 0.6, 0.55, 0.6
"""Highest confidence in a path: with losses and without the SYN; without a queue, far and near."""
LIKE_LINK_TRUST, PART_LIKE_LINK_TRUST, PART_TRUST = 0.8, 0.7, 0.49
"""Highest confidence in a path without a queue whose rate is a link's, with and without the SYN;
with another rate without the SYN."""
LEAST_HOST_RATIO = 0.05
"""Share of a host's time, from which on the view notes that disk and CPU look alike."""
UNSEEN_RATIO = 0.01
"""Bytes that the capture lacks over those of the copy, from which on it has gaps."""


def capture_of(copy: Copy) -> Capture | None:
    """Returns the figures of a copy in a capture; None: it is not from one."""
    return None if copy.step is None else copy.step.details.capture


def time_of(copy: Copy, capture: Capture, period: Turns | None = None) -> Mapping[Part, float]:
    """Returns shares of a time by component; a host's is under its disk alone.

    period: a part of the copy's time; None: all of it.
    """
    turns = capture if period is None else period
    shares = {side: getattr(turns, f"{side}_ratio") for side in SIDES}
    way = turns.moving_ratio + turns.pause_ratio
    uses: dict[Part, float] = {("disk", side): share for side, share in shares.items()}
    uses |= {NETWORK: turns.loss_ratio, ("tcp", copy.receiver): turns.window_ratio}
    uses["smb", other(copy.initiator)] = turns.trip_ratio
    if capture.is_unanswered:
        # Dropped large packets and a server that hangs look alike from the client's side.
        uses["disk", copy.sender] += turns.loss_ratio
    mover = _mover(copy, capture)
    for part in mover:
        uses[part] = uses.get(part, 0.0) + way / len(mover)
    hidden: Part = ("disk", copy.sender)
    if not capture.has_stamps and (capture.spread_ratio or 1.0) < STEADY_RATIO:
        # A shaper at the sender is acknowledged at once: without time stamps it looks like a disk.
        part = NETWORK if _is_like_link(copy) else UNKNOWN
        uses[part] = uses.get(part, 0.0) + uses.pop(hidden)
    return uses


def view_of(copy: Copy, capture: Capture) -> ViewFacts:
    """Returns the utilizations of a copy's components; a host's is that of its disk and CPU."""
    facts = []
    for part, use in time_of(copy, capture).items():
        words = f"had work for {use:.0%} of the time"
        parts = (part, ("cpu", part[1])) if part[0] == "disk" else (part,)
        facts += [Fact(each, BUSY, Level(use, use, use), words) for each in parts]
    return ViewFacts(tuple(facts), "capture")


def attribution_of(copy: Copy, capture: Capture) -> Attribution:
    """Returns the shares of a copy's time as they are drawn."""
    shares = {part: share for part, share in time_of(copy, capture).items() if share > 0}
    ordered = sorted(shares.items(), key=lambda each: -each[1])
    where = f"a capture at the {capture.point}" if capture.point in SIDES else "a capture"
    where = f"{capture.points:.0f} captures" if capture.points > 1 else where
    if any(part[0] == "disk" and share > LEAST_HOST_RATIO for part, share in ordered):
        where += ", which does not tell disk and CPU apart"
    rows = tuple(TimeShare(*part, ratio) for part, ratio in ordered)
    course = (time_of(copy, capture, period) for period in capture.course)
    slices = [
        (1.0, [(use, frozenset({part})) for part, use in e.items() if use > 0]) for e in course
    ]
    return Attribution(rows, where, Time(dict(ordered), shares, 0, slices))


def _supplied_disks(report: Report, copy: Copy) -> Iterator[MeasuredStep]:
    """Yields the disk steps that a person gave beside the capture, as the copy uses the disks."""
    for each in steps.measured_steps(report, "disk"):
        uses = "read" if each.plan.initiator == copy.sender else "write"
        if each.setting.verb == uses:
            yield each


def trust_of(report: Report, copy: Copy, capture: Capture) -> dict[str, float]:
    """Returns the highest confidence that a capture allows in each component."""
    moved_bytes = copy.step.moved_bytes if copy.step is not None else 0
    has_gaps = capture.is_cut or capture.unseen_bytes > UNSEEN_RATIO * moved_bytes
    highest = LOSSY_CAPTURE_TRUST if has_gaps or _is_short(capture) else 1.0
    trust = {"network": min(highest, _path_trust(copy, capture)), "smb": highest, "tcp": highest}
    if not capture.has_syn:
        trust["tcp"] = min(highest, SYN_TRUST)
    elif capture.window_ratio < IDLE_WINDOW_RATIO:
        trust["tcp"] = min(highest, HELD_TRUST if _is_held(copy, capture) else SYN_TRUST)
    disks = _supplied_disks(report, copy)
    is_settled = any(each.plan.initiator == _slower_host(capture) for each in disks)
    host = SETTLED_HOST_TRUST if is_settled else HOST_TRUST
    host = PART_TRUST if capture.is_unanswered else host
    return trust | dict.fromkeys(("disk", "cpu"), min(highest, host))


def capture_facts(report: Report, copy: Copy, capture: Capture) -> Iterator[Fact]:
    """Yields the best rate of the path, what windows and requests allow, and supplied disks."""
    for disk in _supplied_disks(report, copy):
        words = "the rate that was given for it"
        level = Level(disk.rate.low, disk.rate.median, disk.rate.high)
        yield Fact(("disk", disk.plan.initiator), ALONE, level, words, (disk.index,))
    ends: tuple[Part, ...] = (NETWORK, ("tcp", copy.sender), ("tcp", copy.receiver))
    if capture.best_bytes_per_second is not None:
        level = Level.with_spread(capture.best_bytes_per_second)
        yield from each_part(ends, SHOWN, level, "the path's best in this copy")
    trip = _loaded_trip(capture)
    if trip < FAR_SECONDS:
        return
    window = capture.full_window_bytes if capture.window_ratio > FULL_WINDOW_RATIO else None
    window = window or capture.largest_window_bytes
    if window is not None:
        words = f"a receive window of {size_text(window)} per round trip of {seconds_text(trip)}"
        yield Fact(("tcp", copy.receiver), ALLOWS, Level.with_spread(window / trip), words)
    asked_bytes = capture.asked_bytes
    if asked_bytes is not None:
        words = f"{size_text(asked_bytes)} asked for per round trip of {seconds_text(trip)}"
        smb: Part = ("smb", other(copy.initiator))
        yield Fact(smb, ALLOWS, Level.with_spread(asked_bytes / trip), words)


def capture_signs(copy: Copy, capture: Capture) -> Iterator[Sign]:
    """Yields stalled, lost, others-traffic, slow-commands and one-request."""
    # At the server a READ without a reply is the server's own time: nothing was lost.
    if capture.is_stuck and (capture.loss_ratio > 0 or not capture.is_unanswered):
        words = "the same large segment was retransmitted again and again"
        words = "a READ got no reply, nor any large packet" if capture.is_unanswered else words
        yield Sign("stalled", words=words)
    elif _is_lossy(copy, capture) and not _is_full(capture):
        words = f"{percent_text(capture.lost_ratio)} of the segments were lost"
        yield Sign("lost", None, capture.lost_ratio, words)
    if capture.others_ratio:
        words = f"{capture.others_ratio:.0%} of the captured bytes were others'"
        yield Sign("others-traffic", None, capture.others_ratio, words)
    if (capture.slow_commands_ratio or 0.0) >= SLOW_COMMANDS_RATIO:
        words = "commands that need no disk were slow as well"
        yield Sign("slow-commands", _slower_host(capture), words=words)
    if _is_one_request(capture):
        yield Sign("one-request", words="it asked for one small piece at a time")


def _mover(copy: Copy, capture: Capture) -> tuple[Part, ...]:
    """Returns the components that hold the number of bytes under way."""
    trip, asked_bytes = capture.rtt_seconds or 0.0, capture.asked_bytes or 0.0
    sender: Part = ("tcp", copy.sender)
    smb: Part = ("smb", other(copy.initiator))
    if trip > FAR_SECONDS and asked_bytes and capture.point != "server":
        low, high = ASKED_RATIOS
        if low < asked_bytes / (_rate(copy) * _loaded_trip(capture)) < high:
            return (smb,)
    if _is_held(copy, capture):
        # Receive window or send buffer: the window's scale is in the SYN alone.
        return (sender,) if capture.has_syn else (("tcp", copy.receiver), sender)
    pauses = capture.pause_ratio > PAUSES_RATIO * (capture.moving_ratio + capture.pause_ratio)
    is_path = _is_full(capture) or _is_shared(capture) or _is_lossy(copy, capture)
    is_path = is_path or not capture.has_syn and (_is_like_link(copy) or not pauses)
    if is_path or trip <= FAR_SECONDS:
        return (NETWORK,)
    if not capture.has_syn:
        return ("tcp", copy.receiver), sender
    return (sender,) if pauses or capture.queue_seconds is not None else (NETWORK,)


def _slower_host(capture: Capture) -> str:
    return "client" if capture.client_ratio >= capture.server_ratio else "server"


def _path_trust(copy: Copy, capture: Capture) -> float:
    """Returns the highest confidence in the path: less where neither queue nor loss was seen."""
    if capture.is_unanswered:
        return UNANSWERED_TRUST
    if _is_lossy(copy, capture) and not capture.has_syn:
        return LOSSY_PATH_TRUST
    if _is_full(capture) or capture.is_stuck or _is_shared(capture) or _is_lossy(copy, capture):
        return 1.0
    if not capture.has_syn:
        return PART_LIKE_LINK_TRUST if _is_like_link(copy) else PART_TRUST
    if (capture.rtt_seconds or 0.0) > FAR_SECONDS:
        return FAR_PATH_TRUST
    return LIKE_LINK_TRUST if _is_like_link(copy) else NEAR_PATH_TRUST


def _is_full(capture: Capture) -> bool:
    """Whether packets wait in a queue of the path."""
    queue, trip = capture.queue_seconds, capture.rtt_seconds or 0.0
    return queue is not None and queue > max(QUEUE_RATIO * trip, QUEUE_SECONDS)


def _is_shared(capture: Capture) -> bool:
    return (capture.others_ratio or 0.0) > OTHERS_RATIO


def _is_held(copy: Copy, capture: Capture) -> bool:
    """Whether the same number of bytes flies each round trip, with pauses: a buffer's size.

    Losses, if any, are of the start, or few and without effect: else the number would vary.
    """
    share = capture.pause_ratio / max(1e-6, capture.moving_ratio + capture.pause_ratio)
    is_far = (capture.rtt_seconds or 0.0) > FAR_SECONDS
    is_once = capture.loss_episode_ratio > START_LOSSES_RATIO and not _is_short(capture)
    is_once = is_once or capture.lost_segments < LEAST_LOST
    is_even = (capture.spread_ratio or 1.0) < EVEN_RATIO and capture.lost_segments <= FEW_LOST
    threshold = PAUSES_RATIO if capture.point == copy.sender else HELD_PAUSES_RATIO
    return is_far and (is_once or is_even) and capture.is_flight_even and share > threshold


def _is_lossy(copy: Copy, capture: Capture) -> bool:
    is_often = capture.lost_ratio > LOST_RATIO and capture.lost_segments >= LEAST_LOST
    return is_often and not _is_held(copy, capture)


def _rate(copy: Copy) -> float:
    return copy.step.rate.median if copy.step is not None else 0.0


def _loaded_trip(capture: Capture) -> float:
    return (capture.rtt_seconds or 0.0) + (capture.queue_seconds or 0.0)


def _is_like_link(copy: Copy) -> bool:
    return model.looks_like(_rate(copy), None) is not None


def _is_short(capture: Capture) -> bool:
    """Whether the copy is shorter than a second, and so TCP's start."""
    return capture.best_bytes_per_second is None and not capture.is_stuck


def _is_one_request(capture: Capture) -> bool:
    """Whether the client asks for one small piece at a time, and neither host holds it."""
    is_small = 0 < (capture.request_bytes or 0.0) <= SMALL_REQUEST_BYTES
    return (capture.depth or 2.0) <= 1 and is_small and capture.trip_ratio > TRIPS_RATIO
