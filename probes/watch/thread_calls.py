"""Waits of threads by their system calls: a file to be read or written, a socket's room.

Needs the right to trace the process: its user's, or root's; with Yama's ptrace_scope 1 root's or
its parent's. Source: proc(5), /proc/PID/task/TID/syscall; the numbers of system calls are those of
asm/unistd_64.h and asm-generic/unistd.h.
"""

from __future__ import annotations

import functools
import platform
from typing import Dict, FrozenSet, List, Optional, Sequence, Tuple

from probes.files import folders
from probes.system.platform import os
from probes.system.proc import text
from probes.watch.thread_states import RUNS, WAITS_FOR_DISK, ThreadState

READ, WRITE, SEND, OTHER = "read", "write", "send", "other"
"""Waits: for a read or write of a file on a local disk; for room in a socket; for anything else,
such as a reply or a file of another host."""
RUNNING, REMOTE = "running", "remote"
"""No wait; and a wait for a file of another host, which counts as OTHER."""
_CALLS: Dict[str, Tuple[FrozenSet[int], ...]] = {
    "x86_64": (
        frozenset((0, 17, 19, 295, 327)),
        frozenset((1, 18, 20, 74, 75, 277, 296, 328)),
        frozenset((44, 46, 307)),
        frozenset((40, 275, 326)),
    ),
    "aarch64": (
        frozenset((63, 65, 67, 69, 286)),
        frozenset((64, 66, 68, 70, 82, 83, 84, 287)),
        frozenset((206, 211, 269)),
        frozenset((71, 76, 285)),
    ),
}
"""Numbers by machine: read, pread64, readv, preadv, preadv2; write, pwrite64, writev, pwritev,
pwritev2, fsync, fdatasync, sync_file_range; sendto, sendmsg, sendmmsg; and calls that read one file
and write another: sendfile, splice, copy_file_range."""


def parse(line: str, machine: str) -> Optional[Tuple[str, Optional[int]]]:
    """Returns the kind of call, and the descriptor of a READ or WRITE; None: none, or unknown."""
    words = line.split()
    if machine not in _CALLS or len(words) < 3 or not words[0].isdigit():
        return None
    if int(words[-1], 16) < 1 << 32:
        # A program of 32 bits has other numbers.
        return None
    number = int(words[0])
    reads, writes, sends, both = _CALLS[machine]
    if number in both:
        return None
    if number in sends:
        return SEND, None
    if number in reads or number in writes:
        return (READ if number in reads else WRITE), int(words[1], 16)
    return OTHER, None


_WRITERS = ("dirty", "writeback", "jbd2", "transaction", "log_force")
_READERS = ("folio_wait", "wait_on_page", "filemap")
"""Parts of the names of kernel functions in which a thread waits."""


def function_wait(name: str, disk_verb: str) -> Optional[str]:
    """Returns the kind of a wait for a disk by the kernel's function (/proc/PID/wchan), or None."""
    # mm/page-writeback.c: writers wait in balance_dirty_pages() while too much is unwritten
    if any(each in name for each in _WRITERS):
        return WRITE
    return disk_verb or (READ if any(each in name for each in _READERS) else None)


class Calls:
    """Reader of threads' calls; reads the mounts that each sees once."""

    def __init__(self) -> None:
        self._mounts: Dict[int, List[folders.MountEntry]] = {}

    def waits_for(self, thread: int) -> Optional[str]:
        """Returns the wait of a thread, or RUNNING; None: it ended, or is unreadable."""
        try:
            with open(f"/proc/{thread}/syscall", encoding="ascii") as file:  # noqa: PTH123 - at each look
                line = file.read()
        except OSError:
            return None
        if line.startswith(RUNNING):
            return RUNNING
        call = parse(line, platform.machine())
        if call is None or call[1] is None:
            return None if call is None else call[0]
        return self._file_wait(thread, call[1], call[0])

    def program_wait(self, threads: Sequence[ThreadState], disk_verb: str) -> Optional[str]:
        """Returns the wait of a program's threads: READ or WRITE where one does, else SEND, OTHER.

        disk_verb: READ, WRITE, OTHER for a wait for a disk with an unknown call; empty: by the
        kernel's function. None: unknown by both.
        """
        kinds = set()
        for each in threads:
            if each.state == RUNS:
                continue
            kind = self.waits_for(each.thread)
            if kind == RUNNING:
                continue
            if kind is None and each.state == WAITS_FOR_DISK:
                kind = function_wait(text(f"/proc/{each.thread}/wchan"), disk_verb)
                if kind is None:
                    return None
            if kind == OTHER and each.state == WAITS_FOR_DISK and disk_verb in (READ, WRITE):
                # It opens or extends a file, and no call shows a file of another host.
                kind = disk_verb
            kinds.add(kind or OTHER)
        return next((each for each in (READ, WRITE, SEND) if each in kinds), OTHER)

    def _file_wait(self, thread: int, descriptor: int, verb: str) -> str:
        """Returns the verb for a file of a local disk; the kind of wait for a socket or a mount.

        There is no stat(2) of the file: in a mount that hangs it would not return.
        """
        try:
            target = os.readlink(f"/proc/{thread}/fd/{descriptor}")  # noqa: PTH115 - socket:[7] is no path
        except OSError:
            return OTHER
        if target.startswith("socket:"):
            return SEND if verb == WRITE else OTHER
        if not target.startswith("/") or target.startswith("/dev/"):
            return OTHER
        entry = folders.mount_of(target, self._seen_by(thread))
        if entry is None:
            return OTHER
        return REMOTE if entry.remote else verb

    def _seen_by(self, thread: int) -> List[folders.MountEntry]:
        if not self._mounts.get(thread):
            self._mounts[thread] = _parse_mounts(text(f"/proc/{thread}/mountinfo"))
        return self._mounts[thread]


_parse_mounts = functools.lru_cache(maxsize=4)(folders.parse_mountinfo)
"""Parses mounts once for all threads that see the same ones."""
