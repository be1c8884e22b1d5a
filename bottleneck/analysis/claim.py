"""Constructor of claims: a ceiling with its cause, and the step that shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.steps import MeasuredStep

SURE, GAP, LIKENESS = 0.7, 0.58, 0.55
"""Highest confidence in a limit: usually; without proof of its cause; by a rough figure."""


@dataclass(frozen=True)
class Cause:
    """One cause of the verdict's words, with its texts."""

    component: str
    word: str
    label: str
    """Text for a reader: "link speed"."""
    title: str = ""
    """Name of the component with this cause; empty: the component's own."""
    limits_without_fault: bool = False
    """Whether the component remains a limit without it: a path has a link beside its faults."""
    remedy: str = ""
    """Action if only its side, {side}, is known."""


def behind(ceiling: Ceiling, cause: Cause, side: str | None, *steps: int) -> Ceiling:
    """Returns a ceiling with another cause; steps: indices of those that show that cause."""
    indices = tuple(dict.fromkeys((*ceiling.steps, *steps)))
    return replace(ceiling, component=cause.component, side=side, cause=cause.word, steps=indices)


def claim(
    cause: Cause,
    side: str | None,
    step: MeasuredStep | None,
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
    """Returns the claim of a ceiling: a step's rate and spread, or a level of its own.

    step: None: no step shows it, and only its level is known.
    """
    rate = None if step is None else step.rate
    if level is None:
        assert rate is not None
        level = rate.median
    if low is None:
        low = level if rate is None else min(level, rate.low)
    if high is None:
        high = level if rate is None else max(level, rate.high)
    if steps is None:
        steps = () if step is None else (step.index,)
    ceiling = Ceiling(cause.component, side, cause.word, level, low, high, steps, standing)
    return Claim(ceiling, words, reached, trust, partly, evidence, remedy, detail)
