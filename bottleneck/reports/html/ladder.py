"""A copy's ladder on the page: its caps lifted one by one; and what a wanted rate takes."""

from __future__ import annotations

from bottleneck.analysis.finding import CopyDiagnosis, Rung
from bottleneck.reports.html.lists import block, points
from bottleneck.reports.html.markup import Markup, tag
from bottleneck.reports.html.tables import Line, table, with_below
from bottleneck.reports.html.wording import DOUBTS, copy_text, spread_text
from bottleneck.reports.ladder import LEAST_RUNGS, rung_remark, standing, target_text
from bottleneck.reports.units import rate_text
from bottleneck.reports.words import cap_text


def ladder(copy: CopyDiagnosis) -> Markup | None:
    """What holds it once all that is lower is lifted, and what it then runs at; None: no cap."""
    if len(copy.ladder) < LEAST_RUNGS:
        return None
    lines = [_rung(at, rung, DOUBTS[standing(copy, rung)]) for at, rung in enumerate(copy.ladder)]
    caption = f"{copy_text(copy)}, its caps lifted one after the other"
    titles = ("cap, then the next", "ceiling", "the copy runs at")
    return table(caption, titles, lines, frozenset({1, 2}))


def _rung(at: int, rung: Rung, doubt: str) -> Line:
    told = rung.predicted_bytes_per_second
    return Line(
        (
            with_below(cap_text(rung), rung_remark(at, rung)),
            f"{doubt}{rate_text(rung.ceiling_bytes_per_second)}",
            None
            if told is None
            else with_below(rate_text(told.median), spread_text(told.low, told.high)),
        ),
        "cap" if at == 0 else "",
    )


def target(copy: CopyDiagnosis) -> Markup | None:
    """What it takes to bring it to the wanted rate; None: none was asked for."""
    if copy.target is None:
        return None
    title, lines = target_text(copy, copy.target)
    return tag("section", tag("h3", title)) if not lines else block(title, points(lines))
