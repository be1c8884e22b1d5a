"""Leftovers of killed runs on this host: those in the journal, and folders with a run's name.

The journal is reliable: it identifies the folder. A name alone proves nothing: a folder is ours
only where it contains nothing but a run's files, which begin as those do. A folder that is young,
in use or not fully ours stays, and the reason is given; so does one on another host's disk, as this
host sees neither its users there nor the clock of its age.
"""

from __future__ import annotations

import contextlib
import functools
import re
import stat
import time
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from probes.core.field_types import Folder, LeftoverPath, Number, Text
from probes.files import folders, journal, payload, removal
from probes.system import processes
from probes.system.child import NoAnswer, call_until
from probes.system.platform import descriptor, os
from probes.system.proc import ProcessStat
from probes.system.reader import reader

RUN = re.compile(r"bottleneck-([0-9a-f]{16}|[0-9a-f]{32})")
"""Name of a run's folder on a share; the shorter one is of an older version."""
MOST_FOUND = 1000
MOST_ENTRIES = 200_000
FOLDER_SECONDS = 20.0
SURE_SECONDS = 3600.0
"""Age below which a leftover is removed only where no process is hidden: one may use it."""
UNPROVEN = "no file in it begins as a run's do; if an older version left it, delete it by hand"
THERE = "use bottleneck cleanup"
"""Remedy for a leftover on a share, which is examined over SMB."""


@dataclass(frozen=True)
class Leftover:
    """Object in the journal, or with the name of a run's folder."""

    path: str
    why_left: str
    """Reason for which it stays, at least for now; empty: it may be removed."""
    files: int = 0
    size_bytes: int = 0
    age_seconds: float = 0.0
    """Age since its last change; of one in the journal, since its creation."""
    noted: bool = False
    """Whether the journal names it."""


@dataclass(frozen=True)
class OnShare:
    """Search for leftovers on a share (probes.smb.leftovers), and the names to remove."""

    older_seconds: Number
    remove: Tuple[Text, ...] = ()
    """Names from an earlier search: only they are examined then."""


class Foreign(Exception):
    """A folder contains something that is not from a run; the text names it."""


def find(folders: List[Folder], older_seconds: Number) -> List[Leftover]:
    """Returns the leftovers in the journal and directly in the folders, by path.

    older_seconds: a younger one that is not in the journal stays. A missing folder contains
    nothing; an unreadable one is a Leftover with the reason.
    """
    by_path: Dict[str, Leftover] = {}
    users = _Users()
    for place in dict.fromkeys(os.path.realpath(each) for each in folders):

        def look(place: str = place) -> List[Leftover]:
            return list(_in_folder(place, older_seconds, users))

        try:
            leftovers = call_until(place, time.monotonic() + FOLDER_SECONDS, look)
        except NoAnswer as error:
            leftovers = [Leftover(place, str(error))]
        by_path.update({each.path: each for each in leftovers})
    # An object that the journal cannot identify may be identified by its name and content.
    for each in _list_noted():
        if each.path not in by_path or not each.why_left:
            by_path[each.path] = each
    return sorted(by_path.values(), key=lambda each: each.path)[:MOST_FOUND]


def remove(path: LeftoverPath, older_seconds: Number) -> str:
    """Examines a leftover again and removes it; returns "", or why it or a part of it stays."""
    why = _remove_noted(path)
    place, name = os.path.split(path)
    if why == "" or (why and not _is_there(path)):
        return why
    if not RUN.fullmatch(name):
        return why or "its name is not that of a leftover"
    return _remove_by_name(place, name, older_seconds)


def _remove_noted(path: str) -> Optional[str]:
    """Removes it by the journal; returns "", or why it stays; None: it has no entry."""
    for facts, entry in journal.orphans(removal.RUN, removal.TREE):
        if journal.path_of(facts) == path:
            why = journal.remove(facts)
            entry.close(is_removed=not why)
            return why
    return None


def _is_there(path: str) -> bool:
    until = time.monotonic() + journal.REMOVE_SECONDS
    try:
        return call_until(path, until, functools.partial(os.path.lexists, path))
    except NoAnswer:
        return False


def _remove_by_name(place: str, name: str, older_seconds: float) -> str:
    """Removes it by its name, if all of its content is a run's; returns "", or why it stays."""
    try:
        parent = removal.open_folder(place)
    except FileNotFoundError:
        return ""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        leftover = _examine(parent, os.path.realpath(place), name, older_seconds, _Users())
        if leftover.why_left:
            return leftover.why_left
        facts = {"kind": removal.RUN, "name": name, "dev": status.st_dev, "ino": status.st_ino}
        became = removal.remove(parent, facts)
        return "it was replaced meanwhile" if became == removal.OTHER else ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _words(error)
    finally:
        os.close(parent)


def _list_noted() -> Iterator[Leftover]:
    for facts, _ in journal.orphans(removal.RUN, removal.TREE, journal.SHARE):
        if facts["kind"] == journal.SHARE:
            place = journal.path_of(facts).replace("\\", "/").rpartition("/")[0]
            why: Optional[str] = f"it is on a share: {THERE} {place}"
        else:
            why = journal.look(facts)
        if why is not None:
            age = max(0.0, time.time() - facts["time"])
            yield Leftover(journal.path_of(facts), why, age_seconds=age, noted=True)


def _in_folder(place: str, older_seconds: float, users: _Users) -> Iterator[Leftover]:
    try:
        parent = removal.open_folder(place)
    except FileNotFoundError:
        return
    except OSError as error:
        yield Leftover(place, _words(error))
        return
    try:
        for name in filter(RUN.fullmatch, os.listdir(parent)):
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                yield _examine(parent, place, name, older_seconds, users)
    except OSError as error:
        yield Leftover(place, _words(error))
    finally:
        os.close(parent)


def _examine(parent: int, place: str, name: str, older_seconds: float, users: _Users) -> Leftover:
    """Examines all of one candidate, without changes.

    Errors: FileNotFoundError, where it is gone; another OSError, where stat(2) fails.
    """
    path = os.path.join(place, name)  # noqa: PTH118 - a name that is no UTF-8 stays as it is
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    files, size, changed = 0, 0, max(status.st_mtime, status.st_ctime)
    why = ""
    try:
        for each in _files(parent, name, status):
            files, size = files + 1, size + each.st_size
            changed = max(changed, each.st_mtime, each.st_ctime)
        why = users.why_in_use(path) or _on_other_host(place)
    except Foreign as foreign:
        why = str(foreign)
    except PermissionError:
        why = "no permission to read it"
    except FileNotFoundError:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
        why = "it changed during the check"
    except OSError as error:
        why = _words(error)
    age = max(0.0, time.time() - changed)
    if not why and age < older_seconds:
        why = f"changed {age:.0f} s ago, less than {older_seconds:.0f} s: a run may use it"
    if not why and age < SURE_SECONDS and not users.all_are_seen:
        why = (
            f"changed {age:.0f} s ago, and processes that may use it are hidden: wait until "
            f"it is {SURE_SECONDS:.0f} s old, or run this as root"
        )
    return Leftover(path, why, files, size, age)


def _files(parent: int, name: str, status: os.stat_result) -> List[os.stat_result]:
    """Returns the files in a folder. Raises Foreign where anything in it is not a run's."""
    # A file server writes as the user that logged in; only root can remove the folder then.
    if status.st_uid != os.geteuid() and os.geteuid() != 0:
        raise Foreign("it belongs to another user")
    if not stat.S_ISDIR(status.st_mode):
        raise Foreign(f"{name!r} is not a folder")
    if status.st_dev != os.fstat(parent).st_dev:
        raise Foreign(f"a file system is mounted at {name!r}")
    statuses = []
    with descriptor(removal.open_folder(name, parent)) as folder:
        names = sorted(os.listdir(folder), key=payload.proof_order)
        run_names = removal.run_files(name)
        for each in names:
            statuses.append(os.stat(each, dir_fd=folder, follow_symlinks=False))
            if not removal.is_run_file(folder, each, statuses[-1], run_names):
                raise Foreign(f"it contains {each!r}, which is not from a run")
            if not stat.S_ISREG(statuses[-1].st_mode):
                raise Foreign(f"{each!r} is not a regular file")
            if statuses[-1].st_nlink > 1:
                raise Foreign(f"{each!r} has another hard link")
            if len(statuses) > MOST_ENTRIES:
                raise Foreign(f"it contains more than {MOST_ENTRIES} entries")
        if not payload.proves(removal.head(folder, each)[0] for each in names):
            raise Foreign(UNPROVEN)
    return statuses


def _on_other_host(place: str) -> str:
    """Returns why this host cannot know the age of a folder's content; empty: it can."""
    mount = folders.read_mount(place)
    if mount is None or not mount.remote:
        return ""
    why = f"it is on another host ({mount.filesystem}), with other users and another clock"
    if mount.server is None or mount.share is None:
        return f"{why}: run this there"
    folder = "".join("/" + each for each in mount.folder.split("\\") if each)
    return f"{why}: {THERE} //{mount.server}/{mount.share}{folder}"


class _Users:
    """The processes of this host and their open files, read once and only on demand."""

    @functools.cached_property
    def _processes(self) -> Dict[int, ProcessStat]:
        return reader().processes()

    @functools.cached_property
    def _paths_by_pid(self) -> Dict[int, List[bytes]]:
        return {pid: _open_paths(pid) for pid in self._processes if pid != os.getpid()}

    @property
    def all_are_seen(self) -> bool:
        """Whether no process is hidden, nor any process's open files."""
        return os.geteuid() == 0 and processes.sees_all(self._processes)

    def why_in_use(self, path: str) -> str:
        """Returns why a folder is in use; empty: it is not.

        Its name is random: an open folder of that name is it, by whatever path.
        """
        if os.path.basename(path) in journal.living_objects():  # noqa: PTH119 - text
            return "its run is still active"
        name = b"/" + os.path.basename(path).encode("utf-8", "surrogateescape")  # noqa: PTH119 - bytes
        try:
            for pid, paths in self._paths_by_pid.items():
                if any(name + b"/" in each + b"/" for each in paths):
                    return f"process {pid} ({self._processes[pid].name}) has it open"
        except OSError:
            return "this host does not show which process uses it"
        return ""


def _open_paths(pid: int) -> List[bytes]:
    """Returns the current folder and open files of a process that we may look at.

    Files that it closes meanwhile are missing; sees_all() says whether we may look at all.
    """
    links = [f"/proc/{pid}/cwd"]
    with contextlib.suppress(OSError):
        links += [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
    paths = []
    for link in links:
        with contextlib.suppress(OSError):
            paths.append(os.readlink(link.encode()))  # noqa: PTH115 - as bytes
    return paths


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
