"""What a killed run left on this host: found by name, owner and content, and removed.

A name alone proves nothing: a folder is ours only where all that lies in it is what a run puts
there. No link is followed: every step goes from an open folder to a name in it. What is young, in
use or not wholly ours stays, and the reason is told; so does what lies on another host's disk, as
this host sees neither who uses it there nor the clock that its age goes by.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Pattern, Tuple

from probes.host import mount, processes, temporary
from probes.host.patience import NoAnswer, answered

RUN = r"bottleneck-[0-9a-f]{16}"
SHARE = r"bottleneck-share-[A-Za-z0-9_-]{8}"
FILE = r"\.bottleneck-[0-9a-f]{32}"
RUN_FILE = r"source|pushed-[0-9a-f]{16}|small-[0-9a-f]{16}-[0-9]{1,6}"
KINDS = {
    "run": RUN,
    "share": SHARE,
    "demo": r"bottleneck-demo-[0-9]{1,10}-[A-Za-z0-9_-]{8}",
    "samba": r"bottleneck-samba-[A-Za-z0-9_-]{8}",
    "file": FILE,
}
"""Kind and name: a run's folder on a share, a private share, the demonstration's folder, a private
Samba's state, and a file that would have no name where the file system knows such."""

Contents = Dict[str, Tuple[Tuple[str, str], ...]]
CONTENTS: Contents = {
    "run": ((RUN_FILE, "data"),),
    "share": ((RUN, "run"),),
    "demo": (("server", "served"), ("client", "scratch")),
    "served": ((RUN, "run"),),
    "scratch": ((RUN, "run"), (SHARE, "share"), (FILE, "data")),
    "samba": (
        (r"smb\.conf|users|output|log\.[a-z]{1,20}(\.old)?", "data"),
        ("served", "link"),
        ("private|lock|state|cache|pid|ncalrpc|cores", "state"),
    ),
    "state": (
        (r"[A-Za-z_]{1,40}\.(tdb|pid)|[0-9]{1,10}", "data"),
        (r"msg\.sock|msg\.lock|np|smbd", "state"),
    ),
}
"""Kind of folder, and what may lie in it: name and kind."""

_NAMES: Dict[str, Pattern[str]] = {kind: re.compile(name) for kind, name in KINDS.items()}
GUARDIANS = (b"bottleneck-samba", b"bottleneck-mounted-folder")
"""How the processes call themselves that remove a folder once its run is gone."""
CHANGED = "it changed while it was looked at"
SHARED = frozenset({"run"})
"""May belong to another user, whom a file server wrote it for; root alone removes it then."""
MOST_ENTRIES = 200_000
MOST_FOUND = 1000
FOLDER_SECONDS = 20.0
LONGEST_CONFIGURATION = 64 << 10
CONFIGURATION = "[global]\nserver role = standalone server\n"
STOP_SECONDS = 3.0
SURE_SECONDS = 3600.0
"""What is younger goes only where every process can be seen: one that is hidden may use it."""


@dataclass(frozen=True)
class Leftover:
    """Something that has the name of what a run leaves."""

    path: str
    kind: str
    """One of KINDS; folder: one that could not be looked into."""
    why_left: str
    """Why it is not ours to remove, or not now; empty: it may be removed."""
    files: int
    size_bytes: int
    age_seconds: float
    """Since anything in it was last changed."""
    processes: Tuple[int, ...] = ()
    """A private Samba's that outlived its run: they end with it."""


class Foreign(Exception):
    """Something in a folder that no run puts there; the text names it."""


def find(folders: List[str], older_seconds: float, temporaries: bool = True) -> List[Leftover]:
    """What lies directly in the folders, and in those for temporary files, by path.

    older_seconds: what was changed since is left alone. Folders that cannot be read hold nothing
    that this user could remove.
    """
    places = [*folders, *(temporary.folders() if temporaries else ())]
    found: List[Leftover] = []
    users = _Users()
    for place in dict.fromkeys(os.path.realpath(each) for each in places):

        def look(place: str = place) -> List[Leftover]:
            return list(_in_folder(place, older_seconds, users))

        try:
            found += answered(place, time.monotonic() + FOLDER_SECONDS, look)
        except NoAnswer as error:
            found.append(Leftover(place, "folder", str(error), 0, 0, 0.0))
    return sorted(found, key=lambda each: each.path)[:MOST_FOUND]


def remove(path: str, older_seconds: float) -> str:
    """Looks at it again and removes it; empty, or why it or a part of it is still there."""
    place, name = os.path.split(path)
    kind = kind_of(name)
    if kind is None:
        return "it has not the name of what a run leaves"
    try:
        with _opened_folder(place) as parent:
            why = _removed(parent, os.path.realpath(place), name, kind, older_seconds)
            if not _is_there(parent, name):
                return ""
            return why or "something else came into its place"
    except FileNotFoundError:  # the folder that it was in
        return ""
    except OSError as error:
        return _words(error)


def _removed(parent: int, place: str, name: str, kind: str, older_seconds: float) -> str:
    """Why it was not removed, or not all of it; empty: it was."""
    try:
        seen = _seen(parent, place, name, kind, older_seconds, _Users())
        if seen.why_left:
            return seen.why_left
        _stop(seen.processes)
        _remove(parent, name, kind, os.fstat(parent).st_dev)
    except Foreign as foreign:
        return str(foreign)
    except FileNotFoundError:
        return CHANGED
    except OSError as error:
        return _words(error)
    return ""


def kind_of(name: str) -> str | None:
    """The kind whose name it is; None: of none."""
    return next((kind for kind, pattern in _NAMES.items() if pattern.fullmatch(name)), None)


def _in_folder(place: str, older_seconds: float, users: _Users) -> Iterator[Leftover]:
    try:
        with _opened_folder(place) as parent:
            for name in os.listdir(parent):
                kind = kind_of(name)
                if kind is None:
                    continue
                try:
                    seen = _seen(parent, place, name, kind, older_seconds, users)
                except FileNotFoundError:  # gone meanwhile
                    continue
                except OSError as error:
                    seen = Leftover(f"{place}/{name}", kind, _words(error), 0, 0, 0.0)
                yield seen
    except OSError:
        return


def _is_there(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _seen(
    parent: int, place: str, name: str, kind: str, older_seconds: float, users: _Users
) -> Leftover:
    """One candidate, wholly looked through; nothing is changed.

    Errors: FileNotFoundError, where it is gone; another OSError, where it cannot even be asked for.
    """
    path = os.path.join(place, name)  # noqa: PTH118
    told = os.stat(name, dir_fd=parent, follow_symlinks=False)
    sums = _Sums(max(told.st_mtime, told.st_ctime))
    why = ""
    orphans: Tuple[int, ...] = ()
    try:
        _check_owner(told, kind)
        _look(parent, name, "data" if kind == "file" else kind, told.st_dev, sums)
        if kind == "samba":
            _check_configuration(parent, name)
        why, orphans = _in_use(users, path, kind)
        why = why or _elsewhere(place)
    except Foreign as foreign:
        why = str(foreign)
    except PermissionError:
        why = "this user may not look into it"
    except FileNotFoundError:
        if not _is_there(parent, name):
            raise
        why = CHANGED
    except OSError as error:
        why = _words(error)
    age = time.time() - sums.changed_seconds
    if not why and age < older_seconds:
        why = (
            f"changed {max(0.0, age):.0f} s ago, less than {older_seconds:.0f} s: a run may use it"
        )
    if not why and age < SURE_SECONDS and not users.all_are_seen:
        why = (
            f"changed {max(0.0, age):.0f} s ago, and processes that may use it are hidden here: it "
            f"goes once it is {SURE_SECONDS:.0f} s old, or at once for root who sees them all"
        )
    return Leftover(path, kind, why, sums.files, sums.size_bytes, max(0.0, age), orphans)


def _in_use(users: _Users, path: str, kind: str) -> Tuple[str, Tuple[int, ...]]:
    """As _Users.of(), also where no process can be seen."""
    try:
        return users.of(path, kind)
    except OSError:
        return "this host does not tell who uses it", ()


def _elsewhere(place: str) -> str:
    """Why what lies in a folder has no age that this host knows; empty: it has one."""
    told = mount.read_mount(place)
    if told is None or not told.remote:
        return ""
    why = f"it lies on another host ({told.filesystem}), whose clock and whose users it has"
    if told.server is None or told.share is None:
        return f"{why}: run this there"
    folder = "".join("/" + each for each in told.folder.split("\\") if each)
    return f"{why}: use bottleneck cleanup //{told.server}/{told.share}{folder}"


@dataclass
class _Sums:
    """What a look adds up."""

    changed_seconds: float
    files: int = 0
    size_bytes: int = 0
    entries: int = 0

    def add(self, told: os.stat_result) -> None:
        """One entry more."""
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise Foreign(f"it holds more than {MOST_ENTRIES} entries")
        self.changed_seconds = max(self.changed_seconds, told.st_mtime, told.st_ctime)
        if stat.S_ISREG(told.st_mode):
            self.files += 1
            self.size_bytes += told.st_size


def _check_owner(told: os.stat_result, kind: str) -> None:
    if told.st_uid != os.geteuid() and not (os.geteuid() == 0 and kind in SHARED):
        raise Foreign("it belongs to another user")


def _look(parent: int, name: str, kind: str, device: int, sums: _Sums) -> None:
    """Checks that a name in an open folder is of its kind, and all that lies in it."""
    told = os.stat(name, dir_fd=parent, follow_symlinks=False)
    sums.add(told)
    _check(told, name, kind, device)
    if kind not in CONTENTS:
        return
    with _opened_folder(name, parent) as folder:
        for each in os.listdir(folder):
            _look(folder, each, _kind_inside(kind, each), device, sums)


def _check(told: os.stat_result, name: str, kind: str, device: int) -> None:
    """Raises Foreign where a name stands for something else than its kind."""
    mode = told.st_mode
    if told.st_dev != device:
        raise Foreign(f"something else is mounted at {name!r}")
    if kind in CONTENTS:
        if not stat.S_ISDIR(mode):
            raise Foreign(f"{name!r} is no folder")
    elif kind == "link":
        if not stat.S_ISLNK(mode):
            raise Foreign(f"{name!r} is no link")
    elif stat.S_ISREG(mode):
        if told.st_nlink > 1:
            raise Foreign(f"{name!r} has a second name elsewhere")
    elif not (stat.S_ISSOCK(mode) and name.isdigit()):
        raise Foreign(f"{name!r} is no regular file")


def _kind_inside(folder_kind: str, name: str) -> str:
    for pattern, kind in CONTENTS[folder_kind]:
        if re.fullmatch(pattern, name):
            return kind
    raise Foreign(f"it holds {name!r}, which no run puts there")


def _check_configuration(parent: int, name: str) -> None:
    """A private Samba's state names itself in its smb.conf; a user's folder does not."""
    with _opened_folder(name, parent) as folder:
        try:
            fd = os.open("smb.conf", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except FileNotFoundError:
            if os.listdir(folder):
                raise Foreign("there is no smb.conf of ours in it") from None
            return
        try:
            text = os.read(fd, LONGEST_CONFIGURATION).decode("utf-8", "replace")
        finally:
            os.close(fd)
    if not text.startswith(CONFIGURATION) or f"/{name}/private" not in text:
        raise Foreign("its smb.conf is none of ours")


class _Users:
    """The processes of this host and what each has open, read once where it is wanted at all."""

    @functools.cached_property
    def _seen(self) -> Dict[int, processes.ProcessStat]:
        return processes.read_all()

    @functools.cached_property
    def _arguments(self) -> Dict[int, List[bytes]]:
        return {pid: _arguments(pid) for pid in self._seen}

    @functools.cached_property
    def _open(self) -> Dict[int, List[bytes]]:
        return {pid: _open_paths(pid) for pid in self._seen if pid != os.getpid()}

    @property
    def all_are_seen(self) -> bool:
        """Whether no process is hidden, and of none what it has open."""
        return os.geteuid() == 0 and processes.sees_all(self._seen)

    def of(self, path: str, kind: str) -> Tuple[str, Tuple[int, ...]]:
        """Why a folder is in use, empty: it is not; and the processes of a Samba without a run.

        Its name is random: who names or has open a folder of that name means it, by whatever path.
        Errors: OSError, where this host shows no processes.
        """
        name = b"/" + os.path.basename(path).encode("utf-8", "surrogateescape")  # noqa: PTH119
        for pid, words in self._arguments.items():
            if any(each in words for each in GUARDIANS) and _any_ends_with(words, name):
                return f"its run is still at work (process {pid} watches over it)", ()
        orphans = {
            pid
            for pid, words in self._arguments.items()
            if kind == "samba"
            and words[0].endswith(b"smbd")
            and _any_ends_with(words, name + b"/smb.conf")
        }
        # What it forked may call itself otherwise.
        orphans |= {pid for pid, each in self._seen.items() if each.parent in orphans}
        for pid, paths in self._open.items():
            if pid not in orphans and any(name + b"/" in each + b"/" for each in paths):
                return f"process {pid} ({self._seen[pid].name}) has it open", ()
        return "", tuple(sorted(orphans))


def _any_ends_with(words: List[bytes], end: bytes) -> bool:
    return any((b"/" + each).endswith(end) for each in words)


def _arguments(pid: int) -> List[bytes]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return [b""]


def _open_paths(pid: int) -> List[bytes]:
    """Where a process that we may look at works, and what it has open."""
    links = [f"/proc/{pid}/cwd"]
    with contextlib.suppress(OSError):
        links += [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
    found = []
    for link in links:
        with contextlib.suppress(OSError):
            found.append(os.readlink(link.encode()))  # noqa: PTH115 - as bytes
    return found


def _stop(pids: Tuple[int, ...]) -> None:
    """Ends the processes of a Samba without a run; returns when they are gone."""
    until = time.monotonic() + STOP_SECONDS
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, sign)
        while time.monotonic() < until and any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
            time.sleep(0.02)
        until = time.monotonic() + STOP_SECONDS


def _remove(parent: int, name: str, kind: str, device: int) -> None:
    """Removes what _look() has approved of; what came meanwhile stays, and its folder with it."""
    told = os.stat(name, dir_fd=parent, follow_symlinks=False)
    _check(told, name, "data" if kind == "file" else kind, device)
    if kind not in CONTENTS:
        os.unlink(name, dir_fd=parent)
        return
    with _opened_folder(name, parent) as folder:
        for each in os.listdir(folder):
            _remove(folder, each, _kind_inside(kind, each), device)
    os.rmdir(name, dir_fd=parent)


@contextlib.contextmanager
def _opened_folder(name: str, parent: int | None = None) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | (os.O_NOFOLLOW if parent is not None else 0)
    fd = os.open(name, flags, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)
