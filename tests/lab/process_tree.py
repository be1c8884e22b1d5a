"""The processes below one, and what a machine has mounted: who is left, and what."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def become_reaper() -> None:
    """Orphans below this process become its children: none can hide from descendants()."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents() -> dict[int, tuple[int, str]]:
    """Of each process its parent and its state (proc(5))."""
    found = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{each}/stat").read_text(encoding="utf-8", errors="replace")
            state, parent = text.rpartition(")")[2].split()[:2]
            found[int(each)] = int(parent), state
    return found


def descendants(of: int, without: frozenset[int] = frozenset()) -> list[int]:
    """Live processes below one, but for some and what is below those."""
    known = parents()
    found, todo = [], [of]
    while todo:
        parent = todo.pop()
        for pid, (its_parent, state) in known.items():
            if its_parent == parent and pid not in without:
                todo.append(pid)
                if state != "Z":
                    found.append(pid)
    return found


def reap(keep: frozenset[int]) -> None:
    """Takes leave of orphans that have ended."""
    for pid, (parent, state) in parents().items():
        if parent == os.getpid() and state == "Z" and pid not in keep:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def command_of(pid: int) -> str:
    """How a process was started."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return ""
    return text.decode(errors="replace").strip()


def mounts(folder: Path) -> set[str]:
    """Mount points below a folder."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {line.split()[4] for line in lines if line.split()[4].startswith(f"{folder}/")}


def loops(folder: Path) -> set[str]:
    """Loop devices, and the files below a folder that are behind them."""
    found = set()
    for each in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            file = each.read_text().strip()
            if file.startswith(f"{folder}/"):
                found.add(f"{each.parts[3]}:{file}")
    return found
