"""TCP by itself: the buffer of each call, and windows with connections."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.axis import FULL_CORES, Axis, Group, Groups
from bottleneck.analysis.comparisons.table import Cell, Cells, Row
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.noise import REPEATED_RATIO, SINGLE_RATIO, factor
from bottleneck.report.report import Report
from probes.core.records import SIDES

USUAL_BYTES = 8192
"""Buffer size of many programs, and the default of ttcp and similar tools."""
CALL_RATIO = 0.5
"""Least share of the best rate at which a buffer's time is not mostly the call itself."""
QUEUED_TIMES = 2
"""Least ratio of loaded to idle RTT at which the difference is a queue."""
MOST_REASON = 200
"""Most characters of another program's message."""
BUFFER = (
    "over= verb= initiator= buffer_bytes! bytes_per_second! low_bytes_per_second "
    "high_bytes_per_second best_ratio= standing= calls calls_per_second seconds_per_call "
    "sender_cpu_seconds_per_byte receiver_cpu_seconds_per_byte"
)
WINDOW = (
    "verb= window_bytes streams! bytes_per_second! bdp_bytes= standing= granted_bytes "
    "rtt_unloaded_seconds rtt_loaded_seconds bound_bytes_per_second peer_window_bytes cpu_seconds "
    "retransmitted_segments"
)


def _knee(cells: Cells) -> Cell:
    """Returns the smallest buffer that is enough: as the stage reports, which knows the noise."""
    return table.find(
        cells, buffer_bytes=steps.positive(cells[0].result.outcome.details, "knee_bytes")
    ) or table.enough(cells, lambda each: each.row["buffer_bytes"])


def _best_and_small(cells: Cells) -> Cells:
    usual = table.find(cells, buffer_bytes=USUAL_BYTES)
    if usual is None or _knee(cells).row["buffer_bytes"] <= USUAL_BYTES:
        usual = min(cells, key=lambda each: each.row["buffer_bytes"])
    return table.fastest(cells), usual


def _buffer_rows(group: Group) -> Iterator[Row]:
    best, knee = group.ends[0], _knee(group.cells)
    for each in group.cells:
        yield {
            **each.row,
            "buffer_bytes": int(each.row["buffer_bytes"]),
            "low_bytes_per_second": each.spread.low,
            "high_bytes_per_second": each.spread.high,
            "best_ratio": each.rate / best.rate,
            "standing": "knee" if each is knee else None,
        }


def _buffer_figures(group: Group, _: Groups) -> Row:
    (best, small), knee, result = group.ends, _knee(group.cells), group.cells[0].result
    smallest = min(group.cells, key=lambda each: each.row["buffer_bytes"])
    where = f"From the {result.sender} to the {steps.other(result.sender)}"
    if result.setting.over == "loopback":
        where = f"On the {result.plan.initiator} (loopback)"
    slow = knee is not smallest and smallest.rate <= CALL_RATIO * best.rate
    return {
        "where": where,
        "knee": knee.row,
        "any_size": knee is smallest,
        # If the best rate was not repeated, the stage's knee is below 95 % of it.
        "knee_ratio": min(table.ENOUGH_RATIO, knee.rate / best.rate),
        "small": None if knee is smallest else small.row,
        "small_ratio": small.rate / best.rate,
        "call": smallest.row if slow else None,
    }


BUFFERS = Axis(
    "buffers",
    cells=lambda report: table.list_cells(report, "sweep", "points", BUFFER),
    minimum=2,
    ends=_best_and_small,
    rows=_buffer_rows,
    figures=_buffer_figures,
    sentences=(
        "{any_size}{where}, calls of {knee.buffer_bytes} already reach {knee_ratio} of the best "
        "rate ({first.bytes_per_second}).",
        "{where}, calls of {knee.buffer_bytes} reach {knee_ratio} of the best rate "
        "({first.bytes_per_second}); calls of {small.buffer_bytes} reach {small_ratio}.",
        "A call of {call.buffer_bytes} takes {call.seconds_per_call}.",
    ),
)


def _windows(report: Report) -> Iterator[Cell]:
    cells: dict[tuple[int, float, float], Cell] = {}
    for each in table.list_cells(report, "matrix", "cells", WINDOW):
        row = each.row
        # On one host a round trip is the scheduler's, and no window has to hold it.
        if not steps.on_one_host(report):
            row["bdp_bytes"] = steps.positive(each.result.outcome.details, "bdp_bytes")
        if row["window_bytes"] is not None:
            cells.setdefault((each.result.index, row["window_bytes"], row["streams"]), each)
    yield from cells.values()


def _window_knee(cells: Cells) -> Cell:
    details, names = cells[0].result.outcome.details, ("window_bytes", "streams")
    figures = {name: steps.amount(details, "knee", name) for name in names}
    return table.find(cells, **figures) or table.fastest(cells)


def _tuned_cell(cells: Cells) -> Cell | None:
    return table.find(cells, window_bytes=0, streams=1)


def _best_and_tuned(cells: Cells) -> Cells:
    tuned = _tuned_cell(cells)
    return (table.fastest(cells),) if tuned is None else (table.fastest(cells), tuned)


def _window_rows(group: Group) -> Iterator[Row]:
    best, knee, tuned = group.ends[0], _window_knee(group.cells), _tuned_cell(group.cells)
    standings = {id(tuned): "autotuned", id(best): "best", id(knee): "knee"}
    return ({**each.row, "standing": standings.get(id(each))} for each in group.cells)


def _connections(cell: Cell) -> str:
    """Returns `2 connections with a window of 256 KiB`."""
    many = table.number_text(cell.row["streams"], "connection")
    window = table.write(" with a window of {window_bytes}", cell.row)
    return many + (window if cell.row["window_bytes"] else " with automatic tuning")


def _reaches(cell: Cell) -> str:
    return f"{_connections(cell)} {'reaches' if cell.row['streams'] == 1 else 'reach'}"


def _window_figures(group: Group, _: Groups) -> Row:
    cells, result = group.cells, group.cells[0].result
    best, knee, tuned = group.ends[0], _window_knee(cells), _tuned_cell(cells)
    limited = _window_limited(cells)
    details, broken = result.outcome.details, steps.items(result.outcome.details, "broken")
    full = next(filter(None, (hindrance(load(result.usage(each)), each) for each in SIDES)), None)
    idle, loaded = (best.row[f"rtt_{name}_seconds"] for name in ("unloaded", "loaded"))
    queued = full is None and idle and loaded and loaded > QUEUED_TIMES * idle
    reason = broken and steps.word(broken[0], "reason") or "the transfer failed"
    return {
        "knee": _reaches(knee),
        "share_ratio": None if knee is best else knee.rate / best.rate,
        "rtt_seconds": steps.positive(details, "rtt_seconds"),
        **({} if tuned in (None, knee, best) else _tuning_figures(best, tuned, full)),
        "held": limited and _reaches(limited),
        "held_bytes_per_second": limited and limited.rate,
        "clipped_bytes": _clipped_window(cells),
        "queued_times": loaded / idle if queued else None,
        "out_of_time": steps.flag(details, "left_out"),
        "broken": len(broken) or None,
        "reason": " ".join(reason.split())[:MOST_REASON],
    }


def _tuning_figures(best: Cell, tuned: Cell | None, full: str | None) -> Row:
    """Returns the figures of automatic tuning, if it is neither the best nor the knee."""
    assert tuned is not None
    same = factor(best.rate, tuned.rate) <= SINGLE_RATIO
    row = {"tuned": _connections(tuned), "tuned_bytes_per_second": tuned.rate, "full": full}
    return {**row, "well": same, "less_well": not same, "untuned": not same and full is None}


def _window_limited(cells: Cells) -> Cell | None:
    """Returns the cell of the smallest window, if the window limits it; None: it does not."""
    fixed = [each for each in cells if each.row["window_bytes"]]
    smallest = min(fixed, key=lambda e: (e.row["window_bytes"], e.row["streams"]), default=None)
    bound = smallest and smallest.row["bound_bytes_per_second"]
    if smallest is None or not bound or SINGLE_RATIO * smallest.rate < bound:
        return None
    return smallest if table.fastest(cells).rate > SINGLE_RATIO * smallest.rate else None


def _clipped_window(cells: Cells) -> float | None:
    grants = {each.row["window_bytes"]: each.row["granted_bytes"] for each in cells}
    pairs = sorted((window, grant) for window, grant in grants.items() if window and grant)
    clipped = (
        window
        for (smaller, smaller_grant), (window, grant) in zip(pairs, pairs[1:], strict=False)
        if REPEATED_RATIO * grant / smaller_grant < window / smaller
    )
    return next(clipped, None)


WINDOWS = Axis(
    "windows",
    cells=_windows,
    minimum=2,
    ends=_best_and_tuned,
    rows=_window_rows,
    figures=_window_figures,
    sentences=(
        "{moving}, {knee} [{share_ratio} of ]the best rate, {first.bytes_per_second}.",
        "At that rate and an RTT of {rtt_seconds}, one connection needs a window of "
        "{first.bdp_bytes} (bandwidth-delay product).",
        "{well}{tuned}: no significant difference ({tuned_bytes_per_second}).",
        "{less_well}{tuned} reaches {tuned_bytes_per_second}, while {full}.",
        "{untuned}{tuned} reaches {tuned_bytes_per_second}. Its limit is packet loss or the "
        "largest window (net.ipv4.tcp_rmem at the receiver, tcp_wmem at the sender).",
        "{held} {held_bytes_per_second}, the window divided by the RTT.",
        "The system does not grant a window of {clipped_bytes} in full (net.core.rmem_max, "
        "wmem_max).",
        "The RTT under load is {first.rtt_loaded_seconds}, {queued_times} the idle RTT; the "
        "difference is queueing.",
        "{out_of_time}Out of time: not all cells were measured.",
        "Cells that were not measured: {broken} ({reason}).",
        *FULL_CORES,
    ),
)
