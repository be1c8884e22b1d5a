"""A copy as a user makes it between a folder of this host and a mounted share, flushed at its end.

The system's own cp copies a whole file; the mount decides on cache, requests and depth, and that is
what is measured. Every call into the mount has a deadline: it may hang.
"""

from __future__ import annotations

import contextlib
import shutil
import stat
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Iterator, Optional, Tuple

from probes.core.field_types import Folder, Seconds, Size, Text
from probes.core.records import OWN_COPIES, Details, Endpoint, Sample
from probes.core.stage import Running, Stage, Window, no_agent, requested_cache
from probes.files import free_space, page_cache, payload, served_file, source_file
from probes.files.created_folder import ANSWER_SECONDS, KNOWN_ERRORS, refusal, speaking_of, wait_for
from probes.files.folders import read_mount
from probes.files.served_file import check_name, new_name, source_name
from probes.programs import copy_program
from probes.programs.copy_program import CopyBroke, Program, start_copy
from probes.system.child import NoAnswer, call_until
from probes.system.platform import descriptor, os
from probes.watch import program_watch, thread_calls

STAGE = Stage(
    "native-copy",
    measures="the copy by the operating system, as cp makes it",
    explains=False,
    needs=("mount",),
    writes=True,
    varying=("size_bytes", "seconds", "command"),
)

SAMPLE_SECONDS = 0.1
CACHE_SECONDS = 30.0
"""Longest time to warm or empty a cache."""
CHECK_LEAST_SECONDS = 1.0
"""Time to read a push back where the copy itself took less; else as long as the copy."""
REMOVE_SECONDS = 2.0
BLOCK_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Setting:
    """The copy, and its folders."""

    copy: Text
    """One of OWN_COPIES; cached or not is about the sender."""
    folder: Folder
    target_folder: Folder
    """The mounted share, or a folder on it."""
    size_bytes: Size
    seconds: Seconds
    """Deadline of this one run, from the opening of its window."""
    seed: Text = ""
    """Seed of the payload, hex."""
    command: Tuple[Text, ...] = ()
    """The user's command in place of cp: its words, with {source} and {target} for the files."""


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Has the system make the copy once; samples are the bytes its program wrote, the last durable.

    peer: folder, the run's own in target_folder with its source file (own_folder.hold), and for
    a push path, the run's own nameless file in setting.folder. For a command path is a folder of
    the run there, as it needs names. Sources are cut to size_bytes: a program copies whole files.
    The window opens with the program and closes when the destination is durable. Errors: Refused
    for what the user has to mend in either folder; RuntimeError for a copy that broke, and where
    the mount did not answer in time.
    """
    if setting.copy not in OWN_COPIES or setting.size_bytes < 1:
        raise ValueError(f"no such copy: {setting.copy}, {setting.size_bytes} bytes")
    for each in (peer.folder, peer.path) if setting.command else (peer.folder,):
        check_name(os.path.basename(each))  # noqa: PTH119
    ring = payload.make_ring(bytes.fromhex(setting.seed))
    with speaking_of(setting.target_folder):
        mount = wait_for(setting.target_folder, lambda: read_mount(setting.target_folder))
        same = wait_for(setting.target_folder, lambda: _same_filesystem(setting))
    program = copy_program.find(same)
    if setting.command:
        program = copy_program.user_program(setting.command)
    remote = mount is None or mount.remote
    if setting.copy.startswith("pull"):
        details = yield from _pull(setting, peer, ring, program, remote)
    else:
        details = yield from _push(setting, peer, ring, program)
    return {
        **details,
        "program": program.name,
        "command": bool(setting.command),
        "mount": {name: getattr(mount, name, None) for name in ("filesystem", "source", "options")},
        "same_filesystem": same,
    }


def _pull(
    setting: Setting, peer: Endpoint, ring: memoryview, program: Program, remote: bool
) -> Running:
    path = os.path.join(peer.folder, source_name(peer.folder))  # noqa: PTH118 - any bytes
    cached = setting.copy.endswith(".cached")
    with speaking_of(setting.target_folder):
        fd = wait_for(
            setting.target_folder, lambda: _open_cut(path, setting.size_bytes, ring, True)
        )
    with descriptor(fd):
        with speaking_of(setting.target_folder):
            # As for a user's first copy this host's own cache of the mount has none of the file.
            cache_state = call_until(
                setting.target_folder,
                time.monotonic() + CACHE_SECONDS,
                lambda: _set_cache(fd, setting.size_bytes, cached and not remote),
            )
        window = Window()
        with _new_file(peer.path) if setting.command else _nameless(setting.folder) as sink:
            trace = yield from _copy(setting, window, program, path, sink, fd)
            intact, checked = served_file.intact_part(
                ring, sink.fd, setting.size_bytes, float("inf")
            )
    # Only the other system's agent can prove the state of its cache.
    return {
        **window.flush_details(setting.size_bytes),
        **trace,
        "cache": {
            **{"side": "server", "requested": requested_cache(setting.copy)},
            **({"proven": False, "cached_ratio_before": None} if remote else cache_state),
        },
        "hash_ok": intact,
        "checked_bytes": checked,
    }


def _push(setting: Setting, peer: Endpoint, ring: memoryview, program: Program) -> Running:
    named_path = os.path.join(peer.path, source_name(peer.path))  # noqa: PTH118 - any bytes
    source = named_path if setting.command else peer.path
    fd = _open_cut(source, setting.size_bytes, ring, bool(setting.command))

    def check(until: float) -> tuple[bool, int]:
        page_cache.evict(sink.fd)
        return served_file.intact_part(ring, sink.fd, setting.size_bytes, until)

    with _new_file(peer.folder) as sink:
        with descriptor(fd):
            cache_state = _set_cache(fd, setting.size_bytes, setting.copy.endswith(".cached"))
            window = Window()
            path = named_path if setting.command else f"/proc/self/fd/{fd}"
            trace = yield from _copy(setting, window, program, path, sink, fd)
        until = time.monotonic() + max(CHECK_LEAST_SECONDS, window.seconds)
        with speaking_of(setting.target_folder):
            intact, checked = call_until(sink.path, until + ANSWER_SECONDS, lambda: check(until))
    return {
        **window.flush_details(setting.size_bytes),
        **trace,
        "cache": {"side": "client", "requested": requested_cache(setting.copy), **cache_state},
        "hash_ok": intact,
        "checked_bytes": checked,
    }


class _Sink:
    """The destination of a copy: a file without a name, or one that the program makes."""

    def __init__(self, path: str, opened: Tuple[int, ...] = ()) -> None:
        self.path, self.opened = path, opened

    @property
    def fd(self) -> int:
        """The open file's descriptor; IndexError before there is one."""
        return self.opened[0]

    def flush(self, source: int) -> int:
        """Flushes it; returns its size. Errors: CopyBroke where it is missing, or is the source."""
        if not self.opened:
            # For a read-only descriptor the kernel sends no FLUSH (fs/smb/client/file.c).
            flags = os.O_RDWR | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)
            try:
                self.opened = (os.open(self.path, flags),)
            except (FileNotFoundError, IsADirectoryError):
                raise CopyBroke("it ended well, but made no file at {target}") from None
        status = os.fstat(self.fd)
        if status.st_nlink > 1 or os.path.samestat(status, os.fstat(source)):
            raise CopyBroke("the command linked the file and copied nothing")
        os.fsync(self.fd)
        return os.fstat(self.fd).st_size

    def remove(self) -> None:
        for fd in self.opened:
            os.close(fd)
        if os.path.isdir(self.path) and not os.path.islink(self.path):  # noqa: PTH112, PTH114
            shutil.rmtree(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # noqa: PTH108


@contextmanager
def _nameless(folder: str) -> Iterator[_Sink]:
    fd = source_file.open_new(folder)
    with descriptor(fd):
        yield _Sink(f"/proc/self/fd/{fd}", (fd,))


@contextmanager
def _new_file(folder: str) -> Iterator[_Sink]:
    """Names a new file in the run's folder; what cannot be removed is left to that's removal."""
    sink = _Sink(os.path.join(folder, new_name(folder)))  # noqa: PTH118 - any bytes
    try:
        yield sink
    finally:
        with contextlib.suppress(OSError, NoAnswer):
            call_until(sink.path, time.monotonic() + REMOVE_SECONDS, sink.remove)


def _copy(
    setting: Setting, window: Window, program: Program, path: str, sink: _Sink, source: int
) -> Running:
    """Runs the window: from the program's start to a durable destination of the right size.

    Returns program_watch.trace's details.
    """
    pushes = setting.copy.startswith("push")
    with _error_context(setting, window, program.name, sink.path):
        with start_copy(program, path, sink.path, (source, *sink.opened)) as copying:
            copying.ready()
            into = setting.target_folder if pushes else setting.folder
            free, _ = wait_for(setting.target_folder, lambda: free_space.space_of(into))
            room = free_space.Watch(into, free)
            yield Sample(0.0, 0)
            with program_watch.watch_threads(copying.processes, thread_calls.OTHER) as looks:
                window.opened = copying.begin()
                deadline = window.opened + setting.seconds
                for written in copying.progress(deadline, SAMPLE_SECONDS):
                    moved_bytes = min(setting.size_bytes, max(window.moved_bytes, written))
                    if room.due(moved_bytes - window.moved_bytes):
                        call_until("the free space", deadline, lambda: room.look_at(into))
                    window.moved_bytes = moved_bytes
                    yield Sample(time.monotonic() - window.opened, moved_bytes)
            window.acknowledged = time.monotonic()
            size_bytes = call_until("the flush", deadline, lambda: sink.flush(source))
            last = window.close(time.monotonic(), size_bytes)
        if size_bytes != setting.size_bytes:
            raise CopyBroke(f"the copy has {size_bytes} bytes")
        yield last
    return program_watch.trace(looks, window, pushes)


@contextmanager
def _error_context(setting: Setting, window: Window, name: str, destination: str) -> Iterator[None]:
    """Raises errors as one line: where a copy broke, and after how many bytes."""
    try:
        yield
    except (CopyBroke, NoAnswer, OSError, subprocess.SubprocessError) as caught:
        # A SubprocessError's text contains the command, which may hold a secret.
        mute = isinstance(caught, subprocess.SubprocessError)
        error = CopyBroke("the system did not start it") if mute else caught
        code = error.errno if isinstance(error, OSError) else _errno_in(str(error))
        if setting.command and isinstance(error, CopyBroke):
            code = None
        text = f"{setting.copy} by {name} failed "
        text += f"after {window.moved_bytes} of {setting.size_bytes} bytes: {error}"
        if code is None:
            seconds = f" ({setting.seconds:.1f} s)" if "within its time" in text else ""
            raise RuntimeError(f"{setting.target_folder}: {text}{seconds}") from None
        at_destination = isinstance(error, OSError) or destination in str(error)
        pushes = setting.copy.startswith("push")
        folder = setting.target_folder if at_destination == pushes else setting.folder
        raise refusal(folder, OSError(code, os.strerror(code))) from None


def _errno_in(words: str) -> Optional[int]:
    """Returns the error number whose C text a program's message ends with."""
    return next((code for code in KNOWN_ERRORS if words.endswith(os.strerror(code))), None)


def _same_filesystem(setting: Setting) -> bool:
    each = (setting.folder, setting.target_folder)
    return len({os.stat(folder).st_dev for folder in each}) == 1  # noqa: PTH116


def _open_cut(path: str, size_bytes: int, ring: memoryview, has_name: bool) -> int:
    """Opens a file of this run for reading, cut to exactly size_bytes.

    has_name: it lies in the run's folder; else it is nameless, so that it is nobody else's. The
    part cut off has to be the run's payload, since others may have put a file under that name.
    Errors: ValueError for another file, and one that is shorter.
    """
    flags = os.O_NONBLOCK | (getattr(os, "O_NOFOLLOW", 0) if has_name else 0)
    fd = os.open(path, os.O_RDONLY | flags)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > has_name:
            raise ValueError(f"{path} is not a file of this run")
        if status.st_size < size_bytes:
            raise ValueError(f"{path} has {status.st_size} bytes, {size_bytes} are to be copied")
        if status.st_size > size_bytes:
            with descriptor(os.open(path, os.O_RDWR | flags)) as writing:
                end = max(size_bytes, status.st_size - BLOCK_BYTES)
                tail = memoryview(os.pread(writing, BLOCK_BYTES, end))
                same = os.path.samestat(status, os.fstat(writing))
                if not (same and payload.matches(ring, end, tail)):
                    raise ValueError(f"{path} is not a file of this run")
                os.ftruncate(writing, size_bytes)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _set_cache(fd: int, size_bytes: int, is_cached: bool) -> Details:
    page_cache.set_cached(fd, size_bytes, is_cached)
    return page_cache.describe_cache(fd, size_bytes, is_cached)
