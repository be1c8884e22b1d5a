"""Limits of a copy that have to rise for a target rate, and their needed values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bottleneck.analysis import model, sentences
from bottleneck.analysis.decision.capability import Fix, capability, demonstrated_rate
from bottleneck.analysis.decision.gain import READ_START_RATIO, WRITE_START_RATIO, limit_key, share
from bottleneck.analysis.facts.record import NETWORK, CopyFacts, Part
from bottleneck.analysis.finding import Named, Need, Target, Words
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.text.units import link_text, rate_text, times_text

TOOL_SHARE = 2 / 3
"""Most share of its own ceiling at which this tool measures the path."""


def target(goal: float, copy: CopyFacts, fixes: Sequence[Fix]) -> Target:
    """Returns the limits that have to rise for a copy to reach a rate, lowest limit first.

    goal: that rate, bytes per second. fixes: its cap, and a rival as likely; empty: none is named.
    """
    assert copy.rate is not None
    if copy.rate.median >= goal:
        return Target(goal, True)
    needs = sorted(_needs(goal, copy, fixes), key=lambda each: each.from_bytes_per_second)
    return Target(goal, False, tuple(needs), tuple(_unknown(goal, copy, fixes)))


def _needs(goal: float, copy: CopyFacts, fixes: Sequence[Fix]) -> Iterator[Need]:
    """Yields each limit below its component's needed rate, the cap's in any case."""
    assert copy.rate is not None
    if any(each.words[0] == "instrument" for each in fixes):
        return
    carries, ratio = _transfer(goal, copy)
    for part in copy.chain:
        cap = next((each for each in fixes[:1] if each.part == part), None)
        band = capability(copy, part, fixes[:1]) if cap is None else None
        level = cap.level if cap is not None else math.inf if band is None else band.median
        to = _needed_rate(goal, copy, part, carries, ratio)
        if cap is not None:
            # The cap limits the copy, however far the copy stays below it.
            to = max(to, goal * level / copy.rate.median)
        if to > level:
            words = limit_key(copy, part, level) if cap is None else cap.words
            yield Need(*words, level, to, _sentence(words, level, to))


def _transfer(goal: float, copy: CopyFacts) -> tuple[float, float]:
    """Returns a copy's rate and share on the path, on the present link or the one needed."""
    path = capability(copy, NETWORK, ())
    level = goal if path is None else path.median
    ratio = share(copy, level)
    if level * ratio < goal:
        # A faster link may give another share: the usual one for the link that is needed.
        ratio = share(copy, goal / ratio)
        level = model.link_payload(model.faster_link(goal / ratio))
    return max(goal, level * ratio), ratio


def _needed_rate(goal: float, copy: CopyFacts, part: Part, carries: float, ratio: float) -> float:
    if part[0] == "disk":
        late = READ_START_RATIO if part[1] == copy.sender else WRITE_START_RATIO
        return model.needed_behind(goal, carries, late.median)
    return goal / ratio if part == NETWORK else goal


def _unknown(goal: float, copy: CopyFacts, fixes: Sequence[Fix]) -> Iterator[str]:
    """Yields unmeasured components, and rates beyond this tool's own limit."""
    assert copy.rate is not None
    rate = rate_text(goal)
    if not fixes:
        yield (
            f"The bottleneck at {rate_text(copy.rate.median)} was not identified: these "
            f"changes may not be enough for {rate}."
        )
    needed = [part for part in copy.chain if part[0] in ("disk", "network")]
    others = [part for part in needed if all(part != each.part for each in fixes)]
    unmeasured = [part for part in others if capability(copy, part, fixes[:1]) is None]
    if parts := [part for part in unmeasured if demonstrated_rate(copy, part) < goal]:
        names = " and ".join(sentences.part_name(part) for part in parts)
        yield f"Not measured: whether {names} would allow {rate}."
    tools = [each.ceiling for _, each in copy.claims if each.ceiling.tool]
    lowest = min(tools, key=lambda each: each.bytes_per_second, default=None)
    if lowest is not None and goal > TOOL_SHARE * lowest.bytes_per_second:
        yield (
            f"This tool itself moves at most {rate_text(lowest.bytes_per_second)} on the "
            f"{lowest.side}, too little to measure {rate}."
        )


def _sentence(words: Named, level: float, to: float) -> str:
    component, _, cause = words
    name, now, needed = sentences.name(Words(*words)), rate_text(level), rate_text(to)
    match component, cause:
        case "network", "link-rate":
            link = link_text(model.faster_link(to))
            return f"{name} must carry {needed} (now {now}): use a {link} link"
        case "disk", "read" | "write":
            return f"{name} must {cause} {needed} (now {now})"
        case "cpu" | "instrument", _:
            times = times_text(to / level)
            return f"{name} must do {times} as much (now about {now}, estimated from its load)"
        case _:
            label = BY_WORDS[component, cause].label
            return f"{name} must allow {needed} (now {now}, limited by: {label})"
