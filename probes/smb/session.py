"""A login on a share as the stages see it, whichever library made it."""

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
from probes.smb.frames import FRAME_SPARE_BYTES, Late, Wire, connect
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
"""For the emptying of files after work that broke off."""
SECURITIES = ("plain", "signed", "encrypted")
"""plain: neither signed nor encrypted; signed, encrypted: every message, because we say so."""
UNENCRYPTED = "unencrypted"
"""Signed where the server requires that, and never encrypted."""


class DialectMissing(Unavailable):
    """The server does not speak it; no login was tried yet."""


def security_of(signing: str, encryption: str) -> str:
    """What open_session() takes for "on", "off" or "" of both; "": as the server requires.

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
    """When it was opened."""


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
    """No reply but that to a READ is longer."""
    _plain_errors: tuple[type[Exception], ...]
    """What the library raises where the server's answer made sense."""

    def __init__(self, peer: Endpoint, security: str) -> None:
        self._peer, self._security = peer, security
        self._where = peer.host
        self._tree: Any = None
        self._handles: list[Handle] = []
        self._created: set[bytes] = set()
        """Files among them that are emptied before they are closed."""
        self._cut = False
        self.step_seconds = peer.step_seconds or STEP_SECONDS
        """Absolute limit of each step."""
        self.guest = False
        """Whether the server logged this user in as a guest."""
        before = time.monotonic()
        self._sock = connect(peer)
        self._connect_seconds = time.monotonic() - before
        self._wire = Wire(self._sock, self._control_frame_bytes, peer.host)

    @property
    @abstractmethod
    def facts(self) -> SessionFacts:
        """What was agreed."""

    @abstractmethod
    def negotiate(self, dialect: str | None, preferred: tuple[str, ...]) -> None:
        """Agrees on dialect and algorithms.

        Raises DialectMissing where the server does not speak it, Unavailable where it lacks what
        the security needs.
        """

    @abstractmethod
    def log_in(self) -> None:
        """One attempt, then the tree connection; secured as the server requires and as we wish."""

    @abstractmethod
    def space(self, handle: Handle) -> Space:
        """Room on the file system that the handle lies on."""

    @abstractmethod
    def interfaces(self) -> tuple[Interface, ...]:
        """The server's network interfaces; none where it does not tell them."""

    def start(self, dialect: str | None, preferred: tuple[str, ...]) -> Self:
        """Negotiates and logs in; closed where that fails, see open_session."""
        logger = logging.getLogger(self._library)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        # what matters comes as an exception
        logger.propagate = False
        try:
            self.negotiate(dialect, preferred)
            self.log_in()
        except BaseException:
            self.disconnect()
            raise
        return self

    def create_folder(self, path: str) -> Handle:
        """Creates a folder that cannot be renamed over SMB while it is open; closing deletes it."""
        return self._open(
            path, LIST_AND_DELETE, NEW, FOLDER | DELETE_ON_CLOSE, sharing=SHARE_BUT_DELETE
        )

    def open_folder(self, path: str) -> Handle:
        """Opens an existing folder to look at it."""
        return self._open(path, READ_ALONE, EXISTING, FOLDER, path or "the share")

    def remove_folder(self, path: str, sharing: int = SHARE_ALL) -> None:
        """Deletes a folder that this program created, if it is empty."""
        options = FOLDER | DELETE_ON_CLOSE
        self.close(self._open(path, LIST_AND_DELETE, EXISTING, options, sharing=sharing))

    def create_file(self, path: str) -> Handle:
        """A new file to read and write, shared; it goes when its last handle is closed."""
        access = GENERIC_READ | GENERIC_WRITE | DELETE
        file = self._open(path, access, NEW, FILE | DELETE_ON_CLOSE)
        self._created.add(file.id)
        return file

    def open_file(self, path: str, write: bool) -> Handle:
        """An existing file; write: one that this run created."""
        return self._open(path, GENERIC_READ | (GENERIC_WRITE if write else 0), EXISTING, FILE)

    def open_past_cache(self, path: str) -> Handle:
        """An existing file, for reading alone and without the server's cache, if it allows that."""
        return self._open(path, READ_ALONE, EXISTING, FILE | PAST_CACHE)

    def remove_file(self, path: str, sharing: int = SHARE_ALL) -> None:
        """Deletes a file that a run created, and empties it before if it holds a run's payload."""
        access, options = GENERIC_READ | GENERIC_WRITE | DELETE, FILE | DELETE_ON_CLOSE
        try:
            file = self._open(path, access, EXISTING, options, sharing=sharing)
            if file.size_bytes >= len(MAGIC) and self.has_mark(file, MAGIC):
                self._created.add(file.id)
        except Refused as refused:
            if refused.kind != "permission":
                raise
            file = self._open(path, DELETE, EXISTING, options, sharing=sharing)
        self.close(file)

    def close(self, handle: Handle) -> None:
        """Closes it, and so deletes what was created, of which no recycle bin keeps a byte."""
        self._handles.remove(handle)
        if handle.id in self._created:
            self._created.discard(handle.id)
            with self._step(f"empty {handle.path}"), self.pipe(handle) as pipe:
                pipe.empty(0, handle.id)
                with suppress(status.ServerSaid):  # as of a share that lets nothing be changed
                    pipe.wait()
        with self._step(f"close {handle.path}"):
            self._close(handle)

    def names(self, folder: str) -> tuple[str, ...]:
        """What lies in a folder."""
        with self._step(f"list {folder}"):
            return tuple(name for name in self._names(folder) if name not in (".", ".."))

    def largest_file(self, folder: str) -> tuple[int, str]:
        """Bytes and path of the largest file below a folder, of those that a brief look finds.

        (0, ""): there is none, or the dialect's sessions do not tell.
        """
        return 0, ""

    def room(self, folder: str) -> Space:
        """Room on the file system that an existing folder lies on; nothing is changed."""
        seen = self.open_folder(folder)
        space = self.space(seen)
        self.close(seen)
        return space

    def may_write(self) -> bool | None:
        """Whether the share lets this user make files, whatever its folders say; None: untold."""
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
        """Whether an open file, whatever has its name by now, begins with these bytes."""
        with self._step(f"read {handle.path}"), self.pipe(handle) as pipe:
            return pipe.begins_with(mark)

    @contextmanager
    def pipe(self, handle: Handle) -> Iterator[Pipe]:
        """The data path on this session; the library rests until it is closed.

        Where the body fails the connection is cut: the server then closes and deletes everything.
        """
        wire, pipe = self._wire, self._taken(handle)
        pipe.created |= self._created
        wire.frame_limit_bytes = pipe.link.max_read_bytes + FRAME_SPARE_BYTES
        wire.deadline = time.monotonic() + self.step_seconds
        try:
            yield pipe
        except BaseException:
            # what is under way cannot be called back, and its replies would confuse the library
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
            # a server that is gone has closed everything already
            with suppress(Refused):
                while self._handles:
                    self.close(self._handles[-1])
                with self._step("log off"):
                    self._log_off()
        self._hang_up()

    def _open(
        self,
        path: str,
        access: int,
        disposition: int,
        options: int,
        name: str = "",
        sharing: int = SHARE_ALL,
    ) -> Handle:
        with self._step(f"{'create' if disposition == NEW else 'open'} {name or path}"):
            handle = self._opened(path, access, disposition, options, sharing)
        self._handles.append(handle)
        return handle

    @contextmanager
    def _step(self, what: str, quiet: bool = False) -> Iterator[None]:
        """Bounds one step with the library and puts its errors in one line; quiet: leaves them."""
        self._wire.deadline = time.monotonic() + self.step_seconds
        self._wire.patient = self.step_seconds > STEP_SECONDS
        try:
            yield
        except (Refused, Unavailable, MemoryError):
            raise
        except Exception as error:
            # the libraries parse as if nobody lied: any error at all means a bad reply
            if quiet:
                raise
            code = self._status(error)
            if code is not None:
                raise status.refusal(self._where, what, code) from error
            text = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, Late):
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
    def _opened(
        self, path: str, access: int, disposition: int, options: int, sharing: int
    ) -> Handle: ...

    @abstractmethod
    def _close(self, handle: Handle) -> None: ...

    @abstractmethod
    def _names(self, folder: str) -> list[str]: ...

    @abstractmethod
    def _taken(self, handle: Handle) -> Pipe:
        """The data path, once the library has let go of the connection."""

    @abstractmethod
    def _give_back(self, link: Any) -> None: ...

    @abstractmethod
    def _log_off(self) -> None: ...

    @abstractmethod
    def _hang_up(self) -> None: ...

    @abstractmethod
    def _status(self, error: Exception) -> int | None:
        """What the server answered, where that is the error."""


def refuse_other_shares(peer: Endpoint, kind: str) -> None:
    """Raises Refused where a share holds no files: kind names what it is, empty for files."""
    if kind:
        text = f"//{peer.host}/{peer.share} is a {kind}, not a share of files; name another share"
        raise Refused("usage", f"{text} (smbclient -L lists them)")


def login(peer: Endpoint) -> Access:
    """Who logs in: the user; guest, only where that was allowed; or, without a name and a
    password, whoever a Kerberos ticket of this host speaks for. Raises Refused."""
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
    """Raises Refused where the server made a guest of a user with a name.

    Whatever is allowed: each further login would be one more with a wrong password.
    """
    named = peer.access.username if peer.access else ""
    if named and named.lower() != GUEST or not access.allow_guest:
        text = f"{peer.host}: login: the server treated {named or 'this user'} as a guest"
        remedy = "check user and password, or use --allow-guest without a user"
        raise Refused("login", f"{text}; {remedy}")
