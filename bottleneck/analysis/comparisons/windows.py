"""TCP windows and streams side by side: what is enough here, and what the system's tuning gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bottleneck.analysis import physics, steps
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.load import SATURATED_RATIO, hindrance, load
from bottleneck.analysis.noise import SINGLE_RATIO, factor
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import (
    count_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)
from probes.records import SIDES

AUTOTUNED = 0
DOING = {"pull": "Pulling", "push": "Pushing"}
HELD_RATIO = 0.8
"""Of what the window allows: from there on it is the window that holds a cell."""
QUEUED_RATIO = 2.0
"""A round trip that is so many times as long as on the idle path waits in a queue."""
CLIPPED_RATIO = 0.9
MOST_REASON = 200
"""Characters of what somebody else's program says."""
FIGURES = (
    "granted_bytes",
    "rtt_unloaded_seconds",
    "rtt_loaded_seconds",
    "bound_bytes_per_second",
    "peer_window_bytes",
    "cpu_seconds",
    "retransmitted_segments",
)


@dataclass(frozen=True)
class Cell:
    """One window with a number of streams."""

    window_bytes: float
    """As it was asked for; 0: the system's own tuning."""
    streams: float
    bytes_per_second: float
    figures: dict[str, float | None]


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each matrix: its cells, the knee, and what the system's tuning gets."""
    for found in steps.measured(report, "matrix"):
        cells = tuple(_cells(found))
        if len(cells) < 2:
            continue
        best = max(cells, key=lambda each: each.bytes_per_second)
        knee = _knee(found, cells) or best
        tuned = next((each for each in cells if _place(each) == (AUTOTUNED, 1)), None)
        ratio = None
        if tuned is not None:
            ratio = factor(best.bytes_per_second, tuned.bytes_per_second)
        doubt = physics.impossible(report, found)
        yield Comparison(
            about="windows",
            sentence=doubt or _sentence(report, found, cells, best, knee, tuned),
            rows=tuple(
                _row(report, found, each, _standing(each, best, knee, tuned)) for each in cells
            ),
            ratio=ratio,
            significant=doubt is None and ratio is not None and ratio > SINGLE_RATIO,
            steps=(found.index,),
        )


def _place(cell: Cell) -> tuple[float, float]:
    return cell.window_bytes, cell.streams


def _cells(found: Found) -> Iterator[Cell]:
    seen = set()
    for told in steps.items(found.outcome.details, "cells"):
        window = steps.amount(told, "window_bytes")
        streams, rate = (steps.positive(told, name) for name in ("streams", "bytes_per_second"))
        if window is None or streams is None or rate is None or (window, streams) in seen:
            continue
        seen.add((window, streams))
        yield Cell(window, streams, rate, {name: steps.amount(told, name) for name in FIGURES})


def _knee(found: Found, cells: tuple[Cell, ...]) -> Cell | None:
    details = found.outcome.details
    named = (
        steps.amount(details, "knee", "window_bytes"),
        steps.amount(details, "knee", "streams"),
    )
    return next((each for each in cells if _place(each) == named), None)


def _standing(cell: Cell, best: Cell, knee: Cell, tuned: Cell | None) -> str | None:
    if cell is knee:
        return "knee"
    if cell is best:
        return "best"
    return "autotuned" if cell is tuned else None


def _row(report: Report, found: Found, cell: Cell, standing: str | None) -> dict[str, Any]:
    one_host = steps.on_one_host(report)
    return {
        "verb": steps.word(found.step.setting, "verb"),
        "window_bytes": cell.window_bytes,
        "streams": cell.streams,
        "bytes_per_second": cell.bytes_per_second,
        # On one host a round trip is the scheduler's, and no window has to hold it.
        "bdp_bytes": None if one_host else steps.positive(found.outcome.details, "bdp_bytes"),
        "standing": standing,
        **cell.figures,
    }


def _shape(cell: Cell) -> str:
    """`2 streams x 256 KiB`."""
    many = "1 stream" if cell.streams == 1 else f"{count_text(cell.streams)} streams"
    if cell.window_bytes == AUTOTUNED:
        return f"{many} with the system's own tuning"
    return f"{many} x {size_text(cell.window_bytes)}"


def _sentence(
    report: Report,
    found: Found,
    cells: tuple[Cell, ...],
    best: Cell,
    knee: Cell,
    tuned: Cell | None,
) -> str:
    verb = DOING.get(steps.word(found.step.setting, "verb") or "", "Moving")
    share = knee.bytes_per_second / best.bytes_per_second
    reach = "reaches" if knee.streams == 1 else "reach"
    if knee is best:
        told = [f"{verb}, {_shape(knee)} {reach} the most: {rate_text(best.bytes_per_second)}."]
    else:
        told = [
            f"{verb}, {_shape(knee)} {reach} {percent_text(share)} of the best, "
            f"{rate_text(best.bytes_per_second)}."
        ]
    busy = [hindrance(load(found.usage(side)), side) for side in SIDES]
    why = next((each for each in busy if each is not None), None)
    if not steps.on_one_host(report):
        told += _product(found, best)
    if tuned is not None and knee is not tuned and best is not tuned:
        told.append(_tuning(best, tuned, why))
    told += _held(cells)
    told += _clipped(cells)
    if why is None:
        told += _queue(best)
    if steps.flag(found.outcome.details, "left_out"):
        told.append("The time was too short for all cells.")
    told += _broken(found)
    told += _instrument(found)
    return " ".join(told)


def _product(found: Found, best: Cell) -> Iterator[str]:
    """The bandwidth-delay product: what one stream's window has to hold."""
    trip = steps.positive(found.outcome.details, "rtt_seconds")
    product = steps.positive(found.outcome.details, "bdp_bytes")
    if trip is not None and product is not None:
        yield (
            f"At that rate {size_text(product)} are under way in a round trip of "
            f"{seconds_text(trip)} (the bandwidth-delay product): one stream needs that window."
        )


def _tuning(best: Cell, tuned: Cell, why: str | None) -> str:
    rate = rate_text(tuned.bytes_per_second)
    if factor(best.bytes_per_second, tuned.bytes_per_second) <= SINGLE_RATIO:
        return f"The system's own tuning gets {rate} with one stream: it is not in the way."
    if why is not None:
        return f"The system's own tuning gets {rate} with one stream, while {why}."
    return (
        f"The system's own tuning gets no more than {rate} with one stream: what it may grow a "
        "window to (net.ipv4.tcp_rmem at the receiver, tcp_wmem at the sender), or loss, holds it."
    )


def _held(cells: tuple[Cell, ...]) -> Iterator[str]:
    """The smallest window, where it is the window that holds it."""
    fixed = [each for each in cells if each.window_bytes != AUTOTUNED]
    least = min(fixed, key=lambda each: (each.window_bytes, each.streams), default=None)
    bound = None if least is None else least.figures["bound_bytes_per_second"]
    if least is None or not bound or least.bytes_per_second < HELD_RATIO * bound:
        return
    most = max(each.bytes_per_second for each in cells)
    if most > SINGLE_RATIO * least.bytes_per_second:
        yield (
            f"{_shape(least)} {'gets' if least.streams == 1 else 'get'} "
            f"{rate_text(least.bytes_per_second)}, as the window over the round trip says."
        )


def _clipped(cells: tuple[Cell, ...]) -> Iterator[str]:
    """Windows that the system did not grant."""
    told = {
        each.window_bytes: each.figures["granted_bytes"]
        for each in cells
        if each.window_bytes != AUTOTUNED and each.figures["granted_bytes"]
    }
    wanted = sorted(told)
    for smaller, larger in zip(wanted, wanted[1:], strict=False):
        grown = (told[larger] or 0.0) / (told[smaller] or 1.0)
        if grown < CLIPPED_RATIO * larger / smaller:
            yield (
                f"A window of {size_text(larger)} is not granted in full "
                "(net.core.rmem_max, wmem_max)."
            )
            return


def _queue(best: Cell) -> Iterator[str]:
    """What the full path does to round trips."""
    idle, loaded = (best.figures[f"rtt_{name}_seconds"] for name in ("unloaded", "loaded"))
    if idle and loaded and loaded > QUEUED_RATIO * idle:
        yield (
            f"Round trips take {seconds_text(loaded)} then, {times_text(loaded / idle)} as long as "
            "on the idle path: the rest is a queue."
        )


def _broken(found: Found) -> Iterator[str]:
    """Cells without a rate, and why the first of them has none."""
    told = steps.items(found.outcome.details, "broken")
    if told:
        many = "One cell has" if len(told) == 1 else f"{count_text(len(told))} cells have"
        why = steps.word(told[0], "reason") or "its transfer broke"
        yield f"{many} no rate: {' '.join(why.split())[:MOST_REASON]}."


def _instrument(found: Found) -> Iterator[str]:
    for side in SIDES:
        seen = load(found.usage(side))
        if seen is not None and seen.process_ratio >= SATURATED_RATIO:
            yield f"This tool itself filled a core of the {side} there."
