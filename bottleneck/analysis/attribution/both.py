"""Where a copy's time went, by what both hosts saw."""

from __future__ import annotations

from dataclasses import replace

from bottleneck.analysis.attribution import sockets
from bottleneck.analysis.attribution.copied import Copied
from bottleneck.analysis.attribution.instants import Instants, Server
from bottleneck.analysis.attribution.shares import (
    BOTH,
    CERTAIN,
    DOUBTED,
    HIDDEN,
    SATURATED_RATIO,
    Seen,
    covered,
)

LEAST_LOOKS = 5
"""At a connection: fewer tell nothing."""


def by_both(copy: Copied) -> Seen | None:
    """What both hosts saw; None: one of them saw too little."""
    sender, receiver = copy.connection(copy.sender), copy.connection(copy.receiver)
    host = copy.host(copy.serving)
    if sender is None or receiver is None or host is None or not (host.threads or host.counts):
        return None
    # A host that starves looks seldom: then the other one's looks say when.
    moments = sender.looks if len(sender.looks) >= LEAST_LOOKS else receiver.looks
    if len(moments) < LEAST_LOOKS:
        return None
    found = Instants(copy, sender, receiver, Server(host)).all(moments)
    time = covered(found, len(sender.looks))
    if time is None:
        return None
    stage = busiest = time.first
    if busiest[1] == copy.serving:
        time = replace(time, looks=min(time.looks, len(host.threads or host.counts)))
    waits = stage[0] in ("disk", "cpu") and time.uses.get(stage, 0.0) < SATURATED_RATIO
    rtt = sockets.middle(sender.known("min_rtt_seconds"))
    if waits and sockets.fills(copy.in_flight_bytes, rtt, copy.rate):
        # Nobody works all the time, and most of a request's life is the round trip.
        stage = "smb", copy.serving
    if host.threads:
        return Seen(time, stage, BOTH, by=busiest)
    # Anybody's work may be what its cores and their waits show.
    return Seen(time, stage, HIDDEN, DOUBTED if busiest[1] == copy.serving else CERTAIN, busiest)
