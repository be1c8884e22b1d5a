"""Heat maps of rates by two settings, and the cores of both hosts in each stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis.finding import Diagnosis
from bottleneck.report import Report
from bottleneck.reports.document import Heat, HeatCell
from bottleneck.reports.plots import charts, shapes
from bottleneck.reports.plots.shapes import FONT, LINE, WIDTH, label, text_width
from bottleneck.units import percent_text, rate_text
from bottleneck.words import stage_text
from probes.records import SIDES, Measured, Usage

MOST_ROWS, MOST_COLUMNS = 16, 8
TOP = 34.0
ONE_LINE, TWO_LINES = 22.0, 36.0
HEAT_LEVELS = 5
"""Of the style sheet, the lowest first."""


def heat_map(heat: Heat) -> charts.Drawn:
    """The drawing's height and its shapes; at most MOST_ROWS and MOST_COLUMNS of its cells."""
    cells = within(heat.cells)
    rows = sorted({each.row for each in cells})
    columns = sorted({each.column for each in cells})
    most = max(each.bytes_per_second for each in cells)
    unit, scale = charts.rate_unit(most)
    names = [heat.row_text(each) for each in rows]
    left = min(WIDTH / 3, max(text_width(each) for each in [*names, heat.rows]) + 8)
    wide = (WIDTH - left) / len(columns)
    seconds = [each.second for each in cells if each.second]
    two = bool(seconds) and max(map(text_width, seconds)) <= wide - 4
    tall = TWO_LINES if two else ONE_LINE
    parts = [
        label(left, 12, f"{heat.columns}, {unit}", "muted"),
        label(0, TOP - 6, heat.rows, "muted", width=left - 4),
    ]
    for at, column in enumerate(columns):
        text = heat.column_text(column)
        parts.append(label(left + (at + 0.5) * wide, TOP - 6, text, "", "middle", wide))
    for at, text in enumerate(names):
        middle = TOP + (at + 0.5) * tall + FONT / 3
        parts.append(label(left - 6, middle, text, "", "end", left - 6))
    for each in cells:
        x, y = left + columns.index(each.column) * wide, TOP + rows.index(each.row) * tall
        parts += _cell(each, (x, y, wide, tall), most, scale, two, heat)
    framed = [each for each in cells if each.framed]
    for each in framed:
        x, y = left + columns.index(each.column) * wide, TOP + rows.index(each.row) * tall
        parts.append(_frame(x + 0.5, y + 0.5, wide - 1, tall - 1))
    below = TOP + len(rows) * tall + 4
    if two:
        parts.append(label(0, below + LINE - 3, f"second figure: {heat.second}", "muted"))
        below += LINE
    shown, below = charts.key([(_swatch, heat.framed)] if framed else [], below)
    return below + 2, [*parts, shown]


def _frame(x: float, y: float, width: float, height: float) -> str:
    """An outline that shows on a dark cell and on a light one: dark within light."""
    inner = shapes.rect(x + 2.5, y + 2.5, width - 5, height - 5, "frame")
    return shapes.rect(x + 1, y + 1, width - 2, height - 2, "frame around") + inner


def _swatch(x: float, y: float) -> str:
    return shapes.rect(x - 5, y - 5, 12, 10, "frame")


def within(cells: Sequence[HeatCell]) -> tuple[HeatCell, ...]:
    """Those that a map has room for: the first of each setting in rising order."""
    rows = sorted({each.row for each in cells})[:MOST_ROWS]
    columns = sorted({each.column for each in cells})[:MOST_COLUMNS]
    return tuple(each for each in cells if each.row in rows and each.column in columns)


def level(bytes_per_second: float, most: float) -> int:
    """Which of the map's steps a rate has: equal shares of the highest rate."""
    return min(HEAT_LEVELS - 1, int(HEAT_LEVELS * bytes_per_second / (most or 1)))


def cell_text(figure: float) -> str:
    """Three digits: `118`, `23.6`, `0.52`."""
    if figure >= 99.5:
        return f"{figure:,.0f}"
    if figure >= 9.95:
        return f"{figure:.1f}"
    return f"{figure:.2f}" if figure >= 0.01 else "<0.01"


def _cell(
    each: HeatCell,
    box: tuple[float, float, float, float],
    most: float,
    scale: float,
    two: bool,
    heat: Heat,
) -> Iterator[str]:
    x, y, wide, tall = box
    step = level(each.bytes_per_second, most)
    tip = (
        f"{heat.row_text(each.row)} x {heat.column_text(each.column)}: "
        f"{rate_text(each.bytes_per_second)}{each.second and ', '}{each.second}"
    )
    yield shapes.rect(x + 0.5, y + 0.5, wide - 1, tall - 1, f"heat-{step}", tip)
    text = cell_text(each.bytes_per_second / scale)
    name, middle = f"on-heat-{step}", x + wide / 2
    first = y + tall / 2 + FONT / 3 - (LINE / 2 if two else 0)
    yield label(middle, first, text, name, "middle", wide)
    if two and each.second:
        yield label(middle, first + LINE, each.second, name, "middle", wide)


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
    most = max(_all(each) for stage in shown for each in stage.usages)
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


def _all(usage: Usage | None) -> int:
    return 0 if usage is None else len(usage.core_busy_ratios)


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
