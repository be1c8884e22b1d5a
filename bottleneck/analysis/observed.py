"""Verdicts from figures that a person told: surer than them no verdict is, and more may be said.

A copy without a rate is told what bounds it. A link's side is named where the figures show whose it
is. A copy that reaches nothing known is told what the others around it rule out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import cap as caps
from bottleneck.analysis import ceilings, model, sentences, steps
from bottleneck.analysis.ceilings import Ladder
from bottleneck.analysis.estimate import likely
from bottleneck.analysis.finding import Ceiling, Claim, CopyDiagnosis, Next, Verdict
from bottleneck.analysis.link_end import claimed_payload, is_told, slower_link
from bottleneck.analysis.noise import factor
from bottleneck.analysis.steps import Copy
from bottleneck.analysis.supplied import place_text
from bottleneck.analysis.unknown import unexplained
from bottleneck.report import Report
from bottleneck.reports.units import (
    count_text,
    percent_text,
    rate_text,
    size_text,
)

TOLD_TRUST = 0.8
"""Nobody proved a cold cache or a quiet host."""
CLEAR_TRUST, FAIR_TRUST, NEAR_TRUST = 0.7, 0.6, 0.5
"""Of what bounds a copy that was not made: where the next is far, near, as near as the same."""
NEAR_RATIO, CLEAR_RATIO = 1.1, 1.5
REACHED_RATIO = 0.8
JUMBO_BYTES = 9000
JUMBO_RATIO = 0.8
"""Of what the slower link claims, from which on longer frames are worth a word."""


def refined(
    report: Report, copies: Sequence[Copy], found: Sequence[CopyDiagnosis]
) -> list[CopyDiagnosis]:
    """The diagnoses of a report's copies as figures that were told deserve; others stay."""
    if not is_told(report):
        return list(found)
    return [
        *(
            _bounded(report, copy, each) if copy.made is None else _told(report, copies, copy, each)
            for copy, each in zip(copies, found, strict=False)
        ),
        *found[len(copies) :],
    ]


# -- copies without a rate ---------------------------------------------------------------------


def _bounded(report: Report, copy: Copy, found: CopyDiagnosis) -> CopyDiagnosis:
    """What bounds a copy whose rate was not told."""
    ladder = ceilings.ladder(report, copy, 0.0)
    claims = ladder.valid
    lowest = likely(claims)
    if lowest is None:
        text = (
            f"{found.verdict.sentence[0].upper()}{found.verdict.sentence[1:]}, nor what bounds it."
        )
        return replace(found, verdict=replace(found.verdict, sentence=text))
    ceiling = lowest.claim.ceiling
    level = ceiling.bytes_per_second
    near = "" if lowest.rival is None else f"; too close to tell from it: {lowest.rival.words}"
    following = None if lowest.following is None else _as_next(lowest.following.ceiling)
    after = sentences.outlook(ceiling, following, None, level)
    subject = sentences.runs(copy, level, f"{_shape(copy)}can run at no more than")
    return replace(
        found,
        verdict=Verdict(
            *ceiling.named,
            _bound_trust(copy, ladder, lowest.claim, lowest.ratio),
            level,
            f"{subject}: {lowest.claim.words}{near}.{after}",
        ),
        ceilings=tuple(each.ceiling for each in claims),
        next=following,
        evidence=(
            "Its own rate was not told: this is what bounds it, and something else may hold it "
            "below that.",
            *dict.fromkeys(text for each in claims for text in each.evidence),
            *ladder.remarks,
        ),
        advice=(
            sentences.advice(lowest.claim, following, None, level),
            *_jumbo(report, ceiling, level),
        ),
    )


def _bound_trust(copy: Copy, ladder: Ladder, claim: Claim, ratio: float) -> float:
    clear = CLEAR_TRUST if ratio >= CLEAR_RATIO else FAIR_TRUST
    trust = clear if ratio >= NEAR_RATIO else NEAR_TRUST
    known = not caps.unknown_parts(copy, ladder, claim.ceiling.bytes_per_second)
    return min(claim.trust, trust if known else min(trust, FAIR_TRUST))


def _as_next(ceiling: Ceiling) -> Next:
    return Next(*ceiling.named, ceiling.bytes_per_second)


def _shape(copy: Copy) -> str:
    """What its figures say of how it is made: `with 120 streams `, `from the inner edge `."""
    streams, size = copy.setting.streams, copy.setting.request_bytes
    told = ""
    if streams is not None and streams > 1:
        told += f"with {count_text(streams)} streams "
    if size is not None:
        told += f"in requests of {size_text(size)} "
    place = copy.setting.from_place_ratio
    if place is not None:
        told += f"from {place_text(min(1.0, place))} "
    return told


def _is_link(ceiling: Ceiling | Verdict) -> bool:
    return (ceiling.component, ceiling.cause) == ("network", "link-rate")


# -- copies with a rate ------------------------------------------------------------------------


def _told(
    report: Report, copies: Sequence[Copy], copy: Copy, found: CopyDiagnosis
) -> CopyDiagnosis:
    verdict = replace(found.verdict, confidence=min(TOLD_TRUST, found.verdict.confidence))
    found = replace(found, verdict=verdict)
    if verdict.component == "unknown":
        return unexplained(report, copies, copy, found)
    found = _no_further(report, copy, found)
    more = _jumbo(report, verdict, verdict.ceiling_bytes_per_second)
    return replace(found, advice=(*found.advice, *more))


def _no_further(report: Report, copy: Copy, found: CopyDiagnosis) -> CopyDiagnosis:
    """Without the sender's disk it runs as its cached twin: what holds that comes next, and not the
    lowest ceiling that is known, where the twin does not come near to it.
    """
    twin, following, rate = copy.twin, found.next, found.bytes_per_second
    if twin is None or following is None or rate is None:
        return found
    ladder = ceilings.ladder(report, copy, rate)
    named = found.verdict.named
    claim = next(
        (
            each
            for each in ladder.claims
            if each.ceiling.part == ("disk", copy.sender) and each.ceiling.named == named
        ),
        None,
    )
    if claim is None or twin.rate.median >= REACHED_RATIO * following.ceiling_bytes_per_second:
        return found
    sentence = (
        f"{sentences.runs(copy, rate)}: {claim.words}. What holds it there, once that disk is out "
        "of the way, was not found."
    )
    lifted = found.predicted_bytes_per_second
    return replace(
        found,
        verdict=replace(found.verdict, sentence=sentence),
        next=None,
        ladder=found.ladder[:1],
        advice=(sentences.advice(claim, None, lifted, rate),),
    )


def _jumbo(report: Report, ceiling: Ceiling | Verdict, level: float | None) -> Iterator[str]:
    """What longer frames would carry over a link that is full."""
    mtu, slow = steps.mtu_bytes(report), slower_link(report)
    if slow is None or mtu is None or not 576 <= mtu <= model.ETHERNET_MTU_BYTES:
        return
    if not _is_link(ceiling) or level is None or level < JUMBO_RATIO * claimed_payload(report):
        return
    usual, jumbo = (model.payload_efficiency(each) for each in (mtu, JUMBO_BYTES))
    carried = rate_text(slow.bits_per_second / 8 * jumbo)
    fewer = factor(model.payload_bytes(JUMBO_BYTES), model.payload_bytes(mtu))
    yield (
        f"Jumbo frames (MTU {JUMBO_BYTES} at both hosts and on every switch between) carry "
        f"{percent_text(jumbo / usual - 1)} more, {carried}, with {fewer:.0f} times fewer packets "
        "for both CPUs."
    )
