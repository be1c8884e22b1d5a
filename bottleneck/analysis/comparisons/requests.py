"""Request size and depth: which application would get what on this path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.load import SATURATED_RATIO, load
from bottleneck.analysis.noise import SINGLE_RATIO, factor
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


@dataclass(frozen=True)
class Profile:
    """How an application asks for a file."""

    name: str
    request_bytes: int
    depth: int

    @property
    def shape(self) -> str:
        """`64 KiB, one at a time`."""
        many = "one at a time" if self.depth == 1 else f"{self.depth} at once"
        return f"{size_text(self.request_bytes)}, {many}"


SLOWEST = Profile("some media players", 64 * KIB, 1)
PROFILES = (
    Profile("SMB1 clients of old", 60 * KIB, 1),
    SLOWEST,
    Profile("simple libraries", MIB, 1),
)
"""Shapes that are met: 60 KiB of SMB1 (rsize in mount.cifs(8)), 64 KiB chunks of players
(xbmc/xbmc#24001), 1 MiB in libraries that wait for each reply."""
OWN_NAME, OWN_SHAPE = "this tool", (MIB, 8)


@dataclass(frozen=True)
class Cell:
    """One shape that was measured."""

    request_bytes: float
    depth: float
    in_flight_bytes: float
    bytes_per_second: float


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each smb-matrix: its cells, and what the known shapes get."""
    for found in steps.measured(report, "smb-matrix"):
        cells = tuple(_cells(found)) if found.intact else ()
        if len(cells) < 2:
            continue
        profiles = (*PROFILES, _own(report, found))
        told = tuple(_application(found, cells, each) for each in profiles)
        known = tuple(each for each in told if each is not None)
        best = _enough(cells)
        slowest = next((each for each in known if each["application"] == SLOWEST.name), None)
        ratio = None
        if slowest is not None:
            ratio = factor(best.bytes_per_second, slowest["bytes_per_second"])
        yield Comparison(
            about="requests",
            sentence=_sentence(found, best, slowest),
            rows=(*known, *(_row(found, each) for each in cells)),
            ratio=ratio,
            significant=ratio is not None and ratio > SINGLE_RATIO,
            steps=(found.index,),
        )


def _enough(cells: tuple[Cell, ...]) -> Cell:
    """The one with the fewest bytes in flight of those that hardly any is faster than."""
    most = max(each.bytes_per_second for each in cells)
    fast = [each for each in cells if each.bytes_per_second >= ENOUGH_RATIO * most]
    return min(fast, key=lambda each: (each.in_flight_bytes, -each.bytes_per_second))


def _own(report: Report, found: Found) -> Profile:
    """What this tool's own copies asked for in that direction."""
    verb, dialect = (steps.word(found.step.setting, name) for name in ("verb", "dialect"))
    for copy in steps.copies(report):
        same = (copy.verb, copy.initiator, copy.dialect) == (verb, "client", dialect)
        if copy.made is not None and same:
            details = copy.made.outcome.details
            size, depth = (steps.positive(details, name) for name in ("request_bytes", "depth"))
            if size is not None and depth is not None:
                return Profile(OWN_NAME, int(size), int(depth))
    return Profile(OWN_NAME, *OWN_SHAPE)


def _cells(found: Found) -> Iterator[Cell]:
    for told in steps.items(found.outcome.details, "cells"):
        names = ("request_bytes", "depth", "in_flight_bytes", "bytes_per_second")
        size, depth, in_flight, rate = (steps.positive(told, name) for name in names)
        if size is not None and depth is not None and rate is not None:
            yield Cell(size, depth, in_flight or size * depth, rate)


def _row(found: Found, cell: Cell) -> dict[str, Any]:
    return {
        "verb": steps.word(found.step.setting, "verb"),
        "application": None,
        "request_bytes": cell.request_bytes,
        "depth": cell.depth,
        "in_flight_bytes": cell.in_flight_bytes,
        "bytes_per_second": cell.bytes_per_second,
        "source": "measured",
    }


def _application(found: Found, cells: tuple[Cell, ...], profile: Profile) -> dict[str, Any] | None:
    """What a shape gets: measured where there is a cell of it, else by the fit; None: not known."""
    shape = (profile.request_bytes, profile.depth)
    cell = next((each for each in cells if (each.request_bytes, each.depth) == shape), None)
    in_flight = float(profile.request_bytes * profile.depth)
    if cell is not None:
        rate, source = cell.bytes_per_second, "measured"
    else:
        fitted = _fitted(found, cells, in_flight)
        if fitted is None:
            return None
        rate, source = fitted, "fit"
    return {
        "verb": steps.word(found.step.setting, "verb"),
        "application": profile.name,
        "request_bytes": profile.request_bytes,
        "depth": profile.depth,
        "in_flight_bytes": in_flight,
        "bytes_per_second": rate,
        "source": source,
    }


def _fitted(found: Found, cells: tuple[Cell, ...], in_flight_bytes: float) -> float | None:
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


def _sentence(found: Found, best: Cell, slowest: dict[str, Any] | None) -> str:
    verb = DOING.get(steps.word(found.step.setting, "verb") or "", "moves")
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
    if slowest is None:
        return told
    by = "" if slowest["source"] == "measured" else "about "
    rate = f"{by}{rate_text(slowest['bytes_per_second'])}"
    return f"{told} {SLOWEST.shape}, as some players do: {rate} here."


def _shape(request_bytes: float, depth: float) -> str:
    many = "one at a time" if depth == 1 else f"{count_text(depth)} at once"
    return f"{size_text(request_bytes)}, {many}"
