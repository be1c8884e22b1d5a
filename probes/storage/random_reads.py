"""Single small reads at random places: what a jump of the head costs, and how many go at once."""

from __future__ import annotations

import time
from typing import NamedTuple, Sequence

from probes.drivers import fio
from probes.records import Details
from probes.storage.job import GRACE_SECONDS

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


def measure(fds: Sequence[int], size_bytes: int, direct: bool, seconds: float) -> RandomReads:
    """Reads of 4 KiB at places drawn anew each time, one at a time and then 32 at once.

    fds: files or a device, open for reading; size_bytes: of each, from its start on. Errors:
    fio.FioFailed.
    """
    span_bytes = size_bytes // READ_BYTES * READ_BYTES * len(fds)
    more = tuple(fds[1:])
    alone = fio.Job(
        fds[0],
        "randread",
        span_bytes,
        seconds * ALONE_SHARE if direct else seconds,
        direct,
        looping=True,
        block_bytes=READ_BYTES,
        depth=1,
        more_fds=more,
    )
    jobs = [alone]
    if direct:
        jobs.append(
            fio.Job(
                fds[0],
                "randread",
                span_bytes,
                seconds * (1 - ALONE_SHARE),
                direct,
                looping=True,
                block_bytes=READ_BYTES,
                depth=DEEP,
                more_fds=more,
            )
        )
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


def details(found: RandomReads) -> Details:
    """The figures as a step's details hold them."""
    return {
        "bytes": READ_BYTES,
        "depth_1_per_second": found.alone_per_second,
        "depth_32_per_second": found.deep_per_second,
        "median_seconds": found.median_seconds,
        "p99_seconds": found.p99_seconds,
    }
