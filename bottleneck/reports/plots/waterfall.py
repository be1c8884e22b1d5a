"""The headline copy's rate and every ceiling around it, lowest first, the cap marked."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis, Verdict
from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.axes import Scale, marks_below, rate_ticks
from bottleneck.reports.plots.key import Mark, key
from bottleneck.reports.plots.plot import Plot
from bottleneck.reports.plots.shapes import LINE, WIDTH, label, text_width
from bottleneck.reports.safe import safe
from bottleneck.reports.units import range_text, rate_text
from bottleneck.reports.waterfall import is_cap, longest_bar
from bottleneck.reports.words import DOUBT_SIGNS, cap_text, dialect_text

MOST_ROWS = 16
PITCH, BAR = 34, 11
"""From row to row, and a bar's height."""
EDGE = 12
"""Room on the right for what goes on beyond the scale."""
CAP = "the cap"
STANDINGS = {
    "measured": "measured",
    "estimated": "by its load",
    "inferred": "inferred from a copy",
    "at-least": "more was not tried",
}


def waterfall(diagnosis: Diagnosis) -> Iterator[Plot]:
    """One drawing of the headline's copy; none where it was not made or has no ceiling."""
    copy = diagnosis.chosen
    rate = None if copy is None else copy.bytes_per_second
    if copy is None or not copy.ceilings or not rate:
        return
    known = [each for each in copy.ceilings if math.isfinite(each.bytes_per_second)]
    shown = known[:MOST_ROWS]
    name = f"{safe(copy.copy, 40)}, {dialect_text(copy.dialect)}"
    sentence = shapes.told(copy.verdict.sentence)
    if len(shown) < len(known):
        sentence += f" The lowest {len(shown)} of {len(known)} ceilings are drawn."
    title = f"What holds {name}"
    height, parts = _drawn(copy, rate, shown)
    yield Plot(
        name="waterfall",
        title=title,
        sentence=sentence,
        svg=shapes.drawing("waterfall", title, sentence, height, parts),
        columns=("what", "rate", "low to high", "known how", ""),
        rows=(
            ("the copy itself", rate_text(rate), "", "measured", ""),
            *(_row(each, copy.verdict) for each in shown),
        ),
    )


def _row(each: Ceiling, verdict: Verdict) -> tuple[str, ...]:
    low, high = each.low_bytes_per_second, each.high_bytes_per_second
    about = range_text(low, high) if high > low else ""
    cap = "the cap" if is_cap(verdict, each) else ""
    return cap_text(each), rate_text(each.bytes_per_second), about, STANDINGS[each.standing], cap


def _drawn(copy: CopyDiagnosis, rate: float, ceilings: list[Ceiling]) -> tuple[float, list[str]]:
    most = longest_bar(copy, rate)
    x = Scale(0.0, most, 0.0, WIDTH - EDGE)
    bottom = PITCH * (len(ceilings) + 1) + 2.0
    unit, ticks = rate_ticks(most)
    parts = _line(0.0, "the copy itself", rate_text(rate), "strong fill-accent")
    parts.append(shapes.rect(0, LINE + 2, x.at(rate), BAR, "fill-accent", rate_text(rate)))
    for at, each in enumerate(ceilings, 1):
        parts += _ceiling(each, at * PITCH, x, is_cap(copy.verdict, each))
    for at in range(1, len(ceilings) + 1):
        # Not through the names: in the bars' height alone.
        begin = at * PITCH + LINE
        parts.append(shapes.line(x.at(rate), begin, x.at(rate), begin + BAR + 4, "guide"))
    parts += marks_below(ticks, x, bottom, WIDTH - text_width(f" {unit}"))
    parts.append(label(WIDTH, bottom + 16, unit, "muted", "end"))
    standings = dict.fromkeys(each.standing for each in ceilings)
    entries = [(_swatch(each), STANDINGS[each]) for each in standings]
    drawn, below = key(entries, bottom + 24)
    return below + 2, [*parts, drawn]


def _line(top: float, name: str, figure: str, style: str) -> list[str]:
    """The text above a bar: what it is of, and its figure."""
    room = WIDTH - text_width(figure, bool(style)) - 8
    return [
        label(0, top + LINE - 3, name, style, width=room),
        label(WIDTH, top + LINE - 3, figure, style, "end"),
    ]


def _ceiling(each: Ceiling, top: float, x: Scale, cap: bool) -> list[str]:
    colour, style = ("cap", "strong fill-cap") if cap else ("series-6", "")
    figure = f"{DOUBT_SIGNS[each.standing]}{rate_text(each.bytes_per_second)}"
    y, end = top + LINE + 2, x.at(each.bytes_per_second)
    middle = y + BAR / 2
    tip = f"{cap_text(each)}: {figure}, {STANDINGS[each.standing]}"
    parts = filled(0, y, end, BAR, each.standing, colour, tip)
    if each.bytes_per_second > x.high:
        end = WIDTH - 2.0
        parts.append(shapes.arrow_right(end, middle, 6, f"fill-{colour}"))
    elif each.low_bytes_per_second < each.high_bytes_per_second:
        low, high = x.at(each.low_bytes_per_second), x.at(each.high_bytes_per_second)
        end = max(end, high)
        parts.append(shapes.whisker(low, high, middle))
    name = cap_text(each)
    if cap and end + 10 + text_width(CAP, True) <= WIDTH:
        parts.append(shapes.arrow_left(end + 5, middle, 4, "fill-cap"))
        parts.append(label(end + 13, y + BAR - 1, CAP, style))
    elif cap:
        name = f"{CAP}, {name}"
    return parts + _line(top, name, figure, style)


def filled(
    x: float, y: float, width: float, height: float, standing: str, colour: str, tip: str
) -> list[str]:
    """A bar as its figure is known: solid, hatched, dotted, or open where there may be more."""
    if standing == "measured":
        return [shapes.rect(x, y, width, height, f"fill-{colour}", tip)]
    outline = f"open line-{colour}" + (" dashed" if standing == "at-least" else "")
    parts = [shapes.rect(x, y, width, height, f"track {outline}", tip)]
    if standing == "estimated":
        parts.append(shapes.hatch(x, y, width, height, f"line-{colour}"))
    if standing == "inferred":
        parts.append(shapes.dots(x, y, width, height, f"line-{colour}"))
    return parts


def _swatch(standing: str) -> Mark:
    return lambda x, y: "".join(filled(x - 6, y - 4, 14, 8, standing, "series-6", ""))
