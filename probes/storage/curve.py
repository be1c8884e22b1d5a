"""Turns fio jobs into a disk's curve: samples, a row a zone, and the whole disk's figures.

The rate of a span excludes the seek to it: the first request of a job waits for the head's seek,
and so do those that are sent with it. The slowest request of a job shows the seek, beyond its share
of the job's time. What it took longer than a usual seek is not the seek's: a disk that orders its
requests delays some. Single small reads at random places measure the usual seek, and how many reads
a second are possible.
"""

from __future__ import annotations

import statistics
import time
from typing import Generator, Iterator, NamedTuple, Sequence

from probes.core.records import Details, Moved, Sample
from probes.core.stage import Last
from probes.programs import fio
from probes.storage import foreign_io
from probes.storage.sequential import GRACE_SECONDS

READ_BYTES = 4096
"""Size of a small read: at least one sector of every disk."""
DEEP = 32
"""Queue depth of SATA's NCQ."""
ALONE_SHARE = 2 / 3
"""Share of the time for one read at a time: its median needs many, and they take longest."""


class RandomReads(NamedTuple):
    """The figures of single small reads at random places."""

    median_seconds: float | None
    """Latency of a read with no other in flight."""
    p99_seconds: float | None
    alone_per_second: float
    deep_per_second: float | None
    """Reads a second with 32 in flight; None: the file system has no direct I/O."""
    read_bytes: int
    """Bytes of all these reads."""


def measure_random(
    fds: Sequence[int], size_bytes: int, direct: bool, seconds: float
) -> RandomReads:
    """Reads 4 KiB at random places, one at a time and then 32 at once.

    fds: files or a device, open for reading; size_bytes: range of each, from its start. Errors:
    fio.FioFailed.
    """
    span_bytes = size_bytes // READ_BYTES * READ_BYTES * len(fds)

    def job(depth: int, share: float) -> fio.Job:
        return fio.Job(
            fds[0],
            "randread",
            span_bytes,
            seconds * share,
            direct,
            looping=True,
            block_bytes=READ_BYTES,
            depth=depth,
            more_fds=tuple(fds[1:]),
        )

    jobs = [job(1, ALONE_SHARE), job(DEEP, 1 - ALONE_SHARE)] if direct else [job(1, 1.0)]
    with fio.run_jobs(jobs, time.monotonic() + seconds + GRACE_SECONDS) as run:
        results = run.results()
    return RandomReads(
        results[0].latency_median_seconds,
        results[0].latency_p99_seconds,
        results[0].ios / results[0].elapsed_seconds,
        results[1].ios / results[1].elapsed_seconds if direct else None,
        sum(each.moved_bytes for each in results),
    )


def seek_seconds(reads: RandomReads, bytes_per_second: float) -> float | None:
    """Returns a seek's time: the median read less its transfer time at that rate; pure."""
    if reads.median_seconds is None or bytes_per_second <= 0:
        return None
    return max(0.0, reads.median_seconds - READ_BYTES / bytes_per_second)


def random_details(reads: RandomReads) -> Details:
    """Returns the figures as a step's details hold them."""
    return {
        "bytes": READ_BYTES,
        "depth_1_per_second": reads.alone_per_second,
        "depth_32_per_second": reads.deep_per_second,
        "median_seconds": reads.median_seconds,
        "p99_seconds": reads.p99_seconds,
    }


def subtract_seek(job: fio.Job, result: fio.Result, usual_seconds: float | None) -> Moved:
    """Returns a sequential job's payload and time, less the time of the first seek.

    usual_seconds: the usual seek; None: unknown, then nothing is subtracted. For a job too short to
    show its own seek the usual one is subtracted.
    """
    elapsed, blocks = result.elapsed_seconds, result.moved_bytes / job.block_bytes
    depth = job.depth if job.direct else 1
    seek = 0.0
    if usual_seconds is not None:
        seek = usual_seconds
        if blocks > 2 * depth and result.latency_most_seconds is not None:
            # with d a block's time: elapsed = jump + blocks * d, slowest = jump + depth * d
            share = depth / blocks
            seek = (result.latency_most_seconds - share * elapsed) / (1 - share)
        seek = min(max(seek, 0.0), usual_seconds, elapsed / 2)
    return Moved(result.moved_bytes, elapsed - seek)


RANDOM_SHARE = 0.2
"""Share of the time for the single small reads."""
LEAST_SECONDS = 0.2
"""Shortest useful job: a dozen blocks of a slow disk."""
PAUSE_SECONDS = 0.22
"""fio's pause from the end of one job to the first I/O of the next: it polls every 0.1 s."""
MOST_PASSES = 3
JOB_GRACE_SECONDS = 0.5
"""Additional time of a job for the pause before it and for its last requests."""


def timetable(seconds: float, zones: int, limit: int = MOST_PASSES) -> tuple[int, float]:
    """Returns the count of passes over the zones, and the seconds of each read; pure.

    Several passes have fio's pauses within the time; a single one in little time has them on top.
    """
    passes = int(seconds / (zones * (LEAST_SECONDS + PAUSE_SECONDS)))
    passes = min(max(1, passes), limit)
    share = seconds / (zones * passes)
    return passes, max(share - PAUSE_SECONDS, min(LEAST_SECONDS, share))


def deadline(jobs: Sequence[fio.Job]) -> float:
    """Returns the time (monotonic) at which fio must have finished the jobs."""
    return time.monotonic() + sum(job.seconds + JOB_GRACE_SECONDS for job in jobs) + GRACE_SECONDS


def run_jobs(
    jobs: Sequence[fio.Job], device: str | None
) -> Generator[Sample, None, tuple[list[fio.Result], foreign_io.Look, foreign_io.Look]]:
    """Runs jobs; yields the sample that opens the window, with the first I/O.

    Returns the results, and the counts of the device before and after.
    """
    start = foreign_io.look(device)
    with fio.run_jobs(jobs, deadline(jobs)) as run:
        run.wait_for_io()
        yield Sample(0.0, 0)
        results = run.results()
    return results, start, foreign_io.look(device)


def samples(each: Sequence[Moved]) -> Iterator[Sample]:
    """Yields samples of the jobs laid end to end, the last one a Last."""
    elapsed, moved_bytes = 0.0, 0
    for number, one in enumerate(each, 1):
        elapsed, moved_bytes = elapsed + one.seconds, moved_bytes + one.moved_bytes
        yield (Last if number == len(each) else Sample)(elapsed, moved_bytes)


def row(each: Sequence[Moved], results: Sequence[fio.Result]) -> Details:
    """Returns a zone's rate (the median of its passes, with their range) and latencies; pure."""
    rates = [one.bytes_per_second for one in each]
    figures: Details = {"bytes_per_second": statistics.median(rates)}
    if len(rates) > 1:
        figures["low_bytes_per_second"], figures["high_bytes_per_second"] = min(rates), max(rates)
    medians = [one.latency_median_seconds for one in results]
    p99s = [one.latency_p99_seconds for one in results]
    known_medians = [one for one in medians if one is not None]
    figures["latency_seconds"] = {
        "median": statistics.median(known_medians) if known_medians else None,
        "p99": max([one for one in p99s if one is not None], default=None),
    }
    return figures


def details(rows: list[Details], small: RandomReads | None) -> Details:
    """Returns the zones in the order of their addresses and the whole disk's figures; pure."""
    rows = sorted(rows, key=lambda one: float(one["from_ratio"]))
    figures: Details = {"zones": rows}
    if small is not None:
        typical = statistics.median(one["bytes_per_second"] for one in rows)
        figures["seek_seconds"] = seek_seconds(small, typical)
        figures["random"] = random_details(small)
    return figures


DOUBT_RATIO, DOUBT_INNERMOST_RATIO = 0.93, 0.8
BETWEEN_RATIO = 0.97
"""Ratio to the line through two neighbours: sound disks lie above it, hardly below at the ends."""
AGAIN = 2
"""Further reads of a zone whose single read is doubted; the median counts."""


def doubtful_zones(rates: Sequence[float]) -> list[int]:
    """Returns the zones read well below both neighbours (one, at an edge); pure."""
    numbers = []
    for number, rate in enumerate(rates):
        nearby = [rates[index] for index in (number - 1, number + 1) if 0 <= index < len(rates)]
        # The innermost zone is the slowest of a sound disk too.
        last = number == len(rates) - 1
        if nearby and rate < (DOUBT_INNERMOST_RATIO if last else DOUBT_RATIO) * min(nearby):
            numbers.append(number)
    return numbers


def disagreeing_zones(places: Sequence[float], rates: Sequence[float]) -> list[int]:
    """Returns the doubtful zones and those below the line through two others; pure.

    Those two are a zone's neighbours, or the next two at an edge. places: the zones' centres on the
    disk, rising.
    """
    numbers, last = set(doubtful_zones(rates)), len(rates) - 1
    for i in range(len(rates) if last > 1 else 0):
        one, two = (1, 2) if i == 0 else (i - 2, i - 1) if i == last else (i - 1, i + 1)
        share = (places[i] - places[one]) / (places[two] - places[one])
        if rates[i] < BETWEEN_RATIO * (rates[one] + (rates[two] - rates[one]) * share):
            numbers.add(i)
    return sorted(numbers)
