"""The system's fio, restricted to jobs on open descriptors, one after the other.

The jobs are an argument vector built here; fio gets no file name but /proc/self/fd/N and no right
to create one. It runs as threads of one process, in a group of its own, dies with its starter
(PR_SET_PDEATHSIG) and is killed at an absolute deadline. Its report goes to a memory file: on
stdout fio puts notes in front of it.
"""

from __future__ import annotations

import contextlib
import re
import socket
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import Iterator, Sequence

from probes.core.records import Sample
from probes.core.stage import Unavailable
from probes.files import free_space
from probes.programs.fio_report import BLOCK_BYTES, DEPTH, FioFailed, Job, Result, name_of, parse
from probes.system import tools
from probes.system.child import end_with_parent
from probes.system.platform import os
from probes.system.reader import reader
from probes.system.waiting import signal

__all__ = ["BLOCK_BYTES", "DEPTH", "FioFailed", "Job", "Result", "parse", "run_jobs", "version"]

OLDEST = (3, 0)
"""First version with nanosecond latencies and bw_bytes."""

STAT_BLOCK_BYTES = 512
"""Unit of st_blocks (stat(2))."""
POLL_SECONDS = 0.01
QUIET_START_SECONDS = 0.5
"""fio waits 0.1 s between its threads' start and the first I/O; some I/O no counter shows."""
REPORT_LIMIT_BYTES = 16 << 20


def version() -> str:
    """Returns fio's version. Errors: Unavailable with the remedy where it is missing or too old."""
    _program()
    text = tools.version("fio")
    if text is None:
        raise Unavailable(f"fio on {socket.gethostname()} does not start (apt reinstall fio)")
    numbers = tuple(int(word) for word in re.findall(r"\d+", text)[:2])
    if numbers < OLDEST:
        raise Unavailable(f"fio on {socket.gethostname()} is {text}; 3.0 or newer is needed")
    return text


def _program() -> str:
    if not tools.TAKE_OPEN_FILES:
        raise Unavailable(f"fio on {socket.gethostname()} cannot be used: it takes Linux")
    path = tools.find("fio")
    if path is None:
        raise Unavailable(f"fio is not installed on {socket.gethostname()} (apt install fio)")
    return path


def arguments(*jobs: Job) -> list[str]:
    """Returns fio's options for jobs that run one after the other; one thread each."""
    common = [
        "--thread",
        "--output-format=json",
        "--eta=never",
        "--allow_file_create=0",
        "--invalidate=0",
        "--percentile_list=50:99",
    ]
    if all(job.direction == "read" for job in jobs):
        common.append("--readonly")
    return common + [each for number, job in enumerate(jobs) for each in _job(number, job)]


def _job(number: int, job: Job) -> list[str]:
    options = [
        f"--name={name_of(number)}",
        "--filename=" + ":".join(f"/proc/self/fd/{fd}" for fd in (job.fd, *job.more_fds)),
        f"--rw={job.verb}",
        f"--bs={job.block_bytes}",
        f"--offset={job.offset_bytes}",
        f"--size={job.size_bytes}",
        f"--runtime={max(1, round(job.seconds * 1000))}ms",
    ]
    if number:
        options.append("--stonewall")
    if job.looping:
        options.append("--time_based")
    options.append(f"--direct={int(job.direct)}")
    options += (
        ["--ioengine=libaio", f"--iodepth={job.depth}"] if job.direct else ["--ioengine=psync"]
    )
    if job.verb.startswith("rand"):
        options += ["--randrepeat=0", "--norandommap", "--file_service_type=random"]
    if job.direction == "write":
        options += ["--refill_buffers", "--fallocate=none"]
        options.append("--end_fsync=1")
        if not job.direct:
            # otherwise fio would flush all of it at the end, long after the time is over
            options.append("--fdatasync=8")
    return options


@contextlib.contextmanager
def run_jobs(jobs: Sequence[Job], deadline: float) -> Iterator[Run]:
    """Starts fio with its jobs; kills it at the deadline (monotonic) or at the block's end."""
    path = _program()
    for job in jobs:
        if job.direction == "write" and any(map(_is_device, (job.fd, *job.more_fds))):
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
    """One running fio; report and errors are descriptors of its output files."""

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
        """Waits for the first I/O, or for the end of fio."""
        threads_since = None
        while self._alive():
            now = time.monotonic()
            count = self._moved_bytes()
            if threads_since is None and self._threads() < 2:
                self.base = count
            elif threads_since is None:
                threads_since = now
            elif count > self.base or now - threads_since > QUIET_START_SECONDS:
                self.began = now
                return
            time.sleep(POLL_SECONDS / 2)

    def progress(self, every_seconds: float) -> Iterator[Sample]:
        """Yields the kernel's counts of a single job until fio ends; none of uncounted I/O."""
        next_at = self.began + every_seconds
        while self._alive():
            time.sleep(POLL_SECONDS)
            now = time.monotonic()
            if now < next_at or self.began == 0.0:
                continue
            next_at += every_seconds
            count = self._moved_bytes() - self.base
            if self.jobs[0].direct:
                # direct I/O is counted when it is submitted
                count -= self.jobs[0].depth * self.jobs[0].block_bytes
            if count > 0:
                yield Sample(now - self.began, count)

    def results(self) -> list[Result]:
        """Waits for fio's end; returns each job's result, in their order. Errors: FioFailed."""
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
        files = [each.fd for each in self.jobs if each.direction == "write"]
        wrote = sum(os.fstat(fd).st_blocks for fd in files) * STAT_BLOCK_BYTES
        for fd in files:
            # others may fill the disk meanwhile; the end of the block kills fio
            self.room.look_at(fd, wrote)
        return True

    def _threads(self) -> int:
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/task"))
        except OSError:
            return 0

    def _moved_bytes(self) -> int:
        """Returns the bytes that fio moved so far, by the kernel's counts; 0: not readable."""
        try:
            io = reader().process_io(self.process.pid)
        except (OSError, Unavailable):
            io = None
        if io is None:
            return 0
        if self.jobs[0].direction == "write":
            return io.disk_written_bytes if self.jobs[0].direct else io.written_bytes
        return io.disk_read_bytes if self.jobs[0].direct else io.read_bytes


def _is_device(fd: int) -> bool:
    return stat.S_ISBLK(os.fstat(fd).st_mode)


def _enter(parent: int) -> None:
    """Gives the forked child, before fio, a group of its own, and death with the parent."""
    os.setpgid(0, 0)
    end_with_parent(parent)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            end(process.pid, signal.SIGKILL)
