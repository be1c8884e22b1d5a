"""Jobs for fio, and the parser of its report; pure.

The names of jobs are ours: a report of others is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from dataclasses import dataclass
from typing import Any, Iterator, Sequence, Tuple

from probes.core.bounded import refuse_constant
from probes.core.lenient import amount

BLOCK_BYTES = 1024 * 1024
DEPTH = 4
"""Requests in flight with direct I/O."""
LARGEST_ERRNO = 4095
"""Largest errno of Linux (MAX_ERRNO)."""
NAME = "bottleneck"
"""Name of a call's first job; the others' have their number behind it."""
SECTOR_BYTES = 512
LARGEST_BLOCK_BYTES = 16 << 20


class FioFailed(RuntimeError):
    """fio ran and did not measure; the text says why in one line."""


@dataclass(frozen=True)
class Job:
    """Work on an open file or device; sequential but for rand..."""

    fd: int
    verb: str
    """read, write, randread or randwrite."""
    size_bytes: int
    """Size of the file, or of its part from offset_bytes on."""
    seconds: float
    direct: bool
    offset_bytes: int = 0
    looping: bool = False
    """Whether it restarts at the end of the file until the time is over."""
    block_bytes: int = BLOCK_BYTES
    depth: int = DEPTH
    """Requests in flight where it is direct."""
    more_fds: Tuple[int, ...] = ()
    """Further files of the same size, of which a random read takes one each time."""

    @property
    def direction(self) -> str:
        """Direction of the bytes, and key in the report of fio: read or write."""
        return self.verb[4:] if self.verb.startswith("rand") else self.verb


@dataclass(frozen=True)
class Result:
    """Result of a job in fio's report."""

    moved_bytes: int
    elapsed_seconds: float
    """Time of the job, with the last flush of writes."""
    latency_median_seconds: float | None
    latency_p99_seconds: float | None
    latency_most_seconds: float | None = None
    """Latency of the slowest request, from its submission on."""
    ios: int = 0
    acknowledged_bytes_per_second: float | None = None
    """Rate before the last flush: bytes in flight over the mean latency (Little's law)."""

    @property
    def bytes_per_second(self) -> float:
        """Throughput of the job."""
        return self.moved_bytes / self.elapsed_seconds


def parse(text: str, jobs: Sequence[Job], return_code: int, notes: str = "") -> list[Result]:
    """Returns the results of the jobs in fio's report, in their order.

    text: fio's output, with anything around the report. notes: its messages, for the reason of an
    error. Errors: FioFailed where fio crashed, reported an error, or moved nothing.
    """
    if return_code < 0:
        raise FioFailed(f"fio was ended by {_signal_name(-return_code)}")
    reports = [each for each in _objects(text) if isinstance(each.get("jobs"), list)]
    reason = _first_line(notes) or _first_line(text.partition("{")[0])
    suffix = f": {reason}" if reason else ""
    if not reports:
        raise FioFailed(f"fio ended with code {return_code} and no complete report{suffix}")
    results = reports[-1]["jobs"]
    names = [each.get("jobname") if isinstance(each, dict) else None for each in results]
    if names != [name_of(number) for number in range(len(jobs))]:
        raise FioFailed(f"fio reported other jobs than those that it was given{suffix}")
    pairs = list(zip(results, jobs))
    # the job that failed says more than the return code of the call
    for pair in pairs:
        _refuse_error(*pair, suffix)
    return [_result(*pair, return_code, suffix) for pair in pairs]


def check_block(size_bytes: int) -> int:
    """Returns the size of a request if it is valid. Errors: ValueError with one plain line."""
    if size_bytes % SECTOR_BYTES:
        raise ValueError(f"a block of {size_bytes} bytes is no multiple of {SECTOR_BYTES} bytes")
    if not 0 < size_bytes <= LARGEST_BLOCK_BYTES:
        raise ValueError(f"a block has from {SECTOR_BYTES} to {LARGEST_BLOCK_BYTES} bytes")
    return size_bytes


def name_of(number: int) -> str:
    return f"{NAME}-{number}" if number else NAME


def _refuse_error(report: dict[str, Any], job: Job, suffix: str) -> None:
    error = report.get("error")
    if isinstance(error, bool) or error != 0:
        why = "no error code"
        if isinstance(error, int) and 0 < error <= LARGEST_ERRNO:
            why = os.strerror(error)
        start = f" from byte {job.offset_bytes} on" if job.offset_bytes else ""
        raise FioFailed(f"fio could not {job.direction}{start}: {why}{suffix}")


def _result(report: dict[str, Any], job: Job, return_code: int, suffix: str) -> Result:
    part = report.get(job.direction)
    if return_code != 0 or not isinstance(part, dict):
        raise FioFailed(f"fio ended with code {return_code}{suffix}")

    def count(key: str) -> int:
        return int(amount(part.get(key)) or 0)

    size_bytes, milliseconds = count("io_bytes"), count("runtime")
    if not size_bytes or not milliseconds:
        raise FioFailed(f"fio ended well but moved nothing{suffix}")
    in_flight = job.block_bytes * (job.depth if job.direct else 1)
    mean = _latency_seconds(part, "lat_ns", "mean")
    return Result(
        moved_bytes=size_bytes,
        elapsed_seconds=milliseconds / 1000,
        latency_median_seconds=_latency_seconds(part, "clat_ns", "percentile", "50.000000"),
        latency_p99_seconds=_latency_seconds(part, "clat_ns", "percentile", "99.000000"),
        latency_most_seconds=_latency_seconds(part, "lat_ns", "max"),
        ios=count("total_ios"),
        acknowledged_bytes_per_second=in_flight / mean if mean else None,
    )


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yields every complete JSON object that begins a line."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        with contextlib.suppress(ValueError, RecursionError):
            yield decoder.raw_decode(text, match.start())[0]


def _latency_seconds(part: Any, *keys: str) -> float | None:
    """Returns the latency at a place of the report, where fio has nanoseconds."""
    *parents, name = keys
    for key in parents:
        part = part.get(key)
        if not isinstance(part, dict):
            return None
    nanoseconds = amount(part.get(name))
    return None if nanoseconds is None else nanoseconds / 1e9


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _first_line(text: str) -> str:
    """Returns the first non-blank line, up to 200 characters, without control codes."""
    for line in text.splitlines():
        plain = "".join(each for each in line if each.isprintable()).strip()
        if plain:
            return plain[:200]
    return ""
