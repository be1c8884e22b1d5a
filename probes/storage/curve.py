"""A disk's curve of zones, made of jobs: samples, a row a zone, and the whole disk's figures."""

from __future__ import annotations

import statistics
import time
from typing import Iterator, Sequence

from probes.drivers import fio
from probes.records import Details, Sample
from probes.stage import Last
from probes.storage import random_reads
from probes.storage.job import GRACE_SECONDS
from probes.storage.settled import Settled

RANDOM_SHARE = 0.2
"""Of the time, for the single small reads."""
LEAST_SECONDS = 0.2
"""What a job needs: a dozen blocks of a slow disk."""
PAUSE_SECONDS = 0.22
"""fio's, from the end of one job to the first I/O of the next: it looks every 0.1 s."""
MOST_PASSES = 3
JOB_GRACE_SECONDS = 0.5
"""For the pause before a job and the requests that it ends with."""


def timetable(seconds: float, zones: int, most: int = MOST_PASSES) -> tuple[int, float]:
    """How often each zone is read in the time, and for how long each time; pure.

    Several passes have fio's pauses within the time; a single one in little time has them on top.
    """
    passes = int(seconds / (zones * (LEAST_SECONDS + PAUSE_SECONDS)))
    passes = min(max(1, passes), most)
    share = seconds / (zones * passes)
    return passes, max(share - PAUSE_SECONDS, min(LEAST_SECONDS, share))


def deadline(jobs: Sequence[fio.Job]) -> float:
    """When (monotonic) fio has to be through with them."""
    return time.monotonic() + sum(job.seconds + JOB_GRACE_SECONDS for job in jobs) + GRACE_SECONDS


def samples(each: Sequence[Settled]) -> Iterator[Sample]:
    """The jobs laid end to end."""
    elapsed, moved = 0.0, 0
    for number, one in enumerate(each, 1):
        elapsed, moved = elapsed + one.seconds, moved + one.moved_bytes
        yield (Last if number == len(each) else Sample)(elapsed, moved)


def row(each: Sequence[Settled], results: Sequence[fio.Result]) -> Details:
    """A zone's rate (the median of its passes, with their range) and latencies; pure."""
    rates = [one.bytes_per_second for one in each]
    found: Details = {"bytes_per_second": statistics.median(rates)}
    if len(rates) > 1:
        found["low_bytes_per_second"], found["high_bytes_per_second"] = min(rates), max(rates)
    medians = [one.latency_median_seconds for one in results]
    p99s = [one.latency_p99_seconds for one in results]
    told = [one for one in medians if one is not None]
    worst = [one for one in p99s if one is not None]
    found["latency_seconds"] = {
        "median": statistics.median(told) if told else None,
        "p99": max(worst, default=None),
    }
    return found


def details(
    rows: list[Details], each: Sequence[Settled], small: random_reads.RandomReads | None
) -> Details:
    """The zones in the order of their addresses, and the figures of the whole disk; pure."""
    rows = sorted(rows, key=lambda one: float(one["from_ratio"]))
    seconds = sum(one.seconds for one in each)
    jumps = sum(one.jump_seconds for one in each)
    found: Details = {"zones": rows, "settled_ratio": seconds / (seconds + jumps)}
    if small is not None:
        typical = statistics.median(one["bytes_per_second"] for one in rows)
        found["seek_seconds"] = random_reads.seek_seconds(small, typical)
        found["random"] = random_reads.details(small)
    return found
