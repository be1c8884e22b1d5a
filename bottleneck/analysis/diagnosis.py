"""The diagnosis of a report: for each copy its cap, its other ceilings, the reasons and advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import cap as caps
from bottleneck.analysis import sentences, steps, supplied_verdicts, target_rate, unknown
from bottleneck.analysis.cap import Cap
from bottleneck.analysis.comparisons.axis import Limited
from bottleneck.analysis.comparisons.registry import all_comparisons
from bottleneck.analysis.decision.capability import Fix, likely_ceiling
from bottleneck.analysis.decision.gain import Gain, gain, rungs
from bottleneck.analysis.decision.limit import limit_of
from bottleneck.analysis.decision.reasons import weights
from bottleneck.analysis.decision.verdict import Decision
from bottleneck.analysis.facts.record import CopyFacts
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis, Ladder, Part, Verdict
from bottleneck.analysis.hardware_limits import interfaces
from bottleneck.analysis.interface_facts import shapers
from bottleneck.analysis.link_end import is_supplied
from bottleneck.analysis.model import Band, looks_like
from bottleneck.analysis.rules import captured, running
from bottleneck.analysis.rules.network import mtu
from bottleneck.analysis.rules.smb import mount
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, percent_text, rate_text
from probes.core.records import OWN_COPIES, Skipped

FILE_COPIES = tuple(f"{steps.OF_FILE}{name}" for name in OWN_COPIES)
"""Names of the copies of a file that the user named."""
ALIKE_RATIO = 1.05
"""Greatest ratio of the rates of copies that are equally slow."""
FAULTS = frozenset(("wrong-path", "mtu", "duplex", "loss", "sync"))
"""Causes that can be repaired, and that outrank a slower copy without a known cap; a shaper is one,
too."""
FAULT_CONFIDENCE = 0.7
FAR_BELOW_RATIO = 0.15
"""Least distance of a copy below its limit, as a share, that is mentioned."""
NO_DIALECT = "unknown"
"""Dialect of copies without a session."""
LEAST_BITS_PER_SECOND = 1e9
"""Lowest link rate that counts as healthy today."""
HEALTHY_CONFIDENCE = 0.7
FULL_RATIO = 0.8
"""Least share of a link's payload of each copy, if all of them use the whole link."""
OFFERS_RATIO = 1.1
"""Least ratio of interface to link rate at which the path gives less than the interface offers."""


def diagnose(report: Report) -> Diagnosis:
    """Returns the diagnosis of a report; pure, so that a saved report gives it again."""
    copies = steps.copies(report)
    diagnosed = [_diagnose(report, copy) for copy in copies]
    diagnosed += _untried_copies(report, copies)
    diagnosed = supplied_verdicts.refined_diagnoses(report, copies, diagnosed)
    headline, beside = _headline(report, diagnosed), tuple(all_comparisons(report, _limit_parts))
    if is_supplied(report):
        diagnosed.sort(key=lambda each: each is not headline)
    if headline is not None:
        summary = headline.verdict.sentence
    elif beside:
        summary = beside[0].sentence
    else:
        summary = "No copy was made, so no bottleneck can be named."
    altered = tuple(dict.fromkeys(_altered_steps(report)))
    if altered and not summary.startswith(unknown.ALTERED):
        where = f"{unknown.ALTERED} ({', '.join(altered)})"
        summary = f"{where}: find out why before trusting this path with data. {summary}"
    healthy = "" if altered or headline is None else _healthy(report, headline, diagnosed)
    return Diagnosis(
        headline.copy if headline else None, tuple(diagnosed), summary, beside, healthy, altered
    )


def _limit_parts(report: Report, copy: Copy) -> Limited:
    limit = limit_of(report, copy)
    return limit.cap, limit.decision.part if limit.time else None, limit.ladder


def _healthy(report: Report, headline: CopyDiagnosis, copies: Sequence[CopyDiagnosis]) -> str:
    """Returns that all four copies use the whole link; empty: they do not, or it is unknown."""
    by_name = {each.copy: each for each in reversed(copies) if each.dialect == headline.dialect}
    if any(name not in by_name for name in OWN_COPIES):
        return ""
    mtu = steps.mtu_bytes(report)
    links = set()
    for name in OWN_COPIES:
        verdict = by_name[name].verdict
        limit = verdict.ceiling_bytes_per_second
        if verdict.key != ("network", "path", "link-rate") or limit is None:
            return ""
        match = looks_like(limit, mtu)
        rate = by_name[name].bytes_per_second or 0.0
        fills = match is not None and rate >= FULL_RATIO * match.payload_bytes_per_second
        if match is None or not fills or verdict.confidence < HEALTHY_CONFIDENCE:
            return ""
        links.add(match.bits_per_second)
    offered = [link.rate_bits_per_second or 0 for _, link in interfaces(report) if not link.virtual]
    bits = max(links)
    fits = len(links) == 1 and bits >= LEAST_BITS_PER_SECOND
    if not fits or max(offered, default=0) > OFFERS_RATIO * bits:
        return ""
    details = {by_name[name].verdict.detail for name in OWN_COPIES}
    # The text has to fit in a line of 80 columns.
    short = min(details).partition(" on ")[0].replace("limited by", "set by")
    return f"all four copies use the full {link_text(bits)} link{short and f', {short}'}"


def _altered_steps(report: Report) -> Iterator[str]:
    for index, (step, _) in enumerate(report.entries):
        result = steps.found_at(report, index)
        if result is not None and not result.is_intact:
            what = result.setting.copy or result.setting.verb
            yield f"{step.stage} {what}".rstrip()


def _headline(report: Report, copies: list[CopyDiagnosis]) -> CopyDiagnosis | None:
    """Returns the slowest of the user's own copies: through the mount, else in the newest dialect;
    one with a fault if that has no known cap. Of supplied copies the slowest."""
    candidates = [each for each in copies if each.copy in OWN_COPIES + FILE_COPIES] or copies
    supplied = [each for each in copies if each.bytes_per_second is not None]
    if supplied and is_supplied(report):
        return min(supplied, key=lambda each: each.bytes_per_second or 0.0)
    measured = [each for each in candidates if each.bytes_per_second is not None]
    if not measured:
        return min(candidates, key=lambda each: each.verdict.component == "unknown", default=None)
    newest = [each for each in measured if each.dialect == measured[0].dialect]
    lowest = min(each.bytes_per_second or 0.0 for each in newest)
    slow = [each for each in newest if (each.bytes_per_second or 0.0) <= ALIKE_RATIO * lowest]
    slowest = min(slow, key=_place)
    sure = [each for each in newest if each.verdict.confidence >= FAULT_CONFIDENCE]
    faults = [e for e in sure if e.verdict.cause in FAULTS or e.verdict.detail.startswith("shaped")]
    return min(faults, key=_place, default=slowest) if _place(slowest)[0] else slowest


def _place(copy: CopyDiagnosis) -> tuple[bool, bool, str]:
    """Returns the sort key of equally slow copies: with a known cap first, uncached first."""
    return copy.verdict.component == "unknown", copy.copy.endswith(".cached"), copy.copy


def _untried_copies(report: Report, copies: tuple[Copy, ...]) -> Iterator[CopyDiagnosis]:
    tried = {copy.name for copy in copies}
    if report.status == "complete" or not tried and report.status not in ("interrupted", "failed"):
        return
    if steps.target_of(report).copy_alone and tried:
        return
    verdict = unknown.missing_verdict(report.status)
    dialect = copies[0].dialect if tried else steps.target_of(report).dialect or NO_DIALECT
    if report.notes and not tried:
        # The last note says why.
        verdict = replace(verdict, sentence=report.notes[-1])
    for name in OWN_COPIES:
        if name not in tried:
            yield CopyDiagnosis(name, "client", dialect, None, verdict)


def _diagnose(report: Report, copy: Copy) -> CopyDiagnosis:
    step = copy.step
    if step is None:
        return mtu.diagnose_stopped_copy(report, copy) or _not_made(report, copy)
    rate = step.rate.median
    limit = limit_of(report, copy)
    decision, cap, ladder, went = limit.decision, limit.cap, limit.ladder, limit.time
    suspects = decision.suspects_named()
    void = unknown.altered_verdict(copy, step) or unknown.impossible(report, copy, step)
    unstable = unknown.unstable(copy, step)
    cap = None if void is not None else cap
    then, facts = Gain(), decision.copy
    if cap is not None:
        then = gain(facts, limit.fixes[:1])
        verdict = Verdict(
            *cap.claim.ceiling.key,
            cap.confidence,
            cap.claim.ceiling.bytes_per_second,
            f"{sentences.runs(copy, rate)} because {_why(cap, rate)}.",
            _detail(cap),
            next((each for each in suspects if each.part != cap.claim.ceiling.part), None),
        )
        advice = _advice(report, copy, cap, then, _gain_with_rival(facts, limit.fixes, then), rate)
    else:
        verdict, advice = unknown.copy_alone(copy, step), tuple[str, ...]()
        if not steps.target_of(report).copy_alone:
            verdict = unknown.inconclusive(copy, step, decision)
            advice = _what_to_try(report, copy, step, decision)
        verdict = void or unstable or verdict
    goal = report.target_rate_bytes_per_second
    return CopyDiagnosis(
        copy=copy.name,
        initiator=copy.initiator,
        dialect=copy.dialect,
        bytes_per_second=rate,
        verdict=verdict,
        ceilings=tuple(_ceilings(ladder, facts, limit.fixes)),
        next=then.next,
        predicted_bytes_per_second=then.predicted,
        evidence=(
            *(weights(decision) if void is None else ()),
            *_evidence(copy, step, ladder, cap),
        ),
        advice=advice,
        ladder=() if cap is None else tuple(rungs(facts, limit.fixes[0])),
        target=None if goal is None else target_rate.target(goal, facts, limit.fixes),
        time=went.shares if went else (),
        view=went.view if went else "",
        suspects=suspects,
    )


def _ceilings(ladder: Ladder, copy: CopyFacts, fixes: tuple[Fix, ...]) -> list[Ceiling]:
    ceilings = (likely_ceiling(copy, each.ceiling, fixes) for each in ladder.claims)
    return sorted(ceilings, key=lambda each: each.bytes_per_second)


def _not_made(report: Report, copy: Copy) -> CopyDiagnosis:
    verdict, reasons = unknown.not_made(copy), tuple(mtu.remarks(report, copy.sender))
    return CopyDiagnosis(copy.name, copy.initiator, copy.dialect, None, verdict, evidence=reasons)


def _gain_with_rival(copy: CopyFacts, fixes: tuple[Fix, ...], then: Gain) -> Gain:
    both = gain(copy, fixes)
    if both.predicted is None or then.predicted is None:
        return both
    # Lifting more slows nothing down.
    return replace(both, predicted=Band.combine(max, both.predicted, then.predicted))


def _advice(
    report: Report, copy: Copy, cap: Cap, then: Gain, both: Gain, rate: float
) -> tuple[str, ...]:
    if hang_advice := captured.hang_advice(copy):
        return hang_advice
    if (
        report.target.get("capture")
        and cap.rival
        and cap.claim.ceiling.component in ("disk", "cpu")
    ):
        return (captured.advice(report, cap.claim.ceiling.side),)
    missing = (
        ""
        if not then.missing
        else sentences.not_predicted(*then.missing, _how(report, then.missing[0]))
    )
    lines = sentences.advice(cap.claim, then.next, then.predicted, rate, then.link_bits, missing)
    inferred = cap.claim.ceiling.standing == "inferred" and not cap.claim.detail
    if report.server is None and inferred and not is_supplied(report):
        # A limit inferred at one end is no reason to buy anything yet.
        again = f"Confirm with {steps.agent_option(report)}"
        todo = f"{again} first. Then {lines[0][0].lower()}{lines[0][1:]}"
        set_there = cap.claim.remedy or cap.claim.ceiling.cause == "quota"
        lines = (todo if set_there else f"{again} before you change hardware.", *lines[1:])
    if cap.rival is None:
        return lines
    outcome = (both.next, both.predicted, rate, both.link_bits)
    if sentences.gains_little(then.predicted, rate):
        return sentences.both_at_once(cap.claim, cap.rival, *outcome)
    return (lines[0], *sentences.or_else(cap.rival, *outcome))


def _how(report: Report, part: Part) -> str:
    """Returns how to have a missing stage measured; empty: no option does that."""
    if report.server is None and part[1] != "client" and not is_supplied(report):
        return f"use {steps.agent_option(report)}"
    skipped = (each.reason for _, each in report.entries if isinstance(each, Skipped))
    return "use a larger --budget" if any("larger --budget" in each for each in skipped) else ""


def _why(cap: Cap, rate: float) -> str:
    words = cap.claim.words
    below = 1 - rate / cap.claim.ceiling.bytes_per_second
    if below < 0:
        words = words.replace("at most", "about", 1)  # both vary by a little
    if cap.rival is None:
        far = below >= FAR_BELOW_RATIO and cap.claim.reached is None
        return f"{words}. The copy runs {percent_text(below)} below this limit" if far else words
    return f"{words}. Equally likely: {cap.rival.words}"


def _detail(cap: Cap) -> str:
    """Returns the detail of the cap, or the name of a rival that is as likely."""
    if cap.rival is None:
        return cap.claim.detail
    return f"or {sentences.name_with_verb(cap.rival.ceiling)}"


def _what_to_try(
    report: Report, copy: Copy, step: MeasuredStep, decision: Decision
) -> tuple[str, ...]:
    if step.details.capture is not None:
        return (captured.what_to_try(report, step.details.capture),)
    if copy.is_running:
        return (running.what_to_try(report, copy, step), *shapers(report))
    if copy.is_native and unknown.impossible(report, copy, step) is not None:
        return (unknown.WITHOUT_CACHE,)
    same = (each for each in steps.copies(report) if each.dialect == copy.dialect)
    return unknown.next_steps(report, decision, unknown.left_out(same))


def _evidence(copy: Copy, step: MeasuredStep, ladder: Ladder, cap: Cap | None) -> Iterator[str]:
    if cap is not None:
        yield from cap.claim.evidence
        yield from cap.rival.evidence if cap.rival is not None else ()
    if copy.memory is not None:
        yield (
            f"Without the {copy.initiator}'s disk the same copy runs at "
            f"{rate_text(copy.memory.rate.median)}."
        )
    far_off = steps.far_off(step)
    if far_off:
        were = "was an outlier" if len(far_off) == 1 else "were outliers"
        yield (
            f"{len(far_off)} of its {step.rate.runs} runs {were} "
            f"({', '.join(map(rate_text, far_off))}), not counted in the spread. Another load came "
            "and went."
        )
    stolen = caps.stolen_ratio(step.outcome)
    if stolen > caps.STOLEN_RATIO:
        yield (
            f"Steal time was {percent_text(stolen)}: the hypervisor ran other virtual machines. "
            "Repeat the run at a quieter time."
        )
    failed = step.details.failed_runs
    if failed:
        count = "A run" if len(failed) == 1 else f"{len(failed)} runs"
        yield f"{count} failed beside those that were measured: {failed[0]}"
    proven, ratio = step.details.cache.proven, step.details.cache.cached_ratio_before
    which = "not in" if copy.cache == "uncached" else "in"
    if proven:
        if ratio is None:
            yield f"Verified: the source was {which} the {copy.sender}'s page cache."
        else:
            yield (
                f"Verified: {percent_text(ratio)} of the source was in the {copy.sender}'s page "
                "cache."
            )
    elif proven is not None:
        yield from sentences.cold_source(step.details.cache)
        yield f"Not verified: that the source was {which} the {copy.sender}'s page cache."
    unknown_parts = caps.unknown_parts(copy, ladder, step.rate.median)
    if unknown_parts:
        names = " and ".join(sentences.part_name(part) for part in unknown_parts)
        yield f"Not measured: the limit of {names}."
    if cap is None and copy.is_native:
        yield from mount.option_lines(step, copy.verb)
    yield from filter(None, [unknown.through_fuse(step), unknown.flushed_late(copy, step)])
    if step.details.flushed is False:
        yield "The copy was not flushed at its end: its rate is that of acknowledged writes."
    yield from ladder.remarks
