"""One way to claim a ceiling: its cause, and the step that shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.steps import Found

SURE, GAP, LIKENESS = 0.7, 0.58, 0.55
"""The most that a limit beside a copy says of what held it: as a rule; where the difference is sure
and its cause is not; by a rough figure."""


@dataclass(frozen=True)
class Cause:
    """One cause of the verdict's words, with what is said of it wherever it is named."""

    component: str
    word: str
    label: str
    """What a reader sees in its place: "link speed"."""
    title: str = ""
    """What it is called where its component is more than one thing; empty: as its component."""
    stays: bool = False
    """Whether the component is still there without it: a path has a link beside its faults."""
    remedy: str = ""
    """What to do where no more is known than its side, {side}."""


def behind(found: Ceiling, cause: Cause, side: str | None, *steps: int) -> Ceiling:
    """A ceiling with the cause behind it in its place; steps: that show the cause."""
    shown = tuple(dict.fromkeys((*found.steps, *steps)))
    return replace(found, component=cause.component, side=side, cause=cause.word, steps=shown)


def claim(
    cause: Cause,
    side: str | None,
    shown: Found | None,
    words: str,
    *,
    level: float | None = None,
    low: float | None = None,
    high: float | None = None,
    steps: tuple[int, ...] | None = None,
    standing: Standing = "measured",
    reached: bool | None = None,
    trust: float = SURE,
    partly: bool = False,
    evidence: tuple[str, ...] = (),
    remedy: str = "",
    detail: str = "",
) -> Claim:
    """The ceiling that a step shows, with the reasons for it.

    Its rate with its spread, or a level of one's own around it. shown: None: no step shows it, and
    its level is all that is known.
    """
    rate = None if shown is None else shown.rate
    if level is None:
        assert rate is not None
        level = rate.median
    if low is None:
        low = level if rate is None else min(level, rate.low)
    if high is None:
        high = level if rate is None else max(level, rate.high)
    if steps is None:
        steps = () if shown is None else (shown.index,)
    found = Ceiling(cause.component, side, cause.word, level, low, high, steps, standing)
    return Claim(found, words, reached, trust, partly, evidence, remedy, detail)
