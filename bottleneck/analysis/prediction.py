"""What comes after the cap: the next ceiling, and the rate once the cap is lifted."""

from __future__ import annotations

from bottleneck.analysis import model
from bottleneck.analysis.cap import STAGES, Cap, required_parts
from bottleneck.analysis.ceilings import Ladder
from bottleneck.analysis.finding import Ceiling, Claim, Next, Predicted
from bottleneck.analysis.steps import Copy, Found

_FAULTS = {"network": ("delay", "loss", "mtu"), "disk": ("seek", "zone", "sync")}
"""Causes that go and leave their component there."""


def after(cap: Cap, ladder: Ladder) -> Next | None:
    """The lowest ceiling that is another component's; None: none is known.

    This tool's own process at work is one of them: it would be the next to hold the copy.
    """
    left = _left(cap, ladder)
    found = next((each for each in left if not each.ceiling.tool), None)
    if found is None or cap.claim.ceiling.component == "instrument":
        return None
    ceiling = found.ceiling
    return Next(ceiling.component, ceiling.side, ceiling.cause, ceiling.bytes_per_second)


def without(cap: Cap, copy: Copy, made: Found, ladder: Ladder) -> Predicted | None:
    """The copy's rate with the cap gone; None: a stage on its way is not known well enough.

    The overlap is fitted from the measured copy. Where the cap is the initiator's own disk, the
    same copy to or from memory has shown it; where it is the client's mount, this tool's own copy.
    """
    lifted = cap.claim.ceiling
    if lifted.component == "instrument":
        return None
    left = _left(cap, ladder)
    if lifted.part == ("disk", copy.initiator) and copy.memory is not None and not _stays(lifted):
        rate = copy.memory.rate
        band = model.widened(model.Band(rate.low, rate.median, rate.high))
    elif lifted.part == ("smb", "client") and copy.beside is not None:
        rate = copy.beside.rate
        band = model.widened(model.Band(rate.low, rate.median, rate.high))
    else:
        stages = [each for each in left if each.ceiling.component in STAGES]
        known = {each.ceiling.part for each in stages}
        needed = {part for part in required_parts(copy) if part != lifted.part or _stays(lifted)}
        if not stages or not needed <= known:
            return None
        limits = [_band(each) for each in left if each.ceiling.component not in STAGES]
        if lifted.part == ("disk", copy.sender) and copy.twin is not None:
            # No disk is faster than the RAM that the cached copy was read from.
            rate = copy.twin.rate
            limits.append(model.Band(rate.low, rate.median, rate.high))
        overlap = model.overlap_factor(
            made.rate.median,
            # A disk is not its own next stage: it is the same one without the cause.
            [
                lifted.bytes_per_second,
                *(
                    each.ceiling.bytes_per_second
                    for each in stages
                    if each.ceiling.part != lifted.part or lifted.component != "disk"
                ),
            ],
        )
        band = model.predicted([_band(each) for each in stages], limits, overlap)
    # Taking a limit away slows nothing down.
    least = made.rate.median
    return Predicted(max(band.low, least), max(band.median, least), max(band.high, least))


def _left(cap: Cap, ladder: Ladder) -> list[Claim]:
    """The lowest ceiling of each part once the cap is gone, lowest first."""
    lifted = cap.claim.ceiling
    found: dict[tuple[str, str | None], Claim] = {}
    for each in ladder.valid:
        if each.ceiling != lifted and not _same_part(each.ceiling, lifted):
            found.setdefault(each.ceiling.part, each)
    return list(found.values())


def _same_part(ceiling: Ceiling, lifted: Ceiling) -> bool:
    return ceiling.part == lifted.part and not _stays(lifted)


def _stays(lifted: Ceiling) -> bool:
    """Whether the component is still there without the cap: a path has a link beside its faults,
    and a disk has its rate where a file lies well.
    """
    return lifted.cause in _FAULTS.get(lifted.component, ()) or lifted.cause == "contention"


def _band(claim: Claim) -> model.Band:
    ceiling = claim.ceiling
    return model.Band(
        ceiling.low_bytes_per_second, ceiling.bytes_per_second, ceiling.high_bytes_per_second
    )
