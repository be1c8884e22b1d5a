"""The start of a copy on a long path, told apart from its rate, and what the path seems to carry.

TCP begins with 10 segments (RFC 6928) and doubles them each round trip until the path is full
(RFC 5681 3.1); a first request and a last reply travel as well. A copy that is short beside it gets
less than the path carries, though nothing keeps a longer one from it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from bottleneck.analysis.evidence.copies import (
    FAR_SECONDS,
    START_SLACK_RATIO,
    USUAL_SEGMENT_BYTES,
    Evidence,
    alike,
    diskless,
    far_seconds,
    foreign_rate,
    growing_seconds,
    steady_rate,
)
from bottleneck.analysis.evidence.details import Sockets
from bottleneck.analysis.steps import OWN
from probes.records import SIDES

SHORT_RATIO, SMALL_RATIO = 0.3, 0.1
"""Of a copy's time: its start matters more than the path's rate; it no longer matters."""
FILLED_RATIO = 0.85
"""Rate once started over the path's, from which on nothing but the path holds it then."""
MOSTLY_RATIO = 0.5
"""Of a copy's time, from which on its connection mostly grew, or waited for an end."""

DELAYED_RATIO = 1.1
"""The same where copies of both ways agree: on a far path a queue is a small part of a trip."""
STANDING_RATIO, STANDING_SECONDS = 5.0, 1e-3
"""A queue that no end makes: that often the shortest round trip, or a thousandth of a second."""
MOST_LOST = 30.0
"""Lost share times segments in flight squared, up to which the losses alone may hold that window
(Mathis et al. 1997: 0.5 to 1.5, with the tolerances of rules/network/loss.py): no queue does."""
EVEN_RATIO, FAR_EVEN_RATIO = 1.03, 1.1
"""Between rates that one path holds; on a far one a start blurs what is seen of a push."""

LEAST_EVEN = 2
"""Copies of each direction: one is no rate to rely on."""
BUFFERS = ("send-buffer", "receive-window")
"""What a connection waited for that no start explains."""


@dataclass(frozen=True)
class Startup:
    """The start of one copy: how long it took, as a share of all, and what a long copy gets."""

    seconds: float
    ratio: float
    bytes_per_second: float
    rtt_seconds: float
    carried_bytes_per_second: float
    """What one stream of TCP carried the same way, or what the link seems to carry."""
    growing_seconds: float
    """That a slow start up to that rate takes."""

    @property
    def matters(self) -> bool:
        """Whether it took a good part of a copy that the path alone holds once it has started."""
        filled = self.bytes_per_second >= FILLED_RATIO * self.carried_bytes_per_second
        return filled and self.ratio >= SMALL_RATIO

    @property
    def small_from_bytes(self) -> float:
        """Size of a file from which on the start is a small part of its copy."""
        return self.carried_bytes_per_second * self.seconds * (1 / SMALL_RATIO - 1)


def startup(given: Evidence) -> Startup | None:
    """The start of a copy of this tool's; None: its path is short, or nobody measured it."""
    if given.copy.made is None or given.copy.engine != OWN:
        return None
    alone = given.alone
    carried = likely_path_rate(given) if alone is None else alone.found.rate.median
    if carried is None:
        return None
    made, told = given.made, given.details.sockets
    rtt = told.min_rtt_seconds or given.details.rtt_seconds
    waited = max(told.receive_window_limited_ratio, told.send_buffer_limited_ratio)
    if rtt is None or rtt < FAR_SECONDS or waited >= MOSTLY_RATIO or told.by in BUFFERS:
        return None
    growing = growing_seconds(made, carried, rtt)
    missing = made.seconds - made.moved_bytes / carried
    seconds = min(max(0.0, missing), START_SLACK_RATIO * (growing + rtt))
    rate = made.moved_bytes / (made.seconds - seconds)
    return Startup(seconds, seconds / made.seconds, rate, rtt, carried, growing)


def is_all(given: Evidence) -> float | None:
    """The round trip of a copy by a lone client that took no longer than its connection's slow
    start; None: it took longer, or something else held it as well."""
    if given.copy.made is None or not given.lone:
        return None
    made, told = given.made, given.details.sockets
    rtt = told.min_rtt_seconds or given.details.rtt_seconds
    if rtt is None or rtt < FAR_SECONDS or told.by in BUFFERS or told.retransmitted_bytes:
        return None
    # The last window doubled is all that went before; a first request and a last reply travel too.
    start = growing_seconds(made, made.moved_bytes / rtt, rtt) + 2 * rtt
    return rtt if made.seconds <= START_SLACK_RATIO * start else None


def explains(given: Evidence) -> bool:
    """Whether its start is what held a copy, and no end's buffer."""
    start = startup(given)
    if start is None:
        return False
    return start.matters or start.growing_seconds >= MOSTLY_RATIO * given.made.seconds


def likely_path_rate(given: Evidence) -> float | None:
    """What the path seems to carry that way, where the client alone saw copies reach it."""
    best = max(diskless(given.report, given.sender), key=steady_rate, default=None)
    rate = None if best is None or not given.lone else steady_rate(best)
    if rate is not None and given.looks_like(rate) is not None:
        return rate
    return even_rate(given) if given.lone else None


def even_rate(given: Evidence) -> float | None:
    """Bytes per second of a path that holds both ways alike: once they have started, copies of both
    directions, with others' traffic beside them, come to one rate, and those that the client sends
    queue; None: it is not seen."""
    made = {
        sender: [each for each in alike(given.report, sender) if each.step.stage == "smb-copy"]
        for sender in SIDES
    }
    far = all(far_seconds(each) is not None for each in made["client"])
    ratio = FAR_EVEN_RATIO if far else EVEN_RATIO
    rates, sent = [], []
    for sender, copies in made.items():
        beside = [foreign_rate(given.report, each, sender) or 0.0 for each in copies]
        carried = [steady_rate(each) + more for each, more in zip(copies, beside, strict=True)]
        # Beside others a copy that keeps nothing waiting is below the path for its own reasons.
        queued = [
            not (more and sender == "client") or delayed(each.details.sockets)
            for each, more in zip(copies, beside, strict=True)
        ]
        most = max((rate for rate, full in zip(carried, queued, strict=True) if full), default=0.0)
        fastest = [at for at, rate in enumerate(carried) if queued[at] and rate * ratio >= most]
        if len(fastest) < LEAST_EVEN:
            return None
        rates += [(carried[at], copies[at].rate.median + beside[at]) for at in fastest]
        sent += [copies[at] for at in fastest if sender == "client"]
    once_started = [each for each, _ in rates]
    even = max(once_started) <= ratio * min(once_started)
    if not even or not all(delayed(each.details.sockets) for each in sent):
        return None
    # The start of a far push is blurred: its steady rate may lie above what the path carries.
    level = max(statistics.median(once_started), *(whole for _, whole in rates))
    moved = [each.rate.median for sender in SIDES for each in alike(given.report, sender)]
    return level if max(moved) <= ratio * level else None


def delayed(told: Sockets) -> bool:
    """Whether packets waited on the path; a window that ends early leaves its queues empty."""
    rtt, least = told.rtt_seconds_median or 0.0, told.min_rtt_seconds
    if least is None:
        return False
    # Whatever else held it back at times, most of its bytes under way stood in that queue.
    standing = rtt >= STANDING_RATIO * max(least, STANDING_SECONDS)
    flying = (told.in_flight_bytes_median or 0.0) / (told.segment_bytes or USUAL_SEGMENT_BYTES)
    lost = told.loss_ratio or 0.0
    lossy = lost > 0 and lost * flying**2 <= MOST_LOST
    return standing or told.by == "network" and rtt >= DELAYED_RATIO * least and not lossy
