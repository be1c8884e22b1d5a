"""One fio job as the measured window of a stage."""

from __future__ import annotations

import os
import time
from dataclasses import astuple

from probes.drivers import fio
from probes.records import Details, Sample
from probes.stage import Last, Running
from probes.storage import others

SAMPLE_SECONDS = 0.25
WINDOW_SECONDS = 0.5
LEAST_WINDOWS = 3
GRACE_SECONDS = 6.0
"""What fio's start may take where a CPU quota slows it, and its last flush."""


def takes_direct(fd: int) -> bool:
    """Whether the file's file system lets it be read past the page cache (O_DIRECT)."""
    try:
        os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | getattr(os, "O_DIRECT", 0)))
    except OSError:
        return False
    return hasattr(os, "O_DIRECT")


def measured(job: fio.Job, device: str | None) -> Running:
    """Runs the job; the window opens with its first I/O and closes with its end.

    device: the block device below, by its kernel name. Returns direct, latency_seconds, zones
    (one, the whole), short_ios, what the device counted, and window_rates_bytes_per_second where
    the run was long enough. Errors: fio.FioFailed.
    """
    before = others.look(device)
    deadline = time.monotonic() + job.seconds + GRACE_SECONDS
    with fio.running(job, deadline) as run:
        run.wait_for_io()
        yield Sample(0.0, 0)
        inner = [Sample(*astuple(each)) for each in run.progress(SAMPLE_SECONDS)]
        result = run.result()
    # the kernel's counts run by our clock and hold what is in flight: fio's own end is the measure
    inner = [
        each
        for each in inner
        if each.elapsed_seconds < result.elapsed_seconds and each.moved_bytes <= result.moved_bytes
    ]
    yield from inner
    last = Last(result.elapsed_seconds, result.moved_bytes)
    yield last
    own = {"written_bytes" if job.part == "write" else "read_bytes": result.moved_bytes}
    details: Details = {
        "direct": job.direct,
        "latency_seconds": {
            "median": result.latency_median_seconds,
            "p99": result.latency_p99_seconds,
        },
        "zones": [
            {"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": result.bytes_per_second}
        ],
        "short_ios": result.short_ios,
        **others.around(device, before, others.look(device), **own),
    }
    windows = window_rates([Sample(0.0, 0), *inner, last])
    if len(windows) >= LEAST_WINDOWS:
        details["window_rates_bytes_per_second"] = windows
    return details


def window_rates(samples: list[Sample]) -> list[float]:
    """Throughput of consecutive windows of half a second and more, bytes per second; pure."""
    rates = []
    opened = samples[0]
    for each in samples[1:]:
        elapsed = each.elapsed_seconds - opened.elapsed_seconds
        if elapsed >= WINDOW_SECONDS:
            rates.append((each.moved_bytes - opened.moved_bytes) / elapsed)
            opened = each
    return rates
