"""A folder with a name that a run creates on this host, and removes.

That of a killed run is removed by the next run, from the journal, or by `cleanup`.
"""

from __future__ import annotations

import contextlib
import errno
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, TypeVar

from probes.core.field_types import Count, Folder, Hex, Seconds, Size, Text
from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.files import free_space, journal, removal, source_file
from probes.files.served_file import check_name, source_name
from probes.system.child import NoAnswer, call_until
from probes.system.platform import os

PAUSE_SECONDS = 0.02


class CreatedFolder:
    """Folder of a run, before its creation, during its life and after its removal."""

    def __init__(self, kind: str, folder: str, name: str) -> None:
        """Takes a kind (RUN, TREE), an existing folder for it, and a name. Errors: OSError."""
        self._facts: removal.Facts = {"kind": kind, "name": name}
        place = os.path.realpath(folder)
        self._parent = removal.open_folder(place)
        self._pin: Optional[int] = None
        self._there = False
        status = os.fstat(self._parent)
        # Leftovers that cannot be removed are no reason to measure nothing.
        with suppress(OSError):
            journal.sweep()
        self._entry = journal.enter(
            kind, place, name, folder_dev=status.st_dev, folder_ino=status.st_ino
        )

    @property
    def is_noted(self) -> bool:
        """Whether the next run would find the folder if this one is killed."""
        return self._entry.has_file

    def create(self) -> None:
        """Creates it, closed to others. Errors: OSError; then there is no folder of ours."""
        # Before the call: one that never returns may have created it.
        self._there = True
        try:
            os.mkdir(self._facts["name"], 0o700, dir_fd=self._parent)
        except OSError:
            self._there = False
            raise
        self.adopt()

    def adopt(self) -> None:
        """Adopts an existing folder that another, as a file server, created for this run."""
        self._there = True
        self._pin = removal.open_folder(self._facts["name"], self._parent)
        status = os.fstat(self._pin)
        self._tell({"dev": status.st_dev, "ino": status.st_ino})

    def new_file(self, name: str) -> int:
        """Creates a file in it; returns its descriptor, to read and write. Errors: OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return os.open(name, flags, 0o600, dir_fd=self.pin)

    @property
    def pin(self) -> int:
        """Descriptor of the created folder, whatever has its name by now."""
        assert self._pin is not None
        return self._pin

    def empty(self) -> None:
        """Removes its content, whatever has its name by now. Errors: OSError."""
        removal.empty(self.pin, self._facts, self._facts["dev"])

    def ends_first(self, leader: int) -> None:
        """Sets a process group, by its leader, that has to end before the folder is removed."""
        started = removal.started_ticks(leader)
        if started is not None:
            self._tell({"leader": leader, "started": started, "pid_space": removal.pid_space()})

    def remove(self, seconds: float = 0.0) -> None:
        """Removes it; retries for some seconds. Errors: OSError of the part that stays."""
        until = time.monotonic() + seconds
        while self._there:
            try:
                if removal.remove(self._parent, self._facts) == removal.OTHER:
                    raise FileExistsError(errno.EEXIST, "another object has its name")
                self._there = False
            except OSError:
                if time.monotonic() >= until:
                    raise
                time.sleep(PAUSE_SECONDS)

    def disown(self) -> None:
        """Leaves its removal to another, or records that it was never created."""
        self._there = False

    def close(self) -> None:
        """Closes it; leaves a folder that still exists to the journal."""
        self._entry.close(is_removed=not self._there)
        # A removal that hangs in a mount still uses them: the numbers must not be used again.
        for fd in (self._pin, self._parent):
            if fd is not None and not self._there:
                os.close(fd)

    def _tell(self, facts: removal.Facts) -> None:
        self._facts.update(facts)
        self._entry.write(facts)


@contextmanager
def own_folder(kind: str, folder: str, name: str) -> Iterator[CreatedFolder]:
    """Yields a folder that does not outlive the block, or this process."""
    new_folder = CreatedFolder(kind, folder, name)
    try:
        yield new_folder
    finally:
        new_folder.close()


T = TypeVar("T")

ANSWER_SECONDS = 10.0
"""Limit of a step before or after a copy in a mount."""
REMOVE_SECONDS = 4.0
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_ALLOWED = (errno.EACCES, errno.EPERM)
LOST = (errno.ENOTCONN, errno.EHOSTDOWN, errno.ECONNABORTED, errno.ESHUTDOWN, errno.ETIMEDOUT)
GONE = (errno.EROFS, errno.ESTALE, errno.ENOENT, errno.ENOTDIR)
KNOWN_ERRORS = (*NO_ROOM, *NOT_ALLOWED, *LOST, *GONE)
"""Errors for which refusal() has a message."""


@dataclass(frozen=True)
class Setting:
    """Folder on a mounted share, and the source file in it."""

    folder: Folder
    """The mounted share, or a folder on it."""
    run: Hex
    """Hex id of the run."""
    size_bytes: Size
    seconds: Seconds
    """Time after which writing the source file ends early."""
    seed: Text
    """Seed of the payload, hex."""
    parts: Count = 1
    """See free_space.fitting_size."""


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Creates bottleneck-RUN in the folder, with a source file of payload, for the block.

    Yields its path as folder, and facts: size_bytes (as fits and was written in time), seconds (of
    that writing), free_bytes and total_bytes (0: not reported by the mount). Errors:
    Refused ("usage", "permission", "space", "unreachable"), Unavailable (no room for 4 MiB);
    OSError where something may be left.
    """
    name = f"bottleneck-{setting.run}"
    check_name(name)
    with ExitStack() as stack:
        with speaking_of(setting.folder):
            folder = wait_for(
                setting.folder, lambda: CreatedFolder(removal.RUN, setting.folder, name)
            )
            stack.callback(folder.close)
            free, total = wait_for(setting.folder, lambda: free_space.space_of(setting.folder))
            size_bytes = free_space.fitting_size_in(
                setting.size_bytes, setting.folder, free, total, setting.parts
            )
            path = os.path.join(setting.folder, name)  # noqa: PTH118
            opened: list[int] = []
            stack.callback(_remove, path, folder, opened)
            wait_for(setting.folder, folder.create)
            opened.append(wait_for(setting.folder, lambda: folder.new_file(source_name(name))))
            began = time.monotonic()
            written = _fill(opened[0], setting, size_bytes)
            seconds = time.monotonic() - began
        space = {"free_bytes": free, "total_bytes": total}
        yield Endpoint(folder=path, facts={"size_bytes": written, "seconds": seconds, **space})


@contextmanager
def speaking_of(folder: str) -> Iterator[None]:
    """Turns the block's OSErrors and timeouts in a folder into messages with a remedy."""
    try:
        yield
    except NoAnswer as error:
        raise Refused("unreachable", f"{error}; check that its server is up") from None
    except OSError as error:
        raise refusal(folder, error) from error


REMOUNT = "umount it, then mount it again"


def refusal(folder: str, error: OSError) -> Exception:
    """Returns an error in a folder with its remedy, one line; others with the folder's name."""
    code, words = error.errno, (error.strerror or str(error)).lower()
    if code in NO_ROOM:
        return Refused("space", f"{folder}: {words}; free some space or use a smaller --size")
    if code == errno.EROFS:
        text = f"{folder}: mounted read-only; mount it read-write or use another folder"
        return Refused("permission", text)
    if code in NOT_ALLOWED:
        return Refused("permission", f"{folder}: {words}: no write permission; choose another")
    if code in (errno.ENOENT, errno.ENOTDIR):
        return Refused("usage", f"{folder}: not found on this host")
    if code == errno.ESTALE:
        text = f"{folder}: stale file handle: the server no longer knows this mount; {REMOUNT}"
        return Refused("unreachable", text)
    if code in LOST:
        return Refused("unreachable", f"{folder}: mount lost its server ({words}); {REMOUNT}")
    return RuntimeError(f"{folder}: {words}")


def wait_for(folder: str, work: Callable[[], T]) -> T:
    """Returns the result of work(), where the folder's mount answers in time; else NoAnswer."""
    return call_until(folder, time.monotonic() + ANSWER_SECONDS, work)


def _fill(fd: int, setting: Setting, size_bytes: int) -> int:
    now = time.monotonic()

    def fill() -> int:
        return source_file.fill(fd, size_bytes, bytes.fromhex(setting.seed), now + setting.seconds)

    return call_until(setting.folder, now + setting.seconds + ANSWER_SECONDS, fill)


def _remove(path: str, folder: CreatedFolder, opened: list[int]) -> None:
    """Removes the folder; the journal has what may remain."""

    def work() -> None:
        for fd in opened:
            # Unsent data would be sent first, and its thread may still write.
            with contextlib.suppress(OSError):
                os.ftruncate(fd, 0)
            # First: NFS and FUSE only hide an open file, and its folder would stay.
            with contextlib.suppress(OSError):
                os.close(fd)
        folder.remove(REMOVE_SECONDS / 2)

    try:
        call_until(path, time.monotonic() + REMOVE_SECONDS, work)
    except NoAnswer as error:
        text = f"may remain; the next run or bottleneck cleanup removes it: {error}"
        raise TimeoutError(text) from None
    except OSError as error:
        raise OSError(f"{path} may remain: {(error.strerror or str(error)).lower()}") from None
