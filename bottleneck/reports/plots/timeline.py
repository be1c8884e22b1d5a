"""Rate and memory over time: each copy's median run, one after the other on one axis.

Memory is known at the end of a run alone: it is drawn there as a point, and nowhere else.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.steps import NATIVE, OWN, RUNNING, SYSTEM, Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.axes import (
    MOST,
    Mark,
    Scale,
    Tick,
    figure_text,
    key,
    margin,
    marks_below,
    rate_ticks,
    round_ticks,
    rules,
)
from bottleneck.reports.plots.plot import Plot, headline, plot
from bottleneck.reports.plots.shapes import LINE, WIDTH, Point, label, text_width
from bottleneck.reports.safe import safe
from bottleneck.reports.units import rate_text, seconds_text, size_text
from bottleneck.reports.words import dialect_text
from probes.records import SIDES, Run, Usage

MOST_COPIES = 8
MOST_POINTS = 400
SHORT_RATIO = 0.5
"""Of the usual time between two samples."""
SAMPLED = (OWN, SYSTEM, RUNNING)
"""Who moved the bytes of copies whose samples are fine enough to show a rate."""
FLUSH_RATIO = 0.05
TOP, TALL = 38.0, 120.0
MEMORY_TALL = 74.0
RIGHT = WIDTH - 6.0
MEMORIES: tuple[tuple[str, str, str], ...] = (
    ("memory_cached_bytes", "page cache", "series-2"),
    ("memory_used_bytes", "in use", "series-3"),
    ("memory_dirty_bytes", "not yet written", "series-4"),
)
DOTS = {"series-2": shapes.square, "series-3": shapes.circle, "series-4": shapes.triangle}


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


def timeline(report: Report, diagnosis: Diagnosis) -> Iterator[Plot]:
    """One drawing of the copies that were made; none where there is none."""
    every = [each for each in steps.copies(report) if each.made is not None]
    made = [each for each in every if each.engine in SAMPLED]
    chosen = headline(report, diagnosis)
    if chosen is not None:
        # The headline's first: others may be left out.
        made.sort(key=lambda each: each.index != chosen.index)
    spans = tuple(_spans(made[:MOST_COPIES]))
    if not spans:
        return
    known = any(_memory(span.made, side) for span in spans for side in SIDES)
    sentence = "The median run of each copy, one after the other: its rate from sample to sample."
    if known:
        sentence += " Memory is known at the end of each run: a point stands there, no line."
    if any(_flushes(span) for span in spans):
        sentence += " Where a copy's rate is 0 at its end it waits for the flush to the disk."
    if len(made) < len(every):
        sentence += " Copies by other programs are left out: their files are seen to grow in leaps."
    if len(spans) < len(made):
        sentence += f" {len(spans)} of {len(made)} copies are drawn."
    title = "Rate and memory over the copies' time" if known else "Rate over the copies' time"
    titles = (
        *("", "copy", "by", "run took", "rate"),
        *(f"{side}: {words}" for side in SIDES for _, words, _ in MEMORIES),
    )
    rows = [_row(at, span) for at, span in enumerate(spans, 1)]
    yield plot("timeline", title, sentence, _drawn(spans), titles, rows)


def _engine(copy: Copy) -> str:
    """What made a copy: `SMB 3.1.1`, `SMB 3.1.1 by smbclient`, `the system's own copy`."""
    if copy.dialect == NATIVE:
        return "the system's own copy"
    program = "" if copy.engine == OWN else f" by {safe(copy.engine, 24)}"
    return f"{dialect_text(copy.dialect)}{program}"


def _spans(made: list[Copy]) -> Iterator[Span]:
    begin = 0.0
    for copy in made:
        if copy.made is not None:
            span = Span(copy, copy.made, median_run(copy.made.outcome), begin)
            begin += span.seconds
            yield span


def _memory(made: Found, side: str) -> Usage | None:
    """What a side tells of its memory; None: nothing."""
    usage = made.usage(side)
    told = usage is not None and any(getattr(usage, name) is not None for name, _, _ in MEMORIES)
    return usage if told else None


def _flushes(span: Span) -> bool:
    """Whether the flush takes a part of the run that can be seen."""
    flush = steps.positive(span.made.outcome.details, "flush_seconds")
    return flush is not None and flush > FLUSH_RATIO * span.seconds


def _row(at: int, span: Span) -> tuple[str, ...]:
    usages = [span.made.usage(side) for side in SIDES]
    amounts = [getattr(usage, name, None) for usage in usages for name, _, _ in MEMORIES]
    return (
        f"{at}",
        safe(span.copy.name, 40),
        _engine(span.copy),
        seconds_text(span.seconds),
        rate_text(span.made.rate.median),
        *("" if each is None else size_text(each) for each in amounts),
    )


def _drawn(spans: tuple[Span, ...]) -> tuple[float, list[str]]:
    lasted = spans[-1].begin + spans[-1].seconds
    most = 1.05 * max(rate for span in spans for _, _, rate in span.rates)
    unit, ticks = rate_ticks(most)
    memories = {side: _most_memory(spans, side) for side in SIDES}
    panels = {side: amount for side, amount in memories.items() if amount}
    bytes_ticks = {side: _size_ticks(amount) for side, amount in panels.items()}
    left = max(margin(each) for each in (ticks, *bytes_ticks.values()))
    x = Scale(0.0, lasted, left, RIGHT)
    bottom = TOP + TALL
    y = Scale(0.0, most, bottom, TOP)
    parts = [label(0, 12, f"throughput, {unit}", "muted"), *rules(ticks, y, left, RIGHT)]
    parts += _edges(spans, x, TOP - 8, bottom)
    free = 0.0
    for at, span in enumerate(spans, 1):
        parts += _curve(at, span, x, y)
        half = text_width(f"{at}") / 2
        place = min(WIDTH - half, max(half, x.at(span.begin + span.seconds / 2)))
        # A run too short for its number is found by its place in the list below.
        if place - half >= free:
            style = "strong" if at == 1 else ""
            parts.append(label(place, TOP - 10, f"{at}", style, "middle"))
            free = place + half + 3
    floor = bottom
    for side, amount in panels.items():
        floor += 30
        parts.append(label(0, floor - 6, f"{side}'s memory at the end of each run", "muted"))
        upright = Scale(0.0, amount, floor + MEMORY_TALL, floor + 4)
        parts += rules(bytes_ticks[side], upright, left, RIGHT)
        parts += _edges(spans, x, floor, floor + MEMORY_TALL)
        for span in spans:
            parts += _points(span, side, x, upright)
        floor += MEMORY_TALL
    figures = round_ticks(lasted, 5)
    seconds = tuple(Tick(each, figure_text(each, figures)) for each in figures)
    parts += marks_below(seconds, x, floor, WIDTH)
    parts.append(label((left + RIGHT) / 2, floor + 32, "seconds of copying", "muted", "middle"))
    below = floor + 44
    drawn = [row for row in MEMORIES if any(_amounts(spans, side, row[0]) for side in panels)]
    entries = [(_swatch(colour), words) for _, words, colour in drawn]
    shown, below = key(entries, below)
    for at, span in enumerate(spans, 1):
        text = f"{at}  {safe(span.copy.name, 40)}, {_engine(span.copy)}"
        parts.append(label(0, below + LINE - 3, text, "strong" if at == 1 else ""))
        below += LINE
    return below + 4, [*parts, shown]


def _edges(spans: tuple[Span, ...], x: Scale, top: float, bottom: float) -> Iterator[str]:
    """Where one run ends and the next begins."""
    for each in spans[1:]:
        yield shapes.line(x.at(each.begin), top, x.at(each.begin), bottom, "edge")


def _curve(at: int, span: Span, x: Scale, y: Scale) -> Iterator[str]:
    """The rate as steps from sample to sample."""
    points: list[Point] = []
    for begin, end, rate in span.rates:
        points += [(x.at(begin), y.at(rate)), (x.at(end), y.at(rate))]
    name = safe(span.copy.name, 40)
    colour = "accent" if at == 1 else "series-6"
    yield shapes.polyline(points, f"stroke line-{colour}", f"{name}, {_engine(span.copy)}")


def _amounts(spans: tuple[Span, ...], side: str, name: str) -> list[float]:
    told = (getattr(span.made.usage(side), name, None) for span in spans)
    return [float(each) for each in told if each is not None]


def _most_memory(spans: tuple[Span, ...], side: str) -> float:
    """The most that a point stands for; 0: a side tells nothing."""
    return 1.05 * max((max(_amounts(spans, side, n), default=0.0) for n, _, _ in MEMORIES))


def _size_ticks(most: float) -> tuple[Tick, ...]:
    """Round figures in the unit of RAM that the highest is told in."""
    unit = next((u for u in (2**40, 2**30, 2**20, 2**10) if most >= u), 1)
    return tuple(Tick(each * unit, size_text(each * unit)) for each in round_ticks(most / unit, 2))


def _points(span: Span, side: str, x: Scale, y: Scale) -> Iterator[str]:
    usage = span.made.usage(side)
    for name, words, colour in MEMORIES:
        amount = getattr(usage, name, None)
        if amount is not None:
            tip = f"{side} after {safe(span.copy.name, 40)}: {size_text(amount)} {words}"
            at = x.at(span.begin + span.seconds) - 4
            yield DOTS[colour](at, y.at(amount), 3.5, f"fill-{colour}", tip)


def _swatch(colour: str) -> Mark:
    return lambda x, y: DOTS[colour](x, y, 3.5, f"fill-{colour}", "")
