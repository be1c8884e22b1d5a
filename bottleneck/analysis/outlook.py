"""What comes after a cap: the copy's rate with ceilings lifted, one after the other.

The composition of stages is the model's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import model, references
from bottleneck.analysis.cap import Cap, required_parts
from bottleneck.analysis.ceilings import Ladder
from bottleneck.analysis.finding import Ceiling, Claim, Next, Predicted, Rung
from bottleneck.analysis.model import Band
from bottleneck.analysis.references import Part
from bottleneck.analysis.rules import BY_WORDS
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report

READ_LATE, WRITE_LATE = Band(0.12, 0.07, 0.0), Band(0.5, 0.35, 0.2)
"""How much of the transfer's own time passes before a disk works beside it, as copies show it."""
SHOWN_DOUBT, LINK_DOUBT = 0.04, 0.05
"""How far a copy may be off another one that ran, and off a link times its usual share."""
PACED = ("network", "tcp", "smb")
"""Caps that let bytes trickle in, so that a core wakes up for few of them at a time."""
BATCHING, SLOW_BATCHING, BATCHING_DOUBT = 1.5, 2.0, 0.5
"""How a core's cost for each byte falls, from copies over shaped links and over none."""
TENFOLD = 10.5
"""As far as a link is exchanged where nothing was measured beyond it: the next kind of link but
one would be a guess; a little more than 10, of which a tenth is left."""
_BUSY = ("one-core", "all-cores", "ceiling")


@dataclass(frozen=True)
class Held:
    """A copy with its cap and all that is known around it."""

    report: Report
    copy: Copy
    made: Found
    cap: Cap
    ladder: Ladder

    @property
    def late(self) -> float | None:
        """How much of the transfer's time the disk stands still, as the copy's own rate shows.

        None: its stages do not take turns, so that what is usual holds.
        """
        if self.cap.manner == "reached" or self.cap.rival is None:
            return None
        stages = [each.ceiling.bytes_per_second for each in (self.cap.claim, self.cap.rival)]
        return 1 - model.overlap_factor(self.made.rate.median, stages)


def rescaled(held: Held) -> Ladder:
    """The ladder with the CPUs' ceilings as they will likely be, from the copy's load.

    A copy that waits for its link costs more CPU for each byte than one that does not: the load
    scaled up is then the least that a core allows. And what was moved the same way, it can do.
    """
    lifted = held.cap.claim.ceiling
    slow = held.made.rate.median < references.SLOW_BYTES_PER_SECOND
    batching = SLOW_BATCHING if slow else BATCHING
    batching = batching if lifted.component in PACED else 1.0
    shown = references.demonstrated(held.report, held.copy)
    rival = held.cap.rival and held.cap.rival.ceiling
    claims = []
    for claim in held.ladder.claims:
        seen = claim.ceiling
        scaled = seen.standing == "estimated" and seen.cause in _BUSY
        if scaled and claim.reached is not True and seen not in (lifted, rival):
            claims.append(replace(claim, ceiling=_likely(held, seen, batching, shown)))
        else:
            claims.append(claim)
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return replace(held.ladder, claims=tuple(claims))


def _likely(held: Held, seen: Ceiling, batching: float, shown: float) -> Ceiling:
    rate = held.made.rate.median
    ratio = min(1.0, rate / seen.bytes_per_second)
    doubt = BATCHING_DOUBT if batching > 1 else 0.0
    low, high = max(shown, seen.low_bytes_per_second), max(shown, seen.high_bytes_per_second)
    tools = [e.ceiling.bytes_per_second for e in held.ladder.valid if e.ceiling.tool]
    # TCP to itself is the least work that moves bytes: no copy costs its host less.
    most = max(min(tools, default=math.inf), high)
    return replace(
        seen,
        low_bytes_per_second=low,
        bytes_per_second=min(most, max(low, model.scaled_by_load(rate, ratio, batching))),
        high_bytes_per_second=min(
            most, max(high, model.scaled_by_load(rate, ratio, batching + doubt))
        ),
    )


def left(ladder: Ladder, gone: Sequence[Ceiling]) -> list[Claim]:
    """The lowest ceiling of each part once others are gone, lowest first."""
    fully = {each.part for each in gone if not stays(each)}
    found: dict[Part, Claim] = {}
    for each in ladder.valid:
        if each.ceiling not in gone and each.ceiling.part not in fully:
            found.setdefault(each.ceiling.part, each)
    return list(found.values())


def following(held: Held, gone: Sequence[Ceiling]) -> Claim | None:
    """The lowest ceiling of another component; None: none is known.

    This tool's own process at work is one of them: it would be the next to hold the copy.
    """
    if any(each.component == "instrument" for each in gone):
        return None
    return next((e for e in left(held.ladder, gone) if not e.ceiling.tool), None)


def as_next(claim: Claim | None) -> Next | None:
    """A ceiling as what comes after the cap."""
    if claim is None:
        return None
    ceiling = claim.ceiling
    return Next(*ceiling.named, ceiling.bytes_per_second)


def stays(lifted: Ceiling) -> bool:
    """Whether the component is still there without the cap: a path has a link beside its faults,
    and a disk has its rate where a file lies well.
    """
    return BY_WORDS[lifted.component, lifted.cause].stays


def link_after(gone: Sequence[Ceiling], after: Claim | None, surely: bool) -> int | None:
    """The link that a lifted one is exchanged for, bits per second; None: none was lifted.

    surely: it carries what the next ceiling allows at least, and no more.
    """
    link = next((each for each in gone if _is_link(each)), None)
    if link is None or after is None:
        return None
    level = after.ceiling.low_bytes_per_second if surely else after.ceiling.bytes_per_second
    if after.ceiling.standing != "measured":
        level = min(level, TENFOLD * link.bytes_per_second)
    return references.link_bits(level, link.bytes_per_second)


def _is_link(ceiling: Ceiling) -> bool:
    return (ceiling.component, ceiling.cause) == ("network", "link-rate")


def without(held: Held, gone: Sequence[Ceiling], link_bits: int | None) -> Predicted | None:
    """The copy's rate with ceilings gone; None: a stage on its way is not known well enough.

    link_bits: the standard link that a lifted one is exchanged for; None: none was lifted.

    What the report shows of the same copy without what is gone is believed; else the stages that
    are left are composed.
    """
    if any(each.component == "instrument" for each in gone):
        return None
    shown = references.shown_without(held.report, held.copy, gone)
    transfer = _moved(held, gone, link_bits) if shown is None else _shown(shown)
    disks = _disks(held, gone, None if shown is None else shown.lacks)
    rates = [_composed(held, level, transfer, disks) for level in ("low", "median", "high")]
    if math.isinf(rates[1]) or not _far_above(held, gone, rates[1], shown):
        return None
    # Taking a limit away slows nothing down.
    least = held.made.rate.median
    low, median, high = (max(each, least) for each in rates)
    return Predicted(low, median, max(high, median))


def _composed(held: Held, level: str, transfer: Band, disks: dict[Part, Band]) -> float:
    rate: float = getattr(transfer, level)
    usual = {held.copy.sender: READ_LATE, held.copy.receiver: WRITE_LATE}
    for (_, side), disk in disks.items():
        late = getattr(usual[str(side)], level) if held.late is None else held.late
        rate = model.behind(rate, getattr(disk, level), late)
    return rate


def _shown(reference: references.Reference) -> Band:
    rate = reference.rate
    return model.widened(Band(rate.low, rate.median, rate.high), SHOWN_DOUBT)


def _moved(held: Held, gone: Sequence[Ceiling], link_bits: int | None) -> Band:
    """What all but the disks would move; unbounded where nothing bounds it."""
    found = [Band(math.inf, math.inf, math.inf)]
    for each in left(held.ladder, gone):
        if _is_link(each.ceiling):
            found.append(_of_link(held, _band(each)))
        elif each.ceiling.component != "disk":
            found.append(model.widened(_band(each)))
    if link_bits is not None:
        payload = references.link_payload(link_bits)
        found.append(_of_link(held, Band(payload, payload, payload)))
    return Band(
        min(each.low for each in found),
        min(each.median for each in found),
        min(each.high for each in found),
    )


def _of_link(held: Held, link: Band) -> Band:
    """What a copy gets of a link."""
    share = references.efficiency(held.report, held.copy, link.median)
    wide = model.widened(link, LINK_DOUBT)
    # What looks like a standard link may carry so much more.
    most = link.high * (1 + model.LOOK_TOLERANCE_RATIO)
    return Band(share * wide.low, share * link.median, min(share * wide.high, most))


def _disks(held: Held, gone: Sequence[Ceiling], lacks: frozenset[Part] | None) -> dict[Part, Band]:
    """The disks that the bytes still pass and that bound them, the sender's first.

    lacks: the parts that a reference does not speak for; None: there is no reference.
    """
    known = {each.ceiling.part: each for each in left(held.ladder, gone)}
    fully = {each.part for each in gone if not stays(each)}
    found = {}
    for part in reversed(required_parts(held.copy)):
        if part[0] != "disk" or part in fully or (lacks is not None and part not in lacks):
            continue
        if part in known:
            found[part] = _band(known[part])
    return found


def _far_above(
    held: Held, gone: Sequence[Ceiling], rate: float, shown: references.Reference | None
) -> bool:
    """Whether every stage that nothing bounds is at least known to carry the rate."""
    known = {each.ceiling.part for each in left(held.ladder, gone)}
    fully = {each.part for each in gone if not stays(each)}
    for part in required_parts(held.copy):
        spoken = shown is not None and part not in shown.lacks
        if part in known or part in fully or spoken:
            continue
        floors = [
            each.ceiling.bytes_per_second
            for each in held.ladder.claims
            if each.ceiling.part == part
        ]
        if max(floors, default=0.0) < rate:
            return False
    return True


def _band(claim: Claim) -> Band:
    ceiling = claim.ceiling
    return Band(
        ceiling.low_bytes_per_second, ceiling.bytes_per_second, ceiling.high_bytes_per_second
    )


# -- the ladder ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outlook:
    """What comes after the cap of a copy; empty where none was named."""

    ladder: Ladder | None = None
    """Its ceilings, with those read off the load as they will likely be."""
    next: Next | None = None
    predicted: Predicted | None = None
    link_bits: int | None = None
    """The standard link that the prediction exchanges a link for."""
    rungs: tuple[Rung, ...] = ()


def outlook(report: Report, copy: Copy, made: Found, cap: Cap, ladder: Ladder) -> Outlook:
    """The next ceiling, the rate without the cap, and all rungs: cap, next, next ...

    They end where nothing more is known, or at this tool itself.
    """
    held = Held(report, copy, made, cap, ladder)
    held = replace(held, ladder=rescaled(held))
    gone = [cap.claim.ceiling]
    after = following(held, gone)
    bits = link_after(gone, after, surely=True)
    rate = made.rate
    measured = Predicted(rate.low, rate.median, rate.high)
    return Outlook(
        held.ladder,
        as_next(after),
        without(held, gone, bits),
        bits,
        (_rung(cap.claim, measured, None), *_after(held, measured)),
    )


def _after(held: Held, measured: Predicted) -> Iterator[Rung]:
    gone: list[Ceiling] = [held.cap.claim.ceiling]
    known: Predicted | None = measured
    while (claim := following(held, gone)) is not None:
        # What comes next may be guessed from little load; what comes later takes it as lifted.
        bits = link_after(gone, claim, surely=len(gone) == 1)
        rate = without(held, gone, bits)
        # Lifting more slows nothing down.
        known = None if rate is None or known is None else _at_least(rate, known)
        yield _rung(claim, known, bits)
        gone.append(claim.ceiling)


def _at_least(rate: Predicted, before: Predicted) -> Predicted:
    return Predicted(
        max(rate.low, before.low), max(rate.median, before.median), max(rate.high, before.high)
    )


def _rung(claim: Claim, rate: Predicted | None, link_bits: int | None) -> Rung:
    ceiling = claim.ceiling
    return Rung(
        *ceiling.named,
        ceiling.bytes_per_second,
        rate,
        None if link_bits is None else references.link_payload(link_bits),
    )
