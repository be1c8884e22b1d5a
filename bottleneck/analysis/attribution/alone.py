"""Where a copy's time went, by what the host that makes it saw alone."""

from __future__ import annotations

from dataclasses import replace

from bottleneck.analysis.attribution import sockets
from bottleneck.analysis.attribution.both import LEAST_LOOKS
from bottleneck.analysis.attribution.copied import Copied
from bottleneck.analysis.attribution.instants import Instants
from bottleneck.analysis.attribution.shares import (
    ALONE,
    DOUBTED,
    NETWORK,
    SATURATED_RATIO,
    UNKNOWN,
    Instant,
    Seen,
    Stage,
    covered,
)
from bottleneck.analysis.attribution.trace import Connection

QUIET_RATIO = 0.25
"""Of the waiting for replies, in which nothing of one came: a full path is never that quiet."""
LITTLE_SURE = 0.85
"""Confidence in a limit that the rate and the bytes in flight alone tell (Little's law)."""
KEEPS_UP_RATIO = 0.75
"""Of the looks, in which a reader had read all that came: then it is not what holds the copy."""
CACHED_RATIO = 1.3
"""Rate from the cache over the one past it, from which on the disk made the difference."""


def by_asking(copy: Copied) -> Seen | None:
    """What the host that makes the copy can tell; None: it saw too little."""
    own = copy.connection(copy.asking)
    if own is None or len(own.looks) < LEAST_LOOKS:
        return _by_thread(copy) if copy.trace.asking else None
    return _pull(copy, own) if copy.pull else _push(copy, own)


def _by_thread(copy: Copied) -> Seen | None:
    """By the moving thread alone: a host that starves looks at its sockets too seldom."""
    thread = copy.thread
    shares = {
        ("disk", copy.asking): thread.mean("disk") + thread.mean("flush"),
        ("cpu", copy.asking): thread.mean("cpu"),
    }
    instants: list[Instant] = [(share, frozenset({stage})) for stage, share in shares.items()]
    instants.append((max(0.0, 1 - sum(shares.values())), frozenset({UNKNOWN})))
    time = covered(instants, len(copy.trace.bins))
    if time is None:
        return None
    # A core that it has to itself may be busy with trickles.
    sure = thread.starves or time.first[0] == "disk"
    full = sure and time.uses.get(time.first, 0.0) >= SATURATED_RATIO
    return Seen(time, time.first if full else UNKNOWN, ALONE.format(copy.asking))


def _pull(copy: Copied, own: Connection) -> Seen | None:
    view, thread = ALONE.format(copy.asking), copy.thread
    disk, cpu = thread.mean("disk") + thread.mean("flush"), thread.mean("cpu")
    reply, body = thread.mean("reply"), thread.mean("body") + thread.mean("send")
    waiting = reply + body
    # A server that stops in the middle of a reply is as silent as before one.
    quiet = [sockets.silent(each, each.since_received_seconds, copy.rate) for each in own.looks]
    reply = max(reply, min(waiting, sum(quiet) / len(quiet)))
    body = waiting - reply
    lag = copy.lag()
    disk = max(disk, min(1.0, lag))
    shares = {("disk", copy.asking): disk, ("cpu", copy.asking): cpu}
    instants: list[Instant] = [(share, frozenset({stage})) for stage, share in shares.items()]
    instants += [(reply, frozenset({UNKNOWN})), (body, frozenset({NETWORK}))]
    time = covered(instants, len(own.looks))
    if time is None:
        return None
    network = Seen(time, NETWORK, view)
    if lag > max(cpu, SATURATED_RATIO) or disk > max(cpu, waiting):
        return replace(network, stage=("disk", copy.asking))
    ahead = sum(copy.keeps_up(each) for each in own.looks) / len(own.looks)
    busy = "cpu", copy.asking
    if cpu >= SATURATED_RATIO and ahead < KEEPS_UP_RATIO:
        return replace(network, stage=busy)
    least, windows = own.known("min_rtt_seconds"), own.known("own_window_bytes")
    rtt, window = sockets.middle(least), max(windows, default=0.0)
    unread = sockets.middle(own.known("unread_bytes"))
    if unread < sockets.UNREAD_RATIO * window and sockets.fills(window, rtt, copy.rate):
        return replace(network, stage=("tcp", copy.asking), by=NETWORK)
    if sockets.fills(copy.in_flight_bytes, rtt, copy.rate):
        return replace(network, stage=("smb", copy.serving), by=time.first, most=LITTLE_SURE)
    if waiting > 0 and reply > QUIET_RATIO * waiting:
        return replace(network, stage=_unseen_server(copy), by=time.first, most=DOUBTED)
    return replace(network, by=busy, most=DOUBTED) if cpu >= SATURATED_RATIO else network


def _unseen_server(copy: Copied) -> Stage:
    """It has nothing ready: its disk, if the same copy from its cache is faster, else its CPU."""
    faster = copy.cached_rate is None or copy.cached_rate > CACHED_RATIO * copy.rate
    return ("disk" if copy.uncached and faster else "cpu"), copy.serving


def _push(copy: Copied, own: Connection) -> Seen | None:
    time = covered(Instants(copy, own).all(own.looks), len(own.looks))
    if time is None:
        return None
    named = (("cpu", copy.asking), ("disk", copy.asking), ("tcp", copy.asking), NETWORK)
    top = max(named, key=lambda stage: time.uses.get(stage, 0.0))
    found = Seen(time, top, ALONE.format(copy.asking))
    flush = "disk", copy.serving
    if copy.lags and time.uses.get(flush, 0.0) >= time.uses.get(top, 0.0):
        return replace(found, stage=flush)
    if time.uses.get(top, 0.0) >= SATURATED_RATIO:
        return found
    rtt = sockets.middle(own.known("min_rtt_seconds"))
    window = max(own.known("peer_window_bytes"), default=0.0)
    if time.uses.get(("tcp", copy.serving), 0.0) > 0.3 and sockets.fills(window, rtt, copy.rate):
        return replace(found, stage=("tcp", copy.serving))
    if copy.lags:
        return replace(found, stage=flush, most=DOUBTED)
    if sockets.fills(copy.in_flight_bytes, rtt, copy.rate):
        return replace(found, stage=("smb", copy.serving), by=time.first, most=LITTLE_SURE)
    return replace(found, stage=UNKNOWN)
