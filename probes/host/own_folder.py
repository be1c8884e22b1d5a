"""A folder with a name that a run creates on this host, and that is gone however the run ends.

In order, we remove it. Killed, a guardian does. Killed with the guardian, as at a container's end,
the next run does, from the journal.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import Iterator, Optional

from probes.host import journal, removal
from probes.host.removal import Facts

NAME = "bottleneck-guardian"
END_SECONDS = 1.0
"""How long one that has nothing left to do may take to end."""
KEPT_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")
"""What a Python may need to start; a password in our environment is none of it."""

_STARTER = "import sys; exec(sys.stdin.buffer.read(int(sys.argv[2])))" + (
    "; guard(int(sys.argv[3]), sys.stdin.buffer)"
)


class Guardian:
    """One at work: in a session of its own, with the parent folder and a pipe from us."""

    def __init__(self, parent: int, facts: Facts, path: str) -> None:
        """parent: descriptor of the folder that the run's is made in; path: for people who look.

        Returns before it has started: what it is told meanwhile waits in the pipe.
        """
        program = source()
        words = [sys.executable, "-I", "-S", "-c", _STARTER, NAME]
        self._process = subprocess.Popen(
            [*words, str(len(program)), str(parent), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={key: os.environ[key] for key in KEPT_ENVIRONMENT if key in os.environ},
            pass_fds=(parent,),
            start_new_session=True,
        )
        self._write(program)
        self.tell(facts)

    def tell(self, facts: Facts) -> None:
        """What it has to know in addition."""
        self._write(json.dumps(facts).encode() + b"\n")

    def end(self, gone: bool) -> None:
        """Takes leave of it; where the folder is not gone, it goes on for a while."""
        if gone:
            self.tell({"done": True})
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody killed it: we removed it ourselves
            self._process.stdin.close()
        if gone:
            # It may hang in a mount that does not answer: it ends by itself when that does.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # somebody killed it: we remove it ourselves
            self._process.stdin.write(data)
            self._process.stdin.flush()


@functools.cache
def source() -> bytes:
    """removal.py, also where it was loaded from memory."""
    spec = removal.__spec__
    text = spec.loader.get_source(removal.__name__) if spec and spec.loader else None  # type: ignore[attr-defined]
    if text is None:
        raise RuntimeError("this program's own source cannot be read")
    return str(text).encode()


PAUSE_SECONDS = 0.02


class OwnFolder:
    """One that is about to be created, or there, or gone again."""

    def __init__(self, kind: str, folder: str, name: str) -> None:
        """kind: RUN, TREE; folder: an existing one. Errors: OSError of that."""
        self._facts: removal.Facts = {"kind": kind, "name": name}
        place = os.path.realpath(folder)
        self._parent = removal.opened(place)
        self._pin: Optional[int] = None
        self._there = False
        told = os.fstat(self._parent)
        # That others' leftovers cannot be removed is no reason to measure nothing.
        with suppress(OSError):
            journal.sweep()
        self._entry = journal.enter(
            kind, place, name, folder_dev=told.st_dev, folder_ino=told.st_ino
        )
        try:
            self._guardian = Guardian(self._parent, self._facts, f"{place}/{name}")
        except BaseException:
            self._entry.close(gone=True)
            os.close(self._parent)
            raise

    def create(self) -> None:
        """Makes it, closed to others. Errors: OSError, of what is no folder of ours then."""
        # From here on, as nobody knows what a call did that never comes back.
        self._there = True
        try:
            os.mkdir(self._facts["name"], 0o700, dir_fd=self._parent)
        except OSError:
            self._there = False
            raise
        self.adopt()

    def adopt(self) -> None:
        """Takes an existing one as made for this run: by somebody else, as a file server."""
        self._there = True
        self._pin = removal.opened(self._facts["name"], self._parent)
        told = os.fstat(self._pin)
        self._tell({"dev": told.st_dev, "ino": told.st_ino})

    def new_file(self, name: str) -> int:
        """Descriptor of a new file in it, to read and write. Errors: OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return os.open(name, flags, 0o600, dir_fd=self.pin)

    @property
    def pin(self) -> int:
        """Descriptor of it once it is there, whatever has its name by now."""
        assert self._pin is not None
        return self._pin

    def empty(self) -> None:
        """Removes what lies in it, whatever has its name by now. Errors: OSError."""
        removal.empty(self.pin, self._facts["kind"], self._facts["dev"])

    def ends_first(self, leader: int) -> None:
        """Names a process group, by its leader, that has to end before the folder can go."""
        started = removal.started_ticks(leader)
        if started is not None:
            space = removal.pid_space()
            self._tell({"leader": leader, "started": started, "pid_space": space})

    def remove(self, seconds: float = 0.0) -> None:
        """Removes it; tries again for so long. Errors: OSError, of what stays."""
        until = time.monotonic() + seconds
        while self._there:
            try:
                if removal.remove(self._parent, self._facts) == removal.OTHER:
                    raise FileExistsError(errno.EEXIST, "something else has its name")
                self._there = False
            except OSError:
                if time.monotonic() >= until:
                    raise
                time.sleep(PAUSE_SECONDS)

    def gone(self) -> None:
        """Says that somebody else removes it, or that it never was."""
        self._there = False

    def close(self) -> None:
        """Leaves what is still there to the guardian."""
        self._guardian.end(gone=not self._there)
        self._entry.close(gone=not self._there)
        # A removal that hangs in a mount still has them: their numbers may be nothing else's.
        for fd in (self._pin, self._parent):
            if fd is not None and not self._there:
                os.close(fd)

    def _tell(self, facts: removal.Facts) -> None:
        self._facts.update(facts)
        self._entry.write(facts)
        self._guardian.tell(facts)


@contextmanager
def own_folder(kind: str, folder: str, name: str) -> Iterator[OwnFolder]:
    """One that does not outlive the block, or us."""
    made = OwnFolder(kind, folder, name)
    try:
        yield made
    finally:
        made.close()
