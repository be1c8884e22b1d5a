"""How long a stage that explains the copies may take beside them."""

from __future__ import annotations

from bottleneck.bench import Bench
from probes.records import DIALECTS

LEAST_BUDGET_SECONDS = 30.0
"""A shorter run has its time for the copies alone."""
USUAL_BUDGET_SECONDS = 60.0
MOST_TIMES_USUAL = 5.0
SHARE_OF_LEFT = 0.25
LEAST_TIMES_USUAL = 0.4


def alone(bench: Bench, stage: str) -> bool:
    """Whether nothing but this stage was asked for."""
    return bench.options.stages == (stage,)


def seconds_for(bench: Bench, stage: str, usual_seconds: float, parts: int = 1) -> float | None:
    """Seconds for a stage that usually takes so long; None: left out, which is noted.

    parts: how many times as long the stage takes if it is all that was asked for.
    """
    budget = bench.options.budget_seconds
    if alone(bench, stage):
        return max(LEAST_TIMES_USUAL * usual_seconds, min(4 * usual_seconds, bench.left() / parts))
    seconds = usual_seconds * min(MOST_TIMES_USUAL, budget / USUAL_BUDGET_SECONDS)
    seconds = min(seconds, SHARE_OF_LEFT * bench.left())
    if budget < LEAST_BUDGET_SECONDS or seconds < LEAST_TIMES_USUAL * usual_seconds:
        bench.note(f"{stage}: left out, so that the copies get their time: give a larger --budget")
        return None
    return seconds


def thorough(bench: Bench, stage: str) -> bool:
    """Whether there is time for what explains a copy less directly."""
    return alone(bench, stage) or bench.options.budget_seconds >= 2 * USUAL_BUDGET_SECONDS


def dialect(bench: Bench) -> str:
    """The dialect that holds the run's folder: the newest of those asked for, or the best."""
    told = str(bench.share.facts["dialect"])
    assert told in DIALECTS
    return told
