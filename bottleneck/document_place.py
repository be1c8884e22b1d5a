"""Where a document goes: its folder held open, each link on the way one that nobody planted.

A folder that everybody may write to (/tmp) can hold a link of anybody's, to any file of ours. So
no link in such a folder is followed, and elsewhere those of root and of this user alone.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MOST_LINKS = 40
"""As many as the kernel follows (path_resolution(7))."""
_FOLDER = os.O_PATH | os.O_DIRECTORY


@dataclass(frozen=True)
class Place:
    """A name in a folder that is held open."""

    folder: int
    name: str
    about: os.stat_result | None
    """What stands there; None: nothing."""
    open_already: bool = False
    """Whether it is what /proc shows of a descriptor, a link that the kernel follows."""


@contextmanager
def found(path: str | Path) -> Iterator[Place]:
    """The place that a path leads to; its folder is open until the block ends.

    Errors: OSError, with a sentence as its strerror where a link is not followed.
    """
    text = os.fspath(path)
    walk = _Walk(text)
    try:
        yield walk.to_its_end()
    except OSError as error:
        # Of a name relative to a descriptor, which says nothing by itself.
        error.filename = text
        raise
    finally:
        os.close(walk.folder)


def is_planted(place: Place) -> bool:
    """Whether another user may have put there what stands there."""
    if place.about is None or is_trusted(place.about.st_uid):
        return False
    return bool(os.fstat(place.folder).st_mode & stat.S_IWOTH)


class _Walk:
    """On its way through a path: the folder that it stands in, and the names that are left."""

    def __init__(self, path: str) -> None:
        self.folder = os.open("/" if path.startswith("/") else ".", _FOLDER)
        self.left = _names(path)
        self.links = 0

    def to_its_end(self) -> Place:
        while True:
            if not self.left:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            name = self.left.pop()
            try:
                about = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
            except FileNotFoundError:
                if self.left:
                    raise
                return Place(self.folder, name, None)
            if stat.S_ISLNK(about.st_mode):
                if not _is_of_proc(self.folder):
                    self._follow(name)
                    continue
                self._check_link(about)
                if not self.left:
                    return self._opened(name)
                self._enter(name, _FOLDER)
            elif self.left:
                self._enter(name, _FOLDER | os.O_NOFOLLOW)
            else:
                return Place(self.folder, name, about)

    def _enter(self, name: str, flags: int) -> None:
        inner = os.open(name, flags, dir_fd=self.folder)
        os.close(self.folder)
        self.folder = inner

    def _check_link(self, link: os.stat_result) -> None:
        self.links += 1
        if self.links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        _refuse_planted(link, os.fstat(self.folder))

    def _follow(self, name: str) -> None:
        """Puts what a link says in the place of its name, of the very link that was looked at."""
        link = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self.folder)
        try:
            self._check_link(os.fstat(link))
            text = os.readlink("", dir_fd=link)
        finally:
            os.close(link)
        if text.startswith("/"):
            self._enter("/", _FOLDER)
        self.left += _names(text)

    def _opened(self, name: str) -> Place:
        """What /proc/self/fd/1 stands for: a pipe or a terminal as it is, a file by its name."""
        about = os.stat(name, dir_fd=self.folder)
        if not stat.S_ISREG(about.st_mode):
            return Place(self.folder, name, about, open_already=True)
        text = os.readlink(name, dir_fd=self.folder)
        self._enter("/", _FOLDER)
        self.left = _names(text)
        place = self.to_its_end()
        if place.about is None or not os.path.samestat(place.about, about):
            raise OSError(errno.ENOENT, "what is open there has no name any more")
        return place


def _names(path: str) -> list[str]:
    """The last one first; a path that ends in a slash ends in its folder itself."""
    names = [each for each in path.split("/") if each not in ("", ".")]
    return [*(["."] if path.endswith(("/", "/.")) else []), *reversed(names)]


def _is_of_proc(folder: int) -> bool:
    """Whether links there are the kernel's own, which no text can stand for."""
    try:
        return os.fstat(folder).st_dev == os.stat("/proc").st_dev  # noqa: PTH116 - beside a descriptor's
    except OSError:
        # A host without /proc has no such links.
        return False


def _refuse_planted(link: os.stat_result, folder: os.stat_result) -> None:
    if folder.st_mode & stat.S_IWOTH:
        text = "a link in a folder that everybody may write to is not followed; name the file"
        raise OSError(errno.ELOOP, text)
    if not is_trusted(link.st_uid):
        raise OSError(errno.ELOOP, "a link of another user is not followed; name the file itself")


def is_trusted(uid: int) -> bool:
    """Whether what belongs to that user is root's or our own."""
    return uid in (0, os.geteuid())
