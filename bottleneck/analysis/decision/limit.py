"""Decides what limits a copy, and collects the words, figures and steps of that limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from bottleneck.analysis import steps, supplied
from bottleneck.analysis.attribution.attribution import Attribution, attribution_of, timed_copy
from bottleneck.analysis.cap import Cap, ladder_with_cap
from bottleneck.analysis.claim import claim
from bottleneck.analysis.decision.capability import Fix
from bottleneck.analysis.decision.causes import Row, rows
from bottleneck.analysis.decision.conditions import claim_of, limit_fact
from bottleneck.analysis.decision.reasons import because
from bottleneck.analysis.decision.verdict import Decision, decide
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.facts import captured
from bottleneck.analysis.facts.captured import capture_of
from bottleneck.analysis.facts.gather import gather
from bottleneck.analysis.facts.record import ALONE, NETWORK, SHOWN, CopyFacts, Part
from bottleneck.analysis.finding import Claim, Ladder
from bottleneck.analysis.interface_facts import NOTHING, Behind, behind
from bottleneck.analysis.model import looks_like
from bottleneck.analysis.rules.registry import BY_WORDS, OF_ANY_COPY, OF_MADE_COPIES, REFINEMENTS
from bottleneck.analysis.rules.smb.server_software import setting_behind
from bottleneck.analysis.socket_buffers import BufferSetting, limiting_setting
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report
from probes.core.records import Spread

LIGHT_LOAD_RATIO = 5.0
"""Least ratio of a CPU's limit to the copy's rate at which the load shows no limit."""


@dataclass(frozen=True)
class Limit:
    """Limit of one copy, with the decision and its input."""

    decision: Decision
    cap: Cap | None
    """None: nothing is named."""
    ladder: Ladder
    time: Attribution | None
    """None: its time was not observed."""
    fixes: tuple[Fix, ...] = ()
    """The cap, and a rival that is as likely, as limits to remove."""


def limit_of(report: Report, copy: Copy) -> Limit:
    """Decides what limits a copy that was made."""
    assert copy.step is not None
    ladder, timed = ladder_of(report, copy), timed_copy(report, copy)
    time, capture = None if timed is None else attribution_of(timed), capture_of(copy)
    if capture is not None:
        time = captured.attribution_of(copy, capture)
    facts = gather(report, copy, ladder.claims, timed)
    remarks = (*ladder.remarks, *facts.ignored)
    ladder, decision = Ladder(tuple(each for _, each in facts.claims), remarks), decide(facts)
    if decision.row is None:
        return Limit(decision, None, ladder, time)
    evidence, rate = Evidence(report, copy), copy.step.rate
    claim_of_part = partial(_claim, evidence, rate, decision.copy, time)
    cap_claim = claim_of_part(decision.part, decision.row)
    rival, fixes = None, [_fix(decision.part, cap_claim)]
    if decision.rival is not None:
        rival = claim_of_part(decision.rival, rows(decision.copy, decision.rival)[0])
        fixes.append(_fix(decision.rival, rival))
    cap = Cap(cap_claim, decision.confidence, rival)
    return Limit(decision, cap, _spare(ladder_with_cap(ladder, cap), cap), time, tuple(fixes))


def _fix(part: Part, claim: Claim) -> Fix:
    return Fix(part, claim.ceiling.key, claim.ceiling.bytes_per_second)


def _claim(
    evidence: Evidence,
    rate: Spread,
    copy: CopyFacts,
    time: Attribution | None,
    part: Part,
    row: Row,
) -> Claim:
    """Returns the claim of a cause: a rule's, else one made of the facts that decided."""
    rule_claim = claim_of(copy, row.words, part)
    if rule_claim is not None and not (copy.supplied and row.remedy):
        return rule_claim
    component, _, word = row.words.partition("/")
    side, cause = row.side_of(copy, part), BY_WORDS[component, word]
    setting: BufferSetting | Behind = (
        limiting_setting(evidence, word, side or "")
        or setting_behind(evidence, word, side or "")
        or NOTHING
    )
    fact = limit_fact(copy, part)
    remedy, words = cause.remedy.format(side=side), because(copy, part, row, time)
    # Without a known limit it is the highest rate through the component.
    kinds = (SHOWN, ALONE) if part == NETWORK else (SHOWN,)
    carried = 0.0 if row.passing else copy.highest(part, *kinds)
    level = max(rate.median, carried if fact is None else fact.level.median)
    if word == "link-rate":
        setting = behind(evidence, level, looks_like(level, steps.mtu_bytes(evidence.report)))
        words = "; ".join(filter(None, (words, setting.words)))
    return claim(
        cause,
        side,
        evidence.step,
        words,
        level=level,
        low=None if fact is None else fact.level.low,
        high=None if fact is None else fact.level.high,
        steps=(evidence.step.index, *(() if fact is None else fact.steps)),
        standing="estimated" if fact is None else "inferred",
        remedy=setting.remedy or row.remedy.format(side=side) or remedy,
        detail=setting.detail or (row.label if row.remedy else ""),
    )


def _spare(ladder: Ladder, cap: Cap) -> Ladder:
    """Returns the ladder with the cap; lower claims had time to spare, so are lower bounds."""
    level, part = cap.claim.ceiling.bytes_per_second, cap.claim.ceiling.part
    claims = [each for each in ladder.claims if each != cap.claim]
    for index, each in enumerate(claims):
        is_lower = each.ceiling.bytes_per_second < level
        if is_lower and each.ceiling.part != part and each != cap.rival:
            claims[index] = replace(each, ceiling=replace(each.ceiling, standing="at-least"))
    claims.append(cap.claim)
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return replace(ladder, claims=tuple(claims))


def ladder_of(report: Report, copy: Copy) -> Ladder:
    """Returns the claims and remarks of all rules about a copy."""
    evidence = Evidence(report, copy)
    rules = () if copy.step is None else OF_MADE_COPIES
    results = [each for rule in (*OF_ANY_COPY, *rules, supplied.rule) for each in rule(evidence)]
    claims = [each for each in results if isinstance(each, Claim)]
    for refine in REFINEMENTS:
        claims = list(refine(evidence, claims))
    claims = [_bounded_claim(copy, each) for each in claims]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    remarks = dict.fromkeys(each for each in results if isinstance(each, str))
    return Ladder(tuple(claims), tuple(remarks))


def _bounded_claim(copy: Copy, claim: Claim) -> Claim:
    """Returns a claim, as a lower bound if the copy used less than a fifth of that CPU."""
    ceiling, step = claim.ceiling, copy.step
    scaled = ceiling.standing == "estimated" and ceiling.component in ("cpu", "instrument")
    if step is None or not scaled or claim.reached or claim.partly:
        return claim
    if ceiling.bytes_per_second < LIGHT_LOAD_RATIO * step.rate.median:
        return claim
    return replace(claim, ceiling=replace(ceiling, standing="at-least"))
