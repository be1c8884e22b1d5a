"""A disk's curve of zones, made of jobs: samples, a row a zone, and the whole disk's figures.

The rate of a span without the jump that it took to get there: the first request of a job waits for
the head's jump, and those that are sent off with it wait too: the slowest request of a job took the
jump beyond its share of the whole. How much longer than the usual jump it took is not the jump's: a
disk that orders its requests lets some wait. Single small reads at random places tell what a jump
costs, and how many go at once.
"""

from __future__ import annotations

import statistics
import time
from typing import Generator, Iterator, NamedTuple, Sequence

from probes.core.records import Details, Sample
from probes.core.stage import Last
from probes.programs import fio
from probes.storage import others
from probes.storage.sequential import GRACE_SECONDS

READ_BYTES = 4096
"""Every disk's sector goes into it."""
DEEP = 32
"""What SATA's NCQ holds."""
ALONE_SHARE = 2 / 3
"""Of the time for one read at a time: its median needs many, and they take longest."""


class RandomReads(NamedTuple):
    """What single small reads gave."""

    median_seconds: float | None
    """Of a read that is alone, from its sending off to its end."""
    p99_seconds: float | None
    alone_per_second: float
    deep_per_second: float | None
    """With 32 at once; None: the file system does not take them past the page cache."""
    read_bytes: int
    """By all of them together."""


def measure_random(
    fds: Sequence[int], size_bytes: int, direct: bool, seconds: float
) -> RandomReads:
    """Reads of 4 KiB at places drawn anew each time, one at a time and then 32 at once.

    fds: files or a device, open for reading; size_bytes: of each, from its start on. Errors:
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
    with fio.running(jobs, time.monotonic() + seconds + GRACE_SECONDS) as run:
        results = run.results()
    return RandomReads(
        results[0].latency_median_seconds,
        results[0].latency_p99_seconds,
        results[0].ios / results[0].elapsed_seconds,
        results[1].ios / results[1].elapsed_seconds if direct else None,
        sum(each.moved_bytes for each in results),
    )


def seek_seconds(found: RandomReads, bytes_per_second: float) -> float | None:
    """A jump's own cost: the median read less the time that its bytes take at that rate; pure."""
    if found.median_seconds is None or bytes_per_second <= 0:
        return None
    return max(0.0, found.median_seconds - READ_BYTES / bytes_per_second)


def random_details(found: RandomReads) -> Details:
    """The figures as a step's details hold them."""
    return {
        "bytes": READ_BYTES,
        "depth_1_per_second": found.alone_per_second,
        "depth_32_per_second": found.deep_per_second,
        "median_seconds": found.median_seconds,
        "p99_seconds": found.p99_seconds,
    }


class Settled(NamedTuple):
    """What a job moved while the head was where it should be."""

    moved_bytes: int
    seconds: float
    """Without the first jump."""

    @property
    def bytes_per_second(self) -> float:
        """Throughput of the span."""
        return self.moved_bytes / self.seconds


def settled(job: fio.Job, result: fio.Result, usual_seconds: float | None) -> Settled:
    """A sequential job's payload and time, the time of the first jump taken off.

    usual_seconds: what a jump usually takes; None: not known, then nothing is taken off. A job too
    short to show its own jump is taken to have made the usual one.
    """
    elapsed, blocks = result.elapsed_seconds, result.moved_bytes / job.block_bytes
    depth = job.depth if job.direct else 1
    jump = 0.0
    if usual_seconds is not None:
        jump = usual_seconds
        if blocks > 2 * depth and result.latency_most_seconds is not None:
            # with d a block's time: elapsed = jump + blocks * d, slowest = jump + depth * d
            share = depth / blocks
            jump = (result.latency_most_seconds - share * elapsed) / (1 - share)
        jump = min(max(jump, 0.0), usual_seconds, elapsed / 2)
    return Settled(result.moved_bytes, elapsed - jump)


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


def measured(
    jobs: Sequence[fio.Job], device: str | None
) -> Generator[Sample, None, tuple[list[fio.Result], others.Look, others.Look]]:
    """Runs them; yields the sample that opens the window, with the first I/O.

    Returns the results, and the counts of the device before and after.
    """
    before = others.look(device)
    with fio.running(jobs, deadline(jobs)) as run:
        run.wait_for_io()
        yield Sample(0.0, 0)
        results = run.results()
    return results, before, others.look(device)


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


def details(rows: list[Details], small: RandomReads | None) -> Details:
    """The zones in the order of their addresses, and the figures of the whole disk; pure."""
    rows = sorted(rows, key=lambda one: float(one["from_ratio"]))
    found: Details = {"zones": rows}
    if small is not None:
        typical = statistics.median(one["bytes_per_second"] for one in rows)
        found["seek_seconds"] = seek_seconds(small, typical)
        found["random"] = random_details(small)
    return found


DOUBT_RATIO, DOUBT_INNERMOST_RATIO = 0.93, 0.8
BETWEEN_RATIO = 0.97
"""Of the line through two neighbours: a disc's curve lies above it, at its ends hardly below."""
AGAIN = 2
"""Further looks at a zone of which a single one is doubted; the median counts."""


def doubtful(rates: Sequence[float]) -> list[int]:
    """The zones that a single look shows well below both neighbours (one, at an edge); pure."""
    found = []
    for number, rate in enumerate(rates):
        near = [rates[at] for at in (number - 1, number + 1) if 0 <= at < len(rates)]
        # The innermost zone is the slowest of a sound disc too.
        last = number == len(rates) - 1
        if near and rate < (DOUBT_INNERMOST_RATIO if last else DOUBT_RATIO) * min(near):
            found.append(number)
    return found


def disagreeing(places: Sequence[float], rates: Sequence[float]) -> list[int]:
    """The same of zones that were measured for long, and those below the line through two; pure.

    places: of their centres on the disk, rising. The two next to a zone, at an edge of one side.
    """
    found, last = set(doubtful(rates)), len(rates) - 1
    for at in range(len(rates) if last > 1 else 0):
        one, two = (1, 2) if at == 0 else (at - 2, at - 1) if at == last else (at - 1, at + 1)
        share = (places[at] - places[one]) / (places[two] - places[one])
        if rates[at] < BETWEEN_RATIO * (rates[one] + (rates[two] - rates[one]) * share):
            found.add(at)
    return sorted(found)
