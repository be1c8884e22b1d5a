"""Request size and depth: which application would get what on this path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.load import SATURATED_RATIO, load
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import (
    count_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
)

KIB, MIB = 1 << 10, 1 << 20
DOING = {"pull": "reads", "push": "writes"}
ENOUGH_RATIO = 0.95
"""Of the fastest: more in flight than that takes is not worth its memory."""
FITTED_RATIO = 0.5
"""A fit that is further off one of its own cells foretells nothing; at its knee it has to be."""


PLAYER = "some media players"
PROFILES: dict[str, tuple[int, int]] = {
    "SMB1 clients of old": (60 * KIB, 1),
    PLAYER: (64 * KIB, 1),
    "simple libraries": (MIB, 1),
}
"""Shapes that are met, bytes of a request and how many at a time: 60 KiB of SMB1 (rsize in
mount.cifs(8)), 64 KiB chunks of players (xbmc/xbmc#24001), 1 MiB in libraries that wait for each
reply."""
OWN_NAME, OWN_SHAPE = "this tool", (MIB, 8)


@dataclass(frozen=True)
class Cell:
    """One shape, and what it gets."""

    verb: str | None
    application: str | None
    """Who asks so; None: it was measured, whoever does."""
    request_bytes: float
    depth: float
    in_flight_bytes: float
    bytes_per_second: float
    source: str = "measured"
    """measured or fit."""


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each smb-matrix: its cells, and what the known shapes get."""
    for found in steps.measured(report, "smb-matrix"):
        cells = tuple(_cells(found)) if found.intact else ()
        if len(cells) < 2:
            continue
        shapes = {**PROFILES, OWN_NAME: _own_shape(report, found)}
        told = (_application(found, cells, name, *shape) for name, shape in shapes.items())
        known = [each for each in told if each is not None]
        best = _enough(cells)
        player = next((each for each in known if each.application == PLAYER), None)
        yield table.compared(
            "requests",
            _sentence(found, best, player),
            (*known, *cells),
            (found,),
            (best.bytes_per_second, None if player is None else player.bytes_per_second),
        )


def _enough(cells: Sequence[Cell]) -> Cell:
    """The one with the fewest bytes in flight of those that hardly any is faster than."""
    most = max(each.bytes_per_second for each in cells)
    fast = [each for each in cells if each.bytes_per_second >= ENOUGH_RATIO * most]
    return min(fast, key=lambda each: (each.in_flight_bytes, -each.bytes_per_second))


def _own_shape(report: Report, found: Found) -> tuple[int, int]:
    """What this tool's own copies asked for in that direction."""
    wanted = (table.verb(found), "client", steps.word(found.step.setting, "dialect"))
    for copy in steps.copies(report):
        if copy.made is not None and (copy.verb, copy.initiator, copy.dialect) == wanted:
            details = copy.made.outcome.details
            size, depth = (steps.positive(details, name) for name in ("request_bytes", "depth"))
            if size is not None and depth is not None:
                return int(size), int(depth)
    return OWN_SHAPE


def _cells(found: Found) -> Iterator[Cell]:
    for told in steps.items(found.outcome.details, "cells"):
        names = ("request_bytes", "depth", "in_flight_bytes", "bytes_per_second")
        size, depth, in_flight, rate = (steps.positive(told, name) for name in names)
        if size is not None and depth is not None and rate is not None:
            yield Cell(table.verb(found), None, size, depth, in_flight or size * depth, rate)


def _application(
    found: Found, cells: Sequence[Cell], name: str, request_bytes: int, depth: int
) -> Cell | None:
    """What a shape gets: measured where there is a cell of it, else by the fit; None: not known."""
    in_flight = float(request_bytes * depth)
    rates = (
        e.bytes_per_second for e in cells if (e.request_bytes, e.depth) == (request_bytes, depth)
    )
    rate, source = next(rates, None), "measured"
    if rate is None:
        rate, source = _fitted(found, cells, in_flight), "fit"
    shape = (request_bytes, depth, in_flight)
    return None if rate is None else Cell(table.verb(found), name, *shape, rate, source)


def _fitted(found: Found, cells: Sequence[Cell], in_flight_bytes: float) -> float | None:
    """min(ceiling, in flight / RTT), as fitted over the cells; None: no fit that is good enough.

    Where the cells show one of both alone, it holds for what lies among them.
    """
    details = found.outcome.details
    ceiling = steps.positive(details, "fit", "ceiling_bytes_per_second")
    trip = steps.positive(details, "fit", "rtt_seconds")
    off = steps.amount(details, "fit", "worst_residual_ratio")
    flights = [each.in_flight_bytes for each in cells]
    if off is None or off > FITTED_RATIO or not min(flights) / 2 <= in_flight_bytes <= max(flights):
        return None
    bounds = [] if ceiling is None else [ceiling]
    bounds += [] if trip is None else [in_flight_bytes / trip]
    return min(bounds, default=None)


def _sentence(found: Found, best: Cell, player: Cell | None) -> str:
    verb = DOING.get(table.verb(found) or "", "moves")
    trip = steps.positive(found.outcome.details, "rtt_seconds")
    over = "" if trip is None else f", over a round trip of {seconds_text(trip)}"
    shape = _shape(best.request_bytes, best.depth)
    told = (
        f"No shape {verb} much faster than {shape}{over}: {rate_text(best.bytes_per_second)} with "
        f"{size_text(best.in_flight_bytes)} in flight."
    )
    off = steps.amount(found.outcome.details, "fit", "worst_residual_ratio")
    if off is not None and off > FITTED_RATIO:
        told += (
            f" The cells do not follow bytes in flight over round trip ({percent_text(off)} off at "
            "worst): something else decides here."
        )
    seen = load(found.usage("client"))
    if seen is not None and seen.process_ratio >= SATURATED_RATIO:
        told += " This tool itself filled a core of the client there: others may get more."
    if player is None:
        return told
    by = "" if player.source == "measured" else "about "
    shape = _shape(player.request_bytes, player.depth)
    return f"{told} {shape}, as some players do: {by}{rate_text(player.bytes_per_second)} here."


def _shape(request_bytes: float, depth: float) -> str:
    many = "one at a time" if depth == 1 else f"{count_text(depth)} at once"
    return f"{size_text(request_bytes)}, {many}"
