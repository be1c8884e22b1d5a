"""Verdicts without a cap: not made, altered bytes, unstable, or below all known limits.

It also holds the advice for such copies.
"""

from __future__ import annotations

from collections.abc import Iterable

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.cap import is_scattered
from bottleneck.analysis.decision.reasons import NOT_MEASURED
from bottleneck.analysis.decision.verdict import Decision
from bottleneck.analysis.facts.record import ALONE, BUSY, UNKNOWN, CopyFacts
from bottleneck.analysis.finding import Part, Verdict
from bottleneck.analysis.rules import running
from bottleneck.analysis.sentences import name, part_name, runs
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, rate_text, seconds_text, size_text
from probes.core.records import Failed, Run, Sample, Skipped

ALTERED = "DATA CORRUPTED: the received bytes differ from the sent bytes"
FAILED, OUT_OF_TIME = "The copy failed", "out of time"
SUSPECTS = 2
"""Number of likeliest limits between which the next test should decide."""
WITHOUT_CACHE = (
    "If the server shares the folder over SMB, run again with //host/share as TARGET: those copies "
    "do not use the mount's cache."
)
FLUSH_RATIO = 0.1
"""Least share of a copy's time in its flush that is mentioned."""

_ENDS = {"interrupted": "was interrupted", "failed": "failed", "partial": "was incomplete"}


def _inconclusive(sentence: str) -> Verdict:
    return Verdict("unknown", None, "inconclusive", 0.0, None, sentence)


def not_made(copy: Copy) -> Verdict:
    """Returns the verdict of a copy without a rate, with the reason as its sentence."""
    match copy.outcome:
        case Skipped(reason):
            sentence = reason
        case Failed(error, samples):
            sentence = f"{FAILED}: {error}{_moved_text(samples)}"
        case _:
            sentence = "The copy moved nothing."
    return Verdict("unknown", None, "not-measured", 0.0, None, sentence)


def _moved_text(samples: Run) -> str:
    """Returns the bytes of a copy until it failed, as a sentence's end; empty: none."""
    last = samples[-1] if samples else Sample(0.0, 0)
    if not last.moved_bytes or not last.elapsed_seconds:
        return ""
    text = f"{size_text(last.moved_bytes)} in {seconds_text(last.elapsed_seconds)}"
    return f"; it moved {text}, at most {rate_text(last.moved_bytes / last.elapsed_seconds)} in all"


def missing_verdict(status: str) -> Verdict:
    """Returns the verdict of a copy that the run did not reach."""
    sentence = f"The copy was not made because the run {_ENDS.get(status, 'ended')}."
    return Verdict("unknown", None, "not-measured", 0.0, None, sentence)


def altered_verdict(copy: Copy, step: MeasuredStep) -> Verdict | None:
    """Returns the verdict of a copy whose bytes were altered; None: they were not."""
    if step.is_intact:
        return None
    return _inconclusive(
        f"{ALTERED}. {runs(copy, step.rate.median)}, but this rate means nothing. Find the cause "
        "before you trust this path with data."
    )


def impossible(report: Report, copy: Copy, step: MeasuredStep) -> Verdict | None:
    """Returns the verdict of a copy faster than its interfaces, or TCP; None: it was not."""
    why = hardware_limits.impossible(report, step)
    if why is None:
        return None
    wrong = " A host's clock is wrong, or the interface reports a wrong rate."
    return _inconclusive(f"{runs(copy, step.rate.median)}. {why}{'' if copy.is_native else wrong}")


def unstable(copy: Copy, step: MeasuredStep) -> Verdict | None:
    """Returns the verdict of a copy whose runs lie too far apart; None: they do not."""
    rate = step.rate
    if not is_scattered(rate):
        return None
    return _inconclusive(
        f"{runs(copy, rate.median)}, but its {rate.runs} runs vary from "
        f"{rate_text(rate.low)} to {rate_text(rate.high)}: too unstable to name a bottleneck."
    )


def copy_alone(copy: Copy, step: MeasuredStep) -> Verdict:
    """Returns the verdict of a copy beside which nothing was measured."""
    words = "Only the copy was measured: `bottleneck diagnose` finds what limits it."
    return _inconclusive(f"{runs(copy, step.rate.median)}. {words}")


def inconclusive(copy: Copy, step: MeasuredStep, decision: Decision) -> Verdict:
    """Returns the verdict of a copy that may be limited by several components."""
    rate = step.rate.median
    if copy.is_running:
        return _inconclusive(f"{runs(copy, rate)}: {running.suspicion(copy, step)}.")
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
    """Returns advice about copies that were skipped for lack of time; empty: none were."""
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
    """Returns the tests that decide between the likeliest limits of a copy, by missing facts.

    waiting: text of left_out().
    """
    if report.status == "interrupted":
        return ("Run again: the run was interrupted before the tests that decide.",)
    parts = [part for part, _ in decision.suspects if part != UNKNOWN][:SUSPECTS]
    lacking = tuple(filter(None, (_lacks(decision.copy, part) for part in parts)))
    if lacking:
        how = "a larger --budget" if report.server else steps.agent_option(report)
        test = f"Run again with {how}. It measures {' and '.join(lacking)}."
    else:
        test = waiting or "Repeat with --thorough: more runs of each copy, about 5 times as long."
    return tuple(dict.fromkeys(filter(None, (test, waiting))))


def _lacks(copy: CopyFacts, part: Part) -> str:
    if part[0] == "cpu":
        return "" if copy.facts_of(part, BUSY) else f"the load of {part_name(part)}"
    if part[0] in ("disk", "network") and not copy.facts_of(part, ALONE):
        return f"{part_name(part)} by itself"
    return ""


def through_fuse(step: MeasuredStep) -> str:
    """Returns a sentence about the FUSE program of the mount; empty: it is the kernel's."""
    kind, _, program = step.details.mount.filesystem.partition(".")
    text = (
        f"The mount is a FUSE file system ({program}): each byte is copied between the kernel and "
    )
    return f"{text}this program, which uses the client's CPU." if program and kind == "fuse" else ""


def flushed_late(copy: Copy, step: MeasuredStep) -> str:
    """Returns a sentence about the flush if it took long; empty: it did not."""
    flush, acknowledged = step.details.flush_seconds, step.details.acknowledged_bytes_per_second
    elapsed = step.outcome.initiator.wall_seconds
    if not (flush and acknowledged and elapsed and flush > FLUSH_RATIO * elapsed):
        return ""
    did = "acknowledged" if copy.receiver == "server" else "received"
    return (
        f"The {copy.receiver} {did} the data at {rate_text(acknowledged)}, then needed "
        f"{seconds_text(flush)} more to flush it to disk."
    )
