"""All claims about one copy: every rule is asked."""

from __future__ import annotations

from dataclasses import replace

from bottleneck.analysis import supplied
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim, Ladder
from bottleneck.analysis.rules.registry import OF_ANY_COPY, OF_MADE_COPIES, REFINEMENTS
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report

LIGHT_LOAD_RATIO = 5.0
"""A CPU's limit over the copy's rate, from which on the copy's load does not tell where it is."""


def ladder(report: Report, copy: Copy) -> Ladder:
    """Returns what the rules claim of a copy."""
    evidence = Evidence(report, copy)
    made = () if copy.made is None else OF_MADE_COPIES
    results = [each for rule in (*OF_ANY_COPY, *made, supplied.rule) for each in rule(evidence)]
    claims = [each for each in results if isinstance(each, Claim)]
    for refine in REFINEMENTS:
        claims = list(refine(evidence, claims))
    claims = [_as_lower_bound(copy, each) for each in claims]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    remarks = dict.fromkeys(each for each in results if isinstance(each, str))
    return Ladder(tuple(claims), tuple(remarks))


def _as_lower_bound(copy: Copy, claim: Claim) -> Claim:
    """Returns a claim; of a CPU that the copy used for less than a fifth as a lower bound."""
    ceiling, made = claim.ceiling, copy.made
    scaled = ceiling.standing == "estimated" and ceiling.component in ("cpu", "instrument")
    if made is None or not scaled or claim.reached or claim.partly:
        return claim
    if ceiling.bytes_per_second < LIGHT_LOAD_RATIO * made.rate.median:
        return claim
    return replace(claim, ceiling=replace(ceiling, standing="at-least"))
