"""What is said of a copy that was watched while it ran: what was not seen, and what to do then.

Where its time went names its cap, as of any other copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.attribution.trace import looks
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.steps import Copy, Found, with_agent
from bottleneck.report.report import Report
from bottleneck.text.units import size_text

BEHIND_RATIO = 0.2
"""Of the copy's bytes, that are worth telling where they are not on the disk yet."""


def rule(given: Evidence) -> Iterator[str]:
    """What was not seen of a running copy, and what of it is not on the disk yet."""
    copy, made = given.copy, given.step
    if not copy.running:
        return
    if made.details.cache.proven is None:
        yield "Not verified: whether the file came from a disk or from the sender's memory."
    if unseen := _unseen(copy, made):
        yield f"Not measured: the {unseen}'s queues, disk and CPU."
    receiver = "client" if copy.on_one_host else copy.receiver
    host = looks(made.outcome.details, receiver)
    written = [each.device_written_bytes for each in host.counts] if host else []
    behind = made.moved_bytes - (written[-1] or 0.0) if written and written[-1] is not None else 0.0
    if behind >= BEHIND_RATIO * made.moved_bytes:
        yield (
            f"{size_text(behind)} of the data was still in the {receiver}'s memory and not on its "
            "disk."
        )


def _unseen(copy: Copy, made: Found) -> str:
    """The side that was not watched; empty: all of the copy was seen."""
    if copy.on_one_host:
        return ""
    sides = (copy.sender, copy.receiver)
    return next((each for each in sides if looks(made.outcome.details, each) is None), "")


def suspicion(copy: Copy, made: Found) -> str:
    """Of a running copy without a cap: why, as the end of a sentence."""
    if copy.on_one_host:
        return "neither of its disks was seen to limit it"
    by = made.details.sockets.by
    if by == "receiver":
        return (
            f"the {copy.receiver}'s program reads the data too slowly. No limit of its disk or CPU "
            "was seen"
        )
    if by == "sender":
        return (
            f"the {copy.sender} often had nothing to send, because its program is slow or waits "
            "for replies. No limit of a disk or CPU was seen"
        )
    if _unseen(copy, made):
        return "what limits it cannot be seen from this end alone"
    return "no component was seen at work for most of its time"


def what_to_try(report: Report, copy: Copy, made: Found) -> str:
    """Advice for a running copy without a cap."""
    unseen = _unseen(copy, made)
    if copy.on_one_host:
        return (
            "Watch it for longer (--seconds 60), or measure each disk separately: bottleneck probe "
            "disk --folder DIR."
        )
    if not unseen:
        return (
            "Watch it for longer (--seconds 60), or measure each component separately: bottleneck "
            "diagnose //SERVER/SHARE."
        )
    agent = with_agent(report, unseen)
    return f"Watch both ends with {agent}. It adds the {unseen}'s socket queues, disk and CPU."
