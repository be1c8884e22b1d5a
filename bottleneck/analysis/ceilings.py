"""All ceilings of one copy: every rule is asked, and what this run itself refutes is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import shown, supplied
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Ceiling, Claim, Ladder
from bottleneck.analysis.rules.registry import OF_ANY_COPY, OF_MADE_COPIES, REFINEMENTS
from bottleneck.analysis.sentences import name_with_verb
from bottleneck.analysis.shown import Moved
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report
from bottleneck.text.units import range_text, rate_text

LIGHT_LOAD_RATIO = 5.0
"""A CPU's limit over the copy's rate, from which on the copy's load does not tell where it is."""


def ladder(report: Report, copy: Copy) -> Ladder:
    """The ceilings of a copy."""
    remarks: list[str] = []
    dropped: list[tuple[Ceiling, Moved]] = []
    given = Evidence(report, copy)
    made = () if copy.made is None else OF_MADE_COPIES
    rules = (*OF_ANY_COPY, *made, supplied.rule)
    claims: list[Claim] = []
    for found in (each for rule in rules for each in rule(given)):
        if isinstance(found, str):
            remarks.append(found)
        else:
            claims.append(found)
    # Read off the report once: it is held against every claim.
    everything = tuple(shown.moved(report, copy.sender))
    claims = _lawful(everything, copy, claims, dropped)
    for refine in REFINEMENTS:
        claims = _lawful(everything, copy, refine(given, claims), dropped)
    claims = [_as_lower_bound(copy, each) for each in claims]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return Ladder(tuple(claims), tuple(dict.fromkeys((*remarks, *_ignored(dropped)))))


def _lawful(
    everything: Sequence[Moved],
    copy: Copy,
    found: Iterable[Claim],
    dropped: list[tuple[Ceiling, Moved]],
) -> list[Claim]:
    """The claims that nothing that was moved refutes."""
    kept = []
    for each in found:
        against = shown.refuting(everything, copy, each)
        if against is None:
            kept.append(each)
        elif each.ceiling.standing != "at-least":
            dropped.append((each.ceiling, against))
    return kept


def _as_lower_bound(copy: Copy, claim: Claim) -> Claim:
    """A claim as it stands; of a CPU that the copy used for less than a fifth a lower bound."""
    found, made = claim.ceiling, copy.made
    scaled = found.standing == "estimated" and found.component in ("cpu", "instrument")
    if made is None or not scaled or claim.reached or claim.partly:
        return claim
    if found.bytes_per_second < LIGHT_LOAD_RATIO * made.rate.median:
        return claim
    return replace(claim, ceiling=replace(found, standing="at-least"))


def _ignored(dropped: list[tuple[Ceiling, Moved]]) -> Iterator[str]:
    """What is said of all that was dropped."""
    if not dropped:
        return
    levels = [ceiling.bytes_per_second for ceiling, _ in dropped]
    most = max((moved for _, moved in dropped), key=lambda each: each.bytes_per_second)
    named = ", ".join(dict.fromkeys(name_with_verb(ceiling) for ceiling, _ in dropped))
    limits = "a limit" if len(dropped) == 1 else f"{len(dropped)} limits"
    yield (
        f"Ignored: {limits} of {range_text(min(levels), max(levels))} for {named}, because "
        f"{most.what} ran at {rate_text(most.bytes_per_second)}."
    )
