"""Remarks and advice about a copy that was watched while it ran: what was not observed.

Its cap follows from its time, as of any other copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.attribution.trace import looks
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.steps import Copy, MeasuredStep, agent_option
from bottleneck.report.report import Report
from bottleneck.text.units import size_text

BEHIND_RATIO = 0.2
"""Least share of the copy's bytes not yet on the disk that is worth a remark."""


def rule(evidence: Evidence) -> Iterator[str]:
    """Yields what was not observed of a running copy, and how much is not on the disk yet."""
    copy, step = evidence.copy, evidence.step
    if not copy.is_running:
        return
    if step.details.cache.proven is None:
        yield "Not verified: whether the file came from a disk or from the sender's memory."
    if unseen := _unwatched_side(copy, step):
        yield f"Not measured: the {unseen}'s queues, disk and CPU."
    receiver = "client" if copy.on_one_host else copy.receiver
    host = looks(step.outcome.details, receiver)
    written = [each.device_written_bytes for each in host.counts] if host else []
    behind = step.moved_bytes - (written[-1] or 0.0) if written and written[-1] is not None else 0.0
    if behind >= BEHIND_RATIO * step.moved_bytes:
        yield (
            f"{size_text(behind)} of the data was still in the {receiver}'s memory and not on its "
            "disk."
        )


def _unwatched_side(copy: Copy, step: MeasuredStep) -> str:
    """Returns the side that was not watched; empty: both were."""
    if copy.on_one_host:
        return ""
    sides = (copy.sender, copy.receiver)
    return next((each for each in sides if looks(step.outcome.details, each) is None), "")


def suspicion(copy: Copy, step: MeasuredStep) -> str:
    """Returns why a running copy has no cap, as the end of a sentence."""
    if copy.on_one_host:
        return "neither of its disks was seen to limit it"
    by = step.details.sockets.by
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
    if _unwatched_side(copy, step):
        return "what limits it cannot be seen from this end alone"
    return "no component was seen at work for most of its time"


def what_to_try(report: Report, copy: Copy, step: MeasuredStep) -> str:
    """Returns advice for a running copy without a cap."""
    unseen = _unwatched_side(copy, step)
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
    agent = agent_option(report, unseen)
    return f"Watch both ends with {agent}. It adds the {unseen}'s socket queues, disk and CPU."
