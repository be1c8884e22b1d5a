"""SMB by itself: request sizes, further connections, and what security costs on whose CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import shown, steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import Row
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.load import SATURATED_RATIO, load
from bottleneck.analysis.noise import SINGLE_RATIO, differ, factor
from bottleneck.analysis.rules.smb.signing import NOUNS, PLAIN, cpu_seconds_per_byte
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import (
    cost_text,
    count_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)
from probes.core.records import SIDES, Outcome, Skipped

KIB, MIB = 1 << 10, 1 << 20
DOING = {"pull": "read", "push": "write"}
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
"""Sizes of a request and how many are in flight: 60 KiB of SMB1 (rsize in
mount.cifs(8)), 64 KiB chunks of players (xbmc/xbmc#24001), 1 MiB in libraries that wait for each
reply."""
OWN_NAME, OWN_SHAPE = "this tool", (MIB, 8)
SECURITIES = (PLAIN, *NOUNS)
DEARER_RATIO = 1.5
"""CPU time that grew by less is not told as a cost."""
DEARER_SECONDS = 0.03
"""The same of one copy's whole CPU time: /proc counts it in ticks of 10 ms."""


# -- request size and depth ---------------------------------------------------------------------


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
        """Bytes in flight."""
        return self.in_flight_bytes or self.request_bytes * self.depth

    @property
    def shape(self) -> str:
        """`requests of 1 MiB (8 in flight)`."""
        return f"requests of {size_text(self.request_bytes)} ({count_text(self.depth)} in flight)"


def requests(report: Report) -> Iterator[Comparison]:
    """One comparison for each smb-matrix: its cells, and what the known shapes get."""
    for found in steps.measured(report, "smb-matrix"):
        of = {"verb": found.setting.verb or None, "application": None, "source": "measured"}
        true = {(each.request_bytes, each.depth) for each in shown.credible(report, found)}
        cells = [
            replace(each, in_flight_bytes=each.flight)
            for each in table.several(Cell, found, "cells", **of)
            if (each.request_bytes, each.depth) in true
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
            " ".join((*shown.incredible(report, found), *_sentences(found, best, player))),
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
    """The rate of a request size and depth: measured, else fitted; None: unknown."""
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
    verb = DOING.get(found.setting.verb, "run")
    trip = found.details.rtt_seconds
    over = "" if trip is None else f" over an RTT of {seconds_text(trip)}"
    shape = f"{best.shape[0].upper()}{best.shape[1:]}"
    yield f"{shape} {verb} at {rate_text(best.bytes_per_second)}{over}."
    yield "No other request size or depth is much faster."
    off = steps.amount(found.outcome.details, "fit", "worst_residual_ratio")
    if off is not None and off > FITTED_RATIO:
        yield (
            f"The rates do not fit bytes in flight / RTT (up to {percent_text(off)} off): another "
            "component limits them."
        )
    yield from table.full_cores(found, "client")
    if player is not None:
        by = "" if player.source == "measured" else "about "
        yield f"Some media players use {player.shape}: {by}{rate_text(player.bytes_per_second)}."


# -- more connections of one session ------------------------------------------------------------


@dataclass(frozen=True)
class Channels:
    """A number of connections, and what they moved together."""

    verb: str | None
    channels: float
    bytes_per_second: float
    one_connection_ratio: float | None
    """Its rate over that of one connection."""


def channels(report: Report) -> Iterator[Comparison]:
    """One comparison for each smb-multichannel; of one that the server refused its sentence."""
    for index, (step, outcome) in enumerate(report.entries):
        if step.stage == "smb-multichannel" and _refused(outcome):
            told = "The server does not offer SMB multichannel: one connection per session."
            yield Comparison(about="channels", sentence=told, steps=(index,))
    for found in steps.measured(report, "smb-multichannel"):
        of = {"verb": found.setting.verb or None, "one_connection_ratio": None}
        cells = {each.channels: each for each in table.several(Channels, found, "cells", **of)}
        one = cells.pop(1, None)
        if one is None or not cells or not found.intact:
            continue
        most = max(each.bytes_per_second for each in cells.values())
        enough = (e for e in cells.values() if e.bytes_per_second >= ENOUGH_RATIO * most)
        best = min(enough, key=lambda each: each.channels)
        yield table.compared(
            "channels",
            " ".join((_gain(one, best), *table.full_cores(found, "client"))),
            (
                replace(each, one_connection_ratio=each.bytes_per_second / one.bytes_per_second)
                for each in (one, *cells.values())
            ),
            (found,),
            (one.bytes_per_second, best.bytes_per_second),
        )


def _refused(outcome: Outcome) -> bool:
    """Whether the server takes one connection: the reason names it, and what it cannot join."""
    words = ("connection", "session")
    return isinstance(outcome, Skipped) and all(word in outcome.reason for word in words)


def _gain(one: Channels, best: Channels) -> str:
    """What the fewest connections that are enough give, beside one of them."""
    rate, single = rate_text(best.bytes_per_second), rate_text(one.bytes_per_second)
    ratio = best.bytes_per_second / one.bytes_per_second
    many, verb = count_text(best.channels), one.verb or "copy"
    if factor(best.bytes_per_second, one.bytes_per_second) <= SINGLE_RATIO:
        return (
            "More connections do not help: no significant difference "
            f"(1 connection {single}, {many} connections {rate})."
        )
    told = f"With {many} connections a {verb} runs at {rate}, "
    if ratio > 1:
        return f"{told}{times_text(ratio)} one connection ({single})."
    return f"{told}{times_text(1 / ratio)} slower than with one ({single})."


# -- the same bytes plain, signed and encrypted -------------------------------------------------


def security(report: Report) -> Iterator[Comparison]:
    """One comparison a direction in which two kinds of security were measured."""
    taxes = [each for each in steps.measured(report, "smb-tax") if each.intact]
    for verb, moving in table.MOVING.items():
        made = {each.setting.security: each for each in taxes if each.setting.verb == verb}
        # The least security first.
        found = {name: made[name] for name in SECURITIES if name in made}
        if len(found) < 2:
            continue
        base_name, base = next(iter(found.items()))
        others = {name: each for name, each in found.items() if name != base_name}
        dearest = min(others.values(), key=lambda each: each.rate.median)
        costs = " ".join(_cost(name, base, each) for name, each in others.items())
        yield Comparison(
            about="security",
            sentence=f"{moving} runs at {rate_text(base.rate.median)} {base_name}. {costs}",
            rows=tuple(_row(verb, name, each, base) for name, each in found.items()),
            ratio=factor(base.rate.median, dearest.rate.median),
            significant=differ(base.rate, dearest.rate),
            steps=tuple(each.index for each in found.values()),
        )


def _row(verb: str, name: str, found: Found, base: Found) -> Row:
    row: Row = {
        "verb": verb,
        "security": name,
        "signing": found.details.signing,
        "encryption": found.details.encryption,
        "bytes_per_second": found.rate.median,
        "low_bytes_per_second": found.rate.low,
        "high_bytes_per_second": found.rate.high,
        "runs": found.rate.runs,
        "cost_ratio": 1 - found.rate.median / base.rate.median,
        "significant": found is not base and differ(found.rate, base.rate),
    }
    for side in SIDES:
        row[f"{side}_cpu_seconds_per_byte"] = cpu_seconds_per_byte(found, side)
    return row


def _cost(name: str, base: Found, found: Found) -> str:
    """What one kind of security takes, and where the CPU time goes."""
    rate, before, noun = found.rate.median, base.rate.median, NOUNS[name].capitalize()
    dearer = _dearer(base, found)
    if not differ(found.rate, base.rate):
        return f"{noun}: no significant difference{dearer}."
    if rate > before:
        # Whatever made it faster, it was not the work added.
        return f"{noun} runs at {rate_text(rate)} and does not reduce throughput{dearer}."
    taken = percent_text(1 - rate / before)
    return f"{noun} reduces throughput by {taken} to {rate_text(rate)}{dearer}.{_full(found)}"


def _dearer(base: Found, found: Found) -> str:
    """The host whose CPU time per byte grew most, where it grew."""
    grown = []
    for side in SIDES:
        before, after = cpu_seconds_per_byte(base, side), cpu_seconds_per_byte(found, side)
        if before is None or after is None:
            continue
        more_seconds = (after - before) * found.moved_bytes
        if after > DEARER_RATIO * before and more_seconds >= DEARER_SECONDS:
            grown.append((after - before, side, before, after))
    if not grown:
        return ""
    _, side, before, after = max(grown)
    return f"; the {side}'s CPU needs {cost_text(after)} instead of {cost_text(before)}"


def _full(found: Found) -> str:
    """A core that is full: more of it would be faster."""
    client, server = (load(found.usage(side)) for side in SIDES)
    # a core that serves interrupts is the server's as well, but not this tool's
    for used, whose in (
        (0.0 if server is None else server.one_core_ratio, "One core of the server"),
        (0.0 if client is None else client.process_ratio, "This tool's core on the client"),
    ):
        if used >= SATURATED_RATIO:
            return f" {whose} is {percent_text(min(1.0, used))} busy."
    return ""
