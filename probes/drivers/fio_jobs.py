"""A user's fio job file, read by a list of what is allowed: no word of it reaches fio unread.

What a job may say is how it reads and writes. What it works on is for us: a file of this run, or a
device that is open for reading. So there is no key here that names a file to write, runs a program
or loads code (exec_prerun, ioengine=external, include, write_bw_log ...). Source: fio(1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, Sequence, Tuple

LONGEST_TEXT = 4096
MOST_JOBS = 64
SECTOR_BYTES = 512
LARGEST_BLOCK_BYTES = 16 << 20
MOST_SECONDS = 3600.0
PAUSE_SECONDS = 1.0
"""What fio takes to begin each group."""
VERBS = ("read", "write", "randread", "randwrite", "rw", "randrw")
ENGINES = (
    *("sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap"),
)
"""Those that do plain I/O on a file that is open."""
_COUNT = r"[0-9]{1,9}"
_SIZE = r"[0-9]{1,15}[kmgt]?(i?b)?"
_FLAG = r"[01]?"
KEYS: Dict[str, str] = {
    **dict.fromkeys(("bs", "rate"), rf"{_SIZE}(,{_SIZE}){{0,2}}"),
    "bsrange": rf"{_SIZE}-{_SIZE}",
    "bssplit": r"[0-9kmb]{1,9}(/[0-9]{1,3})?(:[0-9kmb]{1,9}(/[0-9]{1,3})?){0,15}",
    **dict.fromkeys(
        (
            *("iodepth", "iodepth_batch", "iodepth_batch_submit", "iodepth_batch_complete"),
            *("iodepth_low", "rwmixread", "rwmixwrite", "fsync", "fdatasync", "rate_iops"),
            *("thinktime", "thinktime_blocks", "percentage_random", "randseed"),
            "buffer_compress_percentage",
        ),
        _COUNT,
    ),
    **dict.fromkeys(
        (
            *("direct", "sync", "end_fsync", "refill_buffers", "zero_buffers", "scramble_buffers"),
            *("randrepeat", "allrandrepeat", "norandommap", "random_generator", "invalidate"),
        ),
        rf"{_FLAG}|tausworthe|lfsr|tausworthe64|dsync|none",
    ),
    "random_distribution": r"(random|zipf:[0-9.]{1,9}|pareto:[0-9.]{1,9}|normal:[0-9.]{1,9})",
    "ioengine": "|".join(ENGINES),
}
"""What goes to fio as it is, with the whole of its value."""
ALIASES = {
    **{"readwrite": "rw", "blocksize": "bs", "block_size": "bs", "stonewall": "wait_for_previous"},
    **{"iodepth_batch_complete_min": "iodepth_batch_complete", "buffered": "not direct"},
}
IGNORED = frozenset(("group_reporting", "thread", "name", "description", "fallocate", "unlink"))
"""They change nothing of what is measured here: reports are told apart, and files are ours."""
OURS = {
    "filename": "the file is this run's own; use --folder DIR, or --device DEV to read a device",
    "directory": "the file is this run's own; use --folder DIR",
}


@dataclass(frozen=True)
class UserJob:
    """One section of a job file."""

    name: str
    verb: str = "read"
    size_bytes: int = 0
    """0: all of the file."""
    seconds: float = 0.0
    """0: not limited by the job."""
    lead_seconds: float = 0.0
    """Before it counts: ramp_time."""
    copies: int = 1
    looping: bool = False
    waits: bool = False
    """It begins when all before it have ended."""
    options: Tuple[str, ...] = ()
    """key=value, as they go to fio."""

    @property
    def writes(self) -> bool:
        """Whether it needs a file to write."""
        return self.verb not in ("read", "randread")


def read(text: str) -> List[UserJob]:
    """The sections of a job file, each with what [global] says before it.

    Errors: ValueError with one plain line: a key or a value that is not allowed, no job at all.
    """
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"longer than {LONGEST_TEXT} characters")
    usual, found = UserJob("global"), []
    now = usual
    section = ""
    for line in _lines(text):
        if line.startswith("["):
            if section not in ("", "global"):
                found.append(now)
            usual = now if section == "global" else usual
            section = line[1:-1]
            if not re.fullmatch(r"[\w .:-]{1,40}", section, re.ASCII) or line[-1] != "]":
                raise ValueError(f"{line[:40]!r} is not the name of a job")
            now = usual if section == "global" else replace(usual, name=section)
            continue
        if not section:
            raise ValueError(f"{line[:40]!r} stands before the first [job]")
        key, _, value = (each.strip() for each in line.partition("="))
        now = _taken(now, key.lower(), value)
    if section not in ("", "global"):
        found.append(now)
    if not 0 < sum(each.copies for each in found) <= MOST_JOBS:
        raise ValueError(f"needs from 1 to {MOST_JOBS} jobs, with their numjobs")
    return found


def check_block(size_bytes: int) -> int:
    """The size of a request, where it is one. Errors: ValueError with one plain line."""
    if size_bytes % SECTOR_BYTES:
        raise ValueError(f"a block of {size_bytes} bytes is no multiple of {SECTOR_BYTES} bytes")
    if not 0 < size_bytes <= LARGEST_BLOCK_BYTES:
        raise ValueError(f"a block has from {SECTOR_BYTES} to {LARGEST_BLOCK_BYTES} bytes")
    return size_bytes


def groups(jobs: Sequence[UserJob], most_seconds: float) -> List[List[UserJob]]:
    """The jobs that run at once, one group after the other; none takes longer than that."""
    found: List[List[UserJob]] = []
    for each in jobs:
        bounded = replace(each, seconds=min(each.seconds or most_seconds, most_seconds))
        if each.waits or not found:
            found.append([])
        found[-1].append(bounded)
    return found


def most_seconds(jobs: Sequence[UserJob], usual_seconds: float) -> float:
    """The longest of the jobs, where one that does not say takes the usual time."""
    return max(each.seconds or usual_seconds for each in jobs)


def total_seconds(jobs: Sequence[UserJob], most_seconds: float) -> float:
    """What all of them take, with the pauses between them."""
    return sum(
        max(each.seconds + each.lead_seconds for each in group) + PAUSE_SECONDS
        for group in groups(jobs, most_seconds)
    )


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        plain = line.strip()
        if plain and plain[0] not in "#;":
            yield plain


def _taken(job: UserJob, key: str, value: str) -> UserJob:
    """The job with one more line."""
    key = ALIASES.get(key, key)
    if key in OURS:
        if key == "filename" and re.fullmatch(r"[\w.-]{1,80}", value, re.ASCII) and value != "..":
            return job  # a name and no path: each job has a file of its own
        raise ValueError(f"{key}={value[:40]}: not allowed: {OURS[key]}")
    if key in IGNORED:
        return job
    if key == "rw" and value in VERBS:
        return replace(job, verb=value)
    if key == "size" and re.fullmatch(_SIZE, value.lower()):
        return replace(job, size_bytes=_bytes(value.lower()))
    if key == "numjobs" and re.fullmatch(r"[0-9]{1,3}", value) and int(value):
        return replace(job, copies=int(value))
    if key == "runtime":
        return replace(job, seconds=_seconds(key, value))
    if key == "ramp_time":
        lead = job.lead_seconds + _seconds(key, value)
        return replace(job, lead_seconds=lead, options=(*job.options, f"{key}={value}"))
    if key == "time_based" and value in ("", "0", "1"):
        return replace(job, looping=value != "0")
    if key == "wait_for_previous" and value in ("", "0", "1"):
        return replace(job, waits=value != "0")
    if key == "not direct" and value in ("0", "1"):
        key, value = "direct", str(1 - int(value))
    if key in KEYS and re.fullmatch(KEYS[key], value.lower()):
        kept = [each for each in job.options if not each.startswith(f"{key}=")]
        return replace(job, options=(*kept, f"{key}={value}" if value else f"{key}=1"))
    raise ValueError(f"{key[:40]}={value[:40]}: not allowed in a job here")


def _bytes(value: str) -> int:
    """fio's sizes: k is 1024 (kb_base)."""
    number, unit = re.findall(r"([0-9]+)([kmgt]?)", value)[0]
    return int(number) << (10 * " kmgt".index(unit or " "))


def _seconds(key: str, value: str) -> float:
    found = re.fullmatch(r"([0-9]{1,6})(us|ms|s|m|h)?", value.lower())
    if found is None:
        raise ValueError(f"{key}={value[:40]}: not a time")
    unit = {"us": 1e-6, "ms": 1e-3, "m": 60.0, "h": 3600.0}.get(found[2] or "s", 1.0)
    seconds = int(found[1]) * unit
    if seconds > MOST_SECONDS:
        raise ValueError(f"{key}={value[:40]}: more than an hour")
    return seconds
