"""The cores of both hosts in each stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.phrases import stage_text
from bottleneck.documents.plots import charts, shapes
from bottleneck.documents.plots.shapes import WIDTH, label, text_width
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text
from probes.core.records import SIDES, Measured, Usage

MOST_STAGES = 20
MOST_CORES = 32
CORES_TOP, PITCH, TALL = 20.0, 40.0, 18.0
GAP = 14.0
PANEL = (WIDTH - GAP) / 2
FIGURE = text_width("100 %") + 4
"""Room right of the columns of a host."""
NARROWEST = 1.5


@dataclass(frozen=True)
class Stage:
    """A measured step and its hosts' cores."""

    index: int
    name: str
    usages: tuple[Usage | None, Usage | None]
    """The client's and the server's."""

    @property
    def busiest_ratio(self) -> float:
        """Of all cores that are known."""
        return max((max(_cores(each), default=0.0) for each in self.usages), default=0.0)


def cores(report: Report, diagnosis: Diagnosis) -> Iterator[charts.Plot]:
    """One drawing for both hosts; none where no core was measured."""
    found = list(_stages(report))
    if not found:
        return
    chosen = charts.headline(report, diagnosis)
    own = None if chosen is None else chosen.index
    # A row for each of those that may matter; in the report's order, as they were made.
    ranked = sorted(found, key=lambda each: (each.index != own, -each.busiest_ratio))
    shown = sorted(ranked[:MOST_STAGES], key=lambda each: each.index)
    sentence = "Each column is one core. Its height is the share of the test that it was busy."
    if len(shown) < len(found):
        sentence += f" The {len(shown)} tests with the busiest cores are drawn, of {len(found)}."
    many = max(len(_cores(each)) for stage in shown for each in stage.usages)
    most = max(len(e.core_busy_ratios) if e else 0 for stage in shown for e in stage.usages)
    if many < most:
        sentence += f" The first {many} cores of {most} are drawn."
    title = "CPU cores in each test"
    drawn = CORES_TOP + PITCH * len(shown) + 2, list(_drawn(shown))
    rows = ((each.name, *map(_told, each.usages)) for each in shown)
    yield charts.plot(
        "cores", title, sentence, drawn, ("test", "client cores", "server cores"), rows
    )


def _stages(report: Report) -> Iterator[Stage]:
    for index, (step, outcome) in enumerate(report.entries):
        if not isinstance(outcome, Measured):
            continue
        usages = (outcome.initiator, outcome.responder)
        client, server = usages if step.initiator == SIDES[0] else usages[::-1]
        if any(_cores(each) for each in (client, server)):
            yield Stage(index, stage_text(step), (client, server))


def _cores(usage: Usage | None) -> tuple[float, ...]:
    """Busy ratios; a clock's coarse ticks may put one a little above 1."""
    known = () if usage is None else usage.core_busy_ratios
    return tuple(min(1.0, max(0.0, each)) for each in known[:MOST_CORES])


def _told(usage: Usage | None) -> str:
    return ", ".join(map(percent_text, _cores(usage))) or "unknown"


def _drawn(stages: list[Stage]) -> Iterator[str]:
    for at, side in enumerate(SIDES):
        yield label(at * (PANEL + GAP), 12, f"{side}", "strong")
    for row, stage in enumerate(stages):
        top = CORES_TOP + row * PITCH
        yield label(0, top + 13, stage.name, "", width=float(WIDTH))
        for at, usage in enumerate(stage.usages):
            yield from _strip(stage.name, usage, at * (PANEL + GAP), top + 17)


def _strip(stage: str, usage: Usage | None, left: float, top: float) -> Iterator[str]:
    busy = _cores(usage)
    room = PANEL - FIGURE
    if not busy:
        yield label(left, top + 13, "unknown", "muted")
        return
    wide = min(26.0, room / len(busy))
    highest = max(busy)
    for at, ratio in enumerate(busy):
        x = left + at * wide
        side = max(NARROWEST, wide - 1.5)
        tip = f"{stage}, core {at + 1}: {percent_text(ratio)}"
        yield shapes.rect(x, top, side, TALL, "track", tip)
        tall = max(1.0, ratio * TALL)
        name = "fill-accent" if ratio == highest else "fill-series-6"
        yield shapes.rect(x, top + TALL - tall, side, tall, name, tip)
    yield label(left + PANEL, top + TALL - 4, percent_text(highest), "", "end")
