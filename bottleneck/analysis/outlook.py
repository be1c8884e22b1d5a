"""What comes after a cap: the copy's rate with ceilings lifted, one after the other.

The composition of stages is the model's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import model, references, steps
from bottleneck.analysis.cap import Cap, required_parts, settled
from bottleneck.analysis.evidence.copies import hindered
from bottleneck.analysis.finding import Ceiling, Ladder, Next, Part, Rung
from bottleneck.analysis.model import Band
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report

READ_LATE, WRITE_LATE = Band(0.12, 0.07, 0.0), Band(0.5, 0.35, 0.2)
"""How much of the transfer's own time passes before a disk works beside it, as copies show it."""
AWAKE_BYTES_PER_SECOND, LATEST_RATIO, LATE_DOUBT = 2e7, 0.9, 0.15
"""Of pushes to disks of 12 to 100 MB/s, as they were measured."""
SHOWN_DOUBT, LINK_DOUBT = 0.04, 0.05
"""How far a copy may be off another one that ran, and off a link times its usual share."""
PACED = ("network", "tcp", "smb")
"""Caps that let bytes trickle in, so that a core wakes up for few of them at a time."""
BATCHING, SLOW_BATCHING, BATCHING_DOUBT = 1.5, 2.0, 0.5
"""How a core's cost for each byte falls, from copies over shaped links and over none."""
TENFOLD = 10.5
"""As far as a link is exchanged where nothing was measured beyond it: the next kind of link but
one would be a guess; a little more than 10, of which a tenth is left."""
AGAIN_TIMES = 1.5
"""What a path carried at another time, over what the copy found."""
GUESSED_RATIO, ALL_HELD_RATIO = 2.0, 0.85
"""Up to here over a rate a CPU's estimate may bound it; several connections' rate over as many
times the limit of one, which then held all of them."""
_BUSY = ("one-core", "all-cores", "ceiling", "contention")


@dataclass(frozen=True)
class Held:
    """A copy with its cap and all that is known around it."""

    report: Report
    copy: Copy
    made: Found
    cap: Cap
    ladder: Ladder


def rescaled(held: Held) -> Ladder:
    """The ladder with the CPUs' ceilings as they will likely be, from the copy's load.

    A copy that waits for its link costs more CPU for each byte than one that does not: the load
    scaled up is then the least that a core allows. And what was moved the same way, it can do, as
    it can what the copy reaches.
    """
    lifted = held.cap.claim.ceiling
    rival = held.cap.rival and held.cap.rival.ceiling
    claims = []
    for claim in held.ladder.claims:
        seen = claim.ceiling
        scaled = seen.standing == "estimated" and seen.cause in _BUSY
        if scaled and claim.reached is not True and seen not in (lifted, rival):
            claims.append(replace(claim, ceiling=_likely(held, seen)))
        elif seen.standing == "estimated":
            claims.append(replace(claim, ceiling=_no_lower(seen, lifted.bytes_per_second)))
        else:
            claims.append(claim)
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return replace(held.ladder, claims=tuple(claims))


def _likely(held: Held, seen: Ceiling) -> Ceiling:
    """A CPU's ceiling by the load of a copy that its cap keeps waiting."""
    lifted, rate = held.cap.claim.ceiling, held.made.rate.median
    slow = rate < references.SLOW_BYTES_PER_SECOND
    batching = (SLOW_BATCHING if slow else BATCHING) if lifted.component in PACED else 1.0
    shown = max(references.demonstrated(held.report, held.copy), lifted.bytes_per_second)
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


def _no_lower(seen: Ceiling, level: float) -> Ceiling:
    median, high = max(level, seen.bytes_per_second), max(level, seen.high_bytes_per_second)
    return replace(seen, bytes_per_second=median, high_bytes_per_second=high)


def left(ladder: Ladder, gone: Sequence[Ceiling]) -> dict[Part, Ceiling]:
    """The lowest ceiling of each part once others are gone, lowest first."""
    fully = _fully(gone)
    found: dict[Part, Ceiling] = {}
    for each in (claim.ceiling for claim in ladder.valid):
        if each not in gone and each.part not in fully:
            found.setdefault(each.part, each)
    return found


def _fully(gone: Sequence[Ceiling]) -> set[Part]:
    """The parts that are gone with them: a path has a link beside its faults, and a disk its rate
    where a file lies well.
    """
    return {each.part for each in gone if not BY_WORDS[each.component, each.cause].stays}


def following(held: Held, gone: Sequence[Ceiling]) -> Ceiling | None:
    """The lowest ceiling of another component; None: none is known, or a lower one may be.

    TCP that what is gone throttled as well shows only what the path carries at least.

    This tool's own process at work is one of them: it would be the next to hold the copy.
    """
    if any(each.component == "instrument" for each in gone):
        return None
    known = left(held.ladder, gone)
    after = next((each for each in known.values() if not each.tool), None)
    throttled = any(each.component in ("network", "tcp", "bus") for each in gone)
    if after is None or ("network", "path") in {*known, *_fully(gone)} or not throttled:
        return after
    path = (e.ceiling for e in held.ladder.claims if e.ceiling.part == ("network", "path"))
    least = max((each.bytes_per_second for each in path), default=math.inf)
    return None if least < after.bytes_per_second else after


def link_after(
    held: Held, gone: Sequence[Ceiling], after: Ceiling | None, surely: bool
) -> int | None:
    """The link that a lifted one is exchanged for, bits per second; None: none was lifted.

    It carries at most ten times as much: that is the next kind of link, whatever else is free. A
    path that carried more at another time carries that again.

    surely: it carries what the next ceiling allows at least, and no more.
    """
    link = next((each for each in gone if each.is_link), None)
    if link is None:
        return None
    level = math.inf
    if after is not None:
        level = after.low_bytes_per_second if surely else after.bytes_per_second
    if surely or after is None or after.standing != "measured":
        level = min(level, TENFOLD * link.bytes_per_second)
    links = (each.ceiling for each in held.ladder.claims if each.ceiling.is_link)
    carried = (e.bytes_per_second for e in links if e.standing == "at-least" and e not in gone)
    before = max(carried, default=0.0)
    if before > AGAIN_TIMES * link.bytes_per_second:
        level = min(level, before)
    return references.link_bits(level, link.bytes_per_second)


def without(held: Held, gone: Sequence[Ceiling], link_bits: int | None) -> Band | None:
    """The copy's rate with ceilings gone; None: a stage on its way is not known well enough.

    link_bits: the standard link that a lifted one is exchanged for; None: none was lifted.
    """
    return _lifted(held, gone, link_bits)[0]


def _lifted(
    held: Held, gone: Sequence[Ceiling], link_bits: int | None
) -> tuple[Band | None, tuple[Part, ...]]:
    """The same; without it the stages on the copy's way that are not known well enough.

    What the report shows of the same copy without what is gone is believed; else the stages that
    are left are composed.
    """
    if any(each.component == "instrument" for each in gone):
        return None, ()
    shown = references.shown_without(held.report, held.copy, gone)
    if shown is None:
        transfer = _moved(held, gone, link_bits)
    else:
        transfer = Band.of(shown.rate).widened(SHOWN_DOUBT)
    disks = _disks(held, gone, None if shown is None else shown.lacks)
    rates = [_composed(held, level, transfer, disks) for level in ("low", "median", "high")]
    missing = (
        _missing(held, gone, rates[1], shown)
        or _guessed(held, gone, rates[1])
        or _throttled(held, gone)
    )
    if math.isinf(rates[1]) or missing:
        return None, missing
    # Taking a limit away slows nothing down.
    low, median, high = (max(each, held.made.rate.median) for each in rates)
    return Band(low, median, max(high, median)), ()


def _composed(held: Held, level: str, transfer: Band, disks: dict[Part, Band]) -> float:
    rate: float = getattr(transfer, level)
    usual = {held.copy.sender: READ_LATE, held.copy.receiver: WRITE_LATE}
    for (_, side), disk in disks.items():
        if held.copy.verb == "push" and side == held.copy.receiver:
            usual[side] = _late_write(disk.median)
        rate = model.behind(rate, getattr(disk, level), getattr(usual[str(side)], level))
    return rate


def _late_write(bytes_per_second: float) -> Band:
    """What passes of a push before its first FLUSH wakes a disk: a slow one's copy is that short.

    Its FLUSHes come each some 16 MiB.
    """
    late = min(LATEST_RATIO, AWAKE_BYTES_PER_SECOND / bytes_per_second)
    return Band(min(1.0, late + LATE_DOUBT), late, max(0.0, late - LATE_DOUBT))


def _moved(held: Held, gone: Sequence[Ceiling], link_bits: int | None) -> Band:
    """What all but the disks would move; unbounded where nothing bounds it."""
    found = [Band(math.inf, math.inf, math.inf)]
    for each in left(held.ladder, gone).values():
        if each.is_link:
            found.append(_of_link(held, _band(each)))
        elif each.component != "disk":
            found.append(_band(each).widened())
    if link_bits is not None:
        payload = references.link_payload(link_bits)
        found.append(_of_link(held, Band(payload, payload, payload)))
    known = Band.over(min, *found)
    floors = [each for part, each in _floors(held, gone).items() if part[0] != "disk"]
    if math.isfinite(known.high):
        floors = [replace(each, high=math.inf) for each in floors]
    return Band.over(min, known, *floors)


def _of_link(held: Held, link: Band) -> Band:
    """What a copy gets of a link."""
    share = references.efficiency(held.report, held.copy, link.median)
    wide = link.widened(LINK_DOUBT)
    # What looks like a standard link may carry so much more.
    most = link.high * (1 + model.LOOK_TOLERANCE_RATIO)
    return Band(share * wide.low, share * link.median, min(share * wide.high, most))


def _disks(held: Held, gone: Sequence[Ceiling], lacks: frozenset[Part] | None) -> dict[Part, Band]:
    """The disks that the bytes still pass and that bound them, the sender's first.

    lacks: the parts that a reference does not speak for; None: there is no reference.
    """
    known = {part: _band(each) for part, each in left(held.ladder, gone).items()}
    known |= _floors(held, gone)
    return {
        part: known[part]
        for part in reversed(required_parts(held.copy))
        if part[0] == "disk" and part in known and (lacks is None or part in lacks)
    }


def _floors(held: Held, gone: Sequence[Ceiling]) -> dict[Part, Band]:
    """The least of stages that a CPU that is gone held back, and of CPUs not near their limit."""
    sides = {each.side for each in gone if each.component == "cpu"}
    bounded, found = {*left(held.ladder, gone), *_fully(gone)}, dict[Part, Band]()
    least = [each.ceiling for each in held.ladder.claims if each.ceiling.standing == "at-least"]
    for each in (ceiling for ceiling in least if ceiling.part not in bounded):
        stopped = filter(None, (steps.found_at(held.report, index) for index in each.steps))
        if each.cause in _BUSY and each.steps == (held.made.index,):
            found[each.part] = _band(_likely(held, each))
        elif any(hindered(made, str(side)) for made in stopped for side in sides):
            found[each.part] = Band(each.bytes_per_second, math.inf, math.inf)
    return found


def _missing(
    held: Held, gone: Sequence[Ceiling], rate: float, shown: references.Reference | None
) -> tuple[Part, ...]:
    """The stages that nothing bounds and nothing shows to carry the rate."""
    bounded = {*left(held.ladder, gone), *_fully(gone), *_floors(held, gone)}
    return tuple(
        part
        for part in required_parts(held.copy)
        if part not in bounded
        and (shown is None or part in shown.lacks)
        and floor(held.ladder, part) < rate
    )


def _guessed(held: Held, gone: Sequence[Ceiling], rate: float) -> tuple[Part, ...]:
    """CPUs that may hold a copy once a neighbour is gone: while it waited its load told little."""
    if (gone[0].component, gone[0].cause) != ("cpu", "contention"):
        return ()
    return tuple(
        part
        for part, each in left(held.ladder, gone).items()
        if part[0] == "cpu" and each.bytes_per_second < GUESSED_RATIO * rate
    )


def _throttled(held: Held, gone: Sequence[Ceiling]) -> tuple[Part, ...]:
    """The path, where several connections were each held by what is gone: it may carry more."""
    path = left(held.ladder, gone).get(("network", "path"))
    if path is None or gone[0].component != "tcp" or model.looks_like(path.bytes_per_second):
        return ()
    each = gone[0].bytes_per_second
    made = (steps.found_at(held.report, index) for index in path.steps)
    several = ((e.rate.median, e.setting.streams or 1) for e in made if e is not None)
    held_all = any(n > 1 and rate >= ALL_HELD_RATIO * n * each for rate, n in several)
    return (path.part,) if held_all else ()


def floor(ladder: Ladder, part: Part) -> float:
    """What a stage carries at least, bytes per second; 0: nothing is known of it."""
    same = (each.ceiling for each in ladder.claims if each.ceiling.part == part)
    return max((each.bytes_per_second for each in same), default=0.0)


def _band(ceiling: Ceiling) -> Band:
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
    predicted: Band | None = None
    missing: tuple[Part, float] | None = None
    """Where nothing is predicted: what is not known, and what it carries at least; 0: unknown."""
    link_bits: int | None = None
    """The standard link that the prediction exchanges a link for."""
    rungs: tuple[Rung, ...] = ()
    both: Outlook | None = None
    """The same without the cap and another that is as likely; None: there is no other."""


def outlook(report: Report, copy: Copy, made: Found, cap: Cap, ladder: Ladder) -> Outlook:
    """The next ceiling, the rate without the cap, and all rungs: cap, next, next ...

    They end where nothing more is known, or at this tool itself.
    """
    held = Held(report, copy, made, cap, settled(ladder, cap))
    held = replace(held, ladder=rescaled(held))
    ceiling = cap.claim.ceiling
    then, both = _freed(held, [ceiling]), None
    if cap.rival is not None:
        both = _freed(held, [ceiling, cap.rival.ceiling])
        if both.predicted is not None and then.predicted is not None:
            # Lifting more slows nothing down.
            both = replace(both, predicted=Band.over(max, both.predicted, then.predicted))
    measured = Band.of(made.rate)
    rungs = (_rung(ceiling, measured, None), *_after(held, measured))
    return replace(then, ladder=held.ladder, rungs=rungs, both=both)


def _freed(held: Held, gone: Sequence[Ceiling]) -> Outlook:
    after = following(held, gone)
    bits = link_after(held, gone, after, surely=True)
    predicted, missing = _lifted(held, gone, bits)
    seen = references.demonstrated(held.report, held.copy)
    then = None if after is None or after.part in missing else after
    return Outlook(
        next=None if then is None else Next(*then.named, then.bytes_per_second),
        predicted=predicted,
        missing=(missing[0], seen if missing[0][0] == "cpu" else floor(held.ladder, missing[0]))
        if missing
        else None,
        link_bits=None if after is None and predicted is None else bits,
    )


def _after(held: Held, measured: Band) -> Iterator[Rung]:
    gone: list[Ceiling] = [held.cap.claim.ceiling]
    known: Band | None = measured
    bits: int | None = None
    while (ceiling := following(held, gone)) is not None:
        # What comes next may be guessed from little load; what comes later takes it as lifted.
        faster = link_after(held, gone, ceiling, surely=len(gone) == 1)
        bits = faster if bits is None or faster is None else max(bits, faster)
        rate = without(held, gone, bits)
        # Lifting more slows nothing down.
        known = None if rate is None or known is None else Band.over(max, rate, known)
        yield _rung(ceiling, known, bits)
        gone.append(ceiling)


def _rung(ceiling: Ceiling, rate: Band | None, link_bits: int | None) -> Rung:
    payload = None if link_bits is None else references.link_payload(link_bits)
    return Rung(*ceiling.named, ceiling.bytes_per_second, rate, payload)
