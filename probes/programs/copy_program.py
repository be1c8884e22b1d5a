"""Start and progress of the system's own program that copies a file."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Tuple

from probes.core.stage import Unavailable
from probes.system import tools
from probes.system.child import HANGS, end_with_parent, is_held
from probes.system.platform import os
from probes.system.reader import reader
from probes.system.waiting import select, signal

START_SECONDS = 10.0
KILL_SECONDS = 1.0
LONGEST_WORDS_BYTES = 4096
LONGEST_COMMAND = 4096
MOST_PROCESSES = 64
SOURCE, TARGET = "{source}", "{target}"
"""Placeholders in a user's command: the file that is copied, and the new one."""
OURS = "BOTTLENECK_"
"""Beginning of our own variables, which the program does not get: one may hold a password."""
_OPEN = re.compile(r"-[A-Za-z]{1,4}|--[a-z-]+|([io]f=)?\{(source|target)\}")
"""Words of a user's command that are shown; any other may hold a secret."""
_BETWEEN = re.compile(r"[\s=:@,;'\"]+")
_BRACES = re.compile("|".join(map(re.escape, (SOURCE, TARGET))))
_READY = b"\n"
UNSTEADY = "source file is being updated"
"""Part of rclone's message where a mount sets a file's time anew when it has written it back."""
UNSTEADY_REMEDY = "; use 'rclone copyto --local-no-check-updated {source} {target}'"

# Both wait at a gate, so that the start of an interpreter is no part of the copy.
_GATED_PROGRAM = 'echo; read -r go; exec "$@" </dev/null >/dev/null'
_GATED_PYTHON = """
import shutil, sys
print(flush=True)
sys.stdin.readline()
try:
    shutil.copyfile(sys.argv[1], sys.argv[2])
except OSError as error:
    sys.exit(f"{error.filename2 or error.filename}: {error.strerror}")
"""


@dataclass(frozen=True)
class Program:
    """Program that copies, with its name in the report."""

    name: str
    arguments: Tuple[str, ...]
    """Command that writes a line, then waits for one on stdin; source and destination follow."""
    braced: bool = False
    """Whether it is a user's command: with {source} and {target}, and it may start others."""
    hidden: Tuple[str, ...] = ()
    """Words that are masked in its error messages."""

    def words(self, source: str, destination: str) -> List[str]:
        """Returns the command line of one copy."""
        if not self.braced:
            return [*self.arguments, source, destination]
        ends = {SOURCE: source, TARGET: destination}
        return [_BRACES.sub(lambda match: ends[match[0]], each) for each in self.arguments]


class CopyBroke(Exception):
    """The program failed, or did not end in time; the text is its own last line, or ours."""


def find(same_filesystem: bool) -> Program:
    """Returns cp where the system has one, else Python's shutil.copyfile.

    same_filesystem: both folders lie on it. GNU's cp would then only share the blocks or have them
    copied by the server, and nothing would be measured: --reflink=never prevents it (cp(1)).
    """
    path = tools.find("cp")
    if path is None:
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        arguments = (sys.executable, "-I", "-c", _GATED_PYTHON)
        return Program(f"shutil.copyfile of Python {python}", arguments)
    text = tools.program_output((path, "--version"), tools.ANSWER_SECONDS, complaints=True)
    maker, version = parse_maker(text), tools.parse_version(text) or ""
    options = ["--reflink=never"] if same_filesystem and maker.endswith("coreutils") else []
    gate = ("/bin/sh", "-c", _GATED_PROGRAM, "cp", path, *options)
    return Program(" ".join(filter(None, ("cp", *options, f"({maker}) {version}"))), gate)


def user_program(words: Sequence[str]) -> Program:
    """Returns the program of a user's command. Errors: ValueError, it cannot be used."""
    text = " ".join(words)
    if "\0" in text or len(text) > LONGEST_COMMAND:
        raise ValueError(f"the command is longer than {LONGEST_COMMAND} characters, or has a NUL")
    if SOURCE not in text or TARGET not in text:
        raise ValueError(f"the command lacks {SOURCE} or {TARGET}")
    gate = ("/bin/sh", "-c", _GATED_PROGRAM, "copy", *words)
    return Program(public_words(words), gate, braced=True, hidden=tuple(words[1:]))


def public_words(words: Sequence[str]) -> str:
    """Returns a command without possible secrets: its program's name, flags and braces."""
    rest = (each if _OPEN.fullmatch(each) else "..." for each in words[1:])
    program = os.path.basename(words[0].partition("=")[0])  # noqa: PTH119
    return " ".join((program, *rest))


def _mask(words: Sequence[str], text: str) -> str:
    """Returns the text with dots for words of a command, and parts of them, that may be secret."""
    parts = {part for each in words for part in (each, *_BETWEEN.split(each))}
    hidden = sorted((e for e in parts if len(e) > 2 and not _OPEN.fullmatch(e)), key=len)
    return re.sub("|".join(map(re.escape, reversed(hidden))), "...", text) if hidden else text


def parse_maker(text: str) -> str:
    """Returns the maker of a cp by its --version: "cp (GNU coreutils) 9.1" has GNU coreutils."""
    if "BusyBox" in text:
        return "BusyBox"
    name, opening, behind = text.partition("\n")[0].partition("(")
    if name.strip() in ("cp", "cp.coreutils") and opening and ")" in behind:
        return behind.partition(")")[0]
    return "uutils coreutils" if "uutils" in text else "unknown"


@contextmanager
def start_copy(
    program: Program, source: str, destination: str, descriptors: Tuple[int, ...]
) -> Iterator[Copying]:
    """Starts one copy up to its gate; kills it and what it started at the end of the block.

    descriptors: inherited by the program, which may name them as /proc/self/fd/N.
    """
    parent = os.getpid()

    def enter() -> None:
        if program.braced:
            os.setpgid(0, 0)
        end_with_parent(parent, signal.SIGKILL)

    environment = {key: each for key, each in os.environ.items() if not key.startswith(OURS)}
    process = subprocess.Popen(
        program.words(source, destination),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=descriptors,
        # Its error message is parsed, in the C locale's language.
        env={**environment, "LC_ALL": "C"},
        preexec_fn=enter,
    )
    copying = Copying(program, process)
    try:
        yield copying
    finally:
        copying.kill()
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            with contextlib.suppress(OSError):
                stream.close()
        # A process that hangs in the kernel ends when the mount answers.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_SECONDS)


class Copying:
    def __init__(self, program: Program, process: subprocess.Popen[bytes]) -> None:
        self._name, self._braced, self._process = program.name, program.braced, process
        self._hidden = program.hidden
        self._began_bytes, self._words = 0, b""

    def kill(self) -> None:
        """Kills it, and with a user's command the processes that it started."""
        end = os.killpg if self._braced else os.kill
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                end(self._process.pid, signal.SIGKILL)

    def ready(self) -> None:
        """Waits until the program is at its gate. Errors: CopyBroke."""
        assert self._process.stdout is not None
        stream = self._process.stdout
        if not select.select([stream], [], [], START_SECONDS)[0] or stream.read(1) != _READY:
            raise CopyBroke(f"{self._name} did not start")

    def begin(self) -> float:
        """Opens the gate; returns the moment by time.monotonic()."""
        self._began_bytes = self._written_bytes() or 0
        assert self._process.stdin is not None
        now = time.monotonic()
        self._process.stdin.write(_READY)
        self._process.stdin.flush()
        return now

    def progress(self, deadline: float, every_seconds: float) -> Iterator[int]:
        """Yields the bytes written so far, at intervals, until the program has ended well.

        They are the kernel's counts of the process, as a look at the file would be another call
        into the mount. Nothing where the system has none. Errors: CopyBroke.
        """
        assert self._process.stderr is not None
        stream, heard = self._process.stderr.fileno(), True
        while True:
            rest = deadline - time.monotonic()
            if rest <= 0:
                raise CopyBroke(self._end())
            wait = min(rest, every_seconds)
            if heard and select.select([stream], [], [], wait)[0]:
                words = os.read(stream, LONGEST_WORDS_BYTES)
                self._words = (self._words + words)[-LONGEST_WORDS_BYTES:]
                heard = bool(words)
                continue
            if not heard:  # it ends now, or runs on without stderr
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(wait)
            code = self._process.poll()
            if code is not None:
                break  # processes that it started may still have its stderr
            written = self._written_bytes()
            if written is not None:
                yield written - self._began_bytes
        if self._braced:
            with contextlib.suppress(OSError):  # at once: nobody else can have its number yet
                os.killpg(self._process.pid, signal.SIGKILL)
        if code:
            ended, line = f"it ended with {code}", self._last_line()
            message = f"{ended}: {line or 'no message'}" if self._braced else line or ended
            raise CopyBroke(message + (UNSTEADY_REMEDY if UNSTEADY in line else ""))

    def _end(self) -> str:
        """Kills a program that did not end in time; returns the error's text."""
        self.kill()
        until = time.monotonic() + KILL_SECONDS
        while self._process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        if self._process.poll() is None and is_held(str(self._process.pid)):
            return f"no end within its time; {HANGS}"
        return "no end within its time"

    def _last_line(self) -> str:
        lines: List[str] = self._words.decode("utf-8", "replace").strip().splitlines()
        line = _mask(self._hidden, lines[-1].strip()) if lines else ""
        return "".join(each if each.isprintable() else "?" for each in line)

    def processes(self) -> List[int]:
        """Returns the program's pid, and with a user's command those of its children."""
        return _family(self._process.pid) if self._braced else [self._process.pid]

    def _written_bytes(self) -> Optional[int]:
        counts = []
        for pid in self.processes():
            with contextlib.suppress(OSError, Unavailable):
                io = reader().process_io(pid)
                counts.append(io.written_bytes if io else None)
        # One of several may pass on another's data: their sum would count it twice.
        return max((each for each in counts if each is not None), default=None)


def _family(leader: int) -> List[int]:
    """Returns a process and, where the kernel lists them, its descendants (proc(5), children)."""
    pids = [leader]
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            text = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
            pids += [int(each) for each in text.split()][: MOST_PROCESSES - len(pids)]
    return pids
