"""Attributes a copy's time by the looks of both hosts."""

from __future__ import annotations

from dataclasses import replace

from bottleneck.analysis.attribution.instants import Instants, Server
from bottleneck.analysis.attribution.shares import BOTH, HIDDEN, ViewResult, shares_of_time
from bottleneck.analysis.attribution.timed_copy import TimedCopy

LEAST_LOOKS = 5
"""At a connection: fewer tell nothing."""
LEAST_SERVER_LOOKS = 3
"""At smbd's threads or the cores: one look must not stand for a whole copy."""


def by_both(copy: TimedCopy) -> ViewResult | None:
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
    return ViewResult(time, BOTH if host.threads else HIDDEN)
