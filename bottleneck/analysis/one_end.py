"""What one end alone can tell: a copy that its client made, with no agent on the server."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import OWN, Copy, Found
from bottleneck.report import Report, median_run

STEADY_FROM_RATIO = 1 / 3
"""Of a run's time, from which on its start is over."""
STEADY_GAIN_RATIO = 1.15
"""More than that a start does not take: a burst would be taken for the rate."""


def lone(report: Report, copy: Copy) -> bool:
    """Whether this tool's client made the copy and nobody looked at the server."""
    return report.server is None and (copy.initiator, copy.engine) == ("client", OWN)


def bound(found: Found) -> bool:
    """Whether the client's own CPU may have set the rate of a step."""
    return hindrance(load(found.usage("client")), "client") is not None


def alike(report: Report, sender: str) -> Iterator[Found]:
    """All that this client moved over SMB in one direction: copies, requests alone, security."""
    for stage in ("smb-copy", "smb-matrix", "smb-tax"):
        for found in steps.measured(report, stage):
            name = found.setting.verb or found.setting.copy
            verb = name.removeprefix(steps.OF_FILE).partition(".")[0]
            mine = verb in steps.VERBS and found.step.initiator == "client"
            if mine and steps.sender(verb, "client") == sender and found.intact:
                yield found


def best(report: Report, sender: str) -> Found | None:
    """The fastest of them; None: nothing was moved that way."""
    return max(alike(report, sender), key=steady_rate, default=None)


def steady_rate(found: Found) -> float:
    """Bytes per second without a start and an end that take a long path's round trips.

    Of what arrives here the rate once the start is over; of what is sent, which is acknowledged
    in blocks, that up to the last acknowledgement without its round trip. Never less than the
    step's own rate, and not much more.
    """
    rate, details = found.rate.median, found.details
    run = median_run(found.outcome)
    moved = found.moved_bytes
    steady = 0.0
    copy = found.setting.copy
    if "pull" in copy:
        until = next(each for each in run if each.moved_bytes == run[-1].moved_bytes)
        start = STEADY_FROM_RATIO * until.elapsed_seconds
        since = next(each for each in run if each.elapsed_seconds >= start)
        seconds = until.elapsed_seconds - since.elapsed_seconds
        steady = (until.moved_bytes - since.moved_bytes) / seconds if seconds > 0 else 0.0
    elif "push" in copy:
        acknowledged = details.acknowledged_bytes_per_second
        trip = details.rtt_seconds or 0.0
        if acknowledged is not None and moved / acknowledged > 2 * trip:
            steady = moved / (moved / acknowledged - trip)
    return max(rate, min(steady, STEADY_GAIN_RATIO * rate))
