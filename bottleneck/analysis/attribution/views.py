"""Attributes a copy's time by the looks of both hosts, or only of the one that makes the copy."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import model
from bottleneck.analysis.attribution import sender_socket
from bottleneck.analysis.attribution.instants import Instants, Server
from bottleneck.analysis.attribution.shares import (
    ALONE,
    BOTH,
    NETWORK,
    THREADS_UNSEEN,
    UNKNOWN,
    Slice,
    ViewResult,
    shares_of_time,
)
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import Connection

EMPTY_TRIP_RATIO = 1.1
"""Most median RTT over the shortest at which nothing waits on the path."""
LEAST_LOOKS = 5
"""Fewest looks at a connection that allow a conclusion."""
LEAST_SERVER_LOOKS = 3
"""Fewest looks at smbd's threads or the cores: one must not stand for a whole copy."""


@functools.lru_cache(maxsize=4)
def best(copy: TimedCopy) -> ViewResult | None:
    """Returns the shares by the looks of both hosts, else of one; None: too few looks."""
    return shares_by_both_ends(copy) or shares_by_one_end(copy)


def shares_by_both_ends(copy: TimedCopy) -> ViewResult | None:
    """Returns the shares of the time; None: too few looks on one of the hosts."""
    if copy.trace.unseen:
        return None
    sender, receiver = copy.connection(copy.sender), copy.connection(copy.receiver)
    host = copy.host(copy.serving)
    if sender is None or receiver is None or host is None:
        return None
    server_looks = len(host.threads or host.counts)
    if server_looks < LEAST_SERVER_LOOKS:
        return None
    # On a starved host the watch runs seldom; then the other host's looks set the moments.
    moments = sender.looks if len(sender.looks) >= LEAST_LOOKS else receiver.looks
    if len(moments) < LEAST_LOOKS:
        return None
    slices = Instants(copy, sender, receiver, Server(host)).all(moments)
    time = shares_of_time(slices, len(sender.looks))
    if time.first[1] == copy.serving:
        time = replace(time, looks=min(time.looks, server_looks))
    # Without its threads, cores and iowait include the work of all other processes.
    return ViewResult(time, BOTH if host.threads else THREADS_UNSEEN)


def shares_by_one_end(copy: TimedCopy) -> ViewResult | None:
    """Returns the shares of the time as far as one end shows them; None: no looks there."""
    connection = copy.connection(copy.asking)
    view = ALONE.format(copy.asking)
    if connection is None or len(connection.looks) < LEAST_LOOKS:
        is_known = copy.trace.asking and not copy.trace.unseen
        return _shares_by_thread(copy, view) if is_known else None
    if copy.pull:
        shares_of = _shares_by_sockets if copy.trace.unseen else _pull
        return shares_of(copy, connection, view)
    return ViewResult(
        shares_of_time(Instants(copy, connection).all(connection.looks), len(connection.looks)),
        view,
    )


def _shares_by_sockets(copy: TimedCopy, connection: Connection, view: str) -> ViewResult:
    """Returns the shares of path and silence in a pull whose program is hidden."""
    quiet = [
        sender_socket.is_silent(e, e.since_received_seconds, copy.rate) for e in connection.looks
    ]
    # Unread bytes wait for the program.
    ahead = [copy.keeps_up(each) for each in connection.looks]
    parts = (NETWORK if e and not q else UNKNOWN for e, q in zip(ahead, quiet, strict=True))
    slices: list[Slice] = [(1.0, [(1.0, frozenset({part}))]) for part in parts]
    return ViewResult(shares_of_time(slices, len(connection.looks)), view)


def _shares_by_thread(copy: TimedCopy, view: str) -> ViewResult:
    """Uses the moving thread only, for a starved host whose watch had too few looks."""
    disk = copy.thread.mean("disk") + copy.thread.mean("flush")
    slices = list(_components_by_bin(copy, disk, 0.0))
    return ViewResult(shares_of_time(slices, len(copy.trace.bins)), view)


def _components_by_bin(copy: TimedCopy, disk: float, body: float) -> Iterator[Slice]:
    """Yields the components with work in each bin of the moving thread, as one end shows them.

    disk, body: shares of the copy's time of its disk, and of replies on their way.
    """
    thread = copy.thread
    thread_disk = thread.mean("disk") + thread.mean("flush")
    thread_body = thread.mean("body") + thread.mean("send")
    disk_scale, body_scale = disk / (thread_disk or 1.0), body / (thread_body or 1.0)
    for lasted, each in thread.timed_shares:
        came = each.body + each.send
        parts = {
            ("disk", copy.asking): (each.disk + each.flush) * disk_scale,
            ("cpu", copy.asking): each.cpu,
            NETWORK: came * body_scale,
            UNKNOWN: each.reply + came * (1 - body_scale),
        }
        yield lasted, [(lasted * share, frozenset({part})) for part, share in parts.items()]
    if not thread_disk:
        yield 0.0, [(disk, frozenset({("disk", copy.asking)}))]


def _pull(copy: TimedCopy, connection: Connection, view: str) -> ViewResult:
    thread = copy.thread
    disk = thread.mean("disk") + thread.mean("flush")
    reply, body = thread.mean("reply"), thread.mean("body") + thread.mean("send")
    waiting = reply + body
    # Pauses within a reply count like the wait for its first byte.
    looks = connection.looks
    quiet = [sender_socket.is_silent(e, e.since_received_seconds, copy.rate) for e in looks]
    body = waiting - max(reply, min(waiting, sum(quiet) / len(quiet)))
    disk = max(disk, min(1.0, copy.disk_lag))
    return ViewResult(shares_of_time(list(_components_by_bin(copy, disk, body)), len(looks)), view)


def is_far_and_empty(connection: Connection) -> bool:
    """Whether a path is far and has no queue: most round trips are as short as the shortest."""
    trips = sorted(connection.values_of("rtt_seconds"))
    if not trips or connection.min_rtt_seconds < sender_socket.FAR_SECONDS:
        return False
    return trips[len(trips) // 2] <= EMPTY_TRIP_RATIO * connection.min_rtt_seconds


def is_without_queue(copy: TimedCopy, connection: Connection) -> bool:
    """Whether a near path shows no sign of being full: no queue, loss, or standard link's rate.

    A server that acknowledges late leaves data unsent too.
    """
    again, trips = connection.values_of("retransmitted_bytes"), connection.values_of("rtt_seconds")
    if not again or not trips or not 0 < connection.min_rtt_seconds < sender_socket.FAR_SECONDS:
        return False
    lost = again[-1] - again[0] > sender_socket.LOST_RATIO * copy.moved_bytes
    empty = sender_socket.queue_ratio(connection) < sender_socket.EMPTY_QUEUE_RATIO
    return empty and not lost and model.looks_like(copy.rate) is None
