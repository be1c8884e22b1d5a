"""The beginning of a copy against the rest of it: where its rate changed, and what did that.

Sources: the page cache takes writes until the dirty limit (Documentation/admin-guide/sysctl/vm.rst)
or the flush; a token bucket lets a burst through (tc-tbf(8)); slow start doubles what is in flight
in each round trip from 10 segments on (RFC 6928, RFC 5681).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import pairs as paired
from bottleneck.analysis.comparisons.pairs import Row
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import path_rate, transfers
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.noise import SINGLE_RATIO, differ, factor
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.steps import OWN, SYSTEM, Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.units import count_text, rate_text, seconds_text, size_text, times_text
from probes.records import Run, Sample, Spread

FIRST_SECONDS = 5.0
"""What is called the beginning of a copy whose rate does not change at once."""
SAME_RATIO = 1.3
"""How far TCP alone may be from a copy that the same shaper holds."""
BEHIND_RATIO = 1.5
"""How far a copy may stay behind what its receiver's disk writes when nothing else is going on."""
FIRST_WINDOW_BYTES = 10 * 1448
FAR_SECONDS = 0.005
"""A shorter round trip is past its slow start before it can be seen."""
ROUNDS_DOUBT = 3.0
"""A slow start may take so many times its least: it leaves early, and loses."""
LEAST_WINDOWS = 5
"""In each stretch: fewer lie together by chance."""
MOST_WINDOWS = 40
LEAST_SECONDS = 0.25
"""Of each stretch: what is shorter is a buffer that fills."""
ODD_ONES = 8
"""One window of so many may be anything: somebody else's moment."""


Begun = tuple[str, Row]
"""What follows a copy's name, without a full stop, and the figures of both parts."""


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison of all copies whose rate changes on the way, or that are long enough to."""
    found = [(half, each) for half in paired.halves(report) for each in _begun(report, half.copy)]
    if found:
        half, (words, row) = max(
            found, key=lambda each: (each[1][1]["significant"], each[1][1]["ratio"])
        )
        yield Comparison(
            about="start",
            sentence=f"{half.copy.name} ({paired.by(half.copy)}) {words}.",
            rows=tuple(each for _, (_, each) in found),
            ratio=row["ratio"],
            significant=row["significant"],
            steps=tuple(each.made.index for each, _ in found),
        )


def _begun(report: Report, copy: Copy) -> Iterator[Begun]:
    made = copy.made
    # Others' copies are sampled by looking at a file that grows in leaps.
    if made is None or copy.engine not in (OWN, SYSTEM):
        return
    # What a push had in flight: its samples tell what was acknowledged.
    fill = 0.0 if copy.verb == "pull" else made.details.in_flight_bytes or 0.0
    changed = change(median_run(made.outcome), fill)
    if changed is not None and _repeats(made, fill, changed):
        reasons = (_fell if changed.falls else _rose)(report, copy, changed)
        mechanism, why = next(reasons, ("unexplained", "No measurement explains this"))
        first, rest = changed.first.rate, changed.rest.rate
        yield (
            f"ran at {rate_text(first)} for the first {seconds_text(changed.seconds)} "
            f"({size_text(changed.moved_bytes)}), then at {rate_text(rest)} "
            f"({times_text(factor(first, rest))}). {why}",
            _row(copy, changed.seconds, changed.moved_bytes, first, rest, mechanism),
        )
        return
    late = tuple(_flushed_late(copy, made))
    yield from late
    whole = split(median_run(made.outcome), FIRST_SECONDS)
    if not late and whole is not None and min(whole.first.rate, whole.rest.rate) > 0:
        first, rest = whole.first.rate, whole.rest.rate
        yield (
            f"ran at {rate_text(first)} for the first {seconds_text(whole.seconds)}, then at "
            f"{rate_text(rest)}: no significant difference",
            _row(copy, whole.seconds, whole.moved_bytes, first, rest, "none"),
        )


def _repeats(made: Found, fill: float, told: Change) -> bool:
    """Whether the other runs changed to the same side."""
    others = [change(run, fill) for run in made.outcome.runs]
    return all(each is not None and each.falls == told.falls for each in others)


def _fell(report: Report, copy: Copy, found: Change) -> Iterator[tuple[str, str]]:
    first, rest = found.first.rate, found.rest.rate
    carried = path_rate(report, copy.sender)
    if copy.native and copy.verb == "push" and carried and first > SINGLE_RATIO * carried:
        yield (
            "mount-cache",
            f"The mount cached the writes in the {copy.initiator}'s memory: the network carries "
            f"at most {rate_text(carried)}",
        )
    for each in transfers(report, copy.sender):
        alone = change(median_run(each.outcome))
        if alone is not None and alone.falls and factor(alone.rest.rate, rest) <= SAME_RATIO:
            yield (
                "shaper",
                f"A shaper allows a burst: TCP from the {copy.sender} does the same "
                f"({rate_text(alone.first.rate)} for {size_text(alone.moved_bytes)}, then "
                f"{rate_text(alone.rest.rate)})",
            )
    # What the receiver's disk writes alone, flushed.
    disk = steps.fastest(disk_steps(report, copy.receiver, "write", "sequential"))
    written = math.inf if disk is None else disk.rate.median
    if first >= SINGLE_RATIO * written and written / BEHIND_RATIO <= rest <= SINGLE_RATIO * written:
        yield (
            "writeback",
            f"The {copy.receiver}'s memory took the first {size_text(found.moved_bytes)}, then its "
            f"disk set the rate (write-back): it writes {rate_text(written)}",
        )


def _rose(report: Report, copy: Copy, found: Change) -> Iterator[tuple[str, str]]:
    seen = rtt(report, copy.made)
    if seen is None or seen.seconds < FAR_SECONDS:
        return
    doublings = math.log2(max(2.0, found.rest.rate * seen.seconds / FIRST_WINDOW_BYTES))
    if found.seconds <= ROUNDS_DOUBT * doublings * seen.seconds:
        yield (
            "slow-start",
            f"TCP slow start needs at least {count_text(math.ceil(doublings))} round trips to that "
            f"rate, at an RTT of {seconds_text(seen.seconds)}",
        )


def _flushed_late(copy: Copy, made: Found) -> Iterator[Begun]:
    """A pull whose last byte had come long before the disk had it; pushes are durability's.

    Nothing where the flush took no time that matters.
    """
    flush = made.details.flush_seconds
    acknowledged = made.details.acknowledged_bytes_per_second
    if copy.verb == "push" or not flush or acknowledged is None:
        return
    if (ratio := acknowledged / made.rate.median) >= SINGLE_RATIO:
        moved = median_run(made.outcome)[-1].moved_bytes
        seconds = moved / acknowledged
        row = _row(copy, seconds, moved, acknowledged, None, "writeback")
        yield (
            f"ran at {rate_text(acknowledged)} for the first {seconds_text(seconds)}. The final "
            f"flush to the {copy.receiver}'s disk took another {seconds_text(flush)} (write-back)",
            {**row, "ratio": ratio},
        )


def _row(
    copy: Copy, seconds: float, moved: float, first: float, rest: float | None, mechanism: str
) -> Row:
    """rest: None where nothing moved any more, but the flush; mechanism: "none": as it began."""
    return {
        "copy": copy.name,
        **paired.who(copy),
        "until_seconds": seconds,
        "until_bytes": moved,
        "first_bytes_per_second": first,
        "rest_bytes_per_second": rest,
        "ratio": None if rest is None else factor(first, rest),
        "significant": mechanism != "none",
        "mechanism": mechanism,
    }


# -- where a rate changes for good: two stretches apart by more than their own noise -------------


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
