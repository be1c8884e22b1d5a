"""Child processes of Windows: a fresh Python each, bound to a job object in place of fork(2).

A job ends its processes when its last handle is closed, which is when the process that created it
dies, and it bounds the memory of each. Sources: winnt.h; Microsoft's documentation, "Job Objects".
"""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import contextlib
import ctypes
import importlib
import json
import os
import subprocess
from ctypes import wintypes
from dataclasses import dataclass
from functools import partial
from typing import Any, Dict, List, Optional

from probes.system.events import MEMORY_LIMIT_BYTES, Work, failure
from probes.system.windows import os as calls

KILL_ON_JOB_CLOSE, PROCESS_MEMORY = 0x2000, 0x100
EXTENDED_LIMITS = 9
"""JobObjectExtendedLimitInformation."""
# No console, so no Ctrl-C or Ctrl-Break of ours, and a group of its own.
ALONE = 0x08000000 | 0x00000200
STARTED_BYTES = 96 << 20
"""Memory of a fresh Python with its imports: no work of the child's."""
_jobs: List[int] = []


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = [  # noqa: RUF012
        ("process_time", wintypes.LARGE_INTEGER),
        ("job_time", wintypes.LARGE_INTEGER),
        ("flags", wintypes.DWORD),
        ("smallest_set", ctypes.c_size_t),
        ("largest_set", ctypes.c_size_t),
        ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority", wintypes.DWORD),
        ("scheduling", wintypes.DWORD),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process", ctypes.c_size_t),
        ("peak_job", ctypes.c_size_t),
    ]


def keep_private() -> None:
    """Has the processes that this one starts end with it, where Windows lets it have a job: without
    one, children outlive this process only if it is killed. Windows writes no core and shows its
    memory to no other user."""
    with contextlib.suppress(OSError):
        _bind()


def _bind(memory_bytes: int = 0) -> None:
    """Puts this process into a job of its own. Errors: OSError, with Windows' own number."""
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = wintypes.HANDLE
    job = _check_handle(kernel.CreateJobObjectW(None, None))
    limits = _Limits(flags=KILL_ON_JOB_CLOSE)
    if memory_bytes:
        limits.flags |= PROCESS_MEMORY
        limits.process_memory = memory_bytes
    arguments = (ctypes.byref(limits), ctypes.sizeof(limits))
    _check_handle(kernel.SetInformationJobObject(wintypes.HANDLE(job), EXTENDED_LIMITS, *arguments))
    this = wintypes.HANDLE(kernel.GetCurrentProcess())
    _check_handle(kernel.AssignProcessToJobObject(wintypes.HANDLE(job), this))
    _jobs.append(job)


def _check_handle(handle: Optional[int]) -> int:
    if not handle:
        raise ctypes.WinError(ctypes.get_last_error())
    return handle


def overwrite_variable(name: bytes) -> None:
    """Does nothing: no other user can read a process's environment."""


def end_with_parent(parent_pid: int, by: int = 0) -> None:
    """Does nothing: the parent's job ends this process."""


def detached_arguments(by: int = 0) -> Dict[str, Any]:
    """Returns subprocess's arguments for a program without our Ctrl-C; our job ends it."""
    return {"creationflags": ALONE}


@dataclass(frozen=True)
class Child:
    """A running child: events come as lines from events_fd; closing control_fd asks it to end."""

    pid: int
    events_fd: int
    control_fd: int
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Ends the child and, by its job, everything that it started."""
        self.process.kill()

    terminate = kill

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wait(self) -> str:
        """Waits for its end, which has to be near; returns how it ended."""
        code = self.process.wait()
        return f"code {code}" if code else "no message"


def spawn(work: Work) -> Child:
    """Runs the work in a fresh Python.

    work: a partial of a module's function, whose arguments JSON can carry: they go through a pipe,
    as they may hold a login.
    """
    assert isinstance(work, partial), "only a function by its name gets into another process"
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import child; child()"
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        creationflags=ALONE,
        bufsize=0,
    )
    assert process.stdin is not None and process.stdout is not None
    function = work.func
    call = [function.__module__, function.__qualname__, work.args]
    control_fd = os.dup(process.stdin.fileno())
    events_fd = os.dup(process.stdout.fileno())
    process.stdin.close()
    process.stdout.close()
    os.write(control_fd, json.dumps(call).encode() + b"\n")
    return Child(process.pid, events_fd, control_fd, process)


def child() -> None:
    """Runs, in a spawned Python, the work that its first line of input names."""
    control_fd, events_fd = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    module, name, arguments = json.loads(_line(control_fd))

    def tell(event: Dict[str, Any]) -> None:
        line: Optional[bytes] = json.dumps(event, allow_nan=False).encode() + b"\n"
        while line:
            line = line[calls.write(events_fd, line) :]

    try:
        _bind(MEMORY_LIMIT_BYTES + STARTED_BYTES)
        getattr(importlib.import_module(module), name)(*arguments, tell, control_fd)
    except BrokenPipeError:
        os._exit(1)
    except BaseException as error:  # whatever it is, the parent gets it in one line
        tell(failure(error))
    os._exit(0)


def _line(fd: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(fd, 1)
        if not byte:
            os._exit(1)
        line += byte
    return line
