"""Pushes: the rate at which writes were acknowledged against the rate at which they were safe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.sentences import dialect_name
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.reports.units import rate_text, seconds_text, times_text
from probes.records import run_rate

LEAST_RATIO = 1.1
"""Both rates are of one run, so that no noise lies between them; less is not worth a word."""


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison of all pushes whose rates differ."""
    found = []
    for copy in steps.copies(report):
        told = _row(copy)
        if told is not None:
            found.append((copy, told))
    rows = tuple(row for _, row in found)
    if not rows:
        return
    copy, telling = max(found, key=lambda each: each[1]["ratio"])
    fast, safe = telling["acknowledged_bytes_per_second"], telling["durable_bytes_per_second"]
    yield Comparison(
        about="durability",
        sentence=(
            f"{copy.name} ({_by(copy)}) was acknowledged at {rate_text(fast)} and safe on the "
            f"{copy.receiver}'s disk at {rate_text(safe)}: a program that does not wait for the "
            f"disk shows at least {times_text(telling['ratio'])} that rate, and is "
            f"{seconds_text(telling['flush_seconds'])} early."
        ),
        rows=rows,
        ratio=telling["ratio"],
        significant=True,
        steps=tuple(copy.index for copy, _ in found),
    )


def _by(copy: Copy) -> str:
    return "by the system's own copy" if copy.native else dialect_name(copy.dialect)


def _row(copy: Copy) -> dict[str, Any] | None:
    made = copy.made
    if made is None or copy.verb != "push" or not made.intact or not _flushed(made):
        return None
    details = made.outcome.details
    acknowledged = steps.positive(details, "acknowledged_bytes_per_second")
    flush = steps.amount(details, "flush_seconds")
    safe = _rate(made)
    if acknowledged is None or flush is None or acknowledged < LEAST_RATIO * safe:
        return None
    return {
        "copy": copy.name,
        "dialect": copy.dialect,
        "acknowledged_bytes_per_second": acknowledged,
        "durable_bytes_per_second": safe,
        "flush_seconds": flush,
        "ratio": acknowledged / safe,
    }


def _flushed(made: Found) -> bool:
    told = (made.step.setting, made.outcome.details)
    return all(steps.flag(each, "flushed") is not False for each in told)


def _rate(made: Found) -> float:
    """The rate of the run that the details are of, to its last flush."""
    return run_rate(median_run(made.outcome))
