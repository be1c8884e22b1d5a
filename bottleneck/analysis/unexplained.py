"""A copy that reaches nothing that a person told of: what the figures rule out, and what next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import hardware_limits, model, sentences, steps
from bottleneck.analysis.finding import CopyDiagnosis
from bottleneck.analysis.link_end import claimed_payload
from bottleneck.analysis.noise import SINGLE_RATIO
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import link_text, rate_text

ROUND_LOW_RATIO, ROUND_HIGH_RATIO = 0.9, 1.03
"""Of a link's payload: what a person who rounds calls it."""


def unexplained(
    report: Report, copies: Sequence[Copy], copy: Copy, found: CopyDiagnosis
) -> CopyDiagnosis:
    """A copy that reaches nothing known: what the figures around it rule out, and what next."""
    assert copy.made is not None
    rate = copy.made.rate.median
    told = tuple(_ruled_out(report, copies, copy, rate))
    sentence = found.verdict.sentence
    if told:
        what = "what caps it was not found"
        sentence = f"{sentences.runs(copy, rate)}: {what}. {' '.join(told)}"
    return replace(
        found,
        verdict=replace(found.verdict, sentence=sentence),
        evidence=(*told, *found.evidence),
        advice=tuple(_what_would_tell(report, copies, copy)),
    )


def _ruled_out(report: Report, copies: Sequence[Copy], copy: Copy, rate: float) -> Iterator[str]:
    alone = max((e.rate.median for e in hardware_limits.believed(report, copy.sender)), default=0.0)
    back = _opposite(copies, copy)
    if alone >= SINGLE_RATIO * rate:
        yield (
            f"It is not the network: TCP alone moved {rate_text(alone)} from the {copy.sender} to "
            f"the {copy.receiver}."
        )
    elif back is not None and back.rate.median >= SINGLE_RATIO * rate:
        cached = f", nor the {copy.sender}'s disk, since the source lay in that host's RAM"
        yield (
            f"It is not the network's rate, which carried {rate_text(back.rate.median)} the other "
            f"way{cached if copy.cache == 'cached' else ''}: something holds a {copy.verb} alone."
        )
    slow = _looks_like(rate)
    most = max(alone, claimed_payload(report))
    if slow is not None and most >= SINGLE_RATIO * slow / 8 * model.payload_efficiency():
        link = link_text(slow)
        yield (
            f"It is about what a {link} link carries: see whether the copy took another way than "
            f"the one of {rate_text(most)} (a {link} port, an access point, another card)."
        )


def _looks_like(rate: float) -> int | None:
    """The standard link that a rate told in round figures may be the payload of."""
    for bits in model.LINK_BITS_PER_SECOND:
        if ROUND_LOW_RATIO <= rate / (bits / 8 * model.payload_efficiency()) <= ROUND_HIGH_RATIO:
            return bits
    return None


def _opposite(copies: Sequence[Copy], copy: Copy) -> Found | None:
    """The fastest copy the other way, of the same kind."""
    kind = (copy.cache, copy.dialect, copy.initiator)
    return steps.fastest(
        each.made
        for each in copies
        if each.made is not None
        and each.sender == copy.receiver
        and (each.cache, each.dialect, each.initiator) == kind
    )


def _what_would_tell(report: Report, copies: Sequence[Copy], copy: Copy) -> Iterator[str]:
    if not hardware_limits.believed(report, copy.sender):
        yield (
            f"Measure TCP alone from the {copy.sender} to the {copy.receiver} (iperf3, 1 stream "
            "and 4): it parts the hosts' TCP and network from SMB and disks."
        )
    started = {each.initiator for each in copies if each.sender == copy.sender}
    if len(started) == 1:
        other = steps.other(copy.initiator)
        yield (
            f"Start the same copy at the {other}: 1 more copy tells whether it is the way the "
            f"bytes go or who asks for them."
        )
    yield (
        f"Measure the disk of the {copy.receiver} alone, written and flushed; or let `bottleneck "
        "diagnose` measure all stages at once, in 60 s."
    )
