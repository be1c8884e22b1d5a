"""Request size and depth: which application would get what on this path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
    in_flight_bytes: float | None
    bytes_per_second: float
    source: str
    """measured or fit."""

    @property
    def flight(self) -> float:
        """Bytes that are under way at once."""
        return self.in_flight_bytes or self.request_bytes * self.depth

    @property
    def shape(self) -> str:
        """`1 MiB, 8 at once`."""
        many = "one at a time" if self.depth == 1 else f"{count_text(self.depth)} at once"
        return f"{size_text(self.request_bytes)}, {many}"


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each smb-matrix: its cells, and what the known shapes get."""
    for found in steps.measured(report, "smb-matrix"):
        of = {"verb": found.setting.verb or None, "application": None, "source": "measured"}
        cells = [
            replace(each, in_flight_bytes=each.flight)
            for each in table.several(Cell, found, "cells", **of)
        ]
        if len(cells) < 2 or not found.intact:
            continue
        shapes = {**PROFILES, OWN_NAME: _own_shape(report, found)}
        told = (_application(found, cells, name, *shape) for name, shape in shapes.items())
        known = [each for each in told if each is not None]
        # The fewest bytes in flight of those that hardly any is faster than.
        enough = ENOUGH_RATIO * max(each.bytes_per_second for each in cells)
        fast = (each for each in cells if each.bytes_per_second >= enough)
        best = min(fast, key=lambda each: (each.flight, -each.bytes_per_second))
        player = next((each for each in known if each.application == PLAYER), None)
        yield table.compared(
            "requests",
            " ".join(_sentences(found, best, player)),
            (*known, *cells),
            (found,),
            (best.bytes_per_second, None if player is None else player.bytes_per_second),
        )


def _own_shape(report: Report, found: Found) -> tuple[int, int]:
    """What this tool's own copies asked for in that direction."""
    wanted = (found.setting.verb, "client", found.setting.dialect)
    for copy in steps.copies(report):
        if copy.made is not None and (copy.verb, copy.initiator, copy.dialect) == wanted:
            size, depth = copy.made.details.request_bytes, copy.made.details.depth
            if size is not None and depth is not None:
                return int(size), int(depth)
    return OWN_SHAPE


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
    return None if rate is None else Cell(cells[0].verb, name, *shape, rate, source)


def _fitted(found: Found, cells: Sequence[Cell], in_flight_bytes: float) -> float | None:
    """min(ceiling, in flight / RTT), as fitted over the cells; None: no fit that is good enough.

    Where the cells show one of both alone, it holds for what lies among them.
    """
    details = found.outcome.details
    ceiling = steps.positive(details, "fit", "ceiling_bytes_per_second")
    trip = steps.positive(details, "fit", "rtt_seconds")
    off = steps.amount(details, "fit", "worst_residual_ratio")
    flights = [each.flight for each in cells]
    if off is None or off > FITTED_RATIO or not min(flights) / 2 <= in_flight_bytes <= max(flights):
        return None
    bounds = [ceiling, None if trip is None else in_flight_bytes / trip]
    return min((each for each in bounds if each is not None), default=None)


def _sentences(found: Found, best: Cell, player: Cell | None) -> Iterator[str]:
    verb = DOING.get(found.setting.verb, "moves")
    trip = found.details.rtt_seconds
    over = "" if trip is None else f", over a round trip of {seconds_text(trip)}"
    yield (
        f"No shape {verb} much faster than {best.shape}{over}: {rate_text(best.bytes_per_second)} "
        f"with {size_text(best.flight)} in flight."
    )
    off = steps.amount(found.outcome.details, "fit", "worst_residual_ratio")
    if off is not None and off > FITTED_RATIO:
        yield (
            f"The cells do not follow bytes in flight over round trip ({percent_text(off)} off at "
            "worst): something else decides here."
        )
    seen = load(found.usage("client"))
    if seen is not None and seen.process_ratio >= SATURATED_RATIO:
        yield "This tool itself filled a core of the client there: others may get more."
    if player is not None:
        by = "" if player.source == "measured" else "about "
        rate = rate_text(player.bytes_per_second)
        yield f"{player.shape}, as some players do: {by}{rate} here."
