"""A copy's median run at its place on a time axis, and its rate from sample to sample."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import pairwise

from bottleneck.analysis.steps import Copy, Found
from bottleneck.reports.plots.axes import MOST
from probes.records import Run

MOST_POINTS = 400
SHORT_RATIO = 0.5
"""Of the usual time between two samples."""


@dataclass(frozen=True)
class Span:
    """A copy's median run at its place on the axis."""

    copy: Copy
    made: Found
    run: Run
    begin: float
    """Seconds from the axis's start."""

    @property
    def seconds(self) -> float:
        """How long the run took."""
        return self.run[-1].elapsed_seconds - self.run[0].elapsed_seconds

    @property
    def rates(self) -> list[tuple[float, float, float]]:
        """From, to and the rate between two samples, bytes per second; at most MOST_POINTS.

        What lies much closer together than others do is taken as one: it shows no rate.
        """
        apart = [after.elapsed_seconds - one.elapsed_seconds for one, after in pairwise(self.run)]
        least = max(SHORT_RATIO * statistics.median(apart), self.seconds / MOST_POINTS)
        kept = [self.run[0]]
        for each in self.run[1:]:
            if each.elapsed_seconds - kept[-1].elapsed_seconds >= least:
                kept.append(each)
        # The last sample holds what the receiver confirmed.
        last = self.run[-1]
        near = last.elapsed_seconds - kept[-1].elapsed_seconds < least
        kept[-1:] = [last] if near and len(kept) > 1 else [kept[-1], last]
        zero = self.begin - self.run[0].elapsed_seconds
        return [
            (
                zero + one.elapsed_seconds,
                zero + after.elapsed_seconds,
                min(MOST, (after.moved_bytes - one.moved_bytes) / lasted),
            )
            for one, after in pairwise(kept)
            if (lasted := after.elapsed_seconds - one.elapsed_seconds) > 0
        ]
