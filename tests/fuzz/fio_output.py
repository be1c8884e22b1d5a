"""Output of fio: FioFailed, or figures that can be."""

from __future__ import annotations

import math
import random

import json_mutation

from probes.programs import fio
from probes.programs.fio import FioFailed, Job, Result

READ = Job(3, "read", 1 << 20, 1.0, True)
WRITE = Job(3, "write", 1 << 20, 1.0, False, offset_bytes=4096)
CALLS = (([READ], 0), ([WRITE, READ], 0), ([READ], 1), ([READ], -11))


def one_input(data: bytes) -> None:
    """Parses the report before a NUL with the notes behind it."""
    report, _, notes = data.partition(b"\0")
    text, said = (each.decode("utf-8", "replace") for each in (report, notes))
    for jobs, code in CALLS:
        try:
            results = fio.parse(text, jobs, code, said)
        except FioFailed as error:
            assert str(error).isprintable(), error
            continue
        assert len(results) == len(jobs)
        for each in results:
            possible(each)


def possible(result: Result) -> None:
    """Checks that every figure is finite, and that the rate can be computed."""
    assert 0 < result.bytes_per_second < math.inf
    for value in vars(result).values():
        assert value is None or 0 <= value < math.inf, value


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The report with one of its values changed. Errors: ValueError, RecursionError."""
    report, nul, notes = data.partition(b"\0")
    return json_mutation.mutated(report, chance) + nul + notes
