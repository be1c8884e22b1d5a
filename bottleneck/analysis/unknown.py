"""The verdicts that name nobody: not made, wrong bytes, unstable, or below all that is known.

Of a copy that reaches nothing that a person told of: what the figures rule out, and what next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.cap import scattered
from bottleneck.analysis.ceilings import Ladder
from bottleneck.analysis.finding import CopyDiagnosis, Verdict
from bottleneck.analysis.link_end import claimed_payload
from bottleneck.analysis.noise import SINGLE_RATIO
from bottleneck.analysis.rules import running
from bottleneck.analysis.sentences import name, runs
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import link_text, range_text, rate_text
from probes.records import Failed, Skipped

ALTERED = "THE BYTES THAT ARRIVED ARE NOT THE BYTES THAT WERE SENT"
ROUND_LOW_RATIO, ROUND_HIGH_RATIO = 0.9, 1.03
"""Of a link's payload: what a person who rounds calls it."""


def _inconclusive(sentence: str) -> Verdict:
    return Verdict("unknown", None, "inconclusive", 0.0, None, sentence)


def not_made(copy: Copy) -> Verdict:
    """The verdict of a copy without a rate: the reason is its sentence."""
    match copy.outcome:
        case Skipped(reason):
            sentence = reason
        case Failed(error):
            sentence = f"The copy broke off: {error}"
        case _:
            sentence = "The copy moved nothing."
    return Verdict("unknown", None, "not-measured", 0.0, None, sentence)


def missing(status: str) -> Verdict:
    """The verdict of a copy that the run ended before."""
    sentence = f"It was not tried: the run is {status}."
    return Verdict("unknown", None, "not-measured", 0.0, None, sentence)


def altered(copy: Copy, made: Found) -> Verdict | None:
    """The verdict of a copy whose bytes did not arrive as they were sent; None: they did."""
    if made.intact:
        return None
    return _inconclusive(
        f"{ALTERED}. {runs(copy, made.rate.median)}, but the rate of a copy that alters the file "
        "means nothing: find out why before trusting this path with data."
    )


def impossible(report: Report, copy: Copy, made: Found) -> Verdict | None:
    """The verdict of a copy that ran faster than its interfaces can; None: it did not."""
    why = hardware_limits.impossible(report, made)
    if why is None:
        return None
    return _inconclusive(
        f"{runs(copy, made.rate.median)}: {why} The clock of a host, or the interface's own word "
        "for its rate, is wrong."
    )


def unstable(copy: Copy, made: Found) -> Verdict | None:
    """The verdict of a copy whose runs lie too far apart; None: they do not."""
    rate = made.rate
    if not scattered(rate):
        return None
    return _inconclusive(
        f"{runs(copy, rate.median)}, but its {rate.runs} runs lie between "
        f"{range_text(rate.low, rate.high)}: unstable, so that nothing can be named."
    )


def inconclusive(copy: Copy, made: Found, ladder: Ladder) -> Verdict:
    """The verdict of a copy that reaches no known ceiling."""
    rate = made.rate.median
    if copy.running:
        return _inconclusive(f"{runs(copy, rate)}: {running.suspicion(copy, made)}.")
    lowest = next(iter(ladder.valid), None)
    if lowest is None:
        return _inconclusive(
            f"{runs(copy, rate)}; no ceiling around it could be measured, so that nothing is named."
        )
    ceiling = lowest.ceiling
    return _inconclusive(
        f"{runs(copy, rate)}, below every ceiling that was measured (the lowest is "
        f"{name(ceiling)}, {rate_text(ceiling.bytes_per_second)}): what caps it was not found."
    )


def without_agent(copy: Copy, ladder: Ladder) -> str:
    """What an agent on the server would add to a copy that nobody is named for."""
    known = {each.ceiling.part for each in ladder.valid}
    does = "writes" if copy.verb == "push" else "reads"
    missing = [
        what
        for part, what in (
            (("network", "path"), f"what TCP alone carries from the {copy.sender}"),
            (("disk", "server"), f"what the server's disk {does}"),
            (("cpu", "server"), "how busy the server's CPU is meanwhile"),
        )
        if part not in known
    ]
    missing.append(
        "where the time of its WRITEs goes there"
        if copy.verb == "push"
        else "whether the file came from the server's RAM"
    )
    return (
        "Give this tool an agent on the server (--agent ssh://user@server). Of this copy it tells "
        f"{len(missing)} more: {'; '.join(missing)}."
    )


# -- below all that a person told of -------------------------------------------------------------


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
        sentence = f"{runs(copy, rate)}: {what}. {' '.join(told)}"
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
    wire = 8 * rate / model.payload_efficiency()
    links = model.LINK_BITS_PER_SECOND
    return next((e for e in links if ROUND_LOW_RATIO <= wire / e <= ROUND_HIGH_RATIO), None)


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
