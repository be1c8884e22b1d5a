"""The copies on a terminal: each with its cap, and all of them as a grid of directions and caches.

What a person made of the file (pull, push; cached, uncached) stands in the grid's places.
"""

from __future__ import annotations

import re

from rich.console import Console

from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.reports import layout
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.units import range_text, rate_text
from bottleneck.reports.words import cap_text, confidence_text, dialect_text

LEAST_IN_GRID = 2
LONGEST_BAR, SHORTEST_BAR = 40, 4
_NAME = re.compile(r"(server\.)?(push|pull)\.(cached|uncached)")
Place = tuple[str, str]


def print_copies(diagnosis: Diagnosis, console: Console, signs: Signs) -> None:
    """A line for each copy; a wide terminal has room for what comes after its cap."""
    if not diagnosis.copies:
        return
    layout.heading(console, "Copies")
    wide = console.width >= layout.VERY_WIDE
    more = ("ceiling", "next", "without the cap") if wide else ()
    right = frozenset({2, 5, 7} if wide else {2})
    table = Columns(("copy", "dialect", "rate", "cap", "confidence", *more), right=right)
    for copy in diagnosis.copies:
        rate = copy.bytes_per_second
        table.add(
            safe(copy.copy, 40),
            dialect_text(copy.dialect),
            signs.none if rate is None else rate_text(rate),
            cap_text(copy.verdict),
            confidence_text(copy.verdict),
            *(_beyond(copy, signs) if wide else ()),
            style="bold" if copy is diagnosis.chosen else "",
        )
    table.print(console)


def _beyond(copy: CopyDiagnosis, signs: Signs) -> tuple[str, str, str]:
    """The cap's height, the ceiling after it, and the rate that the copy has without the cap."""
    level, told = copy.verdict.ceiling_bytes_per_second, copy.predicted_bytes_per_second
    return (
        signs.none if level is None else rate_text(level),
        signs.none if copy.next is None else cap_text(copy.next),
        signs.none if told is None else range_text(told.low, told.high).replace("-", signs.dash),
    )


def print_grid(diagnosis: Diagnosis, console: Console, signs: Signs) -> None:
    """Push and pull down, cached and uncached across, for each dialect and who starts the copy."""
    groups: dict[str, dict[Place, float]] = {}
    for copy in diagnosis.copies:
        named = _NAME.fullmatch(copy.copy)
        if named and copy.bytes_per_second:
            who = f"{dialect_text(copy.dialect)}{' by server' if named[1] else ''}"
            # The first of a name is the one that was made in full.
            groups.setdefault(who, {}).setdefault((named[2], named[3]), copy.bytes_per_second)
    groups = {who: rates for who, rates in groups.items() if len(rates) >= LEAST_IN_GRID}
    if not groups:
        return
    layout.heading(console, "Push and pull, the source cached and not")
    most = max(rate for rates in groups.values() for rate in rates.values())
    room = (console.width - max(map(len, groups)) - 2 * 13 - 16) // 2
    width = max(SHORTEST_BAR, min(LONGEST_BAR, room))
    table = Columns(("", "", "cached", "", "uncached", ""), right=frozenset({2, 4}))
    for who, rates in groups.items():
        verbs = [verb for verb in ("push", "pull") if any(verb == each[0] for each in rates)]
        for verb in verbs:
            cells: list[str] = []
            for cache in ("cached", "uncached"):
                rate = rates.get((verb, cache))
                drawn = "" if rate is None else layout.bar(rate, most, width, signs)
                cells += [signs.none if rate is None else rate_text(rate), drawn]
            table.add(who if verb == verbs[0] else "", verb, *cells)
    table.print(console)
