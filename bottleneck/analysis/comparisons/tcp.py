"""TCP alone, shape by shape: buffers of one call, and windows with streams: what is enough here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis import physics, steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import Row
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

USUAL_BYTES = 8192
"""The buffer of many programs, and the one that ttcp and its kin take by themselves."""
ENOUGH_RATIO = 0.95
CALL_RATIO = 0.5
"""Of the best: below it a buffer's time is mostly the call itself."""
BUFFER_FIGURES = (
    *("calls", "calls_per_second", "seconds_per_call"),
    *("sender_cpu_seconds_per_byte", "receiver_cpu_seconds_per_byte"),
)
AUTOTUNED = 0
HELD_RATIO = 0.8
"""Of what the window allows: from there on it is the window that holds a cell."""
QUEUED_RATIO = 2.0
"""A round trip that is so many times as long as on the idle path waits in a queue."""
CLIPPED_RATIO = 0.9
MOST_REASON = 200
"""Characters of what somebody else's program says."""


# -- buffer sizes: what a program gets that sends and receives so much at once -----------------


@dataclass(frozen=True)
class Buffer:
    """One buffer size that was measured."""

    told: Row
    buffer_bytes: float
    bytes_per_second: float

    @property
    def low(self) -> float:
        """Of its slowest pass."""
        return steps.positive(self.told, "low_bytes_per_second") or self.bytes_per_second

    @property
    def high(self) -> float:
        """Of its fastest pass."""
        return steps.positive(self.told, "high_bytes_per_second") or self.bytes_per_second


def buffers(report: Report) -> Iterator[Comparison]:
    """One comparison for each sweep: every buffer size against the best."""
    for found in steps.measured(report, "sweep"):
        sizes = tuple(_buffers(found))
        if len(sizes) < 2:
            continue
        best = max(sizes, key=lambda each: each.bytes_per_second)
        knee = _enough(found, sizes, best)
        small = _small(sizes, knee)
        doubt = physics.impossible(report, found)
        yield table.compared(
            "buffers",
            doubt or _buffer_sentence(found, sizes, best, knee, small),
            (_buffer_row(found, each, best, knee) for each in sizes),
            (found,),
            (best.bytes_per_second, small.bytes_per_second),
            believed=doubt is None and small.high < best.low,
        )


def _buffers(found: Found) -> Iterator[Buffer]:
    for told in steps.items(found.outcome.details, "points"):
        size, rate = (steps.positive(told, name) for name in ("buffer_bytes", "bytes_per_second"))
        if size is not None and rate is not None:
            yield Buffer(told, size, rate)


def _enough(found: Found, sizes: tuple[Buffer, ...], best: Buffer) -> Buffer:
    """The smallest that is enough: as the stage tells, which knows the noise."""
    told = steps.positive(found.outcome.details, "knee_bytes")
    named = next((each for each in sizes if each.buffer_bytes == told), None)
    enough = [e for e in sizes if e.bytes_per_second >= ENOUGH_RATIO * best.bytes_per_second]
    return named or min(enough, key=lambda each: each.buffer_bytes)


def _small(sizes: tuple[Buffer, ...], knee: Buffer) -> Buffer:
    """The one to hold against the best: the usual one, where that is below the knee."""
    usual = next((each for each in sizes if each.buffer_bytes == USUAL_BYTES), None)
    if usual is not None and knee.buffer_bytes > USUAL_BYTES:
        return usual
    return min(sizes, key=lambda each: each.buffer_bytes)


def _where(found: Found) -> str:
    side = found.step.initiator
    if steps.word(found.step.setting, "over") == "loopback":
        return f"On the {side} alone"
    sender = steps.sender(table.verb(found) or "", side)
    return f"From the {sender} to the {steps.other(sender)}"


def _buffer_sentence(
    found: Found, sizes: tuple[Buffer, ...], best: Buffer, knee: Buffer, small: Buffer
) -> str:
    rate = rate_text(best.bytes_per_second)
    least = min(sizes, key=lambda each: each.buffer_bytes)
    # Where the best was not reached a second time, the stage's knee is below 95 % of it.
    enough = percent_text(min(ENOUGH_RATIO, knee.bytes_per_second / best.bytes_per_second))
    if knee is least:
        size = size_text(least.buffer_bytes)
        return f"{_where(found)} calls of {size} already reach {enough} of the best ({rate})."
    share = percent_text(small.bytes_per_second / best.bytes_per_second)
    told = (
        f"{_where(found)} calls of {size_text(knee.buffer_bytes)} reach {enough} of the best "
        f"({rate}); {size_text(small.buffer_bytes)} gives {share} of it."
    )
    seconds = steps.positive(least.told, "seconds_per_call")
    if seconds is None or least.bytes_per_second > CALL_RATIO * best.bytes_per_second:
        return told
    return (
        f"{told} A call costs {seconds_text(seconds)}, even with {size_text(least.buffer_bytes)}."
    )


def _buffer_row(found: Found, size: Buffer, best: Buffer, knee: Buffer) -> Row:
    return {
        "over": steps.word(found.step.setting, "over"),
        "verb": table.verb(found),
        "initiator": found.step.initiator,
        "buffer_bytes": int(size.buffer_bytes),
        "bytes_per_second": size.bytes_per_second,
        "low_bytes_per_second": size.low,
        "high_bytes_per_second": size.high,
        "best_ratio": size.bytes_per_second / best.bytes_per_second,
        "standing": "knee" if size is knee else None,
        **{name: steps.amount(size.told, name) for name in BUFFER_FIGURES},
    }


# -- windows and streams ------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One window with a number of streams."""

    verb: str | None
    window_bytes: float
    """As it was asked for; 0: the system's own tuning."""
    streams: float
    bytes_per_second: float
    bdp_bytes: float | None
    standing: str | None
    granted_bytes: float | None
    rtt_unloaded_seconds: float | None
    rtt_loaded_seconds: float | None
    bound_bytes_per_second: float | None
    peer_window_bytes: float | None
    cpu_seconds: float | None
    retransmitted_segments: float | None


def windows(report: Report) -> Iterator[Comparison]:
    """One comparison for each matrix: its cells, the knee, and what the system's tuning gets."""
    for found in steps.measured(report, "matrix"):
        cells = tuple(_cells(report, found))
        if len(cells) < 2:
            continue
        best = max(cells, key=lambda each: each.bytes_per_second)
        knee = _knee(found, cells) or best
        tuned = next((each for each in cells if _place(each) == (AUTOTUNED, 1)), None)
        doubt = physics.impossible(report, found)
        yield table.compared(
            "windows",
            doubt or _window_sentence(report, found, cells, best, knee, tuned),
            (replace(each, standing=_standing(each, best, knee, tuned)) for each in cells),
            (found,),
            (best.bytes_per_second, None if tuned is None else tuned.bytes_per_second),
            believed=doubt is None,
        )


def _place(cell: Cell) -> tuple[float, float]:
    return cell.window_bytes, cell.streams


def _cells(report: Report, found: Found) -> Iterator[Cell]:
    # On one host a round trip is the scheduler's, and no window has to hold it.
    product = steps.positive(found.outcome.details, "bdp_bytes")
    product = None if steps.on_one_host(report) else product
    seen = set()
    for told in steps.items(found.outcome.details, "cells"):
        window = steps.amount(told, "window_bytes")
        known = {"verb": table.verb(found), "bdp_bytes": product, "standing": None}
        cell = None if window is None else table.read(Cell, told, window_bytes=window, **known)
        if cell is not None and _place(cell) not in seen:
            seen.add(_place(cell))
            yield cell


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


def _shape(cell: Cell) -> str:
    """`2 streams x 256 KiB`."""
    many = "1 stream" if cell.streams == 1 else f"{count_text(cell.streams)} streams"
    if cell.window_bytes == AUTOTUNED:
        return f"{many} with the system's own tuning"
    return f"{many} x {size_text(cell.window_bytes)}"


def _window_sentence(
    report: Report,
    found: Found,
    cells: tuple[Cell, ...],
    best: Cell,
    knee: Cell,
    tuned: Cell | None,
) -> str:
    verb = table.moving(found)
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
    bound = None if least is None else least.bound_bytes_per_second
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
        each.window_bytes: each.granted_bytes
        for each in cells
        if each.window_bytes != AUTOTUNED and each.granted_bytes
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
    idle, loaded = best.rtt_unloaded_seconds, best.rtt_loaded_seconds
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
