"""A copy that this host starts with Samba's smbclient.

It does for the server's agent what smb_copy does for the client, with the same file and window:
from the first byte requested or sent until all is durable here; login, cache and check are
outside. Runs on Python 3.9 with the standard library only.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, Tuple

from probes.core.field_types import FolderOrNone, Seconds, Size, Text
from probes.core.records import OWN_COPIES, Details, Endpoint, Sample
from probes.core.stage import Running, Window, requested_cache
from probes.files import page_cache, served_file, source_file
from probes.programs import smbclient
from probes.programs.smbclient import Client, StatusError
from probes.system.platform import descriptor, os
from probes.watch import program_watch, thread_calls

SAMPLE_SECONDS = 0.1
CHECK_SECONDS = 10.0
WRITE_BACK_BYTES = 8 << 20


@dataclass(frozen=True)
class Setting:
    """The copy; the endpoint has the folder of the file on the share."""

    copy: Text
    """One of OWN_COPIES from the view of this host; cached or not is about the sender."""
    dialect: Text
    size_bytes: Size
    """Size of the whole file: smbclient cannot copy a part of one."""
    seconds: Seconds
    """Deadline of this one copy, from the opening of its window."""
    name: Text
    """Name of the file on the share; a push creates it."""
    folder: FolderOrNone = "."
    """This host's folder for what is pulled."""
    seed: Text = ""
    """Seed of the payload, hex."""
    signing: Optional[Text] = None
    """Algorithm that another session with the share negotiated."""
    encryption: Optional[Text] = None


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Makes the copy once and yields its samples; returns the details.

    peer: host, port, share, access, folder (the run's folder on the share) and, for a push, path
    (this host's file of exactly size_bytes). A push ends with the last acknowledged byte, since
    smbclient flushes nothing: its details say flushed false, and the share's host flushes the file
    and checks its content. Raises Refused, Unavailable, ValueError for a setting that
    makes no sense, TimeoutError, ConnectionError in mid-copy.
    """
    if setting.copy not in OWN_COPIES or setting.size_bytes < 1:
        raise ValueError(f"no such copy: {setting.copy}, {setting.size_bytes} bytes")
    program = smbclient.version()
    options, signing, encryption = smbclient.algorithms(
        setting.dialect, setting.signing, setting.encryption, program
    )
    copy = _pull if setting.copy.startswith("pull") else _push
    details = yield from copy(setting, peer, tuple(options))
    return {
        **details,
        "program": f"smbclient {program}" if program else "smbclient",
        "dialect": setting.dialect,
        "signing": signing,
        "encryption": encryption,
        # smbclient does not report these.
        "request_bytes": None,
        "depth": None,
        "in_flight_bytes": None,
        "credit_stalls": None,
        "pending_replies": None,
    }


def _push(setting: Setting, peer: Endpoint, options: Tuple[str, ...]) -> Running:
    with descriptor(os.open(peer.path, os.O_RDONLY)) as fd:
        size = os.fstat(fd).st_size
        if size != setting.size_bytes:
            raise ValueError(f"this host's file has {size} bytes, {setting.size_bytes} are to go")
        cached = requested_cache(setting.copy) == "cached"
        page_cache.set_cached(fd, setting.size_bytes, cached)
        with smbclient.connect(peer, setting.dialect, options, (fd,)) as client:
            cache_state = page_cache.describe_cache(fd, setting.size_bytes, cached)
            cache = {"side": "server", "requested": requested_cache(setting.copy), **cache_state}
            window = _Window(setting, peer, client)
            remote = _remote(setting, peer)
            with window.error_context():
                command = f"put {_local(fd)} {smbclient.quoted_name(remote)}"
                yield from window.run(command, lambda: _sent_bytes(client.pid, fd))
                # smbclient's report closes the window; the size on the share is checked after it.
                yield window.close(time.monotonic(), setting.size_bytes)
                arrived = client.size_bytes(remote, CHECK_SECONDS)
            if arrived not in (None, setting.size_bytes):
                raise ConnectionError(
                    f"{window.where}: {arrived} of {setting.size_bytes} bytes arrived there"
                )
        return {
            **window.flush_details(setting.size_bytes),
            **window.trace(),
            "flushed": False,
            "flush_seconds": None,
            "cache": cache,
        }


def _pull(setting: Setting, peer: Endpoint, options: Tuple[str, ...]) -> Running:
    fd = source_file.open_new(setting.folder)
    with descriptor(fd):
        with smbclient.connect(peer, setting.dialect, options, (fd,)) as client:
            window = _Window(setting, peer, client)
            remote = _remote(setting, peer)
            with window.error_context():
                command = f"get {smbclient.quoted_name(remote)} {_local(fd)}"
                yield from window.run(command, _Arriving(fd).bytes)
                os.fsync(fd)
                if os.fstat(fd).st_size != setting.size_bytes:
                    raise ConnectionError(
                        f"{window.where}: {os.fstat(fd).st_size} of {setting.size_bytes} "
                        "bytes arrived here; check the free space"
                    )
                yield window.close(time.monotonic(), setting.size_bytes)
        intact = served_file.holds_payload(fd, setting.size_bytes, bytes.fromhex(setting.seed))
        # Only the sender's agent can prove the state of its cache.
        cache = {"side": "client", "proven": False, "cached_ratio_before": None}
        cache["requested"] = requested_cache(setting.copy)
        return {
            **window.flush_details(setting.size_bytes),
            **window.trace(),
            "flushed": True,
            "cache": cache,
            "hash_ok": intact,
        }


class _Arriving:
    """The arrived size of a pull, whose write-back is started meanwhile, as in our own copies."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._written_back = 0

    def bytes(self) -> int:
        """Returns the size so far."""
        size = os.fstat(self._fd).st_size
        if size - self._written_back >= WRITE_BACK_BYTES:
            self._written_back = size
            served_file.start_write_back(self._fd)
        return size


class _Window(Window):
    def __init__(self, setting: Setting, peer: Endpoint, client: Client) -> None:
        super().__init__()
        self._setting, self._client = setting, client
        self._pushes = setting.copy.startswith("push")
        self.where = smbclient.place(peer)

    def run(self, command: str, arrived: Callable[[], int]) -> Iterator[Sample]:
        """Yields samples from the opening until smbclient reports the end."""
        yield Sample(0.0, 0)
        verb = thread_calls.READ if self._pushes else thread_calls.WRITE
        with program_watch.watch_threads(lambda: (self._client.pid,), verb) as self._looks:
            self.opened = time.monotonic()
            deadline = self.opened + self._setting.seconds
            self._client.send(command)
            while self._client.poll(SAMPLE_SECONDS) is None:
                now = time.monotonic()
                if now >= deadline:
                    raise TimeoutError(f"did not end within {self._setting.seconds:.1f} s")
                self.moved_bytes = max(self.moved_bytes, min(arrived(), self._setting.size_bytes))
                yield Sample(now - self.opened, self.moved_bytes)
            self.acknowledged = time.monotonic()

    def trace(self) -> Details:
        """Returns the time by activity, once the window is closed."""
        return program_watch.trace(self._looks, self, self._pushes)

    @contextmanager
    def error_context(self) -> Iterator[None]:
        """Raises errors as one line: where a copy broke, and after how many bytes."""
        setting = self._setting
        try:
            yield
        except (StatusError, ConnectionError, TimeoutError) as error:
            text = f"{setting.copy} failed after {self.moved_bytes} of {setting.size_bytes} bytes"
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"{self.where}: {text}: {error}") from None
            if str(error).startswith(self.where):
                raise
            raise smbclient.refusal(self.where, text, str(error), setting.dialect) from None


def _remote(setting: Setting, peer: Endpoint) -> str:
    folder = peer.folder.replace("/", "\\").strip("\\")
    return f"{folder}\\{setting.name}" if folder else setting.name


def _local(fd: int) -> str:
    """Returns a path by which a program that inherits the descriptor opens its file."""
    return f"/proc/self/fd/{fd}"


def _sent_bytes(pid: int, fd: int) -> int:
    """Returns the least bytes of its file that were acknowledged to a process; 0: unknown.

    This is the position it has read to, less what may be in flight. Source: proc(5),
    /proc/PID/fdinfo.
    """
    try:
        opened = [name for name in os.listdir(f"/proc/{pid}/fd") if _is_same(pid, name, fd)]
        places = [_position(pid, name) for name in opened]
    except OSError:
        return 0
    return max(0, max(places, default=0) - smbclient.IN_FLIGHT_BYTES)


def _is_same(pid: int, name: str, fd: int) -> bool:
    try:
        theirs, ours = os.stat(f"/proc/{pid}/fd/{name}"), os.fstat(fd)  # noqa: PTH116
    except OSError:
        return False  # closed meanwhile
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)


def _position(pid: int, name: str) -> int:
    with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("pos:"):
                return int(line.split()[1])
    return 0
