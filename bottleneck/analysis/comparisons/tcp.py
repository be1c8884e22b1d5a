"""TCP by itself: the buffer of each call, and windows with connections, and what is enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import MOVING
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.noise import SINGLE_RATIO, factor
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import (
    count_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)
from probes.core.records import SIDES

USUAL_BYTES = 8192
"""The buffer of many programs, and the one that ttcp and its kin take by themselves."""
ENOUGH_RATIO = 0.95
CALL_RATIO = 0.5
"""Of the best: below it a buffer's time is mostly the call itself."""
AUTOTUNED = 0
HELD_RATIO = 0.8
"""Of what the window allows: from there on the window limits a cell."""
QUEUED_RATIO = 2.0
"""A round trip that is so many times as long as on the idle path waits in a queue."""
CLIPPED_RATIO = 0.9
MOST_REASON = 200
"""Characters of another program's message."""


# -- buffer sizes: what a program gets that sends and receives so much at once -----------------


@dataclass(frozen=True)
class Buffer:
    """One buffer size that was measured."""

    buffer_bytes: float
    bytes_per_second: float
    low_bytes_per_second: float | None
    """Of its slowest pass; with high: the rate where it is not told."""
    high_bytes_per_second: float | None
    best_ratio: float | None
    standing: str | None
    calls: float | None
    calls_per_second: float | None
    seconds_per_call: float | None
    sender_cpu_seconds_per_byte: float | None
    receiver_cpu_seconds_per_byte: float | None


def buffers(report: Report) -> Iterator[Comparison]:
    """One comparison for each sweep: every buffer size against the best."""
    for found in steps.measured(report, "sweep"):
        sizes = table.several(Buffer, found, "points", best_ratio=None, standing=None)
        if len(sizes) < 2:
            continue
        best = max(sizes, key=lambda each: each.bytes_per_second)
        knee = _enough(found, sizes, best)
        # The usual one is held against the best, where that is below the knee.
        usual = (e for e in sizes if e.buffer_bytes == USUAL_BYTES < knee.buffer_bytes)
        least = min(sizes, key=lambda each: each.buffer_bytes)
        small = next(usual, least)
        apart = (small.high_bytes_per_second or small.bytes_per_second) < (
            best.low_bytes_per_second or best.bytes_per_second
        )
        path = {
            "over": found.setting.over,
            "verb": found.setting.verb or None,
            "initiator": found.step.initiator,
        }
        yield table.compared(
            "buffers",
            _buffer_sentence(found, least, best, knee, small),
            ({**path, **_row(each, best, knee)} for each in sizes),
            (found,),
            (best.bytes_per_second, small.bytes_per_second),
            believed=apart,
        )


def _row(each: Buffer, best: Buffer, knee: Buffer) -> table.Row:
    return {
        **asdict(each),
        "buffer_bytes": int(each.buffer_bytes),
        "low_bytes_per_second": each.low_bytes_per_second or each.bytes_per_second,
        "high_bytes_per_second": each.high_bytes_per_second or each.bytes_per_second,
        "best_ratio": each.bytes_per_second / best.bytes_per_second,
        "standing": "knee" if each is knee else None,
    }


def _enough(found: Found, sizes: tuple[Buffer, ...], best: Buffer) -> Buffer:
    """The smallest that is enough: as the stage tells, which knows the noise."""
    told = steps.positive(found.outcome.details, "knee_bytes")
    named = next((each for each in sizes if each.buffer_bytes == told), None)
    enough = [e for e in sizes if e.bytes_per_second >= ENOUGH_RATIO * best.bytes_per_second]
    return named or min(enough, key=lambda each: each.buffer_bytes)


def _buffer_sentence(found: Found, least: Buffer, best: Buffer, knee: Buffer, small: Buffer) -> str:
    where = f"From the {found.sender} to the {steps.other(found.sender)}"
    if found.setting.over == "loopback":
        where = f"On the {found.step.initiator} (loopback)"
    rate = rate_text(best.bytes_per_second)
    # Where the best was not reached a second time, the stage's knee is below 95 % of it.
    enough = percent_text(min(ENOUGH_RATIO, knee.bytes_per_second / best.bytes_per_second))
    if knee is least:
        size = size_text(least.buffer_bytes)
        return f"{where}, calls of {size} already reach {enough} of the best rate ({rate})."
    share = percent_text(small.bytes_per_second / best.bytes_per_second)
    told = (
        f"{where}, calls of {size_text(knee.buffer_bytes)} reach {enough} of the best rate "
        f"({rate}); calls of {size_text(small.buffer_bytes)} reach {share}."
    )
    seconds = least.seconds_per_call
    if not seconds or least.bytes_per_second > CALL_RATIO * best.bytes_per_second:
        return told
    return f"{told} A call of {size_text(least.buffer_bytes)} takes {seconds_text(seconds)}."


# -- windows and streams ------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One window with a number of streams."""

    verb: str | None
    window_bytes: float | None
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

    @property
    def text(self) -> str:
        """`2 connections with a window of 256 KiB`."""
        many = "1 connection" if self.streams == 1 else f"{count_text(self.streams)} connections"
        if not self.window_bytes:
            return f"{many} with automatic tuning"
        return f"{many} with a window of {size_text(self.window_bytes)}"


def windows(report: Report) -> Iterator[Comparison]:
    """One comparison for each matrix: its cells, the knee, and what the system's tuning gets."""
    for found in steps.measured(report, "matrix"):
        # On one host a round trip is the scheduler's, and no window has to hold it.
        product = steps.positive(found.outcome.details, "bdp_bytes")
        product = None if steps.on_one_host(report) else product
        known = {"verb": found.setting.verb or None, "bdp_bytes": product, "standing": None}
        places: dict[tuple[float | None, float | None], Cell] = {}
        told = table.several(Cell, found, "cells", **known)
        for each in (each for each in told if each.window_bytes is not None):
            places.setdefault((each.window_bytes, each.streams), each)
        if len(places) < 2:
            continue
        best = max(places.values(), key=lambda each: each.bytes_per_second)
        names = ("window_bytes", "streams")
        width, streams = (steps.amount(found.outcome.details, "knee", name) for name in names)
        knee, tuned = places.get((width, streams), best), places.get((AUTOTUNED, 1))
        standings = {id(tuned): "autotuned", id(best): "best", id(knee): "knee"}
        cells = tuple(places.values())
        yield table.compared(
            "windows",
            " ".join(_window_sentences(report, found, cells, best, knee, tuned)),
            (replace(each, standing=standings.get(id(each))) for each in cells),
            (found,),
            (best.bytes_per_second, None if tuned is None else tuned.bytes_per_second),
        )


def _window_sentences(
    report: Report,
    found: Found,
    cells: tuple[Cell, ...],
    best: Cell,
    knee: Cell,
    tuned: Cell | None,
) -> Iterator[str]:
    share, most = "the best rate,", rate_text(best.bytes_per_second)
    if knee is not best:
        share = f"{percent_text(knee.bytes_per_second / best.bytes_per_second)} of the best rate,"
    reach = "reaches" if knee.streams == 1 else "reach"
    yield f"{MOVING.get(found.setting.verb, 'Moving')}, {knee.text} {reach} {share} {most}."
    busy = [hindrance(load(found.usage(side)), side) for side in SIDES]
    why = next((each for each in busy if each is not None), None)
    trip = steps.positive(found.outcome.details, "rtt_seconds")
    product = steps.positive(found.outcome.details, "bdp_bytes")
    if not steps.on_one_host(report) and trip is not None and product is not None:
        yield (
            f"At that rate and an RTT of {seconds_text(trip)}, one connection needs a window of "
            f"{size_text(product)} (bandwidth-delay product)."
        )
    if tuned is not None and knee is not tuned and best is not tuned:
        yield _tuning(best, tuned, why)
    yield from _held(cells)
    yield from _clipped(cells)
    idle, loaded = best.rtt_unloaded_seconds, best.rtt_loaded_seconds
    if why is None and idle and loaded and loaded > QUEUED_RATIO * idle:
        yield (
            f"The RTT under load is {seconds_text(loaded)}, {times_text(loaded / idle)} the idle "
            "RTT; the difference is queueing."
        )
    if steps.flag(found.outcome.details, "left_out"):
        yield "Out of time: not all cells were measured."
    yield from _broken(found)
    yield from table.full_cores(found, *SIDES)


def _tuning(best: Cell, tuned: Cell, why: str | None) -> str:
    rate = rate_text(tuned.bytes_per_second)
    if factor(best.bytes_per_second, tuned.bytes_per_second) <= SINGLE_RATIO:
        return f"1 connection with automatic tuning: no significant difference ({rate})."
    told = f"1 connection with automatic tuning reaches {rate}"
    if why is not None:
        return f"{told}, while {why}."
    return (
        f"{told}. Its limit is packet loss or the largest window (net.ipv4.tcp_rmem at the "
        "receiver, tcp_wmem at the sender)."
    )


def _held(cells: tuple[Cell, ...]) -> Iterator[str]:
    """The smallest window, where it is the window that limits it."""
    fixed = [each for each in cells if each.window_bytes]
    least = min(fixed, key=lambda each: (each.window_bytes, each.streams), default=None)
    bound = None if least is None else least.bound_bytes_per_second
    if least is None or not bound or least.bytes_per_second < HELD_RATIO * bound:
        return
    if max(each.bytes_per_second for each in cells) > SINGLE_RATIO * least.bytes_per_second:
        yield (
            f"{least.text} {'reaches' if least.streams == 1 else 'reach'} "
            f"{rate_text(least.bytes_per_second)}, the window divided by the RTT."
        )


def _clipped(cells: tuple[Cell, ...]) -> Iterator[str]:
    """The smallest window that the system did not grant."""
    told = {e.window_bytes: e.granted_bytes for e in cells if e.window_bytes and e.granted_bytes}
    wanted = sorted(told)
    for smaller, larger in zip(wanted, wanted[1:], strict=False):
        if told[larger] / told[smaller] < CLIPPED_RATIO * larger / smaller:
            yield (
                f"The system does not grant a window of {size_text(larger)} in full "
                "(net.core.rmem_max, wmem_max)."
            )
            return


def _broken(found: Found) -> Iterator[str]:
    """Cells without a rate, and why the first of them has none."""
    told = steps.items(found.outcome.details, "broken")
    if told:
        why = steps.word(told[0], "reason") or "the transfer failed"
        reason = " ".join(why.split())[:MOST_REASON]
        yield f"Cells that were not measured: {count_text(len(told))} ({reason})."
