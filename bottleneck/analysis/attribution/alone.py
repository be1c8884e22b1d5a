"""Attributes a copy's time by the looks of the host that makes it, without the other one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import model
from bottleneck.analysis.attribution import sockets
from bottleneck.analysis.attribution.both import LEAST_LOOKS
from bottleneck.analysis.attribution.instants import Instants
from bottleneck.analysis.attribution.shares import (
    ALONE,
    DOUBTFUL,
    NETWORK,
    SATURATED_RATIO,
    UNKNOWN,
    Slice,
    ViewResult,
    shares_of_time,
)
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import Connection
from bottleneck.analysis.finding import Part

QUIET_RATIO = 0.25
"""Of the waiting for replies, in which nothing of one came: a full path is never that quiet."""
BY_LITTLES_LAW = 0.85
"""Confidence in a limit that the rate and the bytes in flight alone tell (Little's law)."""
KEEPS_UP_RATIO = 0.75
"""Of the looks, in which a reader had read all that came: then it is not what holds the copy."""
UNSEEN = 0.7
"""Confidence in a path where the copying program was not to be seen."""
WITHOUT_QUEUE = 0.55
"""Confidence in a path that shows none: a limit that was measured is believed before it."""
CACHED_RATIO = 1.3
"""Rate from the cache over the one past it, from which on the disk made the difference."""


def by_asking(copy: TimedCopy) -> ViewResult | None:
    """Names a component as far as one end can; None: no looks there."""
    own = copy.connection(copy.asking)
    if own is None or len(own.looks) < LEAST_LOOKS:
        return _by_thread(copy) if copy.trace.asking and not copy.trace.unseen else None
    if copy.trace.unseen:
        return _by_sockets(copy, own)
    return _pull(copy, own) if copy.pull else _push(copy, own)


def _by_sockets(copy: TimedCopy, own: Connection) -> ViewResult:
    """Names the path where its queue or a reader that keeps up shows it: no more is to be seen."""
    if copy.pull:
        quiet = [sockets.is_silent(e, e.since_received_seconds, copy.rate) for e in own.looks]
        ahead = sum(copy.keeps_up(each) for each in own.looks) / len(own.looks)
        parts = (UNKNOWN if each else NETWORK for each in quiet)
        slices: list[Slice] = [(1.0, [(1.0, frozenset({part}))]) for part in parts]
        time = shares_of_time(slices, len(own.looks))
        full = time.uses.get(NETWORK, 0.0) > 1 - QUIET_RATIO and ahead >= KEEPS_UP_RATIO
    else:
        time = shares_of_time(Instants(copy, own).all(own.looks), len(own.looks))
        full = time.uses.get(NETWORK, 0.0) >= SATURATED_RATIO
    return ViewResult(time, NETWORK if full else UNKNOWN, ALONE.format(copy.asking), UNSEEN)


def _by_thread(copy: TimedCopy) -> ViewResult:
    """Uses the moving thread only, for a starved host whose watch had too few looks."""
    thread = copy.thread
    disk = thread.mean("disk") + thread.mean("flush")
    time = shares_of_time(list(_by_bins(copy, disk, 0.0)), len(copy.trace.bins))
    # A thread that is fed in small pieces can fill a core and still keep up.
    sure = thread.starves or time.first[0] == "disk" or copy.on_one_host
    full = sure and time.uses.get(time.first, 0.0) >= SATURATED_RATIO
    return ViewResult(time, time.first if full else UNKNOWN, ALONE.format(copy.asking))


def _by_bins(copy: TimedCopy, disk: float, body: float) -> Iterator[Slice]:
    """What had work in each bin of the moving thread, as far as one end can tell.

    disk, body: shares of the whole copy of its disk, and of replies on their way.
    """
    thread = copy.thread
    own_disk = thread.mean("disk") + thread.mean("flush")
    own_body = thread.mean("body") + thread.mean("send")
    more, less = disk / (own_disk or 1.0), body / (own_body or 1.0)
    for lasted, each in thread.timed:
        came = each.body + each.send
        parts = {
            ("disk", copy.asking): (each.disk + each.flush) * more,
            ("cpu", copy.asking): each.cpu,
            NETWORK: came * less,
            UNKNOWN: each.reply + came * (1 - less),
        }
        yield lasted, [(lasted * share, frozenset({part})) for part, share in parts.items()]
    if not own_disk:
        yield 0.0, [(disk, frozenset({("disk", copy.asking)}))]


def _pull(copy: TimedCopy, own: Connection) -> ViewResult:
    view, thread = ALONE.format(copy.asking), copy.thread
    disk, cpu = thread.mean("disk") + thread.mean("flush"), thread.mean("cpu")
    reply, body = thread.mean("reply"), thread.mean("body") + thread.mean("send")
    waiting = reply + body
    # Pauses within a reply count like the wait for its first byte.
    quiet = [sockets.is_silent(each, each.since_received_seconds, copy.rate) for each in own.looks]
    reply = max(reply, min(waiting, sum(quiet) / len(quiet)))
    body = waiting - reply
    lag = copy.disk_lag()
    disk = max(disk, min(1.0, lag))
    time = shares_of_time(list(_by_bins(copy, disk, body)), len(own.looks))
    network = ViewResult(time, NETWORK, view)
    if lag > max(cpu, SATURATED_RATIO) or disk > max(cpu, waiting):
        return replace(network, part=("disk", copy.asking))
    ahead = sum(copy.keeps_up(each) for each in own.looks) / len(own.looks)
    busy = "cpu", copy.asking
    if cpu >= SATURATED_RATIO and ahead < KEEPS_UP_RATIO:
        return replace(network, part=busy)
    rtt, window = own.min_rtt_seconds, max(own.values_of("own_window_bytes"), default=0.0)
    unread = sockets.median_or_zero(own.values_of("unread_bytes"))
    if unread < sockets.UNREAD_RATIO * window and sockets.window_limits(window, rtt, copy.rate):
        return replace(network, part=("tcp", copy.asking), by=NETWORK)
    if sockets.window_limits(copy.in_flight_bytes, rtt, copy.rate):
        return replace(network, part=("smb", copy.serving), by=time.first, most=BY_LITTLES_LAW)
    if waiting > 0 and reply > QUIET_RATIO * waiting:
        far = rtt >= sockets.FAR_SECONDS
        if copy.watched or far and not copy.has_requests:
            # Another's program may ask for little, and its source may be in memory or not.
            return replace(network, part=UNKNOWN)
        return replace(network, part=_unseen_server(copy), by=time.first, most=DOUBTFUL)
    return replace(network, by=busy, most=DOUBTFUL) if cpu >= SATURATED_RATIO else network


def _unseen_server(copy: TimedCopy) -> Part:
    """The server's disk if the cached copy is faster, else its CPU."""
    faster = copy.cached_rate is None or copy.cached_rate > CACHED_RATIO * copy.rate
    return ("disk" if copy.uncached and faster else "cpu"), copy.serving


def _push(copy: TimedCopy, own: Connection) -> ViewResult:
    time = shares_of_time(Instants(copy, own).all(own.looks), len(own.looks))
    named = (("cpu", copy.asking), ("disk", copy.asking), ("tcp", copy.asking), NETWORK)
    top = max(named, key=lambda part: time.uses.get(part, 0.0))
    found = ViewResult(time, top, ALONE.format(copy.asking))
    flush = "disk", copy.serving
    if copy.has_long_flush and time.uses.get(flush, 0.0) >= time.uses.get(top, 0.0):
        return replace(found, part=flush)
    if time.uses.get(top, 0.0) >= SATURATED_RATIO:
        unseen = top == NETWORK and _without_queue(copy, own)
        return replace(found, most=WITHOUT_QUEUE) if unseen else found
    rtt = own.min_rtt_seconds
    window = max(own.values_of("peer_window_bytes"), default=0.0)
    if time.uses.get(("tcp", copy.serving), 0.0) > 0.3 and sockets.window_limits(
        window, rtt, copy.rate
    ):
        return replace(found, part=("tcp", copy.serving))
    if copy.has_long_flush:
        return replace(found, part=flush, most=DOUBTFUL)
    if sockets.window_limits(copy.in_flight_bytes, rtt, copy.rate):
        return replace(found, part=("smb", copy.serving), by=time.first, most=BY_LITTLES_LAW)
    return replace(found, part=UNKNOWN)


def _without_queue(copy: TimedCopy, own: Connection) -> bool:
    """Whether nothing shows that a near path is full: no queue, no loss, no standard link's rate.

    A server that acknowledges late leaves data unsent too.
    """
    again, trips = own.values_of("retransmitted_bytes"), own.values_of("rtt_seconds")
    if not again or not trips or not 0 < own.min_rtt_seconds < sockets.FAR_SECONDS:
        return False
    lost = again[-1] - again[0] > sockets.LOST_RATIO * copy.moved_bytes
    empty = sockets.queue_ratio(own) < sockets.EMPTY_QUEUE_RATIO
    return empty and not lost and model.looks_like(copy.rate) is None
