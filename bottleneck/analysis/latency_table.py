"""What one message of a size and its answer take, from the table of a latency stage."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.steps import Found
from bottleneck.report import Report


@dataclass(frozen=True)
class Answer:
    """A message out and a small answer back."""

    seconds: float
    latency: float | None
    """Of the line t(n) = latency + n / bandwidth, seconds."""
    bandwidth: float | None
    """Bytes per second."""
    half_bytes: float | None
    """The message that reaches half of it."""


def answer_seconds(report: Report, message_bytes: float) -> Answer | None:
    """The time of a size, as timed where that size was, else by the line; None: not known.

    Of several latency stages the first counts.
    """
    found = next(steps.measured(report, "latency"), None)
    if found is None:
        return None
    names = ("latency_seconds", "bandwidth_bytes_per_second", "n_half_bytes")
    latency, bandwidth, half = (
        steps.positive(found.outcome.details, "fit", name) for name in names
    )
    seconds = _timed(found, message_bytes)
    if seconds is None and latency is not None and bandwidth is not None:
        seconds = latency + message_bytes / bandwidth
    return None if seconds is None else Answer(seconds, latency, bandwidth, half)


def _timed(found: Found, message_bytes: float) -> float | None:
    for each in steps.items(found.outcome.details, "table"):
        once = steps.amount(each, "round_trips") == 1
        if once and steps.amount(each, "message_bytes") == message_bytes:
            return steps.positive(each, "seconds")
    return None
