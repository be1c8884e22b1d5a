"""The ladder of a copy on a terminal, its caps lifted one by one, and what a wanted rate takes."""

from __future__ import annotations

from rich.console import Console

from bottleneck.analysis.finding import CopyDiagnosis, Rung
from bottleneck.analysis.model import looks_like
from bottleneck.reports import layout
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.units import link_text, range_text, rate_text

LEAST_RUNGS = 2
_TOOLS = {"instrument": "tool", "cpu": "CPU"}


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
            _name(rung),
            f"{'~ ' if rung.component in _TOOLS else ''}{rate_text(rung.ceiling_bytes_per_second)}",
            signs.none if told is None else rate_text(told.median),
            "" if told is None else range_text(told.low, told.high).replace("-", signs.dash),
            _remark(at, rung),
            style="bold" if at == 0 else "",
        )
    table.print(console)


def _name(rung: Rung) -> str:
    place = "" if rung.side in (None, "path") else f"{rung.side} "
    return f"{place}{_TOOLS.get(rung.component, rung.component)}: {rung.cause}"


def _remark(at: int, rung: Rung) -> str:
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
    wanted = rate_text(target.bytes_per_second)
    name = f"{safe(copy.copy, 40)} ({safe(copy.dialect, 16)})"
    if target.reached:
        layout.heading(console, f"{name} reaches the {wanted} that are wanted")
        return
    title = f"What it takes to bring {name} to {wanted}"
    needs = [f"{each.sentence[0].upper()}{each.sentence[1:]}." for each in target.needs]
    nothing = ["Nothing that is known is in the way."] if not (needs or target.unknown) else []
    layout.bullets(console, title, [*needs, *target.unknown, *nothing])
