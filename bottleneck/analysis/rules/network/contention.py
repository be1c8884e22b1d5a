"""network/contention: other traffic shares a full link with the copy."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence, foreign_rate, transfers
from bottleneck.analysis.finding import Claim
from bottleneck.text.units import rate_text

CAUSE = Cause(
    *("network", "contention", "other traffic"),
    stays=True,
    remedy="Find the other traffic with `iftop` on both hosts, or the switch's port counters. Then "
    "stop it, move it or limit its rate",
)
FULL_RATIO, SHARED_FULL_RATIO, IMPOSSIBLE_RATIO = 0.85, 0.8, 1.15
"""Sum of the copy's and the others' traffic over the link's limit: full; full where others have
much of it; more than one link carries, so that they took another."""
SHARED_RATIO = 0.25
"""Others' traffic over the copy's, from which on they have much of the link."""
BOUND_RATIO = 0.15
"""How far the sum of two counts may be from the shaper that lets both out."""


def rule(given: Evidence) -> Iterator[Claim | str]:
    """What others leave of the link, where it was full while the copy ran."""
    foreign = foreign_rate(given.report, given.step, given.sender)
    if foreign is None:
        return
    rate = given.rate
    total = rate.median + foreign
    capacity = _capacity(given, total)
    shared = foreign > SHARED_RATIO * rate.median
    used = None if capacity is None else total / capacity
    least = SHARED_FULL_RATIO if shared else FULL_RATIO
    if capacity is None or used is None or not least <= used <= IMPOSSIBLE_RATIO:
        yield (
            f"Other traffic used {rate_text(foreign)} of the same interface during the copy; the "
            "link was not seen to be full."
        )
        return
    yield claim(
        CAUSE,
        "path",
        given.step,
        words(foreign, total),
        level=max(rate.median, capacity - foreign),
        evidence=(
            f"The interface carried {rate_text(total)} in this direction; {rate_text(foreign)} of "
            "it was other traffic.",
        ),
        remedy=remedy(given, foreign),
    )


def words(foreign: float, total: float) -> str:
    """What the copy shares its link with, bytes per second."""
    return (
        f"other traffic uses {rate_text(foreign)} of the {rate_text(total)} that the link carries "
        "in this direction"
    )


def remedy(given: Evidence, foreign: float) -> str:
    """Where to look for the other traffic, by the names of the interfaces that are known."""
    known = dict(hardware_limits.interfaces(given.report))
    looks = {side: f"`iftop -i {link.name}`" for side, link in known.items()}
    where = " and ".join(f"{look} on the {side}" for side, look in looks.items())
    if len(set(looks.values())) < len(looks):
        where = f"{looks['client']} on both hosts"
    return (
        f"Find the source of the {rate_text(foreign)} with {where or '`iftop` on both hosts'}, or "
        "the switch's port counters. Then stop it, move it or limit its rate"
    )


def _capacity(given: Evidence, total: float) -> float | None:
    """Payload that the link carries in the copy's direction, everybody's traffic together."""
    carried = [
        each.rate.median + (foreign_rate(given.report, each, given.sender) or 0.0)
        for each in transfers(given.report, given.sender)
    ]
    match = given.looks_like(total)
    most = max(carried, default=match.payload_bytes_per_second if match else None)
    bound = hardware_limits.shaped(given.report, given.sender)
    near = most and bound and abs(most / bound.bytes_per_second - 1) <= BOUND_RATIO
    return bound.bytes_per_second if bound and near else most
