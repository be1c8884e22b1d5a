"""What messages of each size cost, cold and warm, and what follows for programs that send many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison
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

COLUMNS = {
    ("cold", 0): "cold_none",
    ("cold", 1): "cold_one",
    ("cold", 2): "cold_two",
    ("warm", 1): "warm_one",
    ("warm", 2): "warm_two",
}
"""Connection and round trips."""
HELD_SECONDS = 0.02
"""A delayed acknowledgement comes after 40 ms (Linux) to 200 ms; RFC 1122 allows 500 ms."""
BIAS_RATIO = 1.1


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each latency stage."""
    for found in steps.measured(report, "latency"):
        rows = tuple(_rows(found))
        if not rows:
            continue
        held = _held(found)
        small = _small_files(report, found)
        parts = (_line(found), _spread(found), _cold(found, rows), held, small and small[1])
        yield Comparison(
            about="messages",
            sentence=" ".join(part for part in parts if part),
            rows=rows,
            ratio=steps.positive(found.outcome.details, "nagle", "ratio") if held else None,
            significant=bool(held),
            steps=(found.index, *((small[0],) if small else ())),
        )


def _rows(found: Found) -> Iterator[dict[str, Any]]:
    """A row a size, with a time for each way that was measured."""
    by_size: dict[float, dict[str, Any]] = {}
    for told in steps.items(found.outcome.details, "table"):
        size, seconds = (steps.positive(told, name) for name in ("message_bytes", "seconds"))
        trips = steps.amount(told, "round_trips")
        name = COLUMNS.get((steps.word(told, "connection") or "", int(trips or 0)))
        if size is None or seconds is None or name is None:
            continue
        row = by_size.setdefault(size, {"message_bytes": int(size)})
        row[f"{name}_seconds"] = seconds
        if trips:
            row[f"{name}_bytes_per_second"] = size * trips / seconds
    every = [f"{name}_seconds" for name in COLUMNS.values()]
    every += [f"{name}_bytes_per_second" for (_, trips), name in COLUMNS.items() if trips]
    for size in sorted(by_size):
        yield {"message_bytes": int(size), **dict.fromkeys(every), **by_size[size]}


def _line(found: Found) -> str:
    details = found.outcome.details
    names = ("latency_seconds", "bandwidth_bytes_per_second", "n_half_bytes")
    latency, bandwidth, half = (steps.positive(details, "fit", name) for name in names)
    if latency is None or bandwidth is None or half is None:
        why = steps.word(details, "fit", "refused") or "there is none"
        return f"The times give no latency and no bandwidth: {why}."
    off = steps.amount(details, "fit", "worst_residual_ratio")
    doubt = "" if off is None else f" ({percent_text(off)} off at worst)"
    return (
        f"A message of n bytes and its answer take t(n) = {seconds_text(latency)} + n / "
        f"{rate_text(bandwidth)}{doubt}: half of the rate needs messages of {size_text(half)}."
    )


def _latency(found: Found) -> float | None:
    details = found.outcome.details
    fitted = steps.positive(details, "fit", "latency_seconds")
    return fitted or steps.positive(details, "percentiles", "p50_seconds")


def _spread(found: Found) -> str:
    told = found.outcome.details
    half, most = (
        steps.positive(told, "percentiles", f"p{percent}_seconds") for percent in (50, 99)
    )
    if half is None or most is None:
        return ""
    return (
        f"Of 1 byte, half of the exchanges took up to {seconds_text(half)} and 1 in 100 more than "
        f"{seconds_text(most)}."
    )


def _cold(found: Found, rows: tuple[dict[str, Any], ...]) -> str:
    """What a connection of its own costs the shortest message."""
    cold, warm = rows[0]["cold_one_seconds"], rows[0]["warm_one_seconds"]
    if cold is None or warm is None or cold <= warm:
        return ""
    told = f"A connection of its own costs each message {seconds_text(cold - warm)} more"
    biased = steps.positive(found.outcome.details, "cold_fit", "latency_seconds")
    latency = steps.positive(found.outcome.details, "fit", "latency_seconds")
    if biased is None or latency is None or biased < BIAS_RATIO * latency:
        return f"{told}."
    return f"{told}; a line through those times would have {seconds_text(biased)} for latency."


def _held(found: Found) -> str:
    """The trap of small writes, where the path's ends fall into it."""
    details = found.outcome.details
    names = ("seconds", "plain_seconds", "ratio")
    split, plain, ratio = (steps.positive(details, "nagle", name) for name in names)
    if split is None or plain is None or ratio is None or split - 2 * plain < HELD_SECONDS:
        return ""
    return (
        "A program that writes head and body apart without TCP_NODELAY waits "
        f"{seconds_text(split)} for each answer in place of {seconds_text(plain)} "
        f"({times_text(ratio)}): Nagle's algorithm and the delayed acknowledgement wait for each "
        "other."
    )


def _small_files(report: Report, found: Found) -> tuple[int, str] | None:
    """What the latency alone costs a small file: the step that counted round trips, and it."""
    latency = _latency(found)
    for each in steps.measured(report, "small-files"):
        trips = steps.positive(each.outcome.details, "round_trips_per_file")
        if latency is not None and trips is not None and each.intact:
            many = "round trip" if trips == 1 else "round trips"
            verb = {"pull": "pulled", "push": "pushed"}.get(
                steps.word(each.step.setting, "verb") or "", "copied"
            )
            return each.index, (
                f"The {count_text(trips)} {many} of a small file that is {verb} are "
                f"{seconds_text(trips * latency)} at least."
            )
    return None
