"""The round-trip time between the hosts, from the best evidence that a report has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report

LONGEST_SECONDS = 60.0
SHORTEST_SECONDS = 1e-6
ECHO_STAGES = ("smb-matrix", "small-files")
"""Stages that ask SMB ECHOs one at a time while nothing else is under way."""


@dataclass(frozen=True)
class Rtt:
    """A round trip while the path is idle."""

    seconds: float
    low_seconds: float
    """The shortest that was seen."""
    echoed: bool
    """Whether SMB ECHOs told it; else it is the time of one TCP connect, a rough figure."""
    steps: tuple[int, ...]


def rtt(report: Report, made: Found | None = None) -> Rtt | None:
    """The round trip of a copy's own session, else of another session, else of the first connect.

    None: nothing told one. An ECHO holds the server's answering too: about 0.1 ms on a LAN.
    """
    if made is not None:
        own = _echoed(made)
        if own is not None:
            return own
    echoed = [each for each in map(_echoed, _sessions(report)) if each is not None]
    if echoed:
        # Whatever lies on a path adds to its round trips and takes nothing away.
        return min(echoed, key=lambda each: each.seconds)
    connect = _plausible(steps.target_of(report).connect_seconds)
    return None if connect is None else Rtt(connect, connect, False, ())


def _sessions(report: Report) -> Iterator[Found]:
    for stage in ECHO_STAGES:
        yield from steps.measured(report, stage)


def _echoed(found: Found) -> Rtt | None:
    seconds = _plausible(found.details.rtt_seconds)
    if seconds is None:
        return None
    low = _plausible(found.details.rtt_low_seconds) or seconds
    return Rtt(seconds, min(low, seconds), True, (found.index,))


def _plausible(seconds: float | None) -> float | None:
    if seconds is None or not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        return None
    return seconds
