"""Where a secret can come to light: files and their names, processes as /proc shows them."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from secret_forms import found_in

STEP_BYTES = 8 << 20
OVERLAP_BYTES = 1 << 10
SMALL_BYTES = 1 << 20
"""What is read of each file while a run is at work; all of it is read at its end."""
LOOK_SECONDS = 0.02

Forms = dict[str, bytes]


@dataclass(frozen=True, order=True)
class Leak:
    where: str
    form: str


def is_users_file(path: str) -> bool:
    """Whether it is the list of users of a private Samba, where its own hash has to be."""
    return "/bottleneck-samba-" in path and path.endswith("/private/passdb.tdb")


def in_file(path: Path, forms: Forms, most_bytes: int | None = None) -> set[str]:
    """The forms that a file holds."""
    found: set[str] = set()
    with path.open("rb") as file:
        rest = b""
        while chunk := file.read(STEP_BYTES if most_bytes is None else most_bytes):
            found.update(found_in(rest + chunk, forms))
            rest = chunk[-OVERLAP_BYTES:]
            if most_bytes is not None:
                break
    return found


def in_tree(root: Path, forms: Forms, most_bytes: int | None = None) -> Iterator[Leak]:
    """What the files below a folder hold, and what they are called."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            for form in found_in(os.fsencode(name), forms):
                yield Leak("name of a file", form)
            with contextlib.suppress(OSError):  # removed meanwhile
                if not stat.S_ISREG(path.lstat().st_mode) or is_users_file(str(path)):
                    continue
                for form in in_file(path, forms, most_bytes):
                    yield Leak(f"file {path.relative_to(root)}", form)


class Sampler(threading.Thread):
    """Reads arguments and environment of every process that began after it, until it is stopped.

    A secret that was handed over in the environment may be in that of its receiver until this has
    started a process of its own: no program runs before its first line.
    """

    def __init__(self, forms: Forms, folders: list[Path], handed_over: bool) -> None:
        super().__init__(daemon=True)
        self.forms, self.folders, self.handed_over = forms, folders, handed_over
        self.receiver: int | None = None
        self.leaks: set[Leak] = set()
        self.looked = 0
        self._older = set(os.listdir("/proc"))
        self._passed_over: set[int] = set()
        self._ended = threading.Event()

    def pass_over(self, pid: int) -> None:
        """Leaves a process of the scanner's own out."""
        self._passed_over.add(pid)

    def run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.look()

    def stop(self) -> None:
        """Ends it, with a last look."""
        self._ended.set()
        self.join()
        self.look()

    def look(self) -> None:
        """One look at all processes, and at what lies in the folders."""
        for name in os.listdir("/proc"):
            if name.isdigit() and name not in self._older and int(name) not in self._passed_over:
                with contextlib.suppress(OSError):  # it ended meanwhile
                    self._look_at(int(name))
        for folder in self.folders:
            self.leaks.update(in_tree(folder, self.forms, SMALL_BYTES))
        self.looked += 1

    def _look_at(self, pid: int) -> None:
        proc = Path(f"/proc/{pid}")
        for form in found_in((proc / "cmdline").read_bytes(), self.forms):
            self.leaks.add(Leak("arguments of a process", form))
        children = (proc / f"task/{pid}/children").read_text()
        if self.handed_over and self.receiver in (None, pid) and not children:
            return
        for form in found_in((proc / "environ").read_bytes(), self.forms):
            self.leaks.add(Leak("environment of a process", form))
