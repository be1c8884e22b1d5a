"""The round-trip time between the hosts, from the best evidence that a report has."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report

LONGEST_SECONDS = 60.0
SHORTEST_SECONDS = 1e-6
ECHO_STAGES = ("smb-matrix", "small-files")
"""Stages that send SMB ECHOs one at a time while nothing else is in flight."""


@dataclass(frozen=True)
class Rtt:
    """A round trip while the path is idle."""

    seconds: float
    low_seconds: float
    """The shortest that was observed."""
    is_echo: bool
    """Whether it is the time of SMB ECHOs; else of one TCP connect, a rough figure."""
    step_indices: tuple[int, ...]


def rtt(report: Report, step: MeasuredStep | None = None) -> Rtt | None:
    """Returns the RTT of a copy's session, else of another session, else of the first connect.

    None: none is known. An ECHO includes the server's own work: about 0.1 ms on a LAN.
    """
    if step is not None:
        own_rtt = _echo_rtt(step)
        if own_rtt is not None:
            return own_rtt
    echoes = (each for stage in ECHO_STAGES for each in steps.measured_steps(report, stage))
    echo_rtts = [each for each in map(_echo_rtt, echoes) if each is not None]
    if echo_rtts:
        # Other traffic only lengthens round trips.
        return min(echo_rtts, key=lambda each: each.seconds)
    connect = _plausible(steps.target_of(report).connect_seconds)
    return None if connect is None else Rtt(connect, connect, False, ())


def _echo_rtt(step: MeasuredStep) -> Rtt | None:
    seconds = _plausible(step.details.rtt_seconds)
    if seconds is None:
        return None
    low = _plausible(step.details.rtt_low_seconds) or seconds
    return Rtt(seconds, min(low, seconds), True, (step.index,))


def _plausible(seconds: float | None) -> float | None:
    if seconds is None or not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        return None
    return seconds
