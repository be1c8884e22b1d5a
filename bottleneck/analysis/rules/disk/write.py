"""disk/write: limit of the receiver's disk by a copy's FLUSHes.

A FLUSH is answered when the server has made all received data durable (MS-SMB2 3.3.5.11). If all
bytes were acknowledged long before, its time is the disk's. Until the first one the disk may idle,
so a short push is slower than the disk alone (alone.py); within its FLUSHes it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis.claim import GAP, SURE, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, hindrance_text, smb_steps
from bottleneck.analysis.facts.counters import is_seen_at_work
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import WRITE
from bottleneck.analysis.steps import dialect_name
from bottleneck.analysis.transfer_rates import through_disk
from bottleneck.text.units import percent_text, rate_text, seconds_text, size_text
from probes.core.lenient import LEAST

MOSTLY_RATIO = 0.55
"""Least share of a push's time in FLUSHes at which it mostly waits for them."""
ARRIVED_RATIO = 1.25
"""Least ratio of acknowledged to durable rate at which bytes had arrived at a slow disk."""
SLOWER_RATIO, FASTER_RATIO = 0.85, 1.3
"""Least and most ratio of a disk's rate within FLUSHes to its rate alone."""
PLAIN_RATIO = 0.9
"""Least ratio of the copy's rate to its disk's at which no other proof is needed."""
CLOSE_RATIO = 0.7
"""Copy's rate over its disk's by the FLUSHes, likewise, if the disk was not measured alone."""
MIDWAY_RATIO = 0.7
"""Share of a push's time that FLUSHes before the last one take, while nothing is sent."""
PARTS_RATIO = 0.7
"""SLOWER_RATIO for FLUSHes before the last one: each writes a journal, too."""
NEAR_RATIO, FREE_RATIO = 1.05, 1.2
"""Most copy / its disk by another dialect; least fastest pull / copy if only the disk limits it."""
FOREIGN_RATIO = 0.25
"""Least ratio of others' bytes to the copy's at which a FLUSH waits for them, too."""
SAME = (
    "Seen from the client, a slow disk, a weak zone and other I/O look the same. An agent on the "
    "server (--agent) distinguishes them."
)


@dataclass(frozen=True)
class Flushes:
    seconds: float
    """Their time beyond that of a WRITE at the same moment."""
    ratio: float
    """Their share of the copy's time."""
    bytes_per_second: float
    """Rate at which data became durable in that time."""
    arrived: bool
    """Whether the bytes had arrived long before they were durable."""
    at_end: bool
    """Whether the copy mostly waits for the last one, when nothing else is in flight."""
    midway_ratio: float
    """Share of its time that it stood still for those before the last one."""

    @property
    def is_in_parts(self) -> bool:
        """Whether the copy flushes in parts and mostly waits for that: the disk is its limit."""
        return self.midway_ratio >= MIDWAY_RATIO


def flush_times(evidence: Evidence) -> Flushes | None:
    """Returns the times of a copy's FLUSHes, at its end and before; None: not known."""
    details, elapsed = evidence.details, evidence.step.seconds
    last = details.flush_seconds
    if last is None:
        return None
    earlier = max(0.0, (details.flushes or 1) - 1)
    # An earlier FLUSH waits behind the WRITEs before it, as a WRITE would.
    behind = earlier * (details.request_seconds_median or 0.0)
    midway = max(0.0, (details.flushing_seconds or last) - last - behind)
    seconds = min(elapsed, last + midway)
    if seconds < LEAST:
        return None
    arrived = (details.acknowledged_bytes_per_second or 0.0) >= ARRIVED_RATIO * evidence.rate.median
    at_end = last >= MOSTLY_RATIO * elapsed
    durable = evidence.step.moved_bytes / seconds
    return Flushes(seconds, seconds / elapsed, durable, arrived, at_end, midway / elapsed)


def confirmed_claim(evidence: Evidence, disk_claim: Claim) -> Claim:
    """Returns the claim of a disk that was measured alone, as reached if the FLUSHes agree."""
    limit = disk_claim.ceiling
    is_disk = limit.part == ("disk", evidence.receiver) and limit.cause in (WRITE.word, "zone")
    flush = _disk_flushes(evidence) if is_disk else None
    if flush is None or disk_claim.reached is not None or limit.standing != "measured":
        return disk_claim
    level = limit.bytes_per_second
    lowest = PARTS_RATIO if flush.is_in_parts else SLOWER_RATIO
    agrees = lowest * level <= flush.bytes_per_second <= FASTER_RATIO * level
    if not agrees or evidence.rate.median >= PLAIN_RATIO * level:
        return disk_claim
    words, semicolon, why = disk_claim.words.partition(";")
    when = "flushes between its parts" if flush.is_in_parts else "a flush after the transfer"
    mostly = f", mostly in {when}" if limit.cause == WRITE.word else ""
    return replace(
        disk_claim,
        words=f"{words}{mostly}{semicolon}{why}",
        reached=True,
        evidence=(*disk_claim.evidence, *_lines(evidence, flush)),
    )


def _disk_flushes(evidence: Evidence) -> Flushes | None:
    """Returns FLUSHes that a copy mostly waits for, and that only the receiver's disk explains."""
    flush = flush_times(evidence)
    if flush is None or flush.ratio < MOSTLY_RATIO or not (flush.arrived or flush.is_in_parts):
        return None
    if hindrance_text(evidence.step, evidence.receiver):
        return None
    usage, size = evidence.step.usage(evidence.receiver), evidence.step.moved_bytes
    counted = (usage.device_read_bytes or 0) + (usage.device_written_bytes or 0) if usage else 0
    return None if counted > (1 + FOREIGN_RATIO) * size else flush


def _wait_text(evidence: Evidence, flush: Flushes, copy: str = "The copy") -> str:
    when = "between its parts" if flush.is_in_parts else "after the data had arrived"
    return (
        f"{copy} waited {percent_text(flush.ratio)} of its time for the {evidence.receiver}'s disk "
        f"flush, {when}."
    )


def _lines(evidence: Evidence, flush: Flushes) -> Iterator[str]:
    yield _wait_text(evidence, flush)
    durable = f"uring the flushes the disk wrote {rate_text(flush.bytes_per_second)}."
    arrived = rate_text(evidence.details.acknowledged_bytes_per_second or 0.0)
    yield f"D{durable}" if flush.is_in_parts else f"The data arrived at {arrived}; d{durable}"


def rule(evidence: Evidence) -> Iterator[Claim]:
    """Yields the server's disk by a push that waits for its FLUSHes, in this dialect or another.

    Only without a test of that disk alone, which gives its limit, and which FLUSHes may confirm.
    """
    if evidence.copy.verb != "push" or not evidence.is_by_client:
        return
    if any(disk_steps(evidence.report, "server", "write", "sequential")):
        return
    claims = list(_claims_by_flushes(evidence))
    if evidence.sees_client_only and not any(each.reached for each in claims):
        claims = list(_claims_by_dialect(evidence, 0.0 if claims else CLOSE_RATIO)) or claims
    yield from claims


def _claims_by_flushes(evidence: Evidence, copy: str = "The copy") -> Iterator[Claim]:
    lone = evidence.sees_client_only and not is_seen_at_work(evidence.step, "server")
    flush = flush_times(evidence) if lone else _disk_flushes(evidence)
    rate = evidence.rate.median
    if flush is None or flush.ratio < MOSTLY_RATIO:
        return
    level = max(rate, flush.bytes_per_second)
    highest = max(level, through_disk(evidence.report, evidence.copy, "server"))
    limits = flush.arrived and (flush.at_end or rate >= CLOSE_RATIO * level)
    yield claim(
        WRITE,
        "server",
        evidence.step,
        f"the server needs {seconds_text(flush.seconds)} to flush "
        f"{size_text(evidence.step.moved_bytes)} to its disk, which is about {rate_text(level)}",
        level=highest,
        standing="inferred",
        reached=True if limits or flush.is_in_parts else None,
        trust=GAP if lone else SURE,
        evidence=(_wait_text(evidence, flush, copy), SAME)
        if lone
        else (_wait_text(evidence, flush),),
    )


def _claims_by_dialect(evidence: Evidence, least_ratio: float) -> Iterator[Claim]:
    """Yields the disk that limits the same push over another dialect, if this push comes near it.

    SMB1 writes in pieces so small that its data arrive as slowly as the disk takes them.
    least_ratio: least rate over the disk's of a push that hardly waits for its own FLUSHes.
    """
    pulled = [each.rate.median for each in smb_steps(evidence.report, "server")]
    if evidence.rate.median * FREE_RATIO > max(pulled, default=0.0):
        return
    for other in evidence.other_dialects:
        over = f"ver {dialect_name(other.copy.dialect)} the same copy"
        flush = flush_times(other)
        level = 0.0 if flush is None else max(other.rate.median, flush.bytes_per_second)
        near = least_ratio * level <= evidence.rate.median <= NEAR_RATIO * level
        for each in _claims_by_flushes(other, f"O{over}"):
            if each.reached and near:
                yield replace(
                    each,
                    ceiling=replace(each.ceiling, steps=(evidence.step.index, *each.ceiling.steps)),
                    words=f"o{over} waits for the server's disk, which takes about "
                    f"{rate_text(max(level, evidence.rate.median))}",
                )
