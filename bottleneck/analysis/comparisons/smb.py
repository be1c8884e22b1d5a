"""SMB by itself: request sizes, further connections, and the cost of security on both CPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bottleneck.analysis import steps, transfer_rates
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.axis import FULL_CORES, MOVING, Axis, Group, Groups
from bottleneck.analysis.comparisons.table import Cell, Cells, Row
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.load import SATURATED_RATIO, load
from bottleneck.analysis.noise import differ
from bottleneck.analysis.rules.smb.signing import NOUNS, PLAIN, cpu_seconds_per_byte
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import cost_text, percent_text
from probes.core.records import SIDES, Skipped

KIB, MIB = 1 << 10, 1 << 20
DOING = {"pull": "read", "push": "write"}
FITTED_RATIO = 0.5
"""Most distance of a usable fit from any of its cells."""
PLAYER, TOOL = "some media players", "this tool"
PROFILES = {
    "SMB1 clients of old": (60 * KIB, 1),
    PLAYER: (64 * KIB, 1),
    "simple libraries": (MIB, 1),
    TOOL: (MIB, 8),
}
"""Request sizes and numbers in flight: 60 KiB of SMB1 (rsize in mount.cifs(8)), 64 KiB chunks of
players (xbmc/xbmc#24001), 1 MiB in libraries that wait for each reply."""
SECURITIES = (PLAIN, *NOUNS)
DEARER_RATIO, DEARER_SECONDS = 1.5, 0.03
"""Least growth of CPU time that is a cost: per byte, and in all (/proc counts ticks of 10 ms)."""
REQUEST = "verb= application= request_bytes! depth! in_flight_bytes bytes_per_second! source="


def _requests(report: Report) -> Iterator[Cell]:
    for each in table.list_cells(report, "smb-matrix", "cells", REQUEST):
        row, shape = each.row, (each.row["request_bytes"], each.row["depth"])
        row["in_flight_bytes"] = row["in_flight_bytes"] or math.prod(shape)
        row["source"] = "measured"
        if shape in (
            (e.request_bytes, e.depth) for e in transfer_rates.credible_cells(report, each.result)
        ):
            yield each


def _best_and_player(cells: Cells) -> Cells:
    """Returns the cells of the fewest bytes in flight that are enough, and of a media player."""
    best = table.enough(cells, lambda each: (each.row["in_flight_bytes"], -each.rate))
    player = _application(cells, PLAYER, *PROFILES[PLAYER])
    return (best,) if player is None else (best, player)


def _application(cells: Cells, name: str, request_bytes: int, depth: int) -> Cell | None:
    """Returns the rate of a request size and depth: measured, else fitted; None: unknown."""
    result, flight = cells[0].result, float(request_bytes * depth)
    same = table.find(cells, request_bytes=request_bytes, depth=depth)
    rate = _fitted_rate(cells, flight) if same is None else same.rate
    row = {
        **cells[0].row,
        "application": name,
        "request_bytes": request_bytes,
        "depth": depth,
        "in_flight_bytes": flight,
        "bytes_per_second": rate,
        "source": "measured" if same else "fit",
    }
    return None if rate is None else table.cell(result, row)


def _fitted_rate(cells: Cells, flight_bytes: float) -> float | None:
    """Returns min(ceiling, in flight / RTT), as fitted; None: no fit that is good enough.

    If the cells show only one of both, it holds within their range.
    """
    details = cells[0].result.outcome.details
    ceiling = steps.positive(details, "fit", "ceiling_bytes_per_second")
    trip, residual = steps.positive(details, "fit", "rtt_seconds"), _residual(cells[0].result)
    flights = [each.row["in_flight_bytes"] for each in cells]
    among = min(flights) / 2 <= flight_bytes <= max(flights)
    if residual is None or residual > FITTED_RATIO or not among:
        return None
    bounds = [ceiling, None if trip is None else flight_bytes / trip]
    return min((each for each in bounds if each is not None), default=None)


def _residual(result: MeasuredStep) -> float | None:
    return steps.amount(result.outcome.details, "fit", "worst_residual_ratio")


def _request_rows(group: Group) -> Iterator[Row]:
    shapes = {**PROFILES, TOOL: _own_shape(group)}
    applications = (_application(group.cells, name, *shape) for name, shape in shapes.items())
    return (each.row for each in (*applications, *group.cells) if each is not None)


def _own_shape(group: Group) -> tuple[int, int]:
    setting = group.cells[0].result.setting
    path = (setting.verb, "client", setting.dialect)
    for copy in steps.copies(group.report):
        is_same = (copy.verb, copy.initiator, copy.dialect) == path
        details = copy.step.details if copy.step is not None and is_same else None
        if details is not None and details.request_bytes and details.depth:
            return int(details.request_bytes), int(details.depth)
    return PROFILES[TOOL]


def _request_figures(group: Group, _: Groups) -> Row:
    result, residual = group.cells[0].result, _residual(group.cells[0].result)
    player = group.ends[1] if len(group.ends) > 1 else None
    return {
        "incredible": next(transfer_rates.remark_on_incredible_cells(group.report, result), None),
        "does": DOING.get(result.setting.verb, "run"),
        "trip_seconds": result.details.rtt_seconds,
        "residual_ratio": residual if residual and residual > FITTED_RATIO else None,
        "player": player and player.row,
        "fitted": player is not None and player.row["source"] == "fit",
    }


REQUESTS = Axis(
    "requests",
    cells=_requests,
    minimum=2,
    ends=_best_and_player,
    rows=_request_rows,
    figures=_request_figures,
    sentences=(
        "{incredible}",
        "Requests of {first.request_bytes} ({first.depth} in flight) {does} at "
        "{first.bytes_per_second}[ over an RTT of {trip_seconds}]. No other request size or depth "
        "is much faster.",
        "The rates do not fit bytes in flight / RTT (up to {residual_ratio} off): another "
        "component limits them.",
        FULL_CORES[0],
        "Some media players use requests of {player.request_bytes} ({player.depth} in flight): "
        "[{fitted}about ]{player.bytes_per_second}.",
    ),
)


def _channels(report: Report) -> Iterator[Cell]:
    cells: dict[int, dict[float, Cell]] = {}
    columns = "verb= channels! bytes_per_second! one_connection_ratio="
    for each in table.list_cells(report, "smb-multichannel", "cells", columns):
        cells.setdefault(each.result.index, {})[each.row["channels"]] = each
    for by_number in cells.values():
        one = by_number.pop(1, None)
        if one is not None:
            for each in (one, *by_number.values()):
                each.row["one_connection_ratio"] = each.rate / one.rate
                yield each


def _refused_channels(report: Report) -> Iterator[Comparison]:
    """Yields that the server takes one connection, if a skipped stage's reason says so."""
    sentence = "The server does not offer SMB multichannel: one connection per session."
    for index, (step, outcome) in enumerate(report.entries):
        reason = outcome.reason if isinstance(outcome, Skipped) else ""
        if step.stage == "smb-multichannel" and "connection" in reason and "session" in reason:
            yield Comparison("channels", sentence, steps=(index,))


CHANNELS = Axis(
    "channels",
    cells=_channels,
    minimum=2,
    ends=lambda cells: (cells[0], table.enough(cells[1:], lambda each: each.row["channels"])),
    figures=lambda group, _: {"copy": group.ends[0].row["verb"] or "copy"},
    sentences=(
        "{same}More connections do not help: no significant difference (1 connection "
        "{first.bytes_per_second}, {second.channels} connections {second.bytes_per_second}).",
        "{more}With {second.channels} connections a {copy} runs at {second.bytes_per_second}, "
        "{times} one connection ({first.bytes_per_second}).",
        "{less}With {second.channels} connections a {copy} runs at {second.bytes_per_second}, "
        "{times} slower than with one ({first.bytes_per_second}).",
        FULL_CORES[0],
    ),
    remarks=_refused_channels,
)


def _taxes(report: Report) -> Iterator[Cell]:
    steps_of = {
        (each.setting.verb, each.setting.security): each
        for each in steps.measured_steps(report, "smb-tax")
        if each.is_intact
    }
    for verb in MOVING:
        base = None
        for result in filter(None, (steps_of.get((verb, each)) for each in SECURITIES)):
            base = base or result
            row = {
                "verb": verb,
                "security": result.setting.security,
                "signing": result.details.signing,
                "encryption": result.details.encryption,
                **table.rates(result),
                "cost_ratio": 1 - result.rate.median / base.rate.median,
                "significant": differ(result.rate, base.rate),
                **{f"{e}_cpu_seconds_per_byte": cpu_seconds_per_byte(result, e) for e in SIDES},
            }
            yield Cell(result, row, result.rate)


COSTS = (
    "{same}: no significant difference[; {dearer}].",
    # The added work cannot be the reason if it is faster.
    "{faster} runs at {bytes_per_second} and does not reduce throughput[; {dearer}].",
    "{slower} reduces throughput by {cost_ratio} to {bytes_per_second}[; {dearer}].[ {full}]",
)


def _cost(base: Cell, other: Cell) -> str:
    """Returns the cost of one kind of security in throughput and CPU time, in words."""
    way = "faster" if other.rate > base.rate else "slower"
    row = {**other.row, "dearer": _dearer(base, other), "full": _full(other.result)}
    row[way if row["significant"] else "same"] = NOUNS[row["security"]].capitalize()
    return "".join(table.write(text, row) for text in COSTS)


def _dearer(base: Cell, other: Cell) -> str | None:
    """Returns words for the host whose CPU time per byte grew most; None: it did not grow."""
    growths = []
    for side in SIDES:
        old, new = (each.row[f"{side}_cpu_seconds_per_byte"] for each in (base, other))
        dearer = old is not None and new is not None and new > DEARER_RATIO * old
        if dearer and (new - old) * other.result.moved_bytes >= DEARER_SECONDS:
            text = f"the {side}'s CPU needs {cost_text(new)} instead of {cost_text(old)}"
            growths.append((new - old, text))
    return max(growths)[1] if growths else None


def _full(result: MeasuredStep) -> str | None:
    """Returns a sentence about a full core, which limits the rate; None: none is full."""
    client, server = (load(result.usage(side)) for side in SIDES)
    # a core that serves interrupts is the server's as well, but not this tool's
    for used, core in (
        (server.one_core_ratio if server else 0.0, "One core of the server"),
        (client.process_ratio if client else 0.0, "This tool's core on the client"),
    ):
        if used >= SATURATED_RATIO:
            return f"{core} is {percent_text(min(1.0, used))} busy."
    return None


SECURITY = Axis(
    "security",
    cells=_taxes,
    equal="verb",
    minimum=2,
    ends=lambda cells: (cells[0], min(cells[1:], key=lambda each: each.rate)),
    figures=lambda group, _: {
        "costs": " ".join(_cost(group.cells[0], each) for each in group.cells[1:])
    },
    sentences=("{moving} runs at {first.bytes_per_second} {first.security}.", "{costs}"),
)
