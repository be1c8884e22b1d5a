"""Cached against uncached at the sender: what reading the source from its disk costs."""

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

DOING = {"push": "Pushing", "pull": "Pulling"}


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison of all copies that were made from RAM and from the disk; first is the RAM."""
    found = tuple(
        each
        for each in paired.pairs(report, lambda copy: copy.cache == "cached", _apart_from_cache)
        # Where one may have been the other, their difference means nothing.
        if each.first.proven and each.second.proven
    )
    if not found:
        return
    whys = {each.steps: each.why(report) for each in found}
    told = sorted(
        paired.leading(found), key=lambda each: (each.significant, each.ratio), reverse=True
    )
    yield Comparison(
        about="cache",
        sentence=" ".join(_sentence(each, whys[each.steps]) for each in told),
        rows=tuple(_row(each, whys[each.steps]) for each in found),
        ratio=told[0].ratio,
        significant=told[0].significant,
        steps=tuple(index for each in found for index in each.steps),
    )


def _apart_from_cache(half: Half) -> tuple[str, bool]:
    return half.copy.verb, half.copy.of_file


def _sentence(pair: Pair, why: Why | None) -> str:
    """Which is slower and why; that there is no difference, where why is None."""
    copy = pair.slow.copy
    what = f"{DOING[copy.verb]} {'the file' if copy.of_file else 'a file'}"
    cached, uncached = rate_text(pair.first.rate), rate_text(pair.second.rate)
    rates = f"cached {cached}, uncached {uncached}, {paired.by(copy)}"
    if why is None:
        return f"{what}, no difference that these runs can tell ({rates})."
    source, other = ("disk", "RAM") if copy.cache == "uncached" else ("RAM", "disk")
    alone = ""
    if why.ceiling is None and copy.cache == "uncached":
        alone = f"they differ in the {copy.sender}'s disk alone, but "
    return (
        f"{what} is {times_text(pair.ratio)} slower from the {copy.sender}'s {source} than from "
        f"its {other} ({rates}): {alone}{why.words}."
    )


def _row(pair: Pair, why: Why | None) -> dict[str, Any]:
    cached, uncached = pair.first, pair.second
    return {
        "copy": uncached.copy.name,
        "initiator": cached.copy.initiator,
        "dialect": cached.copy.dialect,
        "engine": cached.copy.engine,
        "sender": cached.copy.sender,
        "cached_bytes_per_second": cached.rate,
        "cached_runs": cached.made.rate.runs,
        "uncached_bytes_per_second": uncached.rate,
        "uncached_runs": uncached.made.rate.runs,
        "slower": None if why is None else pair.slow.copy.cache,
        "ratio": pair.ratio,
        "significant": why is not None,
        **mechanism.row(why),
    }
