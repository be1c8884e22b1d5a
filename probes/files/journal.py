"""What this user's runs have created and not yet removed: a small file each, written before it is.

A run keeps its entries locked (flock(2)): the kernel lets go when it dies, in whatever container
it lived. What is not locked was left by a killed run, and the next one removes it.
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
from probes.system.child import NoAnswer, answered
from probes.system.platform import descriptor, os
from probes.system.proc import text
from probes.system.waiting import fcntl

SHARE = "share"
"""Kind, beside RUN and TREE, of a folder on a share: who logs in there next removes it."""
NAME = re.compile(r"[0-9a-f]{16}")
LONGEST = 64 << 10
MOST_ENTRIES = 1000
ATTEMPTS = 9
LONGEST_SECONDS = 3600.0
"""Of a run whose entry does not say how long it may take."""
NUMBERS = frozenset(("dev", "ino", "leader", "started", "pid_space", "seconds"))
"""Facts that an entry may have."""
REMOVE_SECONDS = 2.0
SWEEP_SECONDS = 3.0
"""Then a sweep begins no further removal: a mount may hang in each."""
UNMOUNTED = "its file system is not mounted"
KEPT_SECONDS = 90 * 86400.0
"""Of what nobody came back to, as a share that is no more; `cleanup` still finds it by its name."""


class Entry:
    """One created thing. Without a folder that can be written to it remembers nothing."""

    def __init__(self, runs: Optional[int], name: str = "", fd: int = -1) -> None:
        self._runs, self._name, self._fd = runs, name, fd

    @property
    def kept(self) -> bool:
        """Whether it remembers anything."""
        return self._runs is not None

    def write(self, facts: Facts) -> None:
        """Adds facts, on the disk when this returns."""
        if self._runs is not None:
            # A disk that is full by now: an empty folder goes, a full one is told by `cleanup`.
            with contextlib.suppress(OSError):
                _write_line(self._fd, facts)

    def close(self, gone: bool) -> None:
        """gone: it is forgotten; else whoever comes next finds it."""
        if self._runs is None:
            return
        if gone:
            # somebody emptied the journal meanwhile
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._runs)
        os.close(self._fd)
        os.close(self._runs)
        self._runs = None
        if gone:
            tidy()


def enter(kind: str, folder: str, name: str, **more: object) -> Entry:
    """Notes down what is about to be created: on the disk when this returns.

    folder: the real path of the folder that it will lie in, or //host:port/share.
    """
    place = {"kind": kind, "folder": folder, "name": name, **more}
    owner = {"host": socket.gethostname(), "boot": _boot(), "pid": os.getpid()}
    began = {"pid_started": removal.started_ticks(os.getpid()), "time": int(time.time())}
    for _ in range(ATTEMPTS):
        runs = made()
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


def left(*kinds: str) -> Iterator[Tuple[Facts, Entry]]:
    """What killed runs left, of these kinds; each is locked until the next is asked for.

    Whoever has removed it closes the entry as gone.
    """
    for facts, entry in _unlocked():
        if facts["kind"] in kinds and time.time() - facts["time"] < KEPT_SECONDS:
            yield facts, entry


def _unlocked() -> Iterator[Tuple[Facts, Entry]]:
    """The entries that no living run has."""
    for runs, name in itertools.islice(_entries(), MOST_ENTRIES):
        fd = _taken(runs, name)
        if fd is None:
            continue
        entry = Entry(os.dup(runs), name, fd)
        try:
            yield _read(fd), entry
        finally:
            entry.close(gone=False)


def living() -> Set[str]:
    """Names of what runs have created that are still at work."""
    found = set()
    for runs, name in _entries():
        with contextlib.suppress(OSError):  # its run has just ended, or it is no entry
            fd = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=runs)
            with descriptor(fd):
                if not _locked(fd):
                    found.add(str(_read(fd).get("name", "")))
    return found


def sweep() -> List[Tuple[str, str]]:
    """Removes what killed runs left on this host: each path, and why it stays or ""."""
    found, until = [], time.monotonic() + SWEEP_SECONDS
    for facts, entry in _unlocked():
        if time.monotonic() > until:
            break
        if time.time() - facts["time"] > KEPT_SECONDS:
            entry.close(gone=True)
        elif facts["kind"] in (removal.RUN, removal.TREE):
            why = remove(facts)
            entry.close(gone=not why)
            found.append((path_of(facts), why))
    return found


def has_ended(facts: Facts) -> bool:
    """Whether the run of an unlocked entry is no more.

    Where the journal's disk serves several hosts, as NFS does, one may not see another's lock.
    """
    longest = facts.get("seconds", LONGEST_SECONDS)
    return _of_this_boot(facts) or bool(time.time() - facts["time"] > longest)


def path_of(facts: Facts) -> str:
    """Where it is."""
    return os.path.join(facts["folder"], facts["name"])  # noqa: PTH118 - may be no UTF-8


def remove(facts: Facts) -> str:
    """Removes one from this host: empty, or why it stays."""
    return _answer(facts, lambda: _removed(facts)) or ""


def look(facts: Facts) -> Optional[str]:
    """Changes nothing: empty if it is there, why this host cannot tell; None: it is gone."""

    def seen() -> Optional[str]:
        if os.path.lexists(path_of(facts)):  # noqa: PTH110 - any bytes
            return ""
        return None if _is_mounted(facts) else UNMOUNTED

    return _answer(facts, seen)


def _answer(facts: Facts, work: Callable[[], Optional[str]]) -> Optional[str]:
    """What work() says, or why it cannot."""
    if facts["host"] != socket.gethostname() and not _of_this_boot(facts):
        return f"it is on {facts['host']}"
    try:
        return answered(path_of(facts), time.monotonic() + REMOVE_SECONDS, work)
    except NoAnswer as error:
        return str(error)
    except OSError as error:
        return (error.strerror or str(error)).lower()


def _removed(facts: Facts) -> str:
    same = _of_this_boot(facts)
    # Devices are numbered anew at each boot, and no process lives on; in another PID namespace
    # the number is somebody else's.
    drop: Tuple[str, ...] = () if same else ("dev",)
    if not same or facts.get("pid_space") != removal.pid_space():
        drop += ("leader",)
    facts = {key: facts[key] for key in facts if key not in drop}
    try:
        parent = removal.opened(facts["folder"])
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
    """Whether the file system that it was made on is the one that is there now."""
    path = facts["folder"]
    while not os.path.exists(path):  # noqa: PTH110 - any bytes
        path = os.path.dirname(path)  # noqa: PTH120 - any bytes
    told = os.stat(path)  # noqa: PTH116 - any bytes
    if path == facts["folder"] and told.st_ino != facts["folder_ino"]:
        return False  # as in another mount namespace
    if not _of_this_boot(facts):
        return bool(path == facts["folder"])
    return bool(told.st_dev == facts["folder_dev"])


def _of_this_boot(facts: Facts) -> bool:
    """Whether it was noted since this kernel started; False also where that is not known."""
    return facts["boot"] != "" and bool(facts["boot"] == _boot())


def _taken(runs: int, name: str) -> Optional[int]:
    """A locked descriptor of an entry that nobody else has; None: its run lives, or it is gone."""
    try:
        fd = os.open(name, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=runs)
    except OSError:  # gone meanwhile, or none of ours
        return None
    # A file system without locks tells nobody's death.
    with contextlib.suppress(OSError):
        if _locked(fd):
            return fd
    os.close(fd)
    return None


def _locked(fd: int) -> bool:
    """Takes the lock of a file that still has its name; False: somebody else has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    told = os.fstat(fd)
    return bool(told.st_nlink) and stat.S_ISREG(told.st_mode)


def _new_file(runs: int) -> Tuple[str, int]:
    """Name and locked descriptor. Errors: OSError, also where this file system has no locks."""
    for _ in range(ATTEMPTS):
        name = secrets.token_hex(8)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        fd = os.open(name, flags, 0o600, dir_fd=runs)
        try:
            if _locked(fd):
                return name, fd
        except OSError:
            os.unlink(name, dir_fd=runs)
            os.close(fd)
            raise
        os.close(fd)  # a sweep took the empty file for one that was left
    raise OSError(errno.EBUSY, "the journal is busy")


def _write_line(fd: int, facts: Facts) -> None:
    os.write(fd, json.dumps(facts).encode() + b"\n")
    os.fsync(fd)


def _read(fd: int) -> Facts:
    """The facts of an entry; with the kind "", and none but its time, of what is none of ours."""
    facts: Facts = {}
    written, changed = os.pread(fd, LONGEST, 0), os.fstat(fd).st_mtime
    if b"\n" not in written:
        return {"kind": "", "time": 0}  # killed before it had created anything
    # Its last line may be a half; and what is deeper than Python goes is no entry of ours.
    with contextlib.suppress(ValueError, RecursionError):
        for line in written.splitlines():
            more = json.loads(line)
            if not isinstance(more, dict):
                break
            facts.update(more)
    return facts if _is_sound(facts) else {"kind": "", "time": changed}


def _is_sound(facts: Facts) -> bool:
    """Whether each fact is there and of its type."""
    on_share = facts.get("kind") == SHARE
    needed = {"time"} if on_share else {"time", "folder_dev", "folder_ino"}
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
    """Whether it can be part of a path."""
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _boot() -> str:
    return text("/proc/sys/kernel/random/boot_id").strip()


FALLBACK = "/var/tmp/copy-bottleneck-{}"
"""For a user whose home cannot be written to; {}: the user's number."""


def made() -> Optional[int]:
    """Descriptor of the folder of entries, made where it is missing; None: there can be none."""
    for path in _paths():
        with contextlib.suppress(OSError):  # read-only, or another user's: the next one
            folders.make_private(path)
            fd = _own_folder(path)
            if fd is not None:
                return fd
    return None


def tidy() -> None:
    """Removes the folders of entries, and the one of ours around them, where they are empty."""
    for path in _paths():
        with contextlib.suppress(OSError):  # there are more entries, or a report
            os.rmdir(path)  # noqa: PTH106 - any bytes
            if path.endswith("/copy-bottleneck/runs"):
                os.rmdir(os.path.dirname(path))  # noqa: PTH106, PTH120 - any bytes


def _entries() -> Iterator[Tuple[int, str]]:
    """The folder's descriptor and the name of each entry that is there, until the next one."""
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
    """Where the folder of entries may lie, the best first."""
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
    """Whether it, or what it would be made in, is this user's: root keeps out of others' homes."""
    if not os.path.isabs(path):  # noqa: PTH117 - any bytes
        return False
    while not os.path.lexists(path):  # noqa: PTH110 - any bytes
        path = os.path.dirname(path)  # noqa: PTH120 - any bytes
    try:
        return os.stat(path).st_uid == os.geteuid()  # noqa: PTH116 - any bytes
    except OSError:
        return False


def _own_folder(path: str) -> Optional[int]:
    """Descriptor of a folder of entries; None: others may write to it. Errors: OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    told = os.fstat(fd)
    if told.st_uid == os.geteuid() and not told.st_mode & 0o077:
        return fd
    os.close(fd)
    return None
