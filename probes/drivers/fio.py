"""fio, the system's own, behind one narrow door: jobs on descriptors that are open, one by one.

The jobs are an argument vector made here, never text of a user's; fio gets no file name but
/proc/self/fd/N and no right to create one. It runs as threads of one process, in a group of its
own, dies with its starter (PR_SET_PDEATHSIG) and is killed at an absolute deadline. Its report
goes to a memory file: on stdout fio puts notes in front of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any, Iterator, Sequence, Tuple

from probes.host import free_space, tools
from probes.host.child import end_with_parent
from probes.host.reader import reader
from probes.records import Sample
from probes.stage import Unavailable

OLDEST = (3, 0)
"""Nanosecond latencies and bw_bytes came with it."""

BLOCK_BYTES = 1024 * 1024
STAT_BLOCK_BYTES = 512
"""Unit of st_blocks (stat(2))."""
DEPTH = 4
"""Requests in flight of direct I/O."""
POLL_SECONDS = 0.01
QUIET_START_SECONDS = 0.5
"""fio waits 0.1 s between its threads' start and the first I/O; some I/O no counter shows."""
REPORT_LIMIT_BYTES = 16 << 20
LARGEST = 2**63
"""No honest count of bytes or nanoseconds is above it."""
LARGEST_ERRNO = 4095
"""Linux has no larger one (MAX_ERRNO)."""
NAME = "bottleneck"
"""Of a call's first job; of the others it is followed by their number."""


class FioFailed(RuntimeError):
    """fio ran and did not measure; the text says why in one line."""


@dataclass(frozen=True)
class Job:
    """Work on a file or a device that is open already; a sequential pass but for randread."""

    fd: int
    verb: str
    """read, write, randread."""
    size_bytes: int
    """Of the file, or of the part from offset_bytes on."""
    seconds: float
    direct: bool
    offset_bytes: int = 0
    looping: bool = False
    """Begin anew at the end of the file until the time is over."""
    block_bytes: int = BLOCK_BYTES
    depth: int = DEPTH
    """Requests in flight where it is direct."""
    more_fds: Tuple[int, ...] = ()
    """Further files of the same size, of which a random read takes one each time."""

    @property
    def part(self) -> str:
        """Where fio's report tells of it."""
        return "write" if self.verb == "write" else "read"


@dataclass(frozen=True)
class Result:
    """What fio reported of a job."""

    moved_bytes: int
    elapsed_seconds: float
    """Until the last flush, for writes."""
    latency_median_seconds: float | None
    latency_p99_seconds: float | None
    short_ios: int
    latency_most_seconds: float | None = None
    """Of the slowest request, from its sending off on."""
    ios: int = 0

    @property
    def bytes_per_second(self) -> float:
        """Throughput of the job."""
        return self.moved_bytes / self.elapsed_seconds


def version() -> str:
    """fio's version. Errors: Unavailable where it is missing or too old, with the remedy."""
    _program()
    told = tools.version("fio")
    if told is None:
        raise Unavailable(f"fio on {socket.gethostname()} does not start (apt reinstall fio)")
    numbers = tuple(int(word) for word in re.findall(r"\d+", told)[:2])
    if numbers < OLDEST:
        raise Unavailable(f"fio on {socket.gethostname()} is {told}; 3.0 or newer is needed")
    return told


def _program() -> str:
    path = tools.find("fio")
    if path is None:
        raise Unavailable(f"fio is not installed on {socket.gethostname()} (apt install fio)")
    return path


def arguments(*jobs: Job) -> list[str]:
    """fio's options for jobs that run one after the other; one thread each."""
    common = [
        "--thread",
        "--output-format=json",
        "--eta=never",
        "--allow_file_create=0",
        "--invalidate=0",
        "--percentile_list=50:99",
    ]
    if all(job.part == "read" for job in jobs):
        common.append("--readonly")
    return common + [each for number, job in enumerate(jobs) for each in _job(number, job)]


def _job(number: int, job: Job) -> list[str]:
    chosen = [
        f"--name={_name(number)}",
        "--filename=" + ":".join(f"/proc/self/fd/{fd}" for fd in (job.fd, *job.more_fds)),
        f"--rw={job.verb}",
        f"--bs={job.block_bytes}",
        f"--offset={job.offset_bytes}",
        f"--size={job.size_bytes}",
        f"--runtime={max(1, round(job.seconds * 1000))}ms",
        f"--direct={int(job.direct)}",
    ]
    if number:
        chosen.append("--stonewall")
    chosen += (
        ["--ioengine=libaio", f"--iodepth={job.depth}"] if job.direct else ["--ioengine=psync"]
    )
    if job.looping:
        chosen.append("--time_based")
    if job.verb == "randread":
        chosen += ["--randrepeat=0", "--norandommap", "--file_service_type=random"]
    if job.part == "write":
        chosen += ["--refill_buffers", "--fallocate=none"]
        chosen.append("--end_fsync=1")
        if not job.direct:
            # else all of it would be flushed at the end, long after the time is over
            chosen.append("--fdatasync=8")
    return chosen


@contextlib.contextmanager
def running(jobs: Sequence[Job], deadline: float) -> Iterator[Run]:
    """A started fio with its jobs; killed at the deadline (monotonic) or when the block is left."""
    path = _program()
    for job in jobs:
        if job.part == "write" and any(map(_is_device, (job.fd, *job.more_fds))):
            raise ValueError("a block device is for reading only")
    parent = os.getpid()
    with contextlib.ExitStack() as stack:
        report = os.memfd_create("fio-report")
        stack.callback(os.close, report)
        errors = stack.enter_context(tempfile.TemporaryFile())
        process = subprocess.Popen(
            [path, *arguments(*jobs), f"--output=/proc/self/fd/{report}"],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=subprocess.STDOUT,
            pass_fds=(*(fd for job in jobs for fd in (job.fd, *job.more_fds)), report),
            cwd="/",
            preexec_fn=lambda: _enter(parent),
        )
        try:
            yield Run(jobs, process, report, errors.fileno(), deadline)
        finally:
            if process.poll() is None:
                _kill_group(process)
            process.wait()


@dataclass
class Run:
    """One fio at work; report and errors are descriptors of what it writes."""

    jobs: Sequence[Job]
    process: subprocess.Popen[bytes]
    report: int
    errors: int
    deadline: float
    room: free_space.Watch = field(
        default_factory=lambda: free_space.Watch("the file system of the folder")
    )
    began: float = 0.0
    base: int = 0

    def wait_for_io(self) -> None:
        """Returns when the first I/O has been made, or when fio has ended."""
        threads_since = None
        while self._alive():
            now = time.monotonic()
            moved = self._counted()
            if threads_since is None and self._threads() < 2:
                self.base = moved
            elif threads_since is None:
                threads_since = now
            elif moved > self.base or now - threads_since > QUIET_START_SECONDS:
                self.began = now
                return
            time.sleep(POLL_SECONDS / 2)

    def progress(self, every_seconds: float) -> Iterator[Sample]:
        """The kernel's counts of a single job until fio ends; none where it counts no such I/O."""
        next_at = self.began + every_seconds
        while self._alive():
            time.sleep(POLL_SECONDS)
            now = time.monotonic()
            if now < next_at or self.began == 0.0:
                continue
            next_at += every_seconds
            moved = self._counted() - self.base
            if self.jobs[0].direct:
                # direct I/O is counted when it is sent off
                moved -= self.jobs[0].depth * self.jobs[0].block_bytes
            if moved > 0:
                yield Sample(now - self.began, moved)

    def results(self) -> list[Result]:
        """fio's report of each job, in their order, once it has ended. Errors: FioFailed."""
        while self._alive():
            time.sleep(POLL_SECONDS)
        text = os.pread(self.report, REPORT_LIMIT_BYTES, 0).decode("utf-8", "replace")
        notes = os.pread(self.errors, 65536, 0).decode("utf-8", "replace")
        return parse(text, self.jobs, self.process.returncode, notes)

    def _alive(self) -> bool:
        if self.process.poll() is not None:
            return False
        if time.monotonic() >= self.deadline:
            _kill_group(self.process)
            self.process.wait()
            raise FioFailed("fio did not end in time and was stopped")
        files = [each.fd for each in self.jobs if each.part == "write"]
        wrote = sum(os.fstat(fd).st_blocks for fd in files) * STAT_BLOCK_BYTES
        for fd in files:
            # somebody else may fill the disk meanwhile; who leaves the block kills fio
            self.room.look_at(fd, wrote)
        return True

    def _threads(self) -> int:
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/task"))
        except OSError:
            return 0

    def _counted(self) -> int:
        """Bytes that fio moved so far, by the kernel's account of it; 0: not readable."""
        try:
            told = reader().moved(self.process.pid)
        except (OSError, Unavailable):
            told = None
        if told is None:
            return 0
        if self.jobs[0].part == "write":
            return told.disk_written_bytes if self.jobs[0].direct else told.written_bytes
        return told.disk_read_bytes if self.jobs[0].direct else told.read_bytes


def parse(text: str, jobs: Sequence[Job], return_code: int, notes: str = "") -> list[Result]:
    """What fio's report says of its jobs, in their order.

    text: what fio wrote, with whatever stands around the report. notes: what it said beside it,
    for the reason. Errors: FioFailed where fio crashed, reported an error, or moved nothing.
    """
    if return_code < 0:
        raise FioFailed(f"fio was ended by {_signal_name(-return_code)}")
    reports = [each for each in _objects(text) if isinstance(each.get("jobs"), list)]
    reason = _first_line(notes) or _first_line(text.partition("{")[0])
    said = f": {reason}" if reason else ""
    if not reports:
        raise FioFailed(f"fio ended with code {return_code} and no complete report{said}")
    told = reports[-1]["jobs"]
    names = [each.get("jobname") if isinstance(each, dict) else None for each in told]
    if names != [_name(number) for number in range(len(jobs))]:
        raise FioFailed(f"fio reported other jobs than those that it was given{said}")
    pairs = list(zip(told, jobs))
    # which job could not says more than that the call as a whole did not end well
    for pair in pairs:
        _refuse_error(*pair, said)
    return [_result(*pair, return_code, said) for pair in pairs]


def _name(number: int) -> str:
    return f"{NAME}-{number}" if number else NAME


def _refuse_error(told: dict[str, Any], job: Job, said: str) -> None:
    error = told.get("error")
    if isinstance(error, bool) or error != 0:
        why = "no error code"
        if isinstance(error, int) and 0 < error <= LARGEST_ERRNO:
            why = os.strerror(error)
        at = f" from byte {job.offset_bytes} on" if job.offset_bytes else ""
        raise FioFailed(f"fio could not {job.part}{at}: {why}{said}")


def _result(told: dict[str, Any], job: Job, return_code: int, said: str) -> Result:
    part = told.get(job.part)
    if return_code != 0 or not isinstance(part, dict):
        raise FioFailed(f"fio ended with code {return_code}{said}")
    moved, milliseconds = int(_number(part, "io_bytes") or 0), int(_number(part, "runtime") or 0)
    if not moved or not milliseconds:
        raise FioFailed(f"fio ended well but moved nothing{said}")
    return Result(
        moved_bytes=moved,
        elapsed_seconds=milliseconds / 1000,
        latency_median_seconds=_latency_seconds(part, "clat_ns", "percentile", "50.000000"),
        latency_p99_seconds=_latency_seconds(part, "clat_ns", "percentile", "99.000000"),
        short_ios=int(_number(part, "short_ios") or 0),
        latency_most_seconds=_latency_seconds(part, "lat_ns", "max"),
        ios=int(_number(part, "total_ios") or 0),
    )


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every complete JSON object that begins a line."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    for found in re.finditer(r"^\{", text, re.MULTILINE):
        with contextlib.suppress(ValueError, RecursionError):
            yield decoder.raw_decode(text, found.start())[0]


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _number(part: dict[str, Any], name: str) -> float | None:
    value = part.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value <= LARGEST else None


def _latency_seconds(part: Any, *keys: str) -> float | None:
    """A latency, by its place in the report; fio counts in nanoseconds."""
    *parents, name = keys
    for key in parents:
        part = part.get(key)
        if not isinstance(part, dict):
            return None
    nanoseconds = _number(part, name)
    return None if nanoseconds is None else nanoseconds / 1e9


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _first_line(text: str) -> str:
    """The first line that says something, at most 200 characters of it, without control codes."""
    for line in text.splitlines():
        plain = "".join(each for each in line if each.isprintable()).strip()
        if plain:
            return plain[:200]
    return ""


def _is_device(fd: int) -> bool:
    return stat.S_ISBLK(os.fstat(fd).st_mode)


def _enter(parent: int) -> None:
    """In the forked child, before fio: a group of its own, and death with the parent."""
    os.setpgid(0, 0)
    end_with_parent(parent)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            end(process.pid, signal.SIGKILL)
