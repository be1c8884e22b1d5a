"""Push and pull, cached and uncached, of each dialect: bars with the range of their runs."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.steps import NATIVE, OWN, Copy
from bottleneck.report import Report
from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.axes import Scale, marks_below, rate_ticks
from bottleneck.reports.plots.headline import headline
from bottleneck.reports.plots.key import key
from bottleneck.reports.plots.plot import Plot
from bottleneck.reports.plots.shapes import LINE, WIDTH, label, text_width
from bottleneck.reports.safe import safe
from bottleneck.reports.units import range_text, rate_text
from bottleneck.reports.words import dialect_text

MOST_COPIES = 32
LEFT = 112.0
PITCH, BAR = 18.0, 11.0
NOT_MADE = "not measured"


def copies(report: Report, diagnosis: Diagnosis) -> Iterator[Plot]:
    """One drawing of all copies, grouped by who made them; none where none was measured."""
    found = steps.copies(report)
    shown = found[:MOST_COPIES]
    if not any(each.made for each in shown):
        return
    sentence = "Bars are the medians of each copy's runs, their whiskers the lowest and highest."
    altered = [safe(each.name, 40) for each in shown if each.made and not each.made.intact]
    if altered:
        names = ", ".join(dict.fromkeys(altered))
        sentence += f" Bytes were altered on their way, and the rates mean nothing, of {names}."
    if len(shown) < len(found):
        sentence += f" {len(shown)} of {len(found)} copies are drawn."
    title = "Push and pull, cached and uncached"
    chosen = headline(report, diagnosis)
    height, parts = _drawn(shown, None if chosen is None else chosen.index)
    yield Plot(
        name="copies",
        title=title,
        sentence=sentence,
        svg=shapes.drawing("copies", title, sentence, height, parts),
        columns=("made by", "copy", "rate", "low to high", "runs"),
        rows=tuple(_row(each) for each in shown),
    )


def engine_text(copy: Copy) -> str:
    """What made a copy: `SMB 3.1.1`, `SMB 3.1.1 by smbclient`, `the system's own copy`."""
    what = "the system's own copy" if copy.dialect == NATIVE else dialect_text(copy.dialect)
    program = "" if copy.dialect == NATIVE or copy.engine == OWN else f" by {safe(copy.engine, 24)}"
    return f"{what}{program}"


def by_text(copy: Copy) -> str:
    """The same with who started it: `SMB 3.1.1, from the server`."""
    return f"{engine_text(copy)}{', from the server' if copy.initiator == 'server' else ''}"


def _row(copy: Copy) -> tuple[str, ...]:
    name = safe(copy.name, 40)
    if copy.made is None:
        return by_text(copy), name, NOT_MADE, "", ""
    rate = copy.made.rate
    about = range_text(rate.low, rate.high) if rate.high > rate.low else ""
    return by_text(copy), name, rate_text(rate.median), about, f"{rate.runs}"


def _drawn(shown: tuple[Copy, ...], chosen: int | None) -> tuple[float, list[str]]:
    groups: dict[str, list[Copy]] = {}
    for each in shown:
        groups.setdefault(by_text(each), []).append(each)
    most = max(each.made.rate.high for each in shown if each.made)
    figures = (rate_text(each.made.rate.median) for each in shown if each.made)
    edge = min(LEFT, 6 + max(text_width(each, True) for each in figures))
    x = Scale(0.0, most, LEFT, WIDTH - edge)
    unit, ticks = rate_ticks(most, about=3)
    parts: list[str] = []
    y = 0.0
    for name, group in groups.items():
        parts.append(label(0, y + LINE - 3, name, "strong"))
        y += LINE + 3
        for copy in group:
            parts += _bar(copy, y, x, copy.index == chosen)
            y += PITCH
        y += 6
    parts += marks_below(ticks, x, y, WIDTH - edge)
    parts.append(label(WIDTH, y + 16, unit, "muted", "end"))
    entries = [
        (lambda a, b: shapes.rect(a - 6, b - 4, 13, 8, "fill-series-1"), "cached"),
        (lambda a, b: "".join(_filled(a - 6, b - 4, 13, 8, False, "series-1", "")), "uncached"),
    ]
    shown_key, below = key(entries, y + 22)
    return below + 2, [*parts, shown_key]


def _bar(copy: Copy, top: float, x: Scale, chosen: bool) -> Iterator[str]:
    middle = top + BAR / 2 + 4
    name = f"{copy.verb} {copy.cache}" + (" file" if copy.of_file else "")
    yield label(0, top + BAR + 1, name, "strong" if chosen else "", width=LEFT - 4)
    if copy.made is None:
        yield label(LEFT, top + BAR + 1, NOT_MADE, "muted", width=WIDTH - LEFT)
        return
    rate = copy.made.rate
    tip = f"{safe(copy.name, 40)}, {by_text(copy)}: {rate_text(rate.median)}"
    colour = "accent" if chosen else "series-1"
    wide = x.at(rate.median) - LEFT
    yield from _filled(LEFT, top + 3, wide, BAR, copy.cache == "cached", colour, tip)
    if rate.high > rate.low:
        yield shapes.whisker(x.at(rate.low), x.at(rate.high), middle)
    at = max(x.at(rate.high), LEFT) + 4
    name = "strong" if chosen else ""
    yield label(at, top + BAR + 1, rate_text(rate.median), name, width=WIDTH - at)


def _filled(
    x: float, y: float, width: float, height: float, solid: bool, colour: str, tip: str
) -> Iterator[str]:
    """A cached copy's bar is solid, an uncached one's hatched."""
    name = f"fill-{colour}" if solid else f"track open line-{colour}"
    yield shapes.rect(x, y, width, height, name, tip)
    if not solid:
        yield shapes.hatch(x, y, max(0.5, width), height, f"line-{colour}")
