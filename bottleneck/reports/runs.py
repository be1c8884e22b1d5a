"""Repeated runs of a test, as hyperfine shows them: mean, deviation, range, outliers, histogram."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from bottleneck import units
from bottleneck.report import WARMED_UP, Report
from bottleneck.reports.document import Block, Column, Points, Table
from bottleneck.words import stage_text
from probes.records import Measured, run_rate

LEAST_RUNS = 2
OUTLIER_DEVIATIONS = 1.4826 * 10.0
"""Median absolute deviations from the median, from which on a run is an outlier: ten standard
deviations of a normal distribution. Source: hyperfine, src/outlier_detection.rs."""
BINS, BLOCKS = 12, " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


def runs(report: Report) -> Iterator[Block]:
    """A line for each test, then its outliers; nothing where one run was asked for."""
    if WARMED_UP not in report.notes:
        return
    unit = units.megabytes_unit()
    table = Table(
        f"Repeated runs, {unit}",
        (
            Column("stage"),
            Column("mean \u00b1 deviation", right=True),
            Column("range (min \u2026 max)", right=True),
            Column("runs", right=True),
            Column("histogram, min to max"),
        ),
    )
    warned = []
    for step, outcome in report.entries:
        each = _rates(outcome) if isinstance(outcome, Measured) else []
        if len(each) < LEAST_RUNS:
            continue
        name, show = stage_text(step), units.megabytes_text
        table.add(
            name,
            f"{show(statistics.mean(each))} \u00b1 {show(statistics.stdev(each))}",
            f"{show(min(each))} \u2026 {show(max(each))}",
            f"{len(each)}",
            histogram(each),
        )
        far = outliers(each)
        if far:
            are = "is an outlier" if far == 1 else "are outliers"
            warned.append(f"{name}: {far} of {len(each)} runs {are}")
    if table.rows:
        yield table
    if warned:
        advice = "Repeat on hosts and a network where nothing else runs."
        yield Points("Statistical outliers", (*warned, advice))


def _rates(outcome: Measured) -> list[float]:
    """Bytes per second of each run; empty where the stage moves no payload."""
    try:
        found = [run_rate(run) for run in outcome.runs]
    except (ValueError, IndexError):
        return []
    return found if any(found) else []


def outliers(values: Sequence[float]) -> int:
    """How many lie far off, by the modified Z-score: their distance from the median over the median
    of all such distances."""
    middle = statistics.median(values)
    distances = [abs(each - middle) for each in values]
    usual = statistics.median(distances)
    return sum(each > OUTLIER_DEVIATIONS * usual for each in distances)


def histogram(values: Sequence[float]) -> str:
    """How the values spread, from the least to the greatest: a block for each bin."""
    low, high = min(values), max(values)
    counts = [0] * BINS
    for each in values:
        share = (each - low) / (high - low) if high > low else 0.5
        counts[min(BINS - 1, int(share * BINS))] += 1
    most = max(counts)
    return "".join(BLOCKS[-(-count * (len(BLOCKS) - 1) // most)] for count in counts)
