"""What a killed run left on this host: what the journal names, and what has a run folder's name.

The journal is sure: it knows the very folder. Names alone prove nothing: a folder is ours only
where all that lies in it is what a run puts there, and begins as a run's files do. What is young,
in use or not wholly ours stays, and the reason is told; so does what lies on another host's disk,
as this host sees neither who uses it there nor the clock that its age goes by.
"""

from __future__ import annotations

import contextlib
import functools
import re
import stat
import time
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from probes.core.meaning import Folder, LeftoverPath, Number, Text
from probes.files import folders, journal, payload, removal
from probes.system import processes
from probes.system.child import NoAnswer, answered
from probes.system.platform import descriptor, os
from probes.system.proc import ProcessStat
from probes.system.reader import reader

RUN = re.compile(r"bottleneck-([0-9a-f]{16}|[0-9a-f]{32})")
"""Name of a run's folder on a share; the shorter one is of an older version."""
MOST_FOUND = 1000
MOST_ENTRIES = 200_000
FOLDER_SECONDS = 20.0
SURE_SECONDS = 3600.0
"""What is younger goes only where every process can be seen: one that is hidden may use it."""
UNPROVEN = "no file in it begins as a run's do; if an older version left it, delete it by hand"
THERE = "use bottleneck cleanup"
"""Said of what lies on a share, which is looked at over SMB."""


@dataclass(frozen=True)
class Leftover:
    """Something that the journal names, or that has the name of what a run leaves."""

    path: str
    why_left: str
    """Why it is not ours to remove, or not now; empty: it may be removed."""
    files: int = 0
    size_bytes: int = 0
    age_seconds: float = 0.0
    """Since anything in it was last changed; in the journal: since its run created it."""
    noted: bool = False
    """Whether the journal names it."""


@dataclass(frozen=True)
class OnShare:
    """What to look for on a share (probes.smb.leftovers), and what to remove of it."""

    older_seconds: Number
    remove: Tuple[Text, ...] = ()
    """Names that an earlier look gave: nothing else is looked at then."""


class Foreign(Exception):
    """Something in a folder that no run puts there; the text names it."""


def find(folders: List[Folder], older_seconds: Number) -> List[Leftover]:
    """What the journal names, and what lies directly in the folders, by path.

    older_seconds: what was changed since and is not in the journal is left alone. A folder that is
    not there holds nothing; one that cannot be read is told as such.
    """
    found: Dict[str, Leftover] = {}
    users = _Users()
    for place in dict.fromkeys(os.path.realpath(each) for each in folders):

        def look(place: str = place) -> List[Leftover]:
            return list(_in_folder(place, older_seconds, users))

        try:
            seen = answered(place, time.monotonic() + FOLDER_SECONDS, look)
        except NoAnswer as error:
            seen = [Leftover(place, str(error))]
        found.update({each.path: each for each in seen})
    # What the journal is not sure of may be known by its name and what lies in it.
    for each in _noted():
        if each.path not in found or not each.why_left:
            found[each.path] = each
    return sorted(found.values(), key=lambda each: each.path)[:MOST_FOUND]


def remove(path: LeftoverPath, older_seconds: Number) -> str:
    """Looks at it again and removes it; empty, or why it or a part of it is still there."""
    why = _noted_removed(path)
    place, name = os.path.split(path)
    if why == "" or (why and not _is_there(path)):
        return why
    if not RUN.fullmatch(name):
        return why or "its name is not that of a leftover"
    return _named_removed(place, name, older_seconds)


def _noted_removed(path: str) -> Optional[str]:
    """By the journal: empty, or why it stays; None: it does not name it."""
    for facts, entry in journal.left(removal.RUN, removal.TREE):
        if journal.path_of(facts) == path:
            why = journal.remove(facts)
            entry.close(gone=not why)
            return why
    return None


def _is_there(path: str) -> bool:
    until = time.monotonic() + journal.REMOVE_SECONDS
    try:
        return answered(path, until, functools.partial(os.path.lexists, path))
    except NoAnswer:
        return False


def _named_removed(place: str, name: str, older_seconds: float) -> str:
    """By its name, if all that is in it is a run's; empty, or why it stays."""
    try:
        parent = removal.opened(place)
    except FileNotFoundError:
        return ""
    try:
        told = os.stat(name, dir_fd=parent, follow_symlinks=False)
        seen = _seen(parent, os.path.realpath(place), name, older_seconds, _Users())
        if seen.why_left:
            return seen.why_left
        facts = {"kind": removal.RUN, "name": name, "dev": told.st_dev, "ino": told.st_ino}
        became = removal.remove(parent, facts)
        return "it was replaced meanwhile" if became == removal.OTHER else ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        return _words(error)
    finally:
        os.close(parent)


def _noted() -> Iterator[Leftover]:
    for facts, _ in journal.left(removal.RUN, removal.TREE, journal.SHARE):
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
        parent = removal.opened(place)
    except FileNotFoundError:
        return
    except OSError as error:
        yield Leftover(place, _words(error))
        return
    try:
        for name in filter(RUN.fullmatch, os.listdir(parent)):
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                yield _seen(parent, place, name, older_seconds, users)
    except OSError as error:
        yield Leftover(place, _words(error))
    finally:
        os.close(parent)


def _seen(parent: int, place: str, name: str, older_seconds: float, users: _Users) -> Leftover:
    """One candidate, wholly looked through; nothing is changed.

    Errors: FileNotFoundError, where it is gone; another OSError, where it cannot even be asked for.
    """
    path = os.path.join(place, name)  # noqa: PTH118 - a name that is no UTF-8 stays as it is
    told = os.stat(name, dir_fd=parent, follow_symlinks=False)
    files, size, changed = 0, 0, max(told.st_mtime, told.st_ctime)
    why = ""
    try:
        for each in _files(parent, name, told):
            files, size = files + 1, size + each.st_size
            changed = max(changed, each.st_mtime, each.st_ctime)
        why = users.of(path) or _on_other_host(place)
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


def _files(parent: int, name: str, told: os.stat_result) -> List[os.stat_result]:
    """The files in it. Raises Foreign where it, or anything in it, is not what a run makes."""
    # A file server writes it for whoever logged in; root alone removes it then.
    if told.st_uid != os.geteuid() and os.geteuid() != 0:
        raise Foreign("it belongs to another user")
    if not stat.S_ISDIR(told.st_mode):
        raise Foreign(f"{name!r} is not a folder")
    if told.st_dev != os.fstat(parent).st_dev:
        raise Foreign(f"a file system is mounted at {name!r}")
    found = []
    with descriptor(removal.opened(name, parent)) as folder:
        names = sorted(os.listdir(folder), key=payload.first)
        run_names = removal.run_files(name)
        for each in names:
            found.append(os.stat(each, dir_fd=folder, follow_symlinks=False))
            if not removal.is_run_file(folder, each, found[-1], run_names):
                raise Foreign(f"it contains {each!r}, which is not from a run")
            if not stat.S_ISREG(found[-1].st_mode):
                raise Foreign(f"{each!r} is not a regular file")
            if found[-1].st_nlink > 1:
                raise Foreign(f"{each!r} has another hard link")
            if len(found) > MOST_ENTRIES:
                raise Foreign(f"it contains more than {MOST_ENTRIES} entries")
        if not payload.proves(removal.head(folder, each)[0] for each in names):
            raise Foreign(UNPROVEN)
    return found


def _on_other_host(place: str) -> str:
    """Why what lies in a folder has no age that this host knows; empty: it has one."""
    told = folders.read_mount(place)
    if told is None or not told.remote:
        return ""
    why = f"it is on another host ({told.filesystem}), with other users and another clock"
    if told.server is None or told.share is None:
        return f"{why}: run this there"
    folder = "".join("/" + each for each in told.folder.split("\\") if each)
    return f"{why}: {THERE} //{told.server}/{told.share}{folder}"


class _Users:
    """The processes of this host and what each has open, read once where it is wanted at all."""

    @functools.cached_property
    def _seen(self) -> Dict[int, ProcessStat]:
        return reader().processes()

    @functools.cached_property
    def _open(self) -> Dict[int, List[bytes]]:
        return {pid: _open_paths(pid) for pid in self._seen if pid != os.getpid()}

    @property
    def all_are_seen(self) -> bool:
        """Whether no process is hidden, and of none what it has open."""
        return os.geteuid() == 0 and processes.sees_all(self._seen)

    def of(self, path: str) -> str:
        """Why a folder is in use; empty: it is not.

        Its name is random: who has a folder of that name open means it, by whatever path.
        """
        if os.path.basename(path) in journal.living():  # noqa: PTH119
            return "its run is still active"
        name = b"/" + os.path.basename(path).encode("utf-8", "surrogateescape")  # noqa: PTH119 - bytes
        try:
            for pid, paths in self._open.items():
                if any(name + b"/" in each + b"/" for each in paths):
                    return f"process {pid} ({self._seen[pid].name}) has it open"
        except OSError:
            return "this host does not show which process uses it"
        return ""


def _open_paths(pid: int) -> List[bytes]:
    """Where a process that we may look at works, and what it has open.

    What it closed meanwhile is left out; whether we may look at all is for sees_all() to tell.
    """
    links = [f"/proc/{pid}/cwd"]
    with contextlib.suppress(OSError):
        links += [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
    found = []
    for link in links:
        with contextlib.suppress(OSError):
            found.append(os.readlink(link.encode()))  # noqa: PTH115 - as bytes
    return found


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
