"""How many requests a copy keeps in flight: as many as the path at hand needs."""

from __future__ import annotations

from typing import NamedTuple

from probes.smb.echo import LEAST, round_trips
from probes.smb.pipe import Pipe, Verb

LIKELY_BYTES_PER_SECOND = 2.5e9
"""Twice 10 Gbit/s: a link's worth on its way, and as much with the server. A slower link only has
our own requests wait for each other; nobody else's packets do, for TCP bounds what is sent."""


class Flight(NamedTuple):
    """What a copy was made with."""

    request_bytes: int
    depth: int
    rtt_seconds: float | None
    """Shortest ECHO on the idle session; None: the depth was given."""

    @property
    def shape(self) -> tuple[int, int]:
        """Request size and depth."""
        return self.request_bytes, self.depth


def fitting(
    pipe: Pipe, verb: Verb, request_bytes: int = 0, depth: int = 0, least_bytes: int = 0
) -> Flight:
    """Readies the pipe for a copy, deep enough that the path's RTT does not cap it.

    rate = bytes in flight / RTT, up to probes.smb.pipe.IN_FLIGHT_LIMIT_BYTES and to the server's
    credits. 0: the default request; a depth that is given is kept; least_bytes: in flight, whatever
    the RTT. Nothing may be in flight.
    """
    if depth:
        return Flight(*pipe.prepare(verb, request_bytes, depth), None)
    size, depth = pipe.prepare(verb, request_bytes, 0)
    rtt = min(round_trips(pipe, 0.0, LEAST))
    needed = -int(-max(rtt * LIKELY_BYTES_PER_SECOND, least_bytes) // size)
    if needed > depth:
        # A power of two: smb-matrix measures such depths, so that a copy finds its own among them.
        size, depth = pipe.prepare(verb, request_bytes, 1 << (needed - 1).bit_length())
    return Flight(size, depth, rtt)
