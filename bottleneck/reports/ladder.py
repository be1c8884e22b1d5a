"""The ladder of a copy on a terminal, its caps lifted one by one, and what a wanted rate takes."""

from __future__ import annotations

from rich.console import Console

from bottleneck.analysis.finding import CopyDiagnosis, Rung, Standing, Target
from bottleneck.analysis.model import looks_like
from bottleneck.reports import layout
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.units import link_text, range_text, rate_text
from bottleneck.reports.words import DOUBT_SIGNS, cap_text

LEAST_RUNGS = 2


def print_rungs(copy: CopyDiagnosis, console: Console, signs: Signs) -> None:
    """What holds a copy once all that is lower is lifted, and what it then runs at."""
    if len(copy.ladder) < LEAST_RUNGS:
        return
    layout.heading(console, "If its caps were lifted, one after the other")
    titles = ("cap, then the next", "ceiling", "copy runs at", "range", "")
    table = Columns(titles, right=frozenset({1, 2}))
    for at, rung in enumerate(copy.ladder):
        told = rung.predicted_bytes_per_second
        table.add(
            cap_text(rung),
            DOUBT_SIGNS[standing(copy, rung)] + rate_text(rung.ceiling_bytes_per_second),
            signs.none if told is None else rate_text(told.median),
            "" if told is None else range_text(told.low, told.high).replace("-", signs.dash),
            rung_remark(at, rung),
            style="bold" if at == 0 else "",
        )
    table.print(console)


def standing(copy: CopyDiagnosis, rung: Rung) -> Standing:
    """How far a rung's ceiling can be trusted: that of the copy's ceiling that it is."""
    named = (rung.component, rung.side, rung.cause, rung.ceiling_bytes_per_second)
    return next(
        (
            each.standing
            for each in copy.ceilings
            if (each.component, each.side, each.cause, each.bytes_per_second) == named
        ),
        "measured",
    )


def rung_remark(at: int, rung: Rung) -> str:
    """What a rung's rate stands on, in few words: the assumed link, or why there is none."""
    if at == 0:
        return "as it is"
    if rung.predicted_bytes_per_second is None:
        return "a stage is not known"
    link = rung.assumed_link_bytes_per_second
    match = None if link is None else looks_like(link)
    return "" if match is None else f"with {link_text(match.bits_per_second)}"


def print_target(copy: CopyDiagnosis, console: Console) -> None:
    """What it takes to bring a copy to the wanted rate; nothing where none was asked for."""
    target = copy.target
    if target is None:
        return
    title, lines = target_text(copy, target)
    if lines:
        layout.bullets(console, title, lines)
    else:
        layout.heading(console, title)


def target_text(copy: CopyDiagnosis, target: Target) -> tuple[str, list[str]]:
    """A heading, and what the wanted rate takes; no points where it is reached."""
    wanted = rate_text(target.bytes_per_second)
    name = f"{safe(copy.copy, 40)} ({safe(copy.dialect, 16)})"
    if target.reached:
        return f"{name} reaches the {wanted} that are wanted", []
    needs = [f"{each.sentence[0].upper()}{each.sentence[1:]}." for each in target.needs]
    nothing = ["Nothing that is known is in the way."] if not (needs or target.unknown) else []
    title = f"What it takes to bring {name} to {wanted}"
    return title, [*needs, *target.unknown, *nothing]
