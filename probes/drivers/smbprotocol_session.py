"""Sessions of SMB 2.0.2 to 3.1.1 by the smbprotocol library: everything but READ and WRITE.

The library logs in, opens and closes; for the copy itself its reader thread is parked and the
socket handed to probes.smb.pipe2.
"""

from __future__ import annotations

import contextlib
import logging
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from smbprotocol import Dialects
from smbprotocol.connection import (
    Ciphers,
    SecurityMode,
    SigningAlgorithms,
)
from smbprotocol.exceptions import NoMoreFiles, SMBException, SMBResponseException
from smbprotocol.file_info import FileFsFullSizeInformation, FileInformationClass, InfoType
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    DirectoryAccessMask,
    FileAttributes,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    ShareAccess,
    SMB2QueryInfoRequest,
    SMB2QueryInfoResponse,
)
from smbprotocol.session import Session as LibrarySession
from smbprotocol.tree import TreeConnect

from probes.drivers.smbprotocol_connection import (
    CONTROL_FRAME_BYTES,
    GuardedConnection,
    ParkableTcp,
)
from probes.records import Endpoint
from probes.smb import status
from probes.smb.encryption import Sealer
from probes.smb.frames import FRAME_SPARE_BYTES, Broken, Late
from probes.smb.pipe import Pipe
from probes.smb.pipe2 import Link2, Pipe2
from probes.smb.session import (
    SMB_PORT,
    STEP_SECONDS,
    Handle,
    SessionFacts,
    Space,
    connect,
    login,
    refuse_guest,
)
from probes.smb.signing import signer
from probes.stage import Refused, Unavailable

NUMBERS = {
    "2.0.2": Dialects.SMB_2_0_2,
    "2.1": Dialects.SMB_2_1_0,
    "3.0": Dialects.SMB_3_0_0,
    "3.0.2": Dialects.SMB_3_0_2,
    "3.1.1": Dialects.SMB_3_1_1,
}
SIGNING = {
    SigningAlgorithms.HMAC_SHA256: "hmac-sha256",
    SigningAlgorithms.AES_CMAC: "aes-cmac",
    SigningAlgorithms.AES_GMAC: "aes-gmac",
}
ENCRYPTION = {
    Ciphers.AES_128_CCM: "aes-128-ccm",
    Ciphers.AES_128_GCM: "aes-128-gcm",
    Ciphers.AES_256_CCM: "aes-256-ccm",
    Ciphers.AES_256_GCM: "aes-256-gcm",
}
CAPABILITIES = {
    0x01: "dfs",
    0x02: "leasing",
    0x04: "large-mtu",
    0x08: "multi-channel",
    0x10: "persistent-handles",
    0x20: "directory-leasing",
    0x40: "encryption",
}
"""MS-SMB2 2.2.4."""
_SHARE_ALL = (
    ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE | ShareAccess.FILE_SHARE_DELETE
)
_FULL_SIZE = struct.Struct("<qqqII")


class Smb2Session:
    """A Session (probes.smb.session) of SMB2 or SMB3."""

    def __init__(self, peer: Endpoint, connect_seconds: float, transport: ParkableTcp) -> None:
        self._where = peer.host
        self._connect_seconds = connect_seconds
        self._transport = transport
        self._connection = GuardedConnection(transport)
        self._session: Any = None
        self._tree: Any = None
        self._opens: dict[bytes, Any] = {}
        self._cut = False

    def negotiate(self, dialect: str | None) -> None:
        """Agrees on the dialect. Raises Unavailable where the server does not speak it."""
        number = NUMBERS[dialect] if dialect else None
        wanted = f"SMB {dialect}" if dialect else "SMB 2 or 3"
        refusal = Unavailable(f"{self._where} does not offer {wanted}")
        try:
            with self._step("negotiate", quiet=True):
                self._connection.connect(dialect=number)
        except Late:
            text = (
                f"{self._where}: negotiate: no answer in {STEP_SECONDS:.0f} s; is it a file server?"
            )
            raise Refused("unreachable", text) from None
        except (Broken, SMBException, KeyError, ValueError, struct.error) as error:
            raise refusal from error
        if number is not None and self._connection.dialect != number:
            raise refusal
        # the library notes down the server's wish as our own, and 3.0's check of the negotiation
        # then tells the server something else than what we had sent
        self._connection.client_security_mode = SecurityMode.SMB2_NEGOTIATE_SIGNING_ENABLED

    def log_in(self, peer: Endpoint) -> None:
        """One attempt, then the tree connection; signing and encryption only where required."""
        access = login(peer)
        user = f"{access.domain}\\{access.username}" if access.domain else access.username
        session = LibrarySession(
            self._connection,
            user,
            access.password,
            require_encryption=False,
            auth_protocol="ntlm",
        )
        with self._step("login"):
            try:
                session.connect()
            except SMBResponseException:
                raise
            except SMBException as error:
                if "authenticated as a guest" not in str(error):
                    raise
                refuse_guest(peer, peer.access or access, guest=True)
                text = (
                    f"{self._where}: login: guests cannot sign and this server requires signing; "
                    "name a user"
                )
                raise Refused("login", text) from error
        self._session = session
        guest = session.signing_key is None
        refuse_guest(peer, access, guest)
        tree = TreeConnect(session, rf"\\{peer.host}\{peer.share}")
        number = self._connection.dialect
        with self._step(f"share {peer.share}"):
            required = session.signing_required
            # 3.1.1 wants this one request signed in any case (MS-SMB2 3.2.4.1.1)
            if number >= Dialects.SMB_3_1_1 and not guest and not session.encrypt_data:
                session.signing_required = True
            try:
                # below 3.1.1 a downgrade is found by asking again under a signature
                tree.connect(require_secure_negotiate=number >= Dialects.SMB_3_0_0 and not guest)
            finally:
                session.signing_required = required
        self._tree = tree
        self._where = f"//{peer.host}/{peer.share}"

    @property
    def facts(self) -> SessionFacts:
        """See Session."""
        connection = self._connection
        window = connection.sequence_window
        told = connection.server_capabilities.get_value()
        return SessionFacts(
            dialect=next(name for name, n in NUMBERS.items() if n == connection.dialect),
            signing=self._signing(),
            encryption=self._encryption(),
            max_read_bytes=connection.max_read_size,
            max_write_bytes=connection.max_write_size,
            credits=window["high"] - window["low"],
            multi_credit=bool(connection.supports_multi_credit),
            server_guid=str(connection.server_guid),
            capabilities=tuple(name for bit, name in CAPABILITIES.items() if told & bit),
            connect_seconds=self._connect_seconds,
        )

    def create_folder(self, path: str) -> Handle:
        """See Session."""
        return self._open_folder(path, CreateDisposition.FILE_CREATE)

    def open_folder(self, path: str) -> Handle:
        """See Session."""
        return self._open_folder(path, CreateDisposition.FILE_OPEN)

    def create_file(self, path: str) -> Handle:
        """See Session."""
        access = (
            FilePipePrinterAccessMask.GENERIC_READ
            | FilePipePrinterAccessMask.GENERIC_WRITE
            | FilePipePrinterAccessMask.DELETE
        )
        options = CreateOptions.FILE_NON_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE
        return self._open(path, access, CreateDisposition.FILE_CREATE, options)

    def open_file(self, path: str, write: bool) -> Handle:
        """See Session."""
        access = FilePipePrinterAccessMask.GENERIC_READ
        if write:
            access |= FilePipePrinterAccessMask.GENERIC_WRITE
        options = CreateOptions.FILE_NON_DIRECTORY_FILE
        return self._open(path, access, CreateDisposition.FILE_OPEN, options)

    def close(self, handle: Handle) -> None:
        """See Session."""
        opened = self._opens.pop(handle.id)
        with self._step(f"close {handle.path}"):
            opened.close()

    def space(self, handle: Handle) -> Space:
        """See Session. FileFsFullSizeInformation, MS-FSCC 2.5.4."""
        request = SMB2QueryInfoRequest()
        request["info_type"] = InfoType.SMB2_0_INFO_FILESYSTEM
        request["file_info_class"] = FileFsFullSizeInformation.INFO_CLASS
        request["output_buffer_length"] = _FULL_SIZE.size
        request["file_id"] = handle.id
        with self._step("free space"):
            sent = self._connection.send(
                request, self._session.session_id, self._tree.tree_connect_id
            )
            answer = SMB2QueryInfoResponse()
            answer.unpack(self._connection.receive(sent)["data"].get_value())
            told = answer["buffer"].get_value()
            total, free, _, sectors, sector_bytes = _FULL_SIZE.unpack(told[: _FULL_SIZE.size])
        unit_bytes = sectors * sector_bytes
        return Space(free_bytes=free * unit_bytes, total_bytes=total * unit_bytes)

    def names(self, folder: str) -> tuple[str, ...]:
        """See Session."""
        access, options = DirectoryAccessMask.FILE_LIST_DIRECTORY, CreateOptions.FILE_DIRECTORY_FILE
        handle = self._open(folder, access, CreateDisposition.FILE_OPEN, options)
        opened, found = self._opens[handle.id], []
        with self._step(f"list {folder}"), contextlib.suppress(NoMoreFiles):
            while True:
                for entry in opened.query_directory(
                    "*", FileInformationClass.FILE_NAMES_INFORMATION
                ):
                    found.append(entry["file_name"].get_value().decode("utf-16-le"))
        self.close(handle)
        return tuple(name for name in found if name not in (".", ".."))

    def remove_file(self, path: str) -> None:
        """See Session."""
        options = CreateOptions.FILE_NON_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE
        access = FilePipePrinterAccessMask.DELETE
        self.close(self._open(path, access, CreateDisposition.FILE_OPEN, options))

    @contextmanager
    def pipe(self, handle: Handle) -> Iterator[Pipe]:
        """See Session."""
        connection, wire = self._connection, self._transport.wire
        self._settle_echoes()
        self._transport.park()
        window = connection.sequence_window
        link = Link2(
            wire=wire,
            session_id=self._session.session_id,
            tree_id=self._tree.tree_connect_id,
            file_id=handle.id,
            next_message_id=window["low"],
            credits=window["high"] - window["low"],
            multi_credit=bool(connection.supports_multi_credit),
            max_read_bytes=connection.max_read_size,
            max_write_bytes=connection.max_write_size,
            signer=self._signer(),
            sealer=self._sealer(),
        )
        wire.frame_limit_bytes = connection.max_read_size + FRAME_SPARE_BYTES
        wire.deadline = time.monotonic() + STEP_SECONDS
        try:
            yield Pipe2(link)
        except BaseException:
            # what is under way cannot be called back, and its replies would confuse the library
            self._cut = True
            raise
        finally:
            wire.frame_limit_bytes, wire.deadline = CONTROL_FRAME_BYTES, None
            wire.patient = False
            window["low"] = link.next_message_id
            window["high"] = link.next_message_id + link.credits
            if self._cut:
                self._transport.close()
            self._transport.unpark()

    def disconnect(self) -> None:
        """See Session."""
        if self._transport.connected and not self._cut and self._tree is not None:
            # a server that is gone has closed everything already
            with contextlib.suppress(Refused, Broken), self._step("log off"):
                while self._opens:
                    self._opens.popitem()[1].close()
                self._tree.disconnect()
                self._session.disconnect(close=False)
        self._transport.close()
        if self._connection._t_worker is not None:
            self._connection._t_worker.join(timeout=2 * STEP_SECONDS)
        self._transport.release()

    def _open_folder(self, path: str, disposition: int) -> Handle:
        access = (
            DirectoryAccessMask.FILE_LIST_DIRECTORY
            | DirectoryAccessMask.FILE_READ_ATTRIBUTES
            | DirectoryAccessMask.DELETE
            | DirectoryAccessMask.SYNCHRONIZE
        )
        options = CreateOptions.FILE_DIRECTORY_FILE | CreateOptions.FILE_DELETE_ON_CLOSE
        return self._open(path, access, disposition, options)

    def _open(self, path: str, access: int, disposition: int, options: int) -> Handle:
        opened = Open(self._tree, path)
        folder = options & CreateOptions.FILE_DIRECTORY_FILE
        attributes = FileAttributes.FILE_ATTRIBUTE_DIRECTORY if folder else 0
        step = "open" if disposition == CreateDisposition.FILE_OPEN else "create"
        with self._step(f"{step} {path}"):
            opened.create(
                ImpersonationLevel.Impersonation,
                access,
                attributes,
                _SHARE_ALL,
                disposition,
                options,
            )
        self._opens[opened.file_id] = opened
        return Handle(path, opened.file_id, opened.end_of_file)

    @contextmanager
    def _step(self, what: str, quiet: bool = False) -> Iterator[None]:
        """Bounds one step with the library and puts its errors in one line; quiet: leaves them."""
        self._transport.wire.deadline = time.monotonic() + STEP_SECONDS
        try:
            yield
        except (SMBException, Broken, OSError, ValueError, KeyError, struct.error) as error:
            if quiet:
                raise
            if isinstance(error, SMBResponseException):
                raise status.refusal(self._where, what, error.status) from error
            text = " ".join(str(error).split())
            raise Refused("unreachable", f"{self._where}: {what}: {text}") from error
        finally:
            self._transport.wire.deadline = None

    def _settle_echoes(self) -> None:
        """Waits for a keep-alive ECHO that is under way; its reply belongs to the library."""
        until = time.monotonic() + STEP_SECONDS
        while self._connection.outstanding_requests:
            if time.monotonic() > until:
                raise Broken("the server does not answer")
            time.sleep(0.005)

    def _encrypted(self) -> bool:
        return bool(self._session.encrypt_data or self._tree.encrypt_data)

    def _encryption(self) -> str | None:
        if not self._encrypted():
            return None
        if self._connection.dialect < Dialects.SMB_3_1_1:
            return "aes-128-ccm"
        return ENCRYPTION[self._connection.cipher_id]

    def _signing(self) -> str | None:
        if self._encrypted() or not self._session.signing_required:
            return None
        number = self._connection.dialect
        agreed = self._connection.signing_algorithm_id
        if number >= Dialects.SMB_3_1_1 and agreed is not None:
            return SIGNING[agreed]
        return "aes-cmac" if number >= Dialects.SMB_3_0_0 else "hmac-sha256"

    def _signer(self) -> Any:
        name = self._signing()
        return signer(name, self._session.signing_key) if name else None

    def _sealer(self) -> Sealer | None:
        name = self._encryption()
        session = self._session
        if name is None:
            return None
        return Sealer(name, session.encryption_key, session.decryption_key, session.session_id)


def open_session(peer: Endpoint, dialect: str | None) -> Smb2Session:
    """Connects, negotiates, logs in once and connects to the share.

    dialect: one of NUMBERS, or None for the best that the server offers. Raises Refused or
    Unavailable (the server does not speak the dialect).
    """
    _silence("smbprotocol")
    before = time.monotonic()
    sock = connect(peer)
    seconds = time.monotonic() - before
    session = Smb2Session(peer, seconds, ParkableTcp(sock, peer.host, peer.port or SMB_PORT))
    try:
        session.negotiate(dialect)
        session.log_in(peer)
    except BaseException:
        session.disconnect()
        raise
    return session


def _silence(name: str) -> None:
    """Keeps the library's own messages from stderr; what matters comes as an exception."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.propagate = False
