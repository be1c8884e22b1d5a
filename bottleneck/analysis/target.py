"""Limits of a copy that have to rise for a wanted rate, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bottleneck.analysis import model, sentences
from bottleneck.analysis.decision.capability import Fix, capability, demonstrated
from bottleneck.analysis.decision.gain import READ_LATE, WRITE_LATE, share, words_of
from bottleneck.analysis.facts.record import NETWORK, CopyFacts, Part
from bottleneck.analysis.finding import Named, Need, Target, Words
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.text.units import link_text, rate_text, times_text

TOOL_SHARE = 2 / 3
"""Share of its own ceiling up to which this tool measures the path."""


def target(wanted: float, copy: CopyFacts, fixes: Sequence[Fix]) -> Target:
    """Returns what has to change for a copy to reach a rate, bytes per second; lowest limit first.

    fixes: its cap, and another that is as likely; empty: nothing is named.
    """
    assert copy.rate is not None
    if copy.rate.median >= wanted:
        return Target(wanted, True)
    needs = sorted(_needs(wanted, copy, fixes), key=lambda each: each.from_bytes_per_second)
    return Target(wanted, False, tuple(needs), tuple(_unknown(wanted, copy, fixes)))


def _needs(wanted: float, copy: CopyFacts, fixes: Sequence[Fix]) -> Iterator[Need]:
    """Yields each limit below what its component has to allow, the cap's in any case."""
    assert copy.rate is not None
    if any(each.words[0] == "instrument" for each in fixes):
        return
    carries, ratio = _transfer(wanted, copy)
    for part in copy.chain:
        cap = next((each for each in fixes[:1] if each.part == part), None)
        band = capability(copy, part, fixes[:1]) if cap is None else None
        level = cap.level if cap is not None else math.inf if band is None else band.median
        to = _needed(wanted, copy, part, carries, ratio)
        if cap is not None:
            # It is what holds the copy, however far the copy stays below it.
            to = max(to, wanted * level / copy.rate.median)
        if to > level:
            words = words_of(copy, part, level) if cap is None else cap.words
            yield Need(*words, level, to, _sentence(words, level, to))


def _transfer(wanted: float, copy: CopyFacts) -> tuple[float, float]:
    """Returns what a copy gets of the path, of the present one or the one needed; its share."""
    path = capability(copy, NETWORK, ())
    level = wanted if path is None else path.median
    ratio = share(copy, level)
    if level * ratio < wanted:
        # Another link may give another share: what is usual for the one that is needed.
        ratio = share(copy, wanted / ratio)
        level = model.link_payload(model.faster_link(wanted / ratio))
    return max(wanted, level * ratio), ratio


def _needed(wanted: float, copy: CopyFacts, part: Part, carries: float, ratio: float) -> float:
    if part[0] == "disk":
        late = READ_LATE if part[1] == copy.sender else WRITE_LATE
        return model.needed_behind(wanted, carries, late.median)
    return wanted / ratio if part == NETWORK else wanted


def _unknown(wanted: float, copy: CopyFacts, fixes: Sequence[Fix]) -> Iterator[str]:
    """Yields what was not measured, and what this tool cannot show."""
    assert copy.rate is not None
    rate = rate_text(wanted)
    if not fixes:
        yield (
            f"The bottleneck at {rate_text(copy.rate.median)} was not identified: these "
            f"changes may not be enough for {rate}."
        )
    needed = [part for part in copy.chain if part[0] in ("disk", "network")]
    others = [part for part in needed if all(part != each.part for each in fixes)]
    unmeasured = [part for part in others if capability(copy, part, fixes[:1]) is None]
    if parts := [part for part in unmeasured if demonstrated(copy, part) < wanted]:
        names = " and ".join(sentences.part_name(part) for part in parts)
        yield f"Not measured: whether {names} would allow {rate}."
    tools = [each.ceiling for _, each in copy.claims if each.ceiling.tool]
    lowest = min(tools, key=lambda each: each.bytes_per_second, default=None)
    if lowest is not None and wanted > TOOL_SHARE * lowest.bytes_per_second:
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
