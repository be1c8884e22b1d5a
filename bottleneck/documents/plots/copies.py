"""A copy over time: its rate, who had work, and its queues."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import pairwise

from bottleneck.analysis import steps
from bottleneck.analysis.attribution.attribution import attribution_of, timed_copy
from bottleneck.analysis.attribution.shares import Time
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.facts import captured
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis, Part, TimeShare
from bottleneck.analysis.phrases import LEAST_SHARE, dialect_text, share_name
from bottleneck.analysis.steps import NATIVE, OWN, RUNNING, SYSTEM, Copy
from bottleneck.documents.plots import charts, shapes
from bottleneck.documents.plots.shapes import WIDTH, text_width
from bottleneck.report.report import Report, median_run
from bottleneck.text.safe import safe
from bottleneck.text.units import percent_text, rate_text, seconds_text, size_text
from probes.core.records import Run

MOST_COPIES = 16
MOST_POINTS = 400
SHORT_RATIO = 0.5
"""Share of the usual time between two samples, below which they are merged."""
FINELY_SAMPLED_ENGINES = (OWN, SYSTEM, RUNNING)
"""Engines whose samples are fine enough to show a rate."""
RIGHT = WIDTH - 6.0
TOP, TALL, APART = 30.0, 84.0, 32.0
"""The first panel's top, each panel's height, and the room between two of them."""
MOST_PERIODS, LEAST_SLICES, MOST_READINGS = 48, 2, 120
"""Limit of periods with LEAST_SLICES of the time each; limit of readings of a socket."""
COLOURS: dict[Part, str] = {
    ("network", "path"): "fill-series-1",
    ("disk", "server"): "fill-series-2",
    ("cpu", "client"): "fill-series-3",
    ("cpu", "server"): "fill-series-4",
    ("disk", "client"): "fill-series-5",
    ("tcp", "client"): "fill-series-6",
    ("tcp", "server"): "fill-series-6",
    ("smb", "server"): "fill-good",
    ("smb", "client"): "fill-good",
}
"""Fill class of each part that has work."""
NOT_KNOWN = "fill-none"
QUEUES = (
    ("sender", "unsent_bytes", "not sent yet", "line-series-2"),
    ("sender", "in_flight_bytes", "in flight", "line-series-1"),
    ("sender", "congestion_window_bytes", "congestion window", "line-series-5"),
    ("sender", "retransmitted_bytes", "retransmitted so far", "line-series-3"),
    ("receiver", "unread_bytes", "not read yet", "line-series-4"),
)
"""Whose socket, its field, in words, and the line's class."""


def rates(run: Run) -> list[tuple[float, float, float]]:
    """Returns from, to and the rate between two samples, bytes per second; at most MOST_POINTS.

    Samples much closer together than others are merged: they show no rate.
    """
    lasted = run[-1].elapsed_seconds - run[0].elapsed_seconds
    gaps = [later.elapsed_seconds - one.elapsed_seconds for one, later in pairwise(run)]
    shortest = max(SHORT_RATIO * statistics.median(gaps), lasted / MOST_POINTS)
    samples = [run[0]]
    for each in run[1:]:
        if each.elapsed_seconds - samples[-1].elapsed_seconds >= shortest:
            samples.append(each)
    # The last sample holds what the receiver confirmed.
    last = run[-1]
    is_near = last.elapsed_seconds - samples[-1].elapsed_seconds < shortest
    samples[-1:] = [last] if is_near and len(samples) > 1 else [samples[-1], last]
    zero = -run[0].elapsed_seconds
    return [
        (
            zero + one.elapsed_seconds,
            zero + later.elapsed_seconds,
            min(charts.MOST, (later.moved_bytes - one.moved_bytes) / passed),
        )
        for one, later in pairwise(samples)
        if (passed := later.elapsed_seconds - one.elapsed_seconds) > 0
    ]


def stack(copy: CopyDiagnosis) -> str:
    """Returns a copy's time as one bar of parts, for the page; empty: not known."""
    parts, begin = [], 0.0
    for share in copy.time:
        tip = f"{share_name(share)} {percent_text(share.ratio)}"
        css_class = _colour((share.component, share.side))
        # A little less than its share: parts that touch look like one.
        wide = max(0.3, 100 * share.ratio - 0.3)
        parts.append(shapes.rect(begin, 0, wide, 10, css_class, tip))
        begin += 100 * share.ratio
    drawn = "".join(parts)
    box = 'viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"'
    return f'<svg class="plot stack" {box}>{drawn}</svg>' if parts else ""


def drawings(report: Report, diagnosis: Diagnosis) -> Iterator[tuple[CopyDiagnosis, charts.Plot]]:
    """Yields a drawing of each copy that was made, the main one first; at most MOST_COPIES."""
    by_key = {(e.name, e.dialect, e.initiator): e for e in reversed(list(steps.copies(report)))}
    ordered = sorted(diagnosis.copies, key=lambda each: each is not diagnosis.main_copy)
    pairs = ((each, by_key.get((each.copy, each.dialect, each.initiator))) for each in ordered)
    drawn = ((each, copy) for each, copy in pairs if copy is not None and copy.step is not None)
    for index, (each, copy) in zip(range(MOST_COPIES), drawn, strict=False):
        drawing = _drawing(f"time-{index + 1}", report, each, copy)
        if drawing is not None:
            yield each, drawing


def _drawing(name: str, report: Report, diagnosed: CopyDiagnosis, copy: Copy) -> charts.Plot | None:
    """Returns panels one below the other on one axis of time; None: nothing is known of it."""
    assert copy.step is not None
    timed = timed_copy(report, copy) if diagnosed.time else None
    attribution, capture = attribution_of(timed) if timed else None, captured.capture_of(copy)
    if capture is not None:
        attribution = captured.attribution_of(copy, capture)
    run = median_run(copy.step.outcome)
    is_fine = capture is not None or copy.engine in FINELY_SAMPLED_ENGINES
    spans = rates(run) if is_fine and len(run) > 1 else []
    durations = [spans[-1][1] if spans else 0.0, timed.seconds if timed else 0.0]
    if not any(durations):
        return None
    panels = _Panels(max(durations))
    topics = []
    if spans:
        panels.rate(spans)
        topics.append("the rate from sample to sample")
    if attribution:
        panels.shares(attribution.time, durations[1] or durations[0])
        topics.append("who had work")
    if timed and panels.queues(timed):
        topics.append("the bytes that waited in the sockets")
    sentence = f"{', '.join(topics)}."
    if spans and copy.verb == "push":
        sentence += _buffered_note(copy)
    title = f"{safe(copy.name, 40)}, {_engine_text(copy)}"
    rows = [
        (share_name(each), percent_text(each.ratio))
        for each in diagnosed.time
        if each.ratio >= LEAST_SHARE
    ] or [("the whole copy", rate_text(copy.step.rate.median))]
    titles = ("component", "share of the time") if diagnosed.time else ("", "rate")
    caption = sentence[:1].upper() + sentence[1:]
    return charts.plot(name, title, caption, panels.drawing(), titles, rows)


def _buffered_note(copy: Copy) -> str:
    """Returns where the bytes may be that the rate of a push counts, and the final flush's time."""
    assert copy.step is not None
    flush = copy.step.details.flush_seconds
    if copy.is_native:
        counted = f" Bytes count once written: they may still be in the {copy.sender}'s memory."
    else:
        counted = (
            f" Bytes count once acknowledged: they may still be in the {copy.receiver}'s memory."
        )
    return counted if flush is None else f"{counted} The final flush took {seconds_text(flush)}."


def _engine_text(copy: Copy) -> str:
    """Returns `SMB 3.1.1`, `SMB 3.1.1 by smbclient` or `the operating system's copy`."""
    if copy.dialect == NATIVE:
        return "the operating system's copy"
    program = "" if copy.engine == OWN or copy.is_captured else f" by {safe(copy.engine, 24)}"
    return f"{dialect_text(copy.dialect)}{program}"


def _colour(part: Part) -> str:
    return COLOURS.get(part, NOT_KNOWN)


class _Panels:
    """Charts one below the other, each with its own upright axis, over the seconds of a copy."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.top, self.left = TOP, text_width("1,000 MB") + 7
        self.charts: list[charts.Chart] = []
        self.keys: list[tuple[charts.Mark, str]] = []

    def _panel(self, title: str, ticks: tuple[charts.Tick, ...], peak: float) -> charts.Chart:
        box = (self.top, RIGHT, self.top + TALL)
        above = 10 if self.charts else None
        panel = charts.chart(title, ticks, self.seconds, peak, box, self.left, above)
        self.charts.append(panel)
        self.top += TALL + APART
        return panel

    def rate(self, spans: list[tuple[float, float, float]]) -> None:
        """Adds the rate between two samples."""
        highest = 1.05 * max(rate for _, _, rate in spans) or 1.0
        unit, ticks = charts.rate_ticks(highest)
        panel = self._panel(f"rate, {unit}", ticks, highest)
        points = [(when, rate) for begin, end, rate in spans for when in (begin, end)]
        panel.curve(points, "line-accent")

    def shares(self, time: Time, seconds: float) -> None:
        """Adds who had work in each part of the time, one upon the other, the largest below."""
        count = max(1, min(MOST_PERIODS, len(time.slices) // LEAST_SLICES))
        periods, lasted = time.periods(count), seconds / count
        panel = self._panel("who had work", charts.ticks_at((0.0, 0.5, 1.0), percent_text), 1.0)
        below = [0.0] * count
        for part in sorted(
            time.shares, key=lambda each: (each[0] == "unknown", -time.shares[each])
        ):
            above = [low + each.get(part, 0.0) for low, each in zip(below, periods, strict=True)]
            if time.shares[part] >= LEAST_SHARE:
                spans = [(index * lasted, index * lasted + lasted) for index in range(count)]
                edge = [*_stairs(spans, above), *reversed(_stairs(spans, below))]
                places = [(panel.x.place(across), panel.y.place(up)) for across, up in edge]
                text = share_name(TimeShare(*part, 1.0))
                panel.add(shapes.area(places, _colour(part), text))
                self.keys.append((charts.swatch(_colour(part)), text))
            below = above

    def queues(self, timed: TimedCopy) -> bool:
        """Adds the bytes that wait in both ends' sockets; False: none is known."""
        sides = {"sender": timed.sender, "receiver": timed.receiver}
        lines = []
        for whose, field, text, css_class in QUEUES:
            socket = timed.connection(sides[whose])
            readings = socket.looks[:: 1 + len(socket.looks) // MOST_READINGS] if socket else ()
            samples = ((each.elapsed_seconds, getattr(each, field)) for each in readings)
            points = [(when, value) for when, value in samples if value is not None]
            if any(value for _, value in points):
                lines.append((points, f"{sides[whose]}: {text}", css_class))
        highest = 1.05 * max((value for points, *_ in lines for _, value in points), default=0.0)
        if not highest:
            return False
        panel = self._panel("bytes in the sockets", _size_ticks(highest), highest)
        for points, text, css_class in lines:
            panel.curve(points, css_class, text)
            self.keys.append((charts.stroke(css_class), text))
        return True

    def drawing(self) -> charts.Drawing:
        """Returns the height and the shapes, with the axis of time below the last panel."""
        last = self.charts[-1]
        figures = charts.round_ticks(self.seconds, 5)
        axis = charts.ticks_at(figures, lambda each: charts.figure_text(each, figures))
        last.level_axis(axis, "time, seconds")
        legend, height = charts.key(self.keys, last.y.start + 42)
        parts = [part for each in self.charts for part in each.parts]
        return height + 4, [*parts, legend]


def _stairs(spans: list[tuple[float, float]], levels: list[float]) -> list[tuple[float, float]]:
    """Returns corners of a line that keeps a level from each begin to its end."""
    corners = [(when, level) for pair, level in zip(spans, levels, strict=True) for when in pair]
    # A corner between two of its level shows nothing.
    middle = (
        each
        for one, each, other in zip(corners, corners[1:], corners[2:], strict=False)
        if not one[1] == each[1] == other[1]
    )
    return [corners[0], *middle, corners[-1]]


def _size_ticks(highest: float) -> tuple[charts.Tick, ...]:
    """Returns round figures in the unit of RAM that the highest is told in."""
    unit = next((u for u in (2**40, 2**30, 2**20, 2**10) if highest >= u), 1)
    rounded = charts.round_ticks(highest / unit, 2)
    return charts.ticks_at(tuple(each * unit for each in rounded), size_text)
