"""What limits a copy, with the words, figures and steps of whatever is known of that limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from bottleneck.analysis import steps, supplied
from bottleneck.analysis.attribution.attribution import Attribution, attribution_of, timed_copy
from bottleneck.analysis.cap import Cap, settled
from bottleneck.analysis.claim import claim
from bottleneck.analysis.decision.capability import Fix
from bottleneck.analysis.decision.causes import Row, rows
from bottleneck.analysis.decision.conditions import claim_of, limit_fact
from bottleneck.analysis.decision.reasons import because
from bottleneck.analysis.decision.verdict import Decision, decide
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.facts.gather import gather
from bottleneck.analysis.facts.record import ALONE, NETWORK, SHOWN, CopyFacts, Part
from bottleneck.analysis.finding import Claim, Ladder
from bottleneck.analysis.interface_facts import NOTHING, Behind, behind
from bottleneck.analysis.model import looks_like
from bottleneck.analysis.rules.registry import BY_WORDS, OF_ANY_COPY, OF_MADE_COPIES, REFINEMENTS
from bottleneck.analysis.rules.smb.server_software import setting_behind
from bottleneck.analysis.socket_buffers import Fixed, limiting
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report
from probes.core.records import Spread

LIGHT_LOAD_RATIO = 5.0
"""A CPU's limit over the copy's rate, from which on the copy's load does not tell where it is."""


@dataclass(frozen=True)
class Limit:
    """What limits one copy, and what it was decided by."""

    decision: Decision
    cap: Cap | None
    """None: nothing is named."""
    ladder: Ladder
    time: Attribution | None
    """None: its time was not looked at."""
    fixes: tuple[Fix, ...] = ()
    """The cap, and another that is as likely, as what can be taken away."""


def limit_of(report: Report, copy: Copy) -> Limit:
    """Decides what limits a copy that was made."""
    assert copy.step is not None
    ladder, timed = ladder_of(report, copy), timed_copy(report, copy)
    time = None if timed is None else attribution_of(timed)
    facts = gather(report, copy, ladder.claims, timed)
    remarks = (*ladder.remarks, *facts.ignored)
    ladder, decision = Ladder(tuple(each for _, each in facts.claims), remarks), decide(facts)
    if decision.row is None:
        return Limit(decision, None, ladder, time)
    evidence, rate = Evidence(report, copy), copy.step.rate
    of = partial(_claim, evidence, rate, ladder, decision.copy, time)
    chosen = of(decision.part, decision.row)
    rival, fixes = None, [_fix(decision.part, chosen)]
    if decision.rival is not None:
        row = rows(decision.copy, decision.rival)[0]
        rival = of(decision.rival, row)
        fixes.append(_fix(decision.rival, rival))
    cap = Cap(chosen, decision.confidence, rival)
    return Limit(decision, cap, _spare(settled(ladder, cap), cap), time, tuple(fixes))


def _fix(part: Part, claim: Claim) -> Fix:
    return Fix(part, claim.ceiling.named, claim.ceiling.bytes_per_second)


def _claim(
    evidence: Evidence,
    rate: Spread,
    ladder: Ladder,
    copy: CopyFacts,
    time: Attribution | None,
    part: Part,
    row: Row,
) -> Claim:
    """Returns what is known of a cause: as a rule claims it, else by the facts that decided."""
    known = claim_of(copy, row.words, part)
    if known is not None and not (copy.supplied and row.remedy):
        return known
    component, _, word = row.words.partition("/")
    side, cause = row.side_of(copy, part), BY_WORDS[component, word]
    setting: Fixed | Behind = (
        limiting(evidence, word, side or "")
        or setting_behind(evidence, word, side or "")
        or NOTHING
    )
    fact = limit_fact(copy, part)
    remedy, words = cause.remedy.format(side=side), because(copy, part, row, time)
    # Without a limit that is known, it is what moved through the component at its best.
    kinds = (SHOWN, ALONE) if part == NETWORK else (SHOWN,)
    carried = 0.0 if row.passing else copy.highest(part, *kinds)
    level = max(rate.median, carried if fact is None else fact.level.median)
    if word == "link-rate":
        setting = behind(evidence, level, looks_like(level, steps.mtu_bytes(evidence.report)))
        words = "; ".join(filter(None, (words, setting.words)))
    return claim(
        *(cause, side, evidence.step, words),
        level=level,
        low=None if fact is None else fact.level.low,
        high=None if fact is None else fact.level.high,
        steps=(evidence.step.index, *(() if fact is None else fact.steps)),
        standing="estimated" if fact is None else "inferred",
        remedy=setting.remedy or row.remedy.format(side=side) or remedy,
        detail=setting.detail or (row.label if row.remedy else ""),
    )


def _spare(ladder: Ladder, cap: Cap) -> Ladder:
    """Returns the ladder with the cap; others below it had time to spare: they are lower bounds."""
    level, part = cap.claim.ceiling.bytes_per_second, cap.claim.ceiling.part
    claims = [each for each in ladder.claims if each != cap.claim]
    for at, each in enumerate(claims):
        is_lower = each.ceiling.bytes_per_second < level
        if is_lower and each.ceiling.part != part and each != cap.rival:
            claims[at] = replace(each, ceiling=replace(each.ceiling, standing="at-least"))
    claims.append(cap.claim)
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return replace(ladder, claims=tuple(claims))


def ladder_of(report: Report, copy: Copy) -> Ladder:
    """Returns what the rules claim of a copy; every one is asked."""
    evidence = Evidence(report, copy)
    made = () if copy.step is None else OF_MADE_COPIES
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
    ceiling, made = claim.ceiling, copy.step
    scaled = ceiling.standing == "estimated" and ceiling.component in ("cpu", "instrument")
    if made is None or not scaled or claim.reached or claim.partly:
        return claim
    if ceiling.bytes_per_second < LIGHT_LOAD_RATIO * made.rate.median:
        return claim
    return replace(claim, ceiling=replace(ceiling, standing="at-least"))
