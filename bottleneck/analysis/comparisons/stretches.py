"""Where in a run the rate changes for good: two stretches apart by more than their own noise."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from bottleneck.analysis.noise import differ
from probes.records import Run, Sample, Spread

LEAST_WINDOWS = 5
"""In each stretch: fewer lie together by chance."""
MOST_WINDOWS = 40
LEAST_SECONDS = 0.25
"""Of each stretch: what is shorter is a buffer that fills."""
ODD_ONES = 8
"""One window of so many may be anything: somebody else's moment."""


@dataclass(frozen=True)
class Stretch:
    """A part of a run, as windows of samples."""

    begin: Sample
    end: Sample
    window_rates: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end.elapsed_seconds - self.begin.elapsed_seconds

    @property
    def rate(self) -> float:
        """Bytes per second over all of it."""
        return (self.end.moved_bytes - self.begin.moved_bytes) / self.seconds

    @property
    def spread(self) -> Spread:
        """The rate, between the rates of its windows but for the odd ones."""
        rates = sorted(self.window_rates, key=lambda each: abs(each - self.rate))
        kept = rates[: len(rates) - len(rates) // ODD_ONES]
        return Spread(self.rate, min(kept), max(kept), 1)


@dataclass(frozen=True)
class Change:
    """A run's beginning and the rest of it."""

    first: Stretch
    rest: Stretch

    @property
    def falls(self) -> bool:
        """Whether the rest is slower."""
        return self.rest.rate < self.first.rate

    @property
    def seconds(self) -> float:
        """When it changed, since the run began."""
        return self.rest.begin.elapsed_seconds

    @property
    def moved_bytes(self) -> int:
        """What had arrived until then."""
        return self.rest.begin.moved_bytes


def change(run: Run, fill_bytes: float = 0.0) -> Change | None:
    """The one change of a run's rate; None: there is none, or too few samples to tell.

    Args:
        run: of which the last sample is left out: it holds the flush.
        fill_bytes: what may be in flight: so much at the beginning and at the end of a push is
            acknowledged at another rate than it moves.
    """
    windows = _windows(_inner(run, fill_bytes))
    options = [_split(windows, at) for at in range(LEAST_WINDOWS, len(windows) - LEAST_WINDOWS)]
    lasting = [
        each for each in options if min(each.first.seconds, each.rest.seconds) >= LEAST_SECONDS
    ]
    best = min(lasting, key=_misfit, default=None)
    if best is None or min(best.first.rate, best.rest.rate) <= 0:
        return None
    return best if differ(best.first.spread, best.rest.spread) else None


def split(run: Run, seconds: float) -> Change | None:
    """A run before and after a moment; None: too few samples on one side of it."""
    windows = _windows(run[:-1])
    at = sum(each.elapsed_seconds <= seconds for each in windows) - 1
    if not LEAST_WINDOWS <= at < len(windows) - LEAST_WINDOWS:
        return None
    return _split(windows, at)


def _inner(run: Run, fill_bytes: float) -> Run:
    """The samples between the first fill of the pipe and the last."""
    last = run[-1].moved_bytes - fill_bytes
    return tuple(each for each in run[:-1] if fill_bytes <= each.moved_bytes <= last)


def _windows(samples: Run) -> Run:
    """At most so many samples, evenly taken, the clock moving on between any two."""
    every = -(-len(samples) // MOST_WINDOWS) or 1
    kept: list[Sample] = []
    for each in samples[::every]:
        if not kept or each.elapsed_seconds > kept[-1].elapsed_seconds:
            kept.append(each)
    return tuple(kept)


def _split(windows: Run, at: int) -> Change:
    return Change(_stretch(windows[: at + 1]), _stretch(windows[at:]))


def _stretch(windows: Run) -> Stretch:
    rates = tuple(
        (after.moved_bytes - before.moved_bytes) / (after.elapsed_seconds - before.elapsed_seconds)
        for before, after in zip(windows, windows[1:], strict=False)
    )
    return Stretch(windows[0], windows[-1], rates)


def _misfit(found: Change) -> float:
    """How badly two constant rates describe the run."""
    parts = (found.first.window_rates, found.rest.window_rates)
    return sum((rate - fmean(rates)) ** 2 for rates in parts for rate in rates)
