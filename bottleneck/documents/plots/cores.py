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
        """Returns the busy ratio of the busiest core that is known."""
        return max((max(_cores(each), default=0.0) for each in self.usages), default=0.0)


def cores(report: Report, diagnosis: Diagnosis) -> Iterator[charts.Plot]:
    """Yields one drawing for both hosts; none where no core was measured."""
    stages = list(_stages(report))
    if not stages:
        return
    main_copy = charts.headline(report, diagnosis)
    main_index = None if main_copy is None else main_copy.index
    # A row for each of those that may matter; in the report's order, as they were made.
    ranked = sorted(stages, key=lambda each: (each.index != main_index, -each.busiest_ratio))
    panels = sorted(ranked[:MOST_STAGES], key=lambda each: each.index)
    sentence = "Each column is one core. Its height is the share of the test that it was busy."
    if len(panels) < len(stages):
        sentence += f" The {len(panels)} tests with the busiest cores are drawn, of {len(stages)}."
    count = max(len(_cores(each)) for stage in panels for each in stage.usages)
    core_count = max(len(e.core_busy_ratios) if e else 0 for stage in panels for e in stage.usages)
    if count < core_count:
        sentence += f" The first {count} cores of {core_count} are drawn."
    title = "CPU cores in each test"
    drawing = CORES_TOP + PITCH * len(panels) + 2, list(_shapes(panels))
    rows = ((each.name, *map(_ratios_text, each.usages)) for each in panels)
    yield charts.plot(
        "cores", title, sentence, drawing, ("test", "client cores", "server cores"), rows
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
    """Returns busy ratios; a clock's coarse ticks may put one a little above 1."""
    ratios = () if usage is None else usage.core_busy_ratios
    return tuple(min(1.0, max(0.0, each)) for each in ratios[:MOST_CORES])


def _ratios_text(usage: Usage | None) -> str:
    return ", ".join(map(percent_text, _cores(usage))) or "unknown"


def _shapes(stages: list[Stage]) -> Iterator[str]:
    for column, side in enumerate(SIDES):
        yield label(column * (PANEL + GAP), 12, f"{side}", "strong")
    for row, stage in enumerate(stages):
        top = CORES_TOP + row * PITCH
        yield label(0, top + 13, stage.name, "", width=float(WIDTH))
        for column, usage in enumerate(stage.usages):
            yield from _strip(stage.name, usage, column * (PANEL + GAP), top + 17)


def _strip(stage: str, usage: Usage | None, start: float, top: float) -> Iterator[str]:
    busy = _cores(usage)
    room = PANEL - FIGURE
    if not busy:
        yield label(start, top + 13, "unknown", "muted")
        return
    wide = min(26.0, room / len(busy))
    highest = max(busy)
    for index, ratio in enumerate(busy):
        x = start + index * wide
        side = max(NARROWEST, wide - 1.5)
        tip = f"{stage}, core {index + 1}: {percent_text(ratio)}"
        yield shapes.rect(x, top, side, TALL, "track", tip)
        tall = max(1.0, ratio * TALL)
        name = "fill-accent" if ratio == highest else "fill-series-6"
        yield shapes.rect(x, top + TALL - tall, side, tall, name, tip)
    yield label(start + PANEL, top + TALL - 4, percent_text(highest), "", "end")
