"""smbprotocol's connection and session, hardened against hostile servers and networks.

The library checks signatures only of replies that claim to have one, accepts any frame length,
waits without end while a server says PENDING, follows links to other hosts, takes whatever comes
last for a login, and does not release the socket. These classes change all of that.

Undetectable remain: in 2.x and 3.0 a man in the middle may clear the flags of a login that neither
side requires to be signed (the share's own encryption stays); one who spoils the answer to SMB2
where SMB1 is on makes SMB1 the best dialect. The report shows what was used. A downgrade below the
best common dialect is detected in all of 2.0.2 to 3.1.1.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import struct
import threading
import time
import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import smbprotocol.session
import spnego
from cryptography.exceptions import InvalidTag
from smbprotocol import Dialects
from smbprotocol.connection import Commands, Connection, HashAlgorithms
from smbprotocol.exceptions import NoMoreFiles, NoSuchFile, SMBException, SMBResponseException
from smbprotocol.file_info import FileInformationClass
from smbprotocol.header import NtStatus, Smb2Flags, SMB2HeaderResponse
from smbprotocol.open import FileAttributes, ImpersonationLevel, Open, SMB2QueryDirectoryResponse
from smbprotocol.session import Session
from smbprotocol.transport import Tcp

from probes.core.stage import Refused
from probes.smb.facts import FILETIME_EPOCH
from probes.smb.frames import DeadlinePassed, SmbError, Wire
from probes.smb.pipe import FOLDER, SHARE_ALL
from probes.smb.session import STEP_SECONDS

KEEP_ALIVE_SECONDS = 20
"""Interval of an idle session's ECHOs, by which a dead server is noticed."""
LEAST_LIMIT_BYTES = 4096
"""Shortest limit of READ and WRITE that a file server may have."""
LISTING_BYTES = 64 * 1024
"""Most bytes of a folder's entries in one reply: those that one credit pays for."""
_ENTRY = struct.Struct("<I20xQQQ8xII8xQ")
"""NextEntryOffset, LastWriteTime, ChangeTime, EndOfFile, FileAttributes, FileNameLength, FileId."""
_FOLDER, _FOLDER_OR_LINK = 0x10, 0x410
"""FILE_ATTRIBUTE_DIRECTORY; it or FILE_ATTRIBUTE_REPARSE_POINT (MS-FSCC 2.6)."""
_LATEST = timedelta(days=365 * 8000)
"""Latest time since FILETIME_EPOCH that a datetime can hold."""
_MESSAGES = (b"\xfeSMB", b"\xfdSMB")
_LEAST_BYTES = 68
"""Shortest message: header and shortest body; an encrypted one has more."""


class ParkableTcp(Tcp):  # type: ignore[misc]
    """The library's transport: checked frames, a deadline, and a reader that can be paused."""

    def __init__(self, sock: socket.socket, wire: Wire, server: str, port: int) -> None:
        super().__init__(server, port, None)
        self._sock, self.wire = sock, wire
        self.connected = True
        self._wake_read, self._wake_write = socket.socketpair()
        self._parked, self._resume = threading.Event(), threading.Event()

    def connect(self) -> None:
        """Does nothing: the socket is connected already."""

    def send(self, header: Any) -> None:
        message = header if isinstance(header, bytes) else header.pack()
        self.wire.send([message])

    def recv(self, timeout: float) -> bytes:
        """Receives a message; b"" at the end of the connection. TimeoutError: none for so long."""
        idle_until = time.monotonic() + timeout
        while self.connected:
            ready = select.select([self._sock, self._wake_read], [], [], 1.0)[0]
            if self._wake_read in ready:
                self._wake_read.recv(1)
                self._parked.set()
                self._resume.wait()
            elif ready:
                message = memoryview(bytearray(self.wire.next_frame()))
                self.wire.receive(message)
                if len(message) < _LEAST_BYTES or message[:4] not in _MESSAGES:
                    raise SmbError("the server sent something that is not an SMB2 message")
                return bytes(message)
            elif self.wire.deadline is not None and time.monotonic() > self.wire.deadline:
                raise DeadlinePassed("no answer in time")
            elif time.monotonic() > idle_until:
                raise TimeoutError("idle")
        return b""

    def park(self) -> None:
        """Takes the socket from the reader thread."""
        self._resume.clear()
        self._parked.clear()
        self._wake_write.send(b"p")
        if not self._parked.wait(STEP_SECONDS):
            raise SmbError("the SMB library did not let go of its socket")

    def unpark(self) -> None:
        """Lets the reader thread go on."""
        self._resume.set()

    def close(self) -> None:
        if self.connected:
            self.connected = False
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._resume.set()

    def release(self) -> None:
        """Closes the descriptors; the reader thread has ended."""
        for each in (self._sock, self._wake_read, self._wake_write):
            each.close()


class _Outstanding(dict[int, Any]):
    """Requests by message id; raises SmbError for a reply to none of them."""

    def __missing__(self, message_id: int) -> Any:
        raise SmbError(f"the server answered message {message_id}, which was not asked")


class GuardedConnection(Connection):  # type: ignore[misc]
    """The library's connection on our transport, with no reply unchecked and no wait unbounded."""

    def __init__(self, transport: ParkableTcp, require_signing: bool = False) -> None:
        self._ours = transport
        super().__init__(
            uuid.uuid4(), transport.server, transport.port, require_signing=require_signing
        )
        self._receive_timeout = KEEP_ALIVE_SECONDS
        self.outstanding_requests = _Outstanding()
        self.last_login_reply: Any = None
        """Header of the last SESSION_SETUP reply."""
        self.bodies: dict[int, bytes] = {}
        """Body of the last good reply to each command: the library keeps only a part of it."""

    @property
    def transport(self) -> ParkableTcp:
        return self._ours

    @transport.setter
    def transport(self, theirs: object) -> None:
        """Ignores the library's own transport."""

    def connect(self, dialect: int | None = None, **keywords: Any) -> None:
        """Negotiates. Raises Refused where the server chose what was not offered."""
        super().connect(dialect=dialect, **keywords)
        doubt = ""
        if dialect is None and self.dialect not in self.negotiated_dialects:
            doubt = f"it chose dialect 0x{self.dialect:04x}, which was not offered"
        elif min(self.max_read_size, self.max_write_size) < LEAST_LIMIT_BYTES:
            doubt = f"it takes READs of {self.max_read_size} and WRITEs of {self.max_write_size}"
        elif self.dialect == Dialects.SMB_3_1_1:
            offered = keywords.get("preferred_encryption_algos") or range(1, 5)
            signatures = keywords.get("preferred_signing_algos") or range(3)
            if self.preauth_integrity_hash_id != HashAlgorithms.SHA_512:
                doubt = "it sent no hash that guards the negotiation"
            elif self.cipher_id and self.cipher_id not in offered:
                doubt = f"it chose cipher {self.cipher_id}, which was not offered"
            elif self.signing_algorithm_id not in (None, *signatures):
                doubt = f"it chose signature {self.signing_algorithm_id}, which was not offered"
        if doubt:
            text = f"{self.server_name}: negotiate: invalid answer: {doubt}; check the port"
            raise Refused("unreachable", text)

    def receive(
        self,
        request: Any,
        wait: bool = True,
        timeout: float | None = None,
        resolve_symlinks: bool = True,
    ) -> Any:
        # The transport's deadline ends every wait: the peer could extend the library's own, which
        # is also longer than any step.
        try:
            reply = super().receive(request, wait=wait, timeout=120.0, resolve_symlinks=False)
        except SMBResponseException as error:
            self._keep(error.header)
            raise
        self._keep(reply)
        self.bodies[reply["command"].get_value()] = reply["data"].get_value()
        return reply

    def _keep(self, reply: Any) -> None:
        if reply["command"].get_value() == Commands.SMB2_SESSION_SETUP:
            self.last_login_reply = reply

    def _decrypt(self, message: Any) -> Any:
        try:
            plain = super()._decrypt(message)
        except InvalidTag:
            raise SmbError("an encrypted reply was altered on its way") from None
        header = SMB2HeaderResponse()
        header.unpack(plain)
        _check_tree(header, self._request_of(header))
        return plain

    def _request_of(self, header: Any) -> Any:
        """Returns the request that a message answers, a single one of the same command.

        Raises SmbError where it answers none (MS-SMB2 3.2.5.1).
        """
        request = self.outstanding_requests[header["message_id"].get_value()].message
        command = header["command"].get_value()
        if not header["flags"].has_flag(Smb2Flags.SMB2_FLAGS_SERVER_TO_REDIR):
            raise SmbError("the server sent a message that is no reply")
        if command != request["command"].get_value() or header["next_command"].get_value():
            # verify_signature exempts SESSION_SETUP: no other reply may claim to be one.
            raise SmbError("the server answered something else than what was asked")
        return request

    def verify_signature(self, header: Any, session_id: int, force: bool = False) -> None:
        session = self.session_table.get(session_id)
        command = header["command"].get_value()
        interim = header["status"].get_value() == NtStatus.STATUS_PENDING
        if not force:
            request = self._request_of(header)
        if session is not None and not force and command != Commands.SMB2_SESSION_SETUP:
            # Only unencrypted replies get here.
            trees = session.tree_connect_table.values()
            sealed_tree = command != Commands.SMB2_TREE_CONNECT and any(
                tree.encrypt_data for tree in trees
            )
            if session.encrypt_data or sealed_tree:
                raise SmbError("the server answered without the encryption that was agreed")
            signed = header["flags"].has_flag(Smb2Flags.SMB2_FLAGS_SIGNED)
            # A signed request gets a signed reply, even in an unsigned session (3.3.4.1.1).
            due = session.signing_required or request["flags"].has_flag(Smb2Flags.SMB2_FLAGS_SIGNED)
            if due and not signed and not interim:
                raise SmbError("a reply came without the signature that this session has to have")
        try:
            super().verify_signature(header, session_id, force)
        except SMBException:
            raise SmbError(
                "a reply came with a wrong signature: it was altered on its way"
            ) from None
        if not force:
            # Checked last: an altered reply is to be reported as such.
            _check_tree(header, request)


def _check_tree(header: Any, request: Any) -> None:
    """Raises SmbError for a reply of another tree than its request's.

    An asynchronous one has no TreeId, the reply to a TREE_CONNECT a new one, and without a tree the
    TreeId is undefined (MS-SMB2 2.2.1.2).
    """
    is_async = header["flags"].has_flag(Smb2Flags.SMB2_FLAGS_ASYNC_COMMAND)
    tree = request["tree_id"].get_value()
    if tree and not is_async and header["tree_id"].get_value() != tree:
        raise SmbError("the server answered for another share")


class _Spnego:
    """The part of spnego that the library uses, with NTLM in Python on every system."""

    exceptions = spnego.exceptions
    NegotiateOptions = spnego.NegotiateOptions

    @staticmethod
    def client(*names: Any, **keywords: Any) -> Any:
        """Returns the context of a login."""
        keywords["options"] |= spnego.NegotiateOptions.use_ntlm
        return spnego.client(*names, **keywords)


class GuardedSession(Session):  # type: ignore[misc]
    """The library's session, whose login the server must confirm, and in 3.1.1 prove."""

    def connect(self) -> None:
        """Logs in, once.

        In 3.1.1 the last reply's signature proves that the server knows the password, and that
        nothing was altered since the first message (MS-SMB2 3.2.5.3.1). In older dialects it may be
        absent; one that is present has to be right.
        """
        # With a name and a password: Windows' own NTLM (SSPI) would log in by its own rules.
        smbprotocol.session.spnego = _Spnego if self.auth_protocol == "ntlm" else spnego
        super().connect()
        reply = self.connection.last_login_reply
        if reply["status"].get_value() != NtStatus.STATUS_SUCCESS:
            raise SmbError("the server never said that the login was over")
        if self.signing_key is None:
            return
        signed = reply["flags"].has_flag(Smb2Flags.SMB2_FLAGS_SIGNED)
        if self.connection.dialect >= Dialects.SMB_3_1_1 and not signed:
            raise SmbError("the login came back without its signature: it was altered on its way")
        if signed:
            self.connection.verify_signature(reply, self.session_id, force=True)


def open_path(
    tree: Any, path: str, access: int, disposition: int, options: int, sharing: int = SHARE_ALL
) -> Any:
    """Opens or creates a file or folder on the share; the arguments are those of a CREATE."""
    file = Open(tree, path)
    attributes = FileAttributes.FILE_ATTRIBUTE_DIRECTORY if options & FOLDER else 0
    file.create(ImpersonationLevel.Impersonation, access, attributes, sharing, disposition, options)
    return file


@dataclass(frozen=True)
class Entry:
    """A name in a folder, as the server lists it."""

    name: str
    attributes: int
    size_bytes: int
    changed: datetime
    """The later of its last write and its last change, by the server's clock."""
    number: int
    """The server's number of the file, independent of the path; 0: it has none."""

    @property
    def is_plain_folder(self) -> bool:
        """Whether it is a folder and no link or mount point."""
        return self.attributes & _FOLDER_OR_LINK == _FOLDER

    @property
    def is_plain_file(self) -> bool:
        """Whether it is a file and no link."""
        return not self.attributes & _FOLDER_OR_LINK


def list_folder(folder: Any, pattern: str, limit: int, until: float = math.inf) -> list[Entry]:
    """Lists an open folder, all of it or more than limit entries, and closes it. Raises SmbError.

    until: by the monotonic clock; after it no further entries are requested.

    Each QUERY_DIRECTORY (MS-SMB2 2.2.33) brings one entry or more: limit + 1 are sent at most.
    """
    entries: list[Entry] = []
    with contextlib.closing(replies(folder, pattern)) as listed:
        for each in listed:
            entries += each
            if len(entries) > limit or time.monotonic() >= until:
                break
    return entries


def replies(folder: Any, pattern: str) -> Generator[list[Entry], None, None]:
    """Yields the entries of each reply for an open folder, one or more, and closes it at the end.

    A server may go on for ever. Raises SmbError.
    """
    tree, connection = folder.tree_connect, folder.connection
    kind = FileInformationClass.FILE_ID_FULL_DIRECTORY_INFORMATION
    try:
        with contextlib.suppress(NoMoreFiles, NoSuchFile):
            while True:
                query, _ = folder.query_directory(
                    pattern, kind, max_output=LISTING_BYTES, send=False
                )
                sent = connection.send(query, tree.session.session_id, tree.tree_connect_id)
                reply = SMB2QueryDirectoryResponse()
                reply.unpack(connection.receive(sent)["data"].get_value())
                yield list(_entries(reply["buffer"].get_value()))
    finally:
        folder.close()


def _entries(listing: bytes) -> Iterator[Entry]:
    """Parses FileIdFullDirectoryInformation (MS-FSCC 2.4.18); entries have to follow each other."""
    if len(listing) > LISTING_BYTES:
        raise SmbError(
            f"the server sent a listing of {len(listing)} bytes, at most {LISTING_BYTES}"
        )
    offset, following = 0, 1
    while following:
        if offset + _ENTRY.size > len(listing):
            raise SmbError("the server sent a listing that is cut off")
        fields = _ENTRY.unpack_from(listing, offset)
        following, written, changed, size, attributes, name_bytes, number = fields
        name_at = offset + _ENTRY.size
        if name_at + name_bytes > len(listing) or 0 < following < _ENTRY.size + name_bytes:
            raise SmbError("the server sent a listing whose entries overlap")
        name = listing[name_at : name_at + name_bytes].decode("utf-16-le", "replace")
        since = min(timedelta(microseconds=max(written, changed) // 10), _LATEST)
        yield Entry(name, attributes, size, FILETIME_EPOCH + since, number)
        offset += following
