"""A login on a share as the stages use it, independent of the library."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files.removal import MAGIC
from probes.smb import kerberos, status
from probes.smb.facts import Interface, SessionFacts
from probes.smb.frames import FRAME_SPARE_BYTES, DeadlinePassed, Wire, connect
from probes.smb.pipe import (
    DELETE,
    DELETE_ON_CLOSE,
    EXISTING,
    FILE,
    FOLDER,
    GENERIC_READ,
    GENERIC_WRITE,
    LIST_AND_DELETE,
    NEW,
    PAST_CACHE,
    READ_ALONE,
    SHARE_ALL,
    SHARE_BUT_DELETE,
    Pipe,
)

STEP_SECONDS = 10.0
"""Usual limit of each step before and after a copy: negotiate, login, open, close."""
NO_ANSWER = "no answer in"
"""Words of the error of a step that a server did not answer in time."""
GUEST = "guest"
"""Name of a user without one."""
ABANDON_SECONDS = 1.0
"""Time to empty files after work that failed."""
SECURITIES = ("plain", "signed", "encrypted")
"""plain: neither signed nor encrypted; signed, encrypted: every message, as we require it."""
UNENCRYPTED = "unencrypted"
"""Signed where the server requires that, and never encrypted."""


class DialectMissing(Unavailable):
    """The server does not support the dialect; no login was tried yet."""


def security_of(signing: str, encryption: str) -> str:
    """Returns open_session()'s security for "on", "off" or "" of both; "": the server's choice.

    Encryption takes the place of signing (MS-SMB2 3.1.4.1), so that signing off is plain.
    """
    if encryption == "on":
        return "encrypted"
    if signing:
        return "signed" if signing == "on" else "plain"
    return UNENCRYPTED if encryption else ""


@dataclass(frozen=True)
class Handle:
    """An open file or folder on the share."""

    path: str
    id: bytes
    size_bytes: int
    """Size when it was opened."""


@dataclass(frozen=True)
class Space:
    """Room on the share's file system; 0 of 0: the server does not tell."""

    free_bytes: int
    """Free to this user."""
    total_bytes: int


class Session(ABC):
    """A tree connection. Every method raises Refused; pipe() raises what its body raises."""

    _library: str
    _control_frame_bytes: int
    """Longest reply other than to a READ."""
    _plain_errors: tuple[type[Exception], ...]
    """The library's errors for a valid answer of the server."""

    def __init__(self, peer: Endpoint, security: str) -> None:
        self._peer, self._security = peer, security
        self._where = peer.host
        self._tree: Any = None
        self._handles: list[Handle] = []
        self._created: set[bytes] = set()
        """Ids of those that are emptied before they are closed."""
        self._cut = False
        self.step_seconds = peer.step_seconds or STEP_SECONDS
        """Absolute limit of each step."""
        self.guest = False
        """Whether the server logged this user in as a guest."""
        began = time.monotonic()
        self._sock = connect(peer)
        self._connect_seconds = time.monotonic() - began
        self._wire = Wire(self._sock, self._control_frame_bytes, peer.host)

    @property
    @abstractmethod
    def facts(self) -> SessionFacts:
        """Negotiated parameters and the server's facts."""

    @abstractmethod
    def negotiate(self, dialect: str | None, preferred: tuple[str, ...]) -> None:
        """Negotiates dialect and algorithms.

        Raises DialectMissing where the server does not support the dialect, Unavailable where it
        lacks what the security needs.
        """

    @abstractmethod
    def log_in(self) -> None:
        """Logs in, in one attempt, and connects the tree, as the server and `security` require."""

    @abstractmethod
    def space(self, handle: Handle) -> Space:
        """Returns the room on the file system of an open file or folder."""

    @abstractmethod
    def interfaces(self) -> tuple[Interface, ...]:
        """Returns the server's network interfaces; none where it does not report them."""

    def start(self, dialect: str | None, preferred: tuple[str, ...]) -> Self:
        """Negotiates and logs in; disconnects where that fails, see open_session."""
        logger = logging.getLogger(self._library)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        # Errors come as exceptions.
        logger.propagate = False
        try:
            self.negotiate(dialect, preferred)
            self.log_in()
        except BaseException:
            self.disconnect()
            raise
        return self

    def create_folder(self, path: str) -> Handle:
        """Creates a folder that cannot be renamed over SMB while open; closing deletes it."""
        return self._open_path(
            path, LIST_AND_DELETE, NEW, FOLDER | DELETE_ON_CLOSE, sharing=SHARE_BUT_DELETE
        )

    def open_folder(self, path: str) -> Handle:
        """Opens an existing folder for its attributes."""
        return self._open_path(path, READ_ALONE, EXISTING, FOLDER, path or "the share")

    def remove_folder(self, path: str, sharing: int = SHARE_ALL) -> None:
        """Deletes a folder that this program created, if it is empty."""
        options = FOLDER | DELETE_ON_CLOSE
        self.close(self._open_path(path, LIST_AND_DELETE, EXISTING, options, sharing=sharing))

    def create_file(self, path: str) -> Handle:
        """Creates a file to read and write, shared; closing its last handle deletes it."""
        access = GENERIC_READ | GENERIC_WRITE | DELETE
        file = self._open_path(path, access, NEW, FILE | DELETE_ON_CLOSE)
        self._created.add(file.id)
        return file

    def open_file(self, path: str, write: bool) -> Handle:
        """Opens an existing file; write: only one that this run created."""
        return self._open_path(path, GENERIC_READ | (GENERIC_WRITE if write else 0), EXISTING, FILE)

    def open_past_cache(self, path: str) -> Handle:
        """Opens an existing file for reading, without the server's cache, if it allows that."""
        return self._open_path(path, READ_ALONE, EXISTING, FILE | PAST_CACHE)

    def remove_file(self, path: str, sharing: int = SHARE_ALL) -> None:
        """Deletes a file that a run created, emptied first if it holds a run's payload."""
        access, options = GENERIC_READ | GENERIC_WRITE | DELETE, FILE | DELETE_ON_CLOSE
        try:
            file = self._open_path(path, access, EXISTING, options, sharing=sharing)
            if file.size_bytes >= len(MAGIC) and self.has_mark(file, MAGIC):
                self._created.add(file.id)
        except Refused as refused:
            if refused.kind != "permission":
                raise
            file = self._open_path(path, DELETE, EXISTING, options, sharing=sharing)
        self.close(file)

    def close(self, handle: Handle) -> None:
        """Closes a handle; a created file is emptied first, so that no recycle bin keeps a byte."""
        self._handles.remove(handle)
        if handle.id in self._created:
            self._created.discard(handle.id)
            with self._step(f"empty {handle.path}"), self.pipe(handle) as pipe:
                pipe.empty(0, handle.id)
                with suppress(status.ServerSaid):  # as on a write-once share
                    pipe.wait()
        with self._step(f"close {handle.path}"):
            self._close(handle)

    def names(self, folder: str) -> tuple[str, ...]:
        with self._step(f"list {folder}"):
            return tuple(name for name in self._names(folder) if name not in (".", ".."))

    def largest_file(self, folder: str) -> tuple[int, str]:
        """Returns bytes and path of the largest file that a brief search below a folder finds.

        (0, ""): there is none, or the dialect's sessions do not support it.
        """
        return 0, ""

    def room(self, folder: str) -> Space:
        """Returns the room on the file system of an existing folder; changes nothing."""
        handle = self.open_folder(folder)
        space = self.space(handle)
        self.close(handle)
        return space

    def may_write(self) -> bool | None:
        """Whether the share itself, apart from its folders, is writable by this user, or None."""
        return None

    def write_mark(self, handle: Handle, mark: bytes) -> bool:
        """Writes the first bytes of a file that this session created; False: the disk is full."""
        with self._step(f"write {handle.path}"), self.pipe(handle) as pipe:
            pipe.write(0, memoryview(mark))
            try:
                pipe.wait()
            except status.ServerSaid as error:
                if error.status not in status.NO_ROOM:
                    raise
                return False
        return True

    def has_mark(self, handle: Handle, mark: bytes) -> bool:
        """Whether an open file, independent of its name, begins with these bytes."""
        with self._step(f"read {handle.path}"), self.pipe(handle) as pipe:
            return pipe.begins_with(mark)

    @contextmanager
    def pipe(self, handle: Handle) -> Iterator[Pipe]:
        """Opens the data path on this session; the library pauses until it is closed.

        Where the body fails the connection is cut: the server then closes and deletes everything.
        """
        wire, pipe = self._wire, self._take_over(handle)
        pipe.created |= self._created
        wire.frame_limit_bytes = pipe.link.max_read_bytes + FRAME_SPARE_BYTES
        wire.deadline = time.monotonic() + self.step_seconds
        try:
            yield pipe
        except BaseException:
            # Replies to the requests in flight would confuse the library.
            self._cut = True
            pipe.abandon(ABANDON_SECONDS)
            raise
        finally:
            wire.frame_limit_bytes, wire.deadline = self._control_frame_bytes, None
            wire.patient, wire.times = False, None
            self._give_back(pipe.link)

    def disconnect(self) -> None:
        """Closes what is open, logs off and disconnects; never raises."""
        if self._usable():
            # Where the connection is broken the server closes everything itself.
            with suppress(Refused):
                while self._handles:
                    self.close(self._handles[-1])
                with self._step("log off"):
                    self._log_off()
        self._hang_up()

    def _open_path(
        self,
        path: str,
        access: int,
        disposition: int,
        options: int,
        name: str = "",
        sharing: int = SHARE_ALL,
    ) -> Handle:
        with self._step(f"{'create' if disposition == NEW else 'open'} {name or path}"):
            handle = self._create(path, access, disposition, options, sharing)
        self._handles.append(handle)
        return handle

    @contextmanager
    def _step(self, what: str, quiet: bool = False) -> Iterator[None]:
        """Bounds one step with the library; raises its errors as one line, unless quiet."""
        self._wire.deadline = time.monotonic() + self.step_seconds
        self._wire.patient = self.step_seconds > STEP_SECONDS
        try:
            yield
        except (Refused, Unavailable, MemoryError):
            raise
        except Exception as error:
            # The libraries do not check replies: any other error means an invalid one.
            if quiet:
                raise
            code = self._status(error)
            if code is not None:
                raise status.refusal(self._where, what, code) from error
            text = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, DeadlinePassed):
                text = f"{NO_ANSWER} {self.step_seconds:.0f} s; run it again: "
                text += "the server's disks may have been asleep"
            elif not isinstance(error, self._plain_errors):
                text = f"the server's answer is invalid ({text})"
            raise Refused("unreachable", f"{self._where}: {what}: {text}") from error
        finally:
            self._wire.deadline = None

    def _silent(self) -> Refused:
        text = f"{self._where}: negotiate: {NO_ANSWER} {self.step_seconds:.0f} s; check the port"
        return Refused("unreachable", text)

    def _usable(self) -> bool:
        return self._tree is not None and not self._cut

    @abstractmethod
    def _create(
        self, path: str, access: int, disposition: int, options: int, sharing: int
    ) -> Handle: ...

    @abstractmethod
    def _close(self, handle: Handle) -> None: ...

    @abstractmethod
    def _names(self, folder: str) -> list[str]: ...

    @abstractmethod
    def _take_over(self, handle: Handle) -> Pipe:
        """Returns the data path, once the library has released the connection."""

    @abstractmethod
    def _give_back(self, link: Any) -> None: ...

    @abstractmethod
    def _log_off(self) -> None: ...

    @abstractmethod
    def _hang_up(self) -> None: ...

    @abstractmethod
    def _status(self, error: Exception) -> int | None:
        """Returns the status that the server answered with, if that is the error."""


def refuse_other_shares(peer: Endpoint, kind: str) -> None:
    """Raises Refused where a share holds no files; kind: that of the share, empty for files."""
    if kind:
        text = f"//{peer.host}/{peer.share} is a {kind}, not a share of files; name another share"
        raise Refused("usage", f"{text} (smbclient -L lists them)")


def login(peer: Endpoint) -> Access:
    """Returns the user to log in; guest, only if allowed; or one without name and password, for
    the principal of this host's Kerberos ticket. Raises Refused."""
    access = peer.access or Access()
    if access.username:
        return access
    if access.allow_guest:
        return Access(username=GUEST, allow_guest=True)
    if kerberos.principal():
        return Access()
    text = f"{peer.host}: login: no user given; use --user NAME or --allow-guest{kerberos.hint()}"
    raise Refused("login", text)


def refuse_guest(peer: Endpoint, access: Access) -> None:
    """Raises Refused where the server logged a named user in as a guest.

    Even if guests are allowed: each further login would be one more with a wrong password.
    """
    username = peer.access.username if peer.access else ""
    if username and username.lower() != GUEST or not access.allow_guest:
        text = f"{peer.host}: login: the server treated {username or 'this user'} as a guest"
        remedy = "check user and password, or use --allow-guest without a user"
        raise Refused("login", f"{text}; {remedy}")
