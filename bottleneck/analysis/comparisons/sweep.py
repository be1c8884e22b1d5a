"""Buffer sizes side by side: what a program gets that sends and receives so much at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bottleneck.analysis import physics, steps
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.noise import SINGLE_RATIO, factor
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, rate_text, seconds_text, size_text

USUAL_BYTES = 8192
"""The buffer of many programs, and the one that ttcp and its kin take by themselves."""
ENOUGH_RATIO = 0.95
CALL_RATIO = 0.5
"""Of the best: below it a buffer's time is mostly the call itself."""


@dataclass(frozen=True)
class Point:
    """One buffer size that was measured."""

    told: dict[str, Any]
    buffer_bytes: float
    bytes_per_second: float

    @property
    def low(self) -> float:
        """Of its slowest pass."""
        return steps.positive(self.told, "low_bytes_per_second") or self.bytes_per_second

    @property
    def high(self) -> float:
        """Of its fastest pass."""
        return steps.positive(self.told, "high_bytes_per_second") or self.bytes_per_second


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each sweep: every buffer size against the best."""
    for found in steps.measured(report, "sweep"):
        points = tuple(_points(found))
        if len(points) < 2:
            continue
        best = max(points, key=lambda each: each.bytes_per_second)
        knee = _knee(found, points, best)
        small = _small(points, knee)
        doubt = physics.impossible(report, found)
        yield Comparison(
            about="buffers",
            sentence=doubt or _sentence(found, points, best, knee, small),
            rows=tuple(_row(found, each, best, knee) for each in points),
            ratio=factor(best.bytes_per_second, small.bytes_per_second),
            significant=doubt is None
            and small.high < best.low
            and factor(best.bytes_per_second, small.bytes_per_second) > SINGLE_RATIO,
            steps=(found.index,),
        )


def _points(found: Found) -> Iterator[Point]:
    for told in steps.items(found.outcome.details, "points"):
        size, rate = (steps.positive(told, name) for name in ("buffer_bytes", "bytes_per_second"))
        if size is not None and rate is not None:
            yield Point(told, size, rate)


def _knee(found: Found, points: tuple[Point, ...], best: Point) -> Point:
    """The smallest that is enough: as the stage tells, which knows the noise."""
    told = steps.positive(found.outcome.details, "knee_bytes")
    named = next((each for each in points if each.buffer_bytes == told), None)
    enough = [e for e in points if e.bytes_per_second >= ENOUGH_RATIO * best.bytes_per_second]
    return named or min(enough, key=lambda each: each.buffer_bytes)


def _small(points: tuple[Point, ...], knee: Point) -> Point:
    """The one to hold against the best: the usual one, where that is below the knee."""
    usual = next((each for each in points if each.buffer_bytes == USUAL_BYTES), None)
    if usual is not None and knee.buffer_bytes > USUAL_BYTES:
        return usual
    return min(points, key=lambda each: each.buffer_bytes)


def _where(found: Found) -> str:
    side = found.step.initiator
    if steps.word(found.step.setting, "over") == "loopback":
        return f"On the {side} alone"
    sender = steps.sender(steps.word(found.step.setting, "verb") or "", side)
    return f"From the {sender} to the {steps.other(sender)}"


def _sentence(
    found: Found, points: tuple[Point, ...], best: Point, knee: Point, small: Point
) -> str:
    rate = rate_text(best.bytes_per_second)
    least = min(points, key=lambda each: each.buffer_bytes)
    # Where the best was not reached a second time, the stage's knee is below 95 % of it.
    enough = percent_text(min(ENOUGH_RATIO, knee.bytes_per_second / best.bytes_per_second))
    if knee is least:
        size = size_text(least.buffer_bytes)
        return f"{_where(found)} calls of {size} already reach {enough} of the best ({rate})."
    share = percent_text(small.bytes_per_second / best.bytes_per_second)
    told = (
        f"{_where(found)} calls of {size_text(knee.buffer_bytes)} reach {enough} of the best "
        f"({rate}); {size_text(small.buffer_bytes)} gives {share} of it."
    )
    seconds = steps.positive(least.told, "seconds_per_call")
    if seconds is None or least.bytes_per_second > CALL_RATIO * best.bytes_per_second:
        return told
    return (
        f"{told} A call costs {seconds_text(seconds)}, even with {size_text(least.buffer_bytes)}."
    )


def _row(found: Found, point: Point, best: Point, knee: Point) -> dict[str, Any]:
    known = {
        name: steps.amount(point.told, name)
        for name in (
            *("calls", "calls_per_second", "seconds_per_call"),
            *("sender_cpu_seconds_per_byte", "receiver_cpu_seconds_per_byte"),
        )
    }
    return {
        "over": steps.word(found.step.setting, "over"),
        "verb": steps.word(found.step.setting, "verb"),
        "initiator": found.step.initiator,
        "buffer_bytes": int(point.buffer_bytes),
        "bytes_per_second": point.bytes_per_second,
        "low_bytes_per_second": point.low,
        "high_bytes_per_second": point.high,
        "best_ratio": point.bytes_per_second / best.bytes_per_second,
        "standing": "knee" if point is knee else None,
        **known,
    }
