"""Push against pull: the same path in both directions, and what makes one of them slower."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis.comparisons import mechanism
from bottleneck.analysis.comparisons import pairs as paired
from bottleneck.analysis.comparisons.mechanism import Why
from bottleneck.analysis.comparisons.pairs import Half, Pair
from bottleneck.analysis.finding import Comparison
from bottleneck.report import Report
from bottleneck.reports.units import rate_text, times_text

DOING = {"push": "pushing", "pull": "pulling"}


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison of all copies that were made in both directions; first is the push."""
    found = paired.pairs(report, lambda copy: copy.verb == "push", _source)
    if not found:
        return
    whys = {each.steps: each.why(report) for each in found}
    told = sorted(
        paired.leading(found), key=lambda each: (each.significant, each.ratio), reverse=True
    )
    yield Comparison(
        about="direction",
        sentence=" ".join(_sentences(told, whys)),
        rows=tuple(_row(each, whys[each.steps]) for each in found),
        ratio=told[0].ratio,
        significant=told[0].significant,
        steps=tuple(index for each in found for index in each.steps),
    )


def _source(half: Half) -> tuple[str, bool | None, bool]:
    """Where the bytes come from, and whether that was proven: both have to be the same."""
    return half.copy.cache, half.proven, half.copy.of_file


def _sentences(told: list[Pair], whys: dict[tuple[int, int], Why | None]) -> Iterator[str]:
    """One a pair; what holds several of them is written once."""
    seen: list[tuple[str, str, str | None, str]] = []
    for each in told:
        held = whys[each.steps]
        ceiling = None if held is None else held.ceiling
        key = ceiling and (each.slow.copy.verb, ceiling.component, ceiling.side, ceiling.cause)
        if key and key in seen:
            cache = each.first.copy.cache.capitalize()
            yield f"{cache} the same ({rate_text(each.slow.rate)}, {times_text(each.ratio)})."
        else:
            yield _sentence(each, held)
        if key:
            seen.append(key)


def _sentence(pair: Pair, why: Why | None) -> str:
    """Which is slower and why; that there is no difference, where why is None."""
    cache = pair.first.copy.cache.capitalize()
    slow, fast = pair.slow, pair.fast
    push, pull = rate_text(pair.first.rate), rate_text(pair.second.rate)
    rates = f"push {push}, pull {pull}, {paired.by(slow.copy)}"
    if why is None:
        return f"{cache}, no difference that these runs can tell ({rates})."
    doing, other = DOING[slow.copy.verb], DOING[fast.copy.verb]
    return (
        f"{cache}, {doing} is {times_text(pair.ratio)} slower than {other} ({rates}): {why.words}."
    )


def _row(pair: Pair, why: Why | None) -> dict[str, Any]:
    push, pull = pair.first, pair.second
    return {
        "initiator": push.copy.initiator,
        "dialect": push.copy.dialect,
        "engine": push.copy.engine,
        "cache": push.copy.cache,
        "push_bytes_per_second": push.rate,
        "push_runs": push.made.rate.runs,
        "pull_bytes_per_second": pull.rate,
        "pull_runs": pull.made.rate.runs,
        "slower": None if why is None else pair.slow.copy.verb,
        "ratio": pair.ratio,
        "significant": why is not None,
        **mechanism.row(why),
    }
