"""network/contention: other traffic shares a full link with the copy."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence, foreign_rate, transfers
from bottleneck.analysis.finding import Claim
from bottleneck.text.units import rate_text

CAUSE = Cause(
    "network",
    "contention",
    "other traffic",
    limits_without_fault=True,
    remedy="Find the other traffic with `iftop` on both hosts, or the switch's port counters. Then "
    "stop it, move it or limit its rate",
)
FULL_RATIO, SHARED_FULL_RATIO, IMPOSSIBLE_RATIO = 0.85, 0.8, 1.15
"""Used share of the link: full; full if others use much; above it, they used another link."""
SHARED_RATIO = 0.25
"""Others' traffic / the copy's, from which on the others use much of the link."""
BOUND_RATIO = 0.15
"""Largest relative difference of copy plus others from a shaper's rate that limits them."""


def rule(evidence: Evidence) -> Iterator[Claim | str]:
    """Yields the rate that others leave of the link, if it was full while the copy ran."""
    foreign = foreign_rate(evidence.report, evidence.step, evidence.sender)
    if foreign is None:
        return
    rate = evidence.rate
    total = rate.median + foreign
    capacity = _capacity(evidence, total)
    shared = foreign > SHARED_RATIO * rate.median
    used = None if capacity is None else total / capacity
    threshold = SHARED_FULL_RATIO if shared else FULL_RATIO
    if capacity is None or used is None or not threshold <= used <= IMPOSSIBLE_RATIO:
        yield (
            f"Other traffic used {rate_text(foreign)} of the same interface during the copy; the "
            "link was not seen to be full."
        )
        return
    yield claim(
        CAUSE,
        "path",
        evidence.step,
        words(foreign, total),
        level=max(rate.median, capacity - foreign),
        evidence=(
            f"The interface carried {rate_text(total)} in this direction; {rate_text(foreign)} of "
            "it was other traffic.",
        ),
        remedy=remedy(evidence, foreign),
    )


def words(foreign: float, total: float) -> str:
    """Returns the reason in words; rates in bytes per second."""
    return (
        f"other traffic uses {rate_text(foreign)} of the {rate_text(total)} that the link carries "
        "in this direction"
    )


def remedy(evidence: Evidence, foreign: float) -> str:
    """Returns how to find the other traffic, with the names of the known interfaces."""
    links = dict(hardware_limits.interfaces(evidence.report))
    looks = {side: f"`iftop -i {link.name}`" for side, link in links.items()}
    where = " and ".join(f"{look} on the {side}" for side, look in looks.items())
    if len(set(looks.values())) < len(looks):
        where = f"{looks['client']} on both hosts"
    return (
        f"Find the source of the {rate_text(foreign)} with {where or '`iftop` on both hosts'}, or "
        "the switch's port counters. Then stop it, move it or limit its rate"
    )


def _capacity(evidence: Evidence, total: float) -> float | None:
    carried = [
        each.rate.median + (foreign_rate(evidence.report, each, evidence.sender) or 0.0)
        for each in transfers(evidence.report, evidence.sender)
    ]
    match = evidence.looks_like(total)
    highest = max(carried, default=match.payload_bytes_per_second if match else None)
    bound = hardware_limits.shaped_rate(evidence.report, evidence.sender)
    near = highest and bound and abs(highest / bound.bytes_per_second - 1) <= BOUND_RATIO
    return bound.bytes_per_second if bound and near else highest
