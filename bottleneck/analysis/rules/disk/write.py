"""disk/write: what a copy's FLUSHes show of the disk that it goes to.

A FLUSH is answered when the server has made durable what it holds (MS-SMB2 3.3.5.11). Where all
bytes were acknowledged long before, its time is the disk's. Until the first one the disk may idle,
so a short push stays below what the disk writes alone (alone.py); within its FLUSHes it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis.claim import GAP, SURE, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, hindered, smb_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import WRITE
from bottleneck.analysis.shown import through_disk
from bottleneck.analysis.steps import dialect_name
from bottleneck.text.units import percent_text, rate_text, seconds_text, size_text
from probes.core.lenient import LEAST

MOSTLY_RATIO = 0.55
"""Share of a push's time that FLUSHes take, from which on they are what it waits for."""
ARRIVED_RATIO = 1.25
"""Acknowledged over durable rate, from which on the bytes were there and the disk alone was not."""
SLOWER_RATIO, FASTER_RATIO = 0.85, 1.3
"""The disk's rate within the FLUSHes over its rate alone; faster where it began before them."""
PLAIN_RATIO = 0.9
"""A copy so near to its disk needs no other proof."""
CLOSE_RATIO = 0.7
"""The same where nobody measured the disk alone."""
MIDWAY_RATIO = 0.7
"""Share of a push's time that FLUSHes on its way take, while nothing is sent."""
PARTS_RATIO = 0.7
"""As SLOWER_RATIO, of FLUSHes on the way: each has a journal to write too."""
NEAR_RATIO, FREE_RATIO = 1.05, 1.2
"""A copy over its disk as another dialect shows it; what comes back over the same path is faster by
as much at least, so that neither path nor window holds both."""
FOREIGN_RATIO = 0.25
"""Of a copy's bytes, moved by others on its disk: a FLUSH then waits for them too."""
SAME = (
    "Seen from the client, a slow disk, a weak zone and other I/O look the same. An agent on the "
    "server (--agent) distinguishes them."
)


@dataclass(frozen=True)
class Flushed:
    """The FLUSHes of one copy."""

    seconds: float
    """What they took beyond what a WRITE sent at the same moment takes."""
    ratio: float
    """That over the time of the copy."""
    bytes_per_second: float
    """What was made durable in that time."""
    arrived: bool
    """Whether the bytes were there long before they were durable."""
    at_end: bool
    """Whether the copy mostly waits for the last one, when nothing else is on its way."""
    midway_ratio: float
    """Share of its time that it stood still for those before the last one."""

    @property
    def parts(self) -> bool:
        """Whether it flushes part by part, and mostly stands still for that: the disk holds it."""
        return self.midway_ratio >= MIDWAY_RATIO


def flushed(given: Evidence) -> Flushed | None:
    """What the FLUSHes of a copy took, at its end and on the way; None: nothing tells."""
    told, elapsed = given.details, given.step.seconds
    last = told.flush_seconds
    if last is None:
        return None
    before = max(0.0, (told.flushes or 1) - 1)
    # One on the way stands behind the WRITEs before it, as a WRITE would.
    behind = before * (told.request_seconds_median or 0.0)
    midway = max(0.0, (told.flushing_seconds or last) - last - behind)
    own = min(elapsed, last + midway)
    if own < LEAST:
        return None
    arrived = (told.acknowledged_bytes_per_second or 0.0) >= ARRIVED_RATIO * given.rate.median
    at_end = last >= MOSTLY_RATIO * elapsed
    durable = given.step.moved_bytes / own
    return Flushed(own, own / elapsed, durable, arrived, at_end, midway / elapsed)


def confirmed(given: Evidence, found: Claim) -> Claim:
    """The limit of a disk that was written alone, as reached where the copy's FLUSHes agree."""
    limit = found.ceiling
    own = limit.part == ("disk", given.receiver) and limit.cause in (WRITE.word, "zone")
    seen = _of_the_disk(given) if own else None
    if seen is None or found.reached is not None or limit.standing != "measured":
        return found
    level = limit.bytes_per_second
    least = PARTS_RATIO if seen.parts else SLOWER_RATIO
    agrees = least * level <= seen.bytes_per_second <= FASTER_RATIO * level
    if not agrees or given.rate.median >= PLAIN_RATIO * level:
        return found
    words, semicolon, why = found.words.partition(";")
    when = "flushes between its parts" if seen.parts else "a flush after the transfer"
    mostly = f", mostly in {when}" if limit.cause == WRITE.word else ""
    return replace(
        found,
        words=f"{words}{mostly}{semicolon}{why}",
        reached=True,
        evidence=(*found.evidence, *_shown(given, seen)),
    )


def _of_the_disk(given: Evidence) -> Flushed | None:
    """FLUSHes that a copy mostly waits for, and that nothing but the receiver's disk explains."""
    seen = flushed(given)
    if seen is None or seen.ratio < MOSTLY_RATIO or not (seen.arrived or seen.parts):
        return None
    if hindered(given.step, given.receiver):
        return None
    usage, moved = given.step.usage(given.receiver), given.step.moved_bytes
    counted = (usage.device_read_bytes or 0) + (usage.device_written_bytes or 0) if usage else 0
    return None if counted > (1 + FOREIGN_RATIO) * moved else seen


def _waited(given: Evidence, seen: Flushed, copy: str = "The copy") -> str:
    when = "between its parts" if seen.parts else "after the data had arrived"
    return (
        f"{copy} waited {percent_text(seen.ratio)} of its time for the {given.receiver}'s disk "
        f"flush, {when}."
    )


def _shown(given: Evidence, seen: Flushed) -> Iterator[str]:
    yield _waited(given, seen)
    durable = f"uring the flushes the disk wrote {rate_text(seen.bytes_per_second)}."
    arrived = rate_text(given.details.acknowledged_bytes_per_second or 0.0)
    yield f"D{durable}" if seen.parts else f"The data arrived at {arrived}; d{durable}"


def rule(given: Evidence) -> Iterator[Claim]:
    """The server's disk as a push shows it that waits for its FLUSHes, in this dialect or another.

    Without an agent; a disk that was measured alone has its limit by that, which a copy's FLUSHes
    may confirm.
    """
    if given.copy.verb != "push" or not given.by_client:
        return
    if any(disk_steps(given.report, "server", "write", "sequential")):
        return
    own = list(_by_flushes(given))
    if given.lone and not any(each.reached for each in own):
        own = list(_as_over_another(given, 0.0 if own else CLOSE_RATIO)) or own
    yield from own


def _by_flushes(given: Evidence, copy: str = "The copy") -> Iterator[Claim]:
    seen, rate = flushed(given) if given.lone else _of_the_disk(given), given.rate.median
    if seen is None or seen.ratio < MOSTLY_RATIO:
        return
    level = max(rate, seen.bytes_per_second)
    most = max(level, through_disk(given.report, given.copy, "server"))
    limits = seen.arrived and (seen.at_end or rate >= CLOSE_RATIO * level)
    yield claim(
        WRITE,
        "server",
        given.step,
        f"the server needs {seconds_text(seen.seconds)} to flush "
        f"{size_text(given.step.moved_bytes)} to its disk, which is about {rate_text(level)}",
        level=most,
        standing="inferred",
        reached=True if limits or seen.parts else None,
        trust=GAP if given.lone else SURE,
        evidence=(_waited(given, seen, copy), SAME) if given.lone else (_waited(given, seen),),
    )


def _as_over_another(given: Evidence, least_ratio: float) -> Iterator[Claim]:
    """The disk that the same push over another dialect waits for, where this one comes near it.

    SMB1 writes in pieces so small that its data arrive as slowly as the disk takes them.
    least_ratio: of the disk's rate, which a push has that hardly waits for its own FLUSHes.
    """
    pulled = [each.rate.median for each in smb_steps(given.report, "server")]
    if given.rate.median * FREE_RATIO > max(pulled, default=0.0):
        return
    for other in given.other_dialects:
        over = f"ver {dialect_name(other.copy.dialect)} the same copy"
        seen = flushed(other)
        level = 0.0 if seen is None else max(other.rate.median, seen.bytes_per_second)
        near = least_ratio * level <= given.rate.median <= NEAR_RATIO * level
        for each in _by_flushes(other, f"O{over}"):
            if each.reached and near:
                yield replace(
                    each,
                    ceiling=replace(each.ceiling, steps=(given.step.index, *each.ceiling.steps)),
                    words=f"o{over} waits for the server's disk, which takes about "
                    f"{rate_text(max(level, given.rate.median))}",
                )
