"""One way to claim a ceiling: its cause, the step that shows it, and where the evidence is from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.steps import Found

Source = Literal[
    "certain", "counted", "measured", "seen", "alone", "one-end", "law", "gap", "likeness"
]
TRUST: dict[Source, float] = {
    "certain": 0.99,
    "counted": 0.99,
    "measured": 0.98,
    "seen": 0.98,
    "alone": 0.94,
    "one-end": 0.88,
    "law": 0.88,
    "gap": 0.65,
    "likeness": 0.6,
}
"""The most that a verdict may be sure of, by where its evidence is from: what was right in the lab.

certain: a stage of its own reached it; counted: the kernel counted just that; measured: a stage or
both hosts' kernels showed it, with nothing else in the way; seen: the copy's own connection, or
hardware whose figures fit; alone: a stage beside the copy, or a setting that explains it; one-end:
one host's view, or a figure that nobody measured here; law: a law or a likeness that the figures
fit; gap: a difference that is sure, with a cause that is not; likeness: a rough figure.
"""


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


def ceiling(
    cause: Cause,
    side: str | None,
    shown: Found | None,
    *,
    level: float | None = None,
    low: float | None = None,
    high: float | None = None,
    steps: tuple[int, ...] | None = None,
    standing: Standing = "measured",
) -> Ceiling:
    """The ceiling that a step shows: its rate with its spread, or a level of one's own around it.

    shown: None: no step shows it, and its level is all that is known.
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
    return Ceiling(cause.component, side, cause.word, level, low, high, steps, standing)


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
    source: Source = "certain",
    partly: Source | None = None,
    evidence: tuple[str, ...] = (),
    remedy: str = "",
    detail: str = "",
    window_bytes: float = 0.0,
) -> Claim:
    """A ceiling as above with the reasons for it; partly: the source of its partial trust."""
    return Claim(
        ceiling(
            cause, side, shown, level=level, low=low, high=high, steps=steps, standing=standing
        ),
        words,
        reached,
        TRUST[source],
        0.0 if partly is None else TRUST[partly],
        evidence,
        remedy,
        detail,
        window_bytes,
    )
