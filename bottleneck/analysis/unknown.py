"""The verdicts that name nobody: not made, wrong bytes, unstable, or below all that is known.

Of a copy that reaches nothing that a person told of: what the figures rule out, and what next.
"""

from __future__ import annotations

from collections.abc import Iterable

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.cap import scattered
from bottleneck.analysis.finding import Ceiling, Ladder, Verdict
from bottleneck.analysis.rules import running
from bottleneck.analysis.sentences import name_with_verb, part_name, runs
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text, seconds_text, size_text
from probes.core.records import Failed, Run, Sample, Skipped

ALTERED = "DATA CORRUPTED: the received bytes differ from the sent bytes"
FAILED, OUT_OF_TIME = "The copy failed", "out of time"
FAR_RATIO = 2.0
"""Of a copy's rate: a limit from there on is nothing to look at."""
FLUSH_RATIO = 0.1
"""Of a copy's time, from which on its flush is worth a sentence."""

_ENDS = {"interrupted": "was interrupted", "failed": "failed", "partial": "was incomplete"}


def _inconclusive(sentence: str) -> Verdict:
    return Verdict("unknown", None, "inconclusive", 0.0, None, sentence)


def not_made(copy: Copy) -> Verdict:
    """The verdict of a copy without a rate: the reason is its sentence."""
    match copy.outcome:
        case Skipped(reason):
            sentence = reason
        case Failed(error, samples):
            sentence = f"{FAILED}: {error}{_moved_text(samples)}"
        case _:
            sentence = "The copy moved nothing."
    return Verdict("unknown", None, "not-measured", 0.0, None, sentence)


def _moved_text(samples: Run) -> str:
    """Returns what a copy moved until it failed, as a sentence's end; empty: nothing."""
    last = samples[-1] if samples else Sample(0.0, 0)
    if not last.moved_bytes or not last.elapsed_seconds:
        return ""
    text = f"{size_text(last.moved_bytes)} in {seconds_text(last.elapsed_seconds)}"
    return f"; it moved {text}, at most {rate_text(last.moved_bytes / last.elapsed_seconds)} in all"


def missing(status: str) -> Verdict:
    """The verdict of a copy that the run ended before."""
    sentence = f"The copy was not made because the run {_ENDS.get(status, 'ended')}."
    return Verdict("unknown", None, "not-measured", 0.0, None, sentence)


def altered(copy: Copy, made: Found) -> Verdict | None:
    """The verdict of a copy whose bytes did not arrive as they were sent; None: they did."""
    if made.intact:
        return None
    return _inconclusive(
        f"{ALTERED}. {runs(copy, made.rate.median)}, but this rate means nothing. Find the cause "
        "before you trust this path with data."
    )


def impossible(report: Report, copy: Copy, made: Found) -> Verdict | None:
    """The verdict of a copy that ran faster than its interfaces can; None: it did not."""
    why = hardware_limits.impossible(report, made)
    if why is None:
        return None
    return _inconclusive(
        f"{runs(copy, made.rate.median)}. {why} A host's clock is wrong, or the interface reports "
        "a wrong rate."
    )


def unstable(copy: Copy, made: Found) -> Verdict | None:
    """The verdict of a copy whose runs lie too far apart; None: they do not."""
    rate = made.rate
    if not scattered(rate):
        return None
    return _inconclusive(
        f"{runs(copy, rate.median)}, but its {rate.runs} runs vary from "
        f"{rate_text(rate.low)} to {rate_text(rate.high)}: too unstable to name a bottleneck."
    )


def alone(copy: Copy, made: Found) -> Verdict:
    """The verdict of a copy beside which nothing was measured."""
    words = "Only the copy was measured: `bottleneck diagnose` finds what limits it."
    return _inconclusive(f"{runs(copy, made.rate.median)}. {words}")


def inconclusive(copy: Copy, made: Found, ladder: Ladder) -> Verdict:
    """The verdict of a copy that reaches no known ceiling."""
    rate = made.rate.median
    if copy.running:
        return _inconclusive(f"{runs(copy, rate)}: {running.suspicion(copy, made)}.")
    known = nearest(ladder, rate)
    if not known:
        return _inconclusive(
            f"{runs(copy, rate)}. No measured component is near its limit, so no bottleneck can be "
            "named."
        )
    lowest = known[0]
    if far(lowest, rate):
        return _inconclusive(
            f"{runs(copy, rate)}, at most half of each known limit.{_unknown_limit(ladder, rate)}"
        )
    beyond = next((each for each in known if each.part != lowest.part), None)
    rest = (
        ""
        if beyond is None
        else f" All other measured limits are {rate_text(beyond.bytes_per_second)} or more."
    )
    return _inconclusive(
        f"{runs(copy, rate)}, below every measured limit. The nearest limit is "
        f"{name_with_verb(lowest)}, {rate_text(lowest.bytes_per_second)}.{rest}"
    )


def nearest(ladder: Ladder, rate: float) -> list[Ceiling]:
    """The limits above a rate that were measured, lowest first; estimates where there is no other.

    A load that was scaled up may come to the copy's own rate: that is no limit to look at.
    """
    above = [each.ceiling for each in ladder.valid if each.ceiling.bytes_per_second >= rate]
    known = [each for each in above if each.standing != "estimated"]
    # One that is estimated is named before one that is far.
    return known if known and (far(above[0], rate) or not far(known[0], rate)) else above


def _unknown_limit(ladder: Ladder, rate: float) -> str:
    """What is said of a lower bound that is near the rate; empty: there is none."""
    least = [each.ceiling for each in ladder.claims if each.ceiling.standing == "at-least"]
    near = [e for e in least if e.bytes_per_second >= rate and not far(e, rate)]
    if not near:
        return ""
    return (
        f" The limit of {part_name(near[0].part)} is unknown: "
        f"{rate_text(near[0].bytes_per_second)} or more."
    )


def far(ceiling: Ceiling, rate: float) -> bool:
    """Whether a limit is so far above a rate that it is no suspect."""
    return ceiling.bytes_per_second >= FAR_RATIO * rate


def left_out(copies: Iterable[Copy]) -> str:
    """What to do about copies that the time did not reach; empty: it reached all."""
    names = [
        each.name
        for each in copies
        if isinstance(each.outcome, Skipped) and each.outcome.reason.startswith(OUT_OF_TIME)
    ]
    if not names:
        return ""
    were = "was" if len(names) == 1 else "were"
    return f"Use a larger --budget: {', '.join(names)} {were} skipped and may be slower still."


def next_steps(
    copy: Copy, made: Found, ladder: Ladder, status: str, waiting: str
) -> tuple[str, ...]:
    """What decides it, where both hosts were measured and nothing is named.

    waiting: what left_out() says.
    """
    if status == "interrupted":
        return ("Run again: the run was interrupted before the tests that decide.",)
    again = waiting or "Repeat with --thorough: more runs of each copy, about 5 times as long."
    rate, late = made.rate.median, flushed_late(copy, made)
    disk = next((e for e in nearest(ladder, rate) if e.part == ("disk", copy.receiver)), None)
    if late and not (disk and far(disk, rate)):
        return (f"Check the {copy.receiver}'s disk first: {late[0].lower()}{late[1:]}", again)
    known = [e for e in nearest(ladder, rate) if e.component != "instrument"]
    if not known or far(known[0], rate):
        return (again,)
    return (f"Check {name_with_verb(known[0])} first: its limit is the nearest.", again)


def flushed_late(copy: Copy, made: Found) -> str:
    """That much of a copy's time went into its flush; empty: it did not."""
    flush, acknowledged = made.details.flush_seconds, made.details.acknowledged_bytes_per_second
    elapsed = made.outcome.initiator.wall_seconds
    if not (flush and acknowledged and elapsed and flush > FLUSH_RATIO * elapsed):
        return ""
    did = "acknowledged" if copy.receiver == "server" else "received"
    return (
        f"The {copy.receiver} {did} the data at {rate_text(acknowledged)}, then needed "
        f"{seconds_text(flush)} more to flush it to disk."
    )


def without_agent(report: Report, copy: Copy, ladder: Ladder) -> str:
    """What an agent on the server would add to a copy that nobody is named for."""
    known = {each.ceiling.part for each in ladder.valid}
    missing = [
        what
        for part, what in (
            (("network", "path"), "TCP by itself"),
            (("disk", "server"), "the server's disk"),
            (("cpu", "server"), "the server's CPU"),
        )
        if part not in known
    ]
    missing.append("its time for each WRITE" if copy.verb == "push" else "its cache")
    return (
        f"Run again with {steps.with_agent(report)}. The agent measures "
        f"{len(missing)} more parts of this copy: {', '.join(missing)}."
    )
