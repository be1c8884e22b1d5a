"""The verdicts that name nobody: not made, wrong bytes, unstable, or below all that is known.

Of a copy that reaches nothing that a person told of: what the figures rule out, and what next.
"""

from __future__ import annotations

from bottleneck.analysis import hardware_limits
from bottleneck.analysis.cap import scattered
from bottleneck.analysis.ceilings import Ladder
from bottleneck.analysis.finding import Verdict
from bottleneck.analysis.rules import running
from bottleneck.analysis.sentences import name, runs
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.units import range_text, rate_text
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
