"""Copies over time with their hosts' memory, and the rate of a copy over its runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.steps import NATIVE, OWN, RUNNING, SYSTEM, Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.reports.plots import charts, shapes
from bottleneck.reports.plots.shapes import LINE, WIDTH, label, text_width
from bottleneck.safe import safe
from bottleneck.trend import Point, Trend
from bottleneck.units import range_text, rate_text, seconds_text, size_text
from bottleneck.words import dialect_text
from probes.records import SIDES, Run

MOST_COPIES = 8
MOST_POINTS = 400
SHORT_RATIO = 0.5
"""Of the usual time between two samples."""
SAMPLED = (OWN, SYSTEM, RUNNING)
"""Who moved the bytes of copies whose samples are fine enough to show a rate."""
FLUSH_RATIO = 0.05
RIGHT = WIDTH - 6.0
TOP, BOTTOM = 38.0, 158.0
MEMORY_TALL = 74.0
MEMORIES: tuple[tuple[str, str, str, charts.Dot], ...] = (
    ("memory_cached_bytes", "page cache", "fill-series-2", shapes.square),
    ("memory_used_bytes", "in use", "fill-series-3", shapes.circle),
    ("memory_dirty_bytes", "not yet on disk", "fill-series-4", shapes.triangle),
)
"""A host's fields, in words, and how they are drawn."""
MOST_TRENDS, MOST_RUNS, MOST_CAPS = 8, 120, 8
TREND_TOP, TREND_BOTTOM = 36.0, 176.0


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
    def end(self) -> float:
        """Seconds from the axis's start."""
        return self.begin + self.seconds

    @property
    def name(self) -> str:
        """The copy's, safe."""
        return safe(self.copy.name, 40)

    @property
    def engine(self) -> str:
        """What made it: `SMB 3.1.1`, `SMB 3.1.1 by smbclient`, `the operating system's copy`."""
        if self.copy.dialect == NATIVE:
            return "the operating system's copy"
        program = "" if self.copy.engine == OWN else f" by {safe(self.copy.engine, 24)}"
        return f"{dialect_text(self.copy.dialect)}{program}"

    def memory(self, side: str) -> list[float | None]:
        """What a side tells of its memory at the run's end, as MEMORIES has it."""
        usage = self.made.usage(side)
        return [getattr(usage, name, None) for name, *_ in MEMORIES]

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
                min(charts.MOST, (after.moved_bytes - one.moved_bytes) / lasted),
            )
            for one, after in pairwise(kept)
            if (lasted := after.elapsed_seconds - one.elapsed_seconds) > 0
        ]


def timeline(report: Report, diagnosis: Diagnosis) -> Iterator[charts.Plot]:
    """One drawing of the copies that were made; none where there is none.

    Each copy's median run, one after the other on one axis. Memory is known at the end of a run
    alone: it is drawn there as a point, and nowhere else.
    """
    every = [each for each in steps.copies(report) if each.made is not None]
    made = [each for each in every if each.engine in SAMPLED]
    chosen = charts.headline(report, diagnosis)
    if chosen is not None:
        # The headline's first: others may be left out.
        made.sort(key=lambda each: each.index != chosen.index)
    spans = tuple(_spans(made[:MOST_COPIES]))
    if not spans:
        return
    known = any(e is not None for span in spans for side in SIDES for e in span.memory(side))
    sentence = "The rate of each copy's median run, from sample to sample."
    if known:
        sentence += " Points show the memory, which is known at the end of each run only."
    if any(_flushes(span) for span in spans):
        sentence += " A rate of 0 at the end of a copy is the final flush to disk."
    if len(made) < len(every):
        sentence += " Copies by other programs are not drawn: their samples are too coarse."
    sentence += charts.bounded(spans, made, "copies")
    title = "Rate and memory over time" if known else "Rate over time"
    titles = (
        *("", "copy", "by", "duration", "rate"),
        *(f"{side}: {words}" for side in SIDES for _, words, *_ in MEMORIES),
    )
    rows = [_row(at, span) for at, span in enumerate(spans, 1)]
    yield charts.plot("timeline", title, sentence, _timeline(spans), titles, rows)


def _spans(made: list[Copy]) -> Iterator[Span]:
    begin = 0.0
    for copy in made:
        if copy.made is not None:
            span = Span(copy, copy.made, median_run(copy.made.outcome), begin)
            begin = span.end
            yield span


def _flushes(span: Span) -> bool:
    """Whether the flush takes a part of the run that can be seen."""
    flush = steps.positive(span.made.outcome.details, "flush_seconds")
    return flush is not None and flush > FLUSH_RATIO * span.seconds


def _row(at: int, span: Span) -> tuple[str, ...]:
    rate = rate_text(span.made.rate.median)
    amounts = [each for side in SIDES for each in span.memory(side)]
    told = ("" if each is None else size_text(each) for each in amounts)
    return (f"{at}", span.name, span.engine, seconds_text(span.seconds), rate, *told)


def _timeline(spans: tuple[Span, ...]) -> charts.Drawn:
    across = (0.0, spans[-1].end)
    most = 1.05 * max(rate for span in spans for _, _, rate in span.rates)
    unit, ticks = charts.rate_ticks(most)
    memories = {side: 1.05 * max(_amounts(spans, side), default=0.0) for side in SIDES}
    panels = {side: (amount, _size_ticks(amount)) for side, amount in memories.items() if amount}
    left = max(charts.margin(each) for each in (ticks, *(each for _, each in panels.values())))
    title, box = f"rate, {unit}", (TOP, RIGHT, BOTTOM)
    made = charts.chart(title, ticks, across, (0.0, most), box, left=left)
    _edges(made, spans, TOP - 8)
    free = 0.0
    for at, span in enumerate(spans, 1):
        points = [(when, rate) for begin, end, rate in span.rates for when in (begin, end)]
        colour = "line-accent" if at == 1 else "line-series-6"
        made.curve(points, colour, f"{span.name}, {span.engine}")
        half = text_width(f"{at}") / 2
        place = min(WIDTH - half, max(half, made.x.at(span.begin + span.seconds / 2)))
        # A run too short for its number is found by its place in the list below.
        if place - half >= free:
            made.add(label(place, TOP - 10, f"{at}", "strong" if at == 1 else "", "middle"))
            free = place + half + 3
    parts = made.parts
    for side, (amount, sizes) in panels.items():
        top = made.y.start + 34
        box = (top, RIGHT, top + MEMORY_TALL - 4)
        title = f"{side} memory at the end of each run"
        made = charts.chart(title, sizes, across, (0.0, amount), box, left=left, above=10)
        _edges(made, spans, top - 4)
        for span in spans:
            _memory(made, span, side)
        parts += made.parts
    figures = charts.round_ticks(across[1], 5)
    seconds = charts.ticks_at(figures, lambda each: charts.figure_text(each, figures))
    last = charts.Chart(made.x, made.y, parts)
    last.level_axis(seconds, "time, seconds")
    drawn = [
        (charts.dot_mark(dot, name, 3.5), words)
        for at, (_, words, name, dot) in enumerate(MEMORIES)
        if any(span.memory(side)[at] is not None for span in spans for side in panels)
    ]
    shown, below = charts.key(drawn, made.y.start + 44)
    for at, span in enumerate(spans, 1):
        text = f"{at}  {span.name}, {span.engine}"
        parts.append(label(0, below + LINE - 3, text, "strong" if at == 1 else ""))
        below += LINE
    return below + 4, [*parts, shown]


def _edges(made: charts.Chart, spans: tuple[Span, ...], top: float) -> None:
    """Where one run ends and the next begins."""
    for each in spans[1:]:
        at = made.x.at(each.begin)
        made.add(shapes.line(at, top, at, made.y.start, "edge"))


def _amounts(spans: tuple[Span, ...], side: str) -> list[float]:
    return [each for span in spans for each in span.memory(side) if each is not None]


def _size_ticks(most: float) -> tuple[charts.Tick, ...]:
    """Round figures in the unit of RAM that the highest is told in."""
    unit = next((u for u in (2**40, 2**30, 2**20, 2**10) if most >= u), 1)
    rounded = charts.round_ticks(most / unit, 2)
    return charts.ticks_at(tuple(each * unit for each in rounded), size_text)


def _memory(made: charts.Chart, span: Span, side: str) -> None:
    for amount, (_, words, name, dot) in zip(span.memory(side), MEMORIES, strict=True):
        if amount is not None:
            tip = f"{side} after {span.name}: {size_text(amount)} {words}"
            made.add(dot(made.x.at(span.end) - 4, made.y.at(amount), 3.5, name, tip))


def trend_plots(trends: Sequence[Trend]) -> tuple[charts.Plot, ...]:
    """A drawing for each trend of two runs and more, the newest runs of long ones."""
    told = [each for each in trends if len(each.points) > 1]
    drawn = charts.numbered(told, MOST_TRENDS)
    return tuple(_trend_plot(f"trend-{at}", each, more) for at, each, more in drawn)


def _trend_plot(name: str, trend: Trend, more: str) -> charts.Plot:
    points = trend.points[-MOST_RUNS:]
    # Of each new cap the first run, the very first run's too; bounded, the newest.
    changes = [at for at, each in enumerate(points) if at == 0 or each.cap != points[at - 1].cap]
    changes = changes[-MOST_CAPS:]
    title = f"{safe(trend.copy, 40)}, {dialect_text(trend.dialect)}, over {len(points)} runs"
    sentence = _trend_sentence(trend, points, changes) + more
    rows = (
        (
            safe(each.started, 40),
            rate_text(each.bytes_per_second),
            range_text(each.low_bytes_per_second, each.high_bytes_per_second),
            safe(each.cap, 60),
        )
        for each in points
    )
    titles = ("run", "rate", "range", "bottleneck")
    return charts.plot(name, title, sentence, _trend(points, changes), titles, rows)


def _trend_sentence(trend: Trend, points: Sequence[Point], changes: list[int]) -> str:
    rates = [each.bytes_per_second for each in points]
    told = f"{len(points)} runs at {range_text(min(rates), max(rates))}"
    if len(points) < len(trend.points):
        told += f", the newest of {len(trend.points)}"
    turns = sum(at > 0 for at in changes)
    many = "once" if turns == 1 else f"{turns} times"
    return f"{told}. The bottleneck {f'changed {many}' if turns else 'is the same in all runs'}."


def _trend(points: Sequence[Point], changes: list[int]) -> charts.Drawn:
    most = 1.05 * max(max(each.high_bytes_per_second, each.bytes_per_second) for each in points)
    runs, box = (0.0, float(len(points) - 1)), (TREND_TOP, RIGHT, TREND_BOTTOM)
    made = charts.chart(*charts.rate_ticks(most), runs, (0.0, most), box, inset=8)
    made.curve(enumerate(each.bytes_per_second for each in points), "line-series-1")
    for at, each in enumerate(points):
        made.whisker(at, each.low_bytes_per_second, each.high_bytes_per_second, 2)
        tip = f"{safe(each.started, 40)}: {rate_text(each.bytes_per_second)}, {safe(each.cap, 60)}"
        made.dot(at, each.bytes_per_second, "fill-series-1", tip)
    free = 0.0
    for number, at in enumerate(changes, 1):
        place = made.x.at(at)
        if at:
            # Between the last run with the old cap and the first with the new one.
            place = (place + made.x.at(at - 1)) / 2
            made.add(shapes.line(place, TREND_TOP - 6, place, TREND_BOTTOM, "guide turn"))
        if place >= free:
            made.add(label(place, TREND_TOP - 10, f"{number}", "strong", "middle"))
            free = place + text_width("00")
    left = made.x.start - 8
    half, below = (RIGHT - left) / 2 - 4, TREND_BOTTOM + 16
    made.add(label(left, below, _day(points[0]), "muted", width=half))
    made.add(label(RIGHT, below, _day(points[-1]), "muted", "end", half))
    below += 8 + LINE
    made.add(label(0, below - 3, "bottleneck", "muted"))
    for number, at in enumerate(changes, 1):
        below += LINE
        since = f"{number}  from {_day(points[at])}: {safe(points[at].cap, 60)}"
        made.add(label(0, below - 3, since))
    return below + 4, made.parts


def _day(point: Point) -> str:
    """The day of a run: `2026-11-20`."""
    try:
        return datetime.fromisoformat(point.started).date().isoformat()
    except ValueError:
        return safe(point.started, 24)
