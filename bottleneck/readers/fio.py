"""fio: a disk by itself, as JSON (--output-format=json, json+) or text.

Sources: fio(1), "Output" and "JSON output"; stat.c of axboe/fio.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bottleneck.estimate.observations import Disk
from bottleneck.readers.figure import Figure, Output, binary, json_of, positive, rate
from bottleneck.report.report import ReportError
from probes.core.lenient import mapping

FLUSHES = ("direct", "end_fsync", "fsync_on_close", "sync", "fsync", "fdatasync")
"""Options by which a write waits for the disk."""
_SUMMARY = re.compile(
    r"^ *(?P<verb>READ|WRITE): (?:bw=\S+ \((?P<rate>[\d.]+[kMGT]?B/s)\)"
    r"|.*?aggrb=(?P<old>[\d.]+)(?P<prefix>[KMGT]?)B/s)",
    re.M,
)
_PATTERN = re.compile(r"\(g=\d+\): rw=(\w+)")
_FLUSHED = re.compile(r"\b(?:direct|end_fsync|fsync_on_close|sync|fsync|fdatasync)=(?!0)\w+")
_ERROR = re.compile(r"^fio: (.+)$", re.M)
UNFLUSHED = (
    "fio's write was not flushed (no direct=1 or end_fsync=1), so it may be the speed of memory. "
    "It does not count."
)
UNKNOWN_FLUSH = (
    "fio's text does not tell whether its write was flushed, so it does not count. Put its command "
    "into the file, with direct=1 or end_fsync=1."
)
RANDOM = "fio's {} were random: they tell nothing of a copy, which is sequential."


def recognizes(text: str) -> bool:
    return '"fio version"' in text or bool(_SUMMARY.search(text) or _PATTERN.search(text))


def read(output: Output) -> Iterator[Figure]:
    """Yields the rate of sequential reads and writes. Errors: ReportError."""
    yield from _json_figures(output) if '"fio version"' in output.text else _text_figures(output)


def _json_figures(output: Output) -> Iterator[Figure]:
    document = json_of(output.text, "fio")
    jobs = document.get("jobs") if isinstance(document, dict) else None
    common = document.get("global options") if isinstance(document, dict) else None
    rates: dict[str, float] = {}
    notes: dict[str, None] = {}
    for job in jobs if isinstance(jobs, list) else []:
        if not isinstance(job, dict):
            raise ReportError("fio's JSON has a job that is none")
        options = {**mapping(common), **mapping(job.get("job options"))}
        if job.get("error"):
            raise ReportError(f"fio failed: error {str(job['error'])[:20]}")
        for verb in ("read", "write"):
            direction = job.get(verb)
            if not isinstance(direction, dict) or not direction.get("io_bytes"):
                continue
            if why := _reason_against(verb, options):
                notes[why] = None
            else:
                rates[verb] = rates.get(verb, 0.0) + _rate_of(direction)
    if not rates and not notes:
        raise ReportError("fio's output has no job that read or wrote: nothing was measured")
    for verb, total in rates.items():
        yield Disk(side=output.host(), verb=verb, rate=total, tool="fio")
    yield from notes


def _rate_of(job: Mapping[str, Any]) -> float:
    """Returns bytes per second; fio 2 has kibibytes alone. Errors: ReportError."""
    if "bw_bytes" in job:
        return positive(job["bw_bytes"], "fio's rate")
    return 1024 * positive(job.get("bw"), "fio's rate")


def _reason_against(verb: str, options: Mapping[str, str]) -> str:
    """Returns why a job's rate is none of the disk in sequence; empty: it is."""
    if "rand" in str(options.get("rw", options.get("readwrite", ""))):
        return RANDOM.format(f"{verb}s")
    is_flushed = any(str(options.get(each, "0")) not in ("0", "none") for each in FLUSHES)
    return "" if verb == "read" or is_flushed else UNFLUSHED


def _text_figures(output: Output) -> Iterator[Figure]:
    rows = list(_SUMMARY.finditer(output.text))
    if not rows:
        failed = _ERROR.search(output.text)
        why = failed[1][:120] if failed else "paste it to its end"
        raise ReportError(f"fio's summary (Run status) is missing: {why}")
    is_random = any("rand" in each for each in _PATTERN.findall(output.text))
    for row in rows:
        verb = row["verb"].lower()
        if is_random:
            yield RANDOM.format(f"{verb}s")
            continue
        if verb == "write" and not _FLUSHED.search(output.text):
            yield UNKNOWN_FLUSH
        else:
            # fio 2 counts 1024; later versions show both.
            speed = rate(row["rate"]) if row["rate"] else binary(row["old"], row["prefix"])
            yield Disk(output.host(), verb, positive(speed, "fio's rate"), "fio")
