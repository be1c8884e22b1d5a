"""Why the slower of two copies is slower: what holds it and not the other; never a guess.

Its own cap explains it where that cap lies below the other copy's rate. A flush that takes the
whole difference explains it too. All else is told as not explained, with what would allow more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bottleneck.analysis import cap as caps
from bottleneck.analysis import ceilings, steps, unknown
from bottleneck.analysis.cap import Cap
from bottleneck.analysis.ceilings import Ladder
from bottleneck.analysis.finding import Ceiling
from bottleneck.analysis.noise import SINGLE_RATIO
from bottleneck.analysis.sentences import name_with_verb, part_name
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_text, seconds_text

MOST_NAMED = 4
"""Parts that are listed as not the cause."""


@dataclass(frozen=True)
class Why:
    """What makes a copy slower than another."""

    mechanism: str
    """ceiling, flush or unexplained."""
    words: str
    """The second half of a sentence."""
    ceiling: Ceiling | None = None
    """What holds the slower copy; None: it was not found."""


def row(found: Why | None) -> dict[str, Any]:
    """The same as plain values, all None where there is no difference to explain."""
    ceiling = None if found is None else found.ceiling
    return {
        "mechanism": None if found is None else found.mechanism,
        "component": None if ceiling is None else ceiling.component,
        "side": None if ceiling is None else ceiling.side,
        "cause": None if ceiling is None else ceiling.cause,
    }


def why(report: Report, slow: Copy, made: Found, fast_rate: float) -> Why:
    """What holds a copy below a rate, bytes per second, that another like it reached."""
    ladder = ceilings.ladder(report, slow, made.rate.median)
    cap = caps.find(slow, made, ladder)
    if cap is not None and unknown.unstable(slow, made) is not None:
        cap = caps.despite_scatter(cap)
    late = _flush(slow, made, fast_rate)
    # A ceiling that lets the faster rate pass is no reason; two that work in turn do not let it.
    if cap is not None and (
        cap.manner != "reached" or cap.claim.ceiling.bytes_per_second < fast_rate
    ):
        also = f"; {late}" if late else ""
        return Why("ceiling", f"{_words(cap)}{also}", cap.claim.ceiling)
    if late:
        return Why("flush", late)
    return Why("unexplained", _unexplained(slow, ladder, fast_rate))


def _words(cap: Cap) -> str:
    words = cap.claim.words
    if cap.rival is None:
        return words
    if cap.manner == "reached":
        return f"{words} (or, too close to tell from it: {cap.rival.words})"
    other = cap.rival.ceiling
    return f"{words}, beside {name_with_verb(other)} ({rate_text(other.bytes_per_second)})"


def _flush(slow: Copy, made: Found, fast_rate: float) -> str:
    """The flush at the end, where without it the copy would run like the other; else empty."""
    details = made.outcome.details
    flush = steps.positive(details, "flush_seconds")
    acknowledged = steps.positive(details, "acknowledged_bytes_per_second")
    if flush is None or acknowledged is None:
        return ""
    if acknowledged * SINGLE_RATIO < fast_rate or acknowledged < SINGLE_RATIO * made.rate.median:
        return ""
    return (
        f"the last byte had arrived at {rate_text(acknowledged)}, and {seconds_text(flush)} more "
        f"went into the flush to the {slow.receiver}'s disk"
    )


def _unexplained(slow: Copy, ladder: Ladder, fast_rate: float) -> str:
    """That nothing explains it, what would allow the faster rate, and what nobody knows."""
    allowing: dict[tuple[str, str | None], str] = {}
    between = ""
    known = [claim.ceiling for claim in ladder.claims if not claim.ceiling.tool]
    # What every byte passes comes first.
    for each in sorted(known, key=lambda each: each.component not in caps.STAGES):
        level = f"{name_with_verb(each)} ({rate_text(each.bytes_per_second)})"
        if each.bytes_per_second >= fast_rate:
            allowing.setdefault(each.part, level)
        elif each.standing != "at-least" and not between:
            between = f"; the lowest ceiling that is known, {level}, is not reached"
    told = "nothing that was measured explains it"
    named = list(allowing.values())[:MOST_NAMED]
    if named:
        told += f": more would pass through {_listed(named)}"
    missing = caps.unknown_parts(slow, ladder, fast_rate)
    if missing:
        names = _listed([part_name(part) for part in missing])
        told += f"; not known: what {names} would allow"
    return f"{told}{between}"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
