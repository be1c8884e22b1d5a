"""Tells what a thread that does not run waits for: a file to be read or written, a socket's room.

Needs the right to trace the process: its user's, or root's; with Yama's ptrace_scope 1 root's or
the one of its parent. Source: proc(5), /proc/PID/task/TID/syscall; the numbers of system calls are
those of asm/unistd_64.h and asm-generic/unistd.h.
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
"""A file of a local disk is read or written; a socket has no room; anything else, such as a reply
or a file of another host."""
RUNNING, REMOTE = "running", "remote"
"""In place of a call: it does not wait; and it waits for a file of another host, which counts as
OTHER."""
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
"""By machine: read, pread64, readv, preadv, preadv2; write, pwrite64, writev, pwritev, pwritev2,
fsync, fdatasync, sync_file_range; sendto, sendmsg, sendmmsg; and those that read one file and write
another: sendfile, splice, copy_file_range."""


def parse(line: str, machine: str) -> Optional[Tuple[str, Optional[int]]]:
    """Kind of call, and the descriptor of a READ or WRITE; None: no call, or an unknown one."""
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
"""Parts of the names of kernel functions, of which a thread waits in one."""


def by_function(name: str, disk_verb: str) -> Optional[str]:
    """Kind of a wait for a disk by the kernel's function (/proc/PID/wchan); None: neither tells."""
    # mm/page-writeback.c: writers wait in balance_dirty_pages() while too much is unwritten
    if any(each in name for each in _WRITERS):
        return WRITE
    return disk_verb or (READ if any(each in name for each in _READERS) else None)


class Calls:
    """Asks threads again and again; the mounts that each sees are read once."""

    def __init__(self) -> None:
        self._mounts: Dict[int, List[folders.MountEntry]] = {}

    def waits_for(self, thread: int) -> Optional[str]:
        """What a thread waits for, or RUNNING; None: it ended, or it may not be asked."""
        try:
            with open(f"/proc/{thread}/syscall", encoding="ascii") as file:  # noqa: PTH123 - at each look
                line = file.read()
        except OSError:
            return None
        if line.startswith(RUNNING):
            return RUNNING
        told = parse(line, platform.machine())
        if told is None or told[1] is None:
            return None if told is None else told[0]
        return self._of_file(thread, told[1], told[0])

    def of_program(self, threads: Sequence[ThreadState], disk_verb: str) -> Optional[str]:
        """What the threads of a program wait for: READ or WRITE where one does, else SEND or OTHER.

        disk_verb: READ, WRITE, OTHER: what a wait for a disk is where its call is not known; empty:
        its kernel's function tells. None: neither does.
        """
        found = set()
        for each in threads:
            if each.state == RUNS:
                continue
            told = self.waits_for(each.thread)
            if told == RUNNING:
                continue
            if told is None and each.state == WAITS_FOR_DISK:
                told = by_function(text(f"/proc/{each.thread}/wchan"), disk_verb)
                if told is None:
                    return None
            if told == OTHER and each.state == WAITS_FOR_DISK and disk_verb in (READ, WRITE):
                # It opens a file, or makes it longer: no file of another host is known to it.
                told = disk_verb
            found.add(told or OTHER)
        return next((each for each in (READ, WRITE, SEND) if each in found), OTHER)

    def _of_file(self, thread: int, descriptor: int, verb: str) -> str:
        """The verb itself for a file of a local disk; what it stands for of a socket or a mount.

        The file itself is not asked: one of a mount that hangs would not answer.
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
            self._mounts[thread] = _parsed(text(f"/proc/{thread}/mountinfo"))
        return self._mounts[thread]


@functools.lru_cache(maxsize=4)
def _parsed(mountinfo: str) -> List[folders.MountEntry]:
    """Most threads of a program see the same mounts."""
    return folders.parse_mountinfo(mountinfo)
