"""The verdicts that name nobody: not made, wrong bytes, unstable, or below all that is known.

Of a copy that reaches nothing that a person told of: what the figures rule out, and what next.
"""

from __future__ import annotations

from collections.abc import Iterable

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.cap import scattered
from bottleneck.analysis.decision.reasons import NOT_MEASURED
from bottleneck.analysis.decision.verdict import Decision
from bottleneck.analysis.facts.record import ALONE, BUSY, UNKNOWN, CopyFacts
from bottleneck.analysis.finding import Part, Verdict
from bottleneck.analysis.rules import running
from bottleneck.analysis.sentences import name, part_name, runs
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, rate_text, seconds_text, size_text
from probes.core.records import Failed, Run, Sample, Skipped

ALTERED = "DATA CORRUPTED: the received bytes differ from the sent bytes"
FAILED, OUT_OF_TIME = "The copy failed", "out of time"
SUSPECTS = 2
"""Likeliest limits that the next test should tell apart."""
WITHOUT_CACHE = (
    "If the server shares the folder over SMB, run again with //host/share as TARGET: those copies "
    "do not use the mount's cache."
)
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
    """The verdict of a copy that ran faster than its interfaces, or TCP, can; None: it did not."""
    why = hardware_limits.impossible(report, made)
    if why is None:
        return None
    wrong = " A host's clock is wrong, or the interface reports a wrong rate."
    return _inconclusive(f"{runs(copy, made.rate.median)}. {why}{'' if copy.native else wrong}")


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


def inconclusive(copy: Copy, made: Found, decision: Decision) -> Verdict:
    """Returns the verdict of a copy that may be limited by several components."""
    rate = made.rate.median
    if copy.running:
        return _inconclusive(f"{runs(copy, rate)}: {running.suspicion(copy, made)}.")
    (first, likely), (second, less) = (
        (_name(decision, *each), percent_text(each[1])) for each in decision.suspects[:2]
    )
    ranked = f"{first} ({likely}), then {second} ({less})"
    if likely == less:
        ranked = f"{first} or {second} ({less} each)"
    return _inconclusive(f"{runs(copy, rate)}. What limits it is not clear: most likely {ranked}.")


def _name(decision: Decision, part: Part, likelihood: float) -> str:
    return NOT_MEASURED if part == UNKNOWN else name(decision.suspect(part, likelihood))


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


def next_steps(report: Report, decision: Decision, waiting: str) -> tuple[str, ...]:
    """Returns what tells the likeliest limits of a copy apart: the facts that these lack.

    waiting: what left_out() says.
    """
    if report.status == "interrupted":
        return ("Run again: the run was interrupted before the tests that decide.",)
    named = [part for part, _ in decision.suspects if part != UNKNOWN][:SUSPECTS]
    lacking = tuple(filter(None, (_lacks(decision.copy, part) for part in named)))
    if lacking:
        how = "a larger --budget" if report.server else steps.with_agent(report)
        test = f"Run again with {how}. It measures {' and '.join(lacking)}."
    else:
        test = waiting or "Repeat with --thorough: more runs of each copy, about 5 times as long."
    return tuple(dict.fromkeys(filter(None, (test, waiting))))


def _lacks(copy: CopyFacts, part: Part) -> str:
    """Returns what was not measured of a component, as a test; empty: nothing that there is."""
    if part[0] == "cpu":
        return "" if copy.of(part, BUSY) else f"the load of {part_name(part)}"
    if part[0] in ("disk", "network") and not copy.of(part, ALONE):
        return f"{part_name(part)} by itself"
    return ""


def through_fuse(made: Found) -> str:
    """A sentence with the FUSE program that serves the mount; empty: the kernel does it alone."""
    kind, _, program = made.details.mount.filesystem.partition(".")
    text = (
        f"The mount is a FUSE file system ({program}): each byte is copied between the kernel and "
    )
    return f"{text}this program, which uses the client's CPU." if program and kind == "fuse" else ""


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
