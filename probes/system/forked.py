"""Child processes where there is fork(2): a group of their own, bounded memory, die with us."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from dataclasses import dataclass
from typing import Any, Dict

from probes.system.events import MEMORY_LIMIT_BYTES, Event, Work, failure

PR_SET_DUMPABLE = 4
PR_SET_PDEATHSIG = 1


def keep_private() -> None:
    """Has this process leave no core dump, and root alone read its memory and environ.

    A program that it starts inherits the limit; a fork inherits both, until exec(2). On other
    systems than Linux only the limit is set. Without root other processes of this user can no
    longer read /proc/PID/fd, io and environ of this one (proc(5)); it can read /proc/self/fd.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def overwrite_variable(name: bytes) -> None:
    """Overwrites a variable in the block that this process began with, which others can read."""
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    address = library.getenv(name)
    if address:
        ctypes.memset(address, 0, len(ctypes.string_at(address)))


@dataclass(frozen=True)
class Child:
    """A running child: events come as lines from events_fd; closing control_fd asks it to end."""

    pid: int
    events_fd: int
    control_fd: int

    def kill(self) -> None:
        """Ends the child and everything that it started, at once."""
        for end in (os.killpg, os.kill):
            try:
                end(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def terminate(self) -> None:
        """Asks the child, not its group, to end in order (SIGTERM)."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def has_ended(self) -> bool:
        """Whether it has ended; its process number is free again then."""
        return os.waitpid(self.pid, os.WNOHANG)[0] != 0

    def wait(self) -> str:
        """Waits for its end, which has to be near; returns how it ended."""
        _, status = os.waitpid(self.pid, 0)
        return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "no message"


def end_with_parent(parent_pid: int, by: int = signal.SIGKILL) -> None:
    """Has the kernel signal this process when its parent dies (prctl(2), Linux alone)."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, by, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def detached_arguments(by: int = signal.SIGKILL) -> Dict[str, Any]:
    """Returns subprocess's arguments for a program that gets no Ctrl-C of ours and ends with us."""
    parent = os.getpid()
    return {"start_new_session": True, "preexec_fn": lambda: end_with_parent(parent, by)}


def spawn(work: Work) -> Child:
    """Runs the work in a forked child of its own process group."""
    events_read, events_write = os.pipe()
    control_read, control_write = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(events_write)
        os.close(control_read)
        return Child(pid, events_read, control_write)
    status = 1
    try:
        _enter(parent, keep=(events_write, control_read))
        with os.fdopen(events_write, "w", encoding="utf-8") as events:

            def tell(event: Event) -> None:
                events.write(json.dumps(event, allow_nan=False) + "\n")
                events.flush()

            try:
                work(tell, control_read)
            except BrokenPipeError:
                status = 1
            except BaseException as error:  # whatever it is, the parent gets it in one line
                tell(failure(error))
            status = 0
    finally:
        os._exit(status)


def _enter(parent: int, keep: tuple[int, ...]) -> None:
    os.setsid()
    end_with_parent(parent)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(each, signal.SIG_DFL)
    keep_private()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    # The parent's memory counts here too until it is written to, and is no work of the child's.
    allowed_bytes = _inherited_bytes() + MEMORY_LIMIT_BYTES
    limit = allowed_bytes if hard < 0 else min(hard, allowed_bytes)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    _close_all_but(keep)


def _inherited_bytes() -> int:
    """Returns the bytes of data and stack copied from the parent (proc(5), statm)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - in each child
            return int(file.read().split()[5]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def _close_all_but(keep: tuple[int, ...]) -> None:
    # Another child's control pipe left open here would keep that child alive.
    low = 3
    for fd in sorted(keep):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 65536))
