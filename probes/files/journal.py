"""Journal of what this user's runs have created and not yet removed: a small file for each.

An entry is written before its object is created, and locked by its run (flock(2)): the kernel
unlocks it when the run dies, in any container. The next run removes objects of unlocked entries.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import re
import secrets
import socket
import stat
import time
from typing import Callable, Iterator, List, Optional, Set, Tuple

from probes.files import folders, removal
from probes.files.removal import Facts
from probes.system import accounts
from probes.system.child import NoAnswer, call_until
from probes.system.platform import descriptor, os
from probes.system.proc import text
from probes.system.waiting import fcntl

SHARE = "share"
"""Kind, beside RUN and TREE, of a folder on a share: the next login there removes it."""
NAME = re.compile(r"[0-9a-f]{16}")
LONGEST = 64 << 10
MOST_ENTRIES = 1000
ATTEMPTS = 9
LONGEST_SECONDS = 3600.0
"""Longest time of a run whose entry does not say it."""
NUMBERS = frozenset(("dev", "ino", "leader", "started", "pid_space", "seconds"))
"""Facts that an entry may have."""
REMOVE_SECONDS = 2.0
SWEEP_SECONDS = 3.0
"""Time after which a sweep begins no further removal: each may hang in a mount."""
UNMOUNTED = "its file system is not mounted"
KEPT_SECONDS = 90 * 86400.0
"""Age at which an entry is dropped, as of a share that is gone; `cleanup` finds it by its name."""


class Entry:
    """Entry of one created object; without a writable folder it has no file."""

    def __init__(self, runs: Optional[int], name: str = "", fd: int = -1) -> None:
        self._runs, self._name, self._fd = runs, name, fd

    @property
    def has_file(self) -> bool:
        """Whether it has a file, and so survives this process."""
        return self._runs is not None

    def write(self, facts: Facts) -> None:
        """Adds facts; they are on the disk when this returns."""
        if self._runs is not None:
            # The disk may be full: an empty folder is removed, a full one listed by `cleanup`.
            with contextlib.suppress(OSError):
                _write_line(self._fd, facts)

    def close(self, is_removed: bool) -> None:
        """Deletes the entry of an object that is removed; else the next run finds it."""
        if self._runs is None:
            return
        if is_removed:
            # somebody emptied the journal meanwhile
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._runs)
        os.close(self._fd)
        os.close(self._runs)
        self._runs = None
        if is_removed:
            tidy()


def enter(kind: str, folder: str, name: str, **facts: object) -> Entry:
    """Writes the entry of an object about to be created; it is on the disk when this returns.

    folder: the real path of the object's folder, or //host:port/share.
    """
    place = {"kind": kind, "folder": folder, "name": name, **facts}
    owner = {"host": socket.gethostname(), "boot": _boot(), "pid": os.getpid()}
    began = {"pid_started": removal.started_ticks(os.getpid()), "time": int(time.time())}
    for _ in range(ATTEMPTS):
        runs = open_folder()
        if runs is None:  # a home and a /var/tmp that are read-only
            break
        try:
            name, fd = _new_file(runs)
            _write_line(fd, {**place, **owner, **began})
            os.fsync(runs)
        except FileNotFoundError:  # another run's end has just removed the empty folder
            os.close(runs)
        except OSError:  # a full disk, a quota
            os.close(runs)
            break
        else:
            return Entry(runs, name, fd)
    return Entry(None)


def orphans(*kinds: str) -> Iterator[Tuple[Facts, Entry]]:
    """Yields the entries of killed runs, of these kinds; each is locked until the next one.

    The caller closes the entry as removed after it has removed the object.
    """
    for facts, entry in _unlocked_entries():
        if facts["kind"] in kinds and time.time() - facts["time"] < KEPT_SECONDS:
            yield facts, entry


def _unlocked_entries() -> Iterator[Tuple[Facts, Entry]]:
    """Yields the entries that no living run has."""
    for runs, name in itertools.islice(_entries(), MOST_ENTRIES):
        fd = _open_locked(runs, name)
        if fd is None:
            continue
        entry = Entry(os.dup(runs), name, fd)
        try:
            yield _read(fd), entry
        finally:
            entry.close(is_removed=False)


def living_objects() -> Set[str]:
    """Returns the names of objects of runs that are still at work."""
    names = set()
    for runs, name in _entries():
        with contextlib.suppress(OSError):  # its run has just ended, or it is no entry
            fd = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=runs)
            with descriptor(fd):
                if not _lock(fd):
                    names.add(str(_read(fd).get("name", "")))
    return names


def sweep() -> List[Tuple[str, str]]:
    """Removes what killed runs left on this host; returns each path, and why it stays or ""."""
    removals, deadline = [], time.monotonic() + SWEEP_SECONDS
    for facts, entry in _unlocked_entries():
        if time.monotonic() > deadline:
            break
        if time.time() - facts["time"] > KEPT_SECONDS:
            entry.close(is_removed=True)
        elif facts["kind"] in (removal.RUN, removal.TREE):
            why = remove(facts)
            entry.close(is_removed=not why)
            removals.append((path_of(facts), why))
    return removals


def has_ended(facts: Facts) -> bool:
    """Whether the run of an unlocked entry has ended.

    Where several hosts share the journal's disk (NFS), one may not see another's lock.
    """
    longest = facts.get("seconds", LONGEST_SECONDS)
    return _is_of_this_boot(facts) or bool(time.time() - facts["time"] > longest)


def path_of(facts: Facts) -> str:
    """Returns the path of an entry's object."""
    return os.path.join(facts["folder"], facts["name"])  # noqa: PTH118 - may be no UTF-8


def remove(facts: Facts) -> str:
    """Removes an entry's object from this host; returns "" or why it stays."""
    return _answer(facts, lambda: _remove_here(facts)) or ""


def look(facts: Facts) -> Optional[str]:
    """Looks for an object: "" if it exists, or why this host cannot say; None: it is gone."""

    def check() -> Optional[str]:
        if os.path.lexists(path_of(facts)):  # noqa: PTH110 - any bytes
            return ""
        return None if _is_mounted(facts) else UNMOUNTED

    return _answer(facts, check)


def _answer(facts: Facts, work: Callable[[], Optional[str]]) -> Optional[str]:
    """Returns the result of work(), or why it fails."""
    if facts["host"] != socket.gethostname() and not _is_of_this_boot(facts):
        return f"it is on {facts['host']}"
    try:
        return call_until(path_of(facts), time.monotonic() + REMOVE_SECONDS, work)
    except NoAnswer as error:
        return str(error)
    except OSError as error:
        return (error.strerror or str(error)).lower()


def _remove_here(facts: Facts) -> str:
    same = _is_of_this_boot(facts)
    # Devices get new numbers at each boot, and no process survives it; in another PID namespace
    # the number is another process's.
    drop: Tuple[str, ...] = () if same else ("dev",)
    if not same or facts.get("pid_space") != removal.pid_space():
        drop += ("leader",)
    facts = {key: facts[key] for key in facts if key not in drop}
    try:
        parent = removal.open_folder(facts["folder"])
    except FileNotFoundError:
        became = removal.MISSING
    else:
        with descriptor(parent):
            removal.end_group(facts)
            became = removal.remove(parent, facts)
    if became == removal.OTHER:
        return "another object has its name"
    return UNMOUNTED if became == removal.MISSING and not _is_mounted(facts) else ""


def _is_mounted(facts: Facts) -> bool:
    """Whether the file system on which it was created is mounted now."""
    path = facts["folder"]
    while not os.path.exists(path):  # noqa: PTH110 - any bytes
        path = os.path.dirname(path)  # noqa: PTH120 - any bytes
    status = os.stat(path)  # noqa: PTH116 - any bytes
    if path == facts["folder"] and status.st_ino != facts["folder_ino"]:
        return False  # as in another mount namespace
    if not _is_of_this_boot(facts):
        return bool(path == facts["folder"])
    return bool(status.st_dev == facts["folder_dev"])


def _is_of_this_boot(facts: Facts) -> bool:
    """Whether the entry is of this boot; False also where that is not known."""
    return facts["boot"] != "" and bool(facts["boot"] == _boot())


def _open_locked(runs: int, name: str) -> Optional[int]:
    """Returns a locked descriptor of an abandoned entry; None: its run lives, or it is gone."""
    try:
        fd = os.open(name, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=runs)
    except OSError:  # removed meanwhile, or not ours
        return None
    # On a file system without locks nobody's death shows.
    with contextlib.suppress(OSError):
        if _lock(fd):
            return fd
    os.close(fd)
    return None


def _lock(fd: int) -> bool:
    """Locks a file that still has its name; False: somebody else has the lock."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    status = os.fstat(fd)
    return bool(status.st_nlink) and stat.S_ISREG(status.st_mode)


def _new_file(runs: int) -> Tuple[str, int]:
    """Creates a locked file; returns name and descriptor. Errors: OSError, also without locks."""
    for _ in range(ATTEMPTS):
        name = secrets.token_hex(8)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        fd = os.open(name, flags, 0o600, dir_fd=runs)
        try:
            if _lock(fd):
                return name, fd
        except OSError:
            os.unlink(name, dir_fd=runs)
            os.close(fd)
            raise
        os.close(fd)  # a sweep took the empty file for an abandoned one
    raise OSError(errno.EBUSY, "the journal is busy")


def _write_line(fd: int, facts: Facts) -> None:
    os.write(fd, json.dumps(facts).encode() + b"\n")
    os.fsync(fd)


def _read(fd: int) -> Facts:
    """Returns the facts of an entry; only its time and the kind "" where it is not ours."""
    facts: Facts = {}
    written, changed = os.pread(fd, LONGEST, 0), os.fstat(fd).st_mtime
    if b"\n" not in written:
        return {"kind": "", "time": 0}  # killed before it had created anything
    # Its last line may be truncated; and JSON nested too deep for Python is not ours.
    with contextlib.suppress(ValueError, RecursionError):
        for line in written.splitlines():
            line_facts = json.loads(line)
            if not isinstance(line_facts, dict):
                break
            facts.update(line_facts)
    return facts if _is_sound(facts) else {"kind": "", "time": changed}


def _is_sound(facts: Facts) -> bool:
    """Whether each fact exists and has its type."""
    needed = {"time"} if facts.get("kind") == SHARE else {"time", "folder_dev", "folder_ino"}
    if "leader" in facts:
        needed.add("started")
    numbers = [facts.get(each) for each in needed | (NUMBERS & set(facts))]
    return (
        all(_is_text(facts.get(each)) for each in ("kind", "folder", "name", "host", "boot"))
        and all(type(each) is int for each in numbers)
        and facts["folder"].startswith("/")
        and facts["name"] not in ("", ".", "..")
        and "/" not in facts["name"]
    )


def _is_text(value: object) -> bool:
    """Whether a value can be part of a path."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _boot() -> str:
    return text("/proc/sys/kernel/random/boot_id").strip()


FALLBACK = "/var/tmp/copy-bottleneck-{}"
"""Folder for a user without a writable home; {}: the user's number."""


def open_folder() -> Optional[int]:
    """Opens the folder of entries, or creates it; None: there can be none."""
    for path in _paths():
        with contextlib.suppress(OSError):  # read-only, or another user's: the next one
            folders.make_private(path)
            fd = _own_folder(path)
            if fd is not None:
                return fd
    return None


def tidy() -> None:
    """Removes the folders of entries, and our folder around them, where they are empty."""
    for path in _paths():
        with contextlib.suppress(OSError):  # there are more entries, or a report
            os.rmdir(path)  # noqa: PTH106 - any bytes
            if path.endswith("/copy-bottleneck/runs"):
                os.rmdir(os.path.dirname(path))  # noqa: PTH106, PTH120 - any bytes


def _entries() -> Iterator[Tuple[int, str]]:
    """Yields the folder's descriptor, valid until the next entry, and the name of each entry."""
    for path in _paths():
        try:
            runs = _own_folder(path)
        except OSError:  # there is none
            continue
        if runs is None:
            continue
        with descriptor(runs):
            for name in sorted(filter(NAME.fullmatch, os.listdir(runs))):
                yield runs, name


def _paths() -> Tuple[str, ...]:
    """Returns the possible paths of the folder of entries, the best first."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not _is_ours(state):
        home = os.environ.get("HOME", "")
        if not _is_ours(home):
            home = accounts.home(os.geteuid())
        state = f"{home}/.local/state" if home else ""
    fallback = FALLBACK.format(os.geteuid())
    if not _is_ours(state):
        return (fallback,)
    return f"{state}/copy-bottleneck/runs", fallback


def _is_ours(path: str) -> bool:
    """Whether a path, or its nearest existing folder, is this user's: root avoids others' homes."""
    if not os.path.isabs(path):  # noqa: PTH117 - any bytes
        return False
    while not os.path.lexists(path):  # noqa: PTH110 - any bytes
        path = os.path.dirname(path)  # noqa: PTH120 - any bytes
    try:
        return os.stat(path).st_uid == os.geteuid()  # noqa: PTH116 - any bytes
    except OSError:
        return False


def _own_folder(path: str) -> Optional[int]:
    """Opens a folder of entries; None: others may write to it. Errors: OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    status = os.fstat(fd)
    if status.st_uid == os.geteuid() and not status.st_mode & 0o077:
        return fd
    os.close(fd)
    return None
