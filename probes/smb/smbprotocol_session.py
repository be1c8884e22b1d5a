"""Sessions of SMB 2.0.2 to 3.1.1 by the smbprotocol library: everything but READ and WRITE.

The library logs in, opens and closes; for the copy itself its reader thread is parked and the
socket handed to probes.smb.pipe2.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from smbprotocol import Dialects
from smbprotocol.connection import Capabilities
from smbprotocol.exceptions import SMBAuthenticationError, SMBException, SMBResponseException
from smbprotocol.tree import TreeConnect

from probes.records import Endpoint
from probes.smb import smbprotocol_connection, status
from probes.smb.encryption import Sealer
from probes.smb.facts import SessionFacts
from probes.smb.frames import FRAME_SPARE_BYTES, Broken, Late
from probes.smb.interfaces import Interface
from probes.smb.pipe import Pipe
from probes.smb.pipe2 import Link2, Pipe2
from probes.smb.session import (
    SMB_PORT,
    STEP_SECONDS,
    DialectMissing,
    Handle,
    Space,
    connect,
    login,
    refuse_guest,
)
from probes.smb.signing import signer
from probes.smb.smbprotocol_connection import (
    CONTROL_FRAME_BYTES,
    GuardedConnection,
    GuardedSession,
    ParkableTcp,
)
from probes.smb.smbprotocol_facts import ENCRYPTION, NUMBERS, SIGNING, Agreement, numbers
from probes.stage import Refused, Unavailable

HARMLESS_CAPABILITIES = (
    Capabilities.SMB2_GLOBAL_CAP_MULTI_CHANNEL
    | Capabilities.SMB2_GLOBAL_CAP_PERSISTENT_HANDLES
    | Capabilities.SMB2_GLOBAL_CAP_DIRECTORY_LEASING
)
"""A server tells these only to a client that has them too; they oblige us to nothing."""


BREATH_SECONDS = 0.2


class Smb2Session:
    """A Session (probes.smb.session) of SMB2 or SMB3."""

    def __init__(
        self, peer: Endpoint, connect_seconds: float, transport: ParkableTcp, security: str
    ) -> None:
        self._where = peer.host
        self._connect_seconds = connect_seconds
        self._transport = transport
        self._security = security
        self._connection = GuardedConnection(transport, require_signing=security == "signed")
        self._agreed = Agreement(self._connection)
        self._session: Any = None
        self._tree: Any = None
        self._opens: dict[bytes, Any] = {}
        self._cut = False

    def negotiate(self, dialect: str | None, preferred: tuple[str, ...]) -> None:
        """Agrees on dialect and algorithms.

        Raises DialectMissing where the server does not speak it, Unavailable where it lacks what
        the security needs.
        """
        number = NUMBERS[dialect] if dialect else None
        wanted = f"SMB {dialect}" if dialect else "SMB 2 or 3"
        refusal = DialectMissing(f"{self._where} does not offer {wanted}")
        sent = self._connection.client_security_mode
        self._connection.client_capabilities |= HARMLESS_CAPABILITIES
        try:
            with self._step("negotiate", quiet=True):
                self._connection.connect(
                    dialect=number,
                    preferred_encryption_algos=numbers(ENCRYPTION, preferred),
                    preferred_signing_algos=numbers(SIGNING, preferred),
                )
        except Late:
            text = (
                f"{self._where}: negotiate: no answer in {STEP_SECONDS:.0f} s; is it a file server?"
            )
            raise Refused("unreachable", text) from None
        except Refused:
            raise
        except Broken as error:
            raise DialectMissing(f"{refusal}: {error}") from error
        except Exception as error:
            # whatever came, it was no answer to this question
            raise refusal from error
        if number is not None and self._connection.dialect != number:
            raise refusal
        # the library notes down the server's wish as our own, and 3.0's check of the negotiation
        # then tells the server something else than what we had sent
        self._connection.client_security_mode = sent
        if self._security == "encrypted" and not self._connection.supports_encryption:
            spoken = self._agreed.dialect
            raise Unavailable(f"{self._where} offers no encryption that we know in SMB {spoken}")
        if self._security == "plain" and self._agreed.server_requires_signing:
            raise Unavailable(f"{self._where} requires signing")

    def log_in(self, peer: Endpoint) -> None:
        """One attempt, then the tree connection; secured as the server requires and as we wish."""
        access = login(peer)
        user = f"{access.domain}\\{access.username}" if access.domain else access.username
        session = GuardedSession(
            self._connection,
            user or None,
            access.password if user else None,
            require_encryption=self._security == "encrypted",
            auth_protocol="ntlm" if user else "kerberos",
        )
        with self._step("login"):
            try:
                session.connect()
            except SMBResponseException:
                raise
            except SMBAuthenticationError as error:
                if user:
                    raise
                text = (
                    f"{self._where}: login: Kerberos: {_last_reason(error)}; name the server as "
                    "its principal does, look at klist, or name a user"
                )
                raise Refused("login", text) from error
            except SMBException as error:
                if "authenticated as a guest" not in str(error):
                    raise
                refuse_guest(peer, peer.access or access, guest=True)
                if not self._agreed.server_requires_signing:
                    text = f"guests of {self._where} have no key: not {self._security}"
                    raise Unavailable(text) from error
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
            # 3.1.1 wants this one request signed in any case (MS-SMB2 3.2.4.1.1); in 3.0 too its
            # reply says whether the share is encrypted, which nobody may take away
            if number >= Dialects.SMB_3_0_0 and not guest and not session.encrypt_data:
                session.signing_required = True
            # below 3.1.1 a downgrade is found by asking again under a signature
            choice = number >= Dialects.SMB_3_0_0 or len(self._connection.negotiated_dialects) > 1
            try:
                _connect(tree, choice and not guest)
            finally:
                session.signing_required = required
        self._tree = tree
        self._agreed = Agreement(self._connection, session, tree)
        self._where = f"//{peer.host}/{peer.share}"
        if self._agreed.encryption and self._security in ("plain", "signed"):
            instead = ", which takes the place of signing" if self._security == "signed" else ""
            raise Unavailable(f"{self._where} requires encryption{instead}")

    @property
    def facts(self) -> SessionFacts:
        """See Session."""
        return self._agreed.facts(self._security, self._connect_seconds)

    def create_folder(self, path: str) -> Handle:
        """See Session."""
        return self._opened(
            "create", path, lambda t: smbprotocol_connection.folder(t, path, new=True)
        )

    def open_folder(self, path: str) -> Handle:
        """See Session."""
        return self._opened(
            "open", path, lambda t: smbprotocol_connection.folder(t, path, new=False)
        )

    def create_file(self, path: str) -> Handle:
        """See Session."""
        return self._opened("create", path, lambda t: smbprotocol_connection.new_file(t, path))

    def open_file(self, path: str, write: bool) -> Handle:
        """See Session."""
        return self._opened("open", path, lambda t: smbprotocol_connection.file(t, path, write))

    def close(self, handle: Handle) -> None:
        """See Session."""
        opened = self._opens.pop(handle.id)
        with self._step(f"close {handle.path}"):
            opened.close()

    def space(self, handle: Handle) -> Space:
        """See Session."""
        with self._step("free space"):
            return self._agreed.free_space(handle.id)

    def interfaces(self) -> tuple[Interface, ...]:
        """See Session."""
        with self._step("interfaces"):
            return self._agreed.interfaces()

    def names(self, folder: str) -> tuple[str, ...]:
        """See Session."""
        with self._step(f"list {folder}"):
            return smbprotocol_connection.names(self._tree, folder)

    def remove_file(self, path: str) -> None:
        """See Session."""
        self.close(
            self._opened("open", path, lambda t: smbprotocol_connection.doomed_file(t, path))
        )

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

    def _opened(self, step: str, path: str, how: Callable[[Any], Any]) -> Handle:
        with self._step(f"{step} {path}"):
            opened = how(self._tree)
        self._opens[opened.file_id] = opened
        return Handle(path, opened.file_id, opened.end_of_file)

    @contextmanager
    def _step(self, what: str, quiet: bool = False) -> Iterator[None]:
        """Bounds one step with the library and puts its errors in one line; quiet: leaves them."""
        self._transport.wire.deadline = time.monotonic() + STEP_SECONDS
        try:
            yield
        except (Refused, Unavailable, MemoryError):
            raise
        except Exception as error:
            # the library parses as if nobody lied: any error at all means a bad reply
            if quiet:
                raise
            if isinstance(error, SMBResponseException):
                raise status.refusal(self._where, what, error.status) from error
            text = " ".join(str(error).split()) or type(error).__name__
            if not isinstance(error, (SMBException, Broken, OSError)):
                text = f"the server's answer makes no sense ({text})"
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

    def _signer(self) -> Any:
        name = self._agreed.signing
        return signer(name, self._session.signing_key) if name else None

    def _sealer(self) -> Sealer | None:
        name = self._agreed.encryption
        session = self._session
        if name is None:
            return None
        return Sealer(name, session.encryption_key, session.decryption_key, session.session_id)


def _last_reason(error: Exception) -> str:
    """What GSSAPI says last and most precisely, in one line."""
    text = " ".join(str(error).split()).partition(", Context:")[0]
    return text.rpartition("Minor")[2].strip(" (0123456789):.") or text


def open_session(
    peer: Endpoint, dialect: str | None, security: str, preferred: tuple[str, ...]
) -> Smb2Session:
    """Connects, negotiates, logs in once and connects to the share.

    dialect: one of NUMBERS, or None for the best that the server offers; security and preferred as
    in probes.smb.session. Raises Refused, Unavailable and, before any login, DialectMissing.
    """
    _silence("smbprotocol")
    before = time.monotonic()
    sock = connect(peer)
    seconds = time.monotonic() - before
    transport = ParkableTcp(sock, peer.host, peer.port or SMB_PORT)
    session = Smb2Session(peer, seconds, transport, security)
    try:
        session.negotiate(dialect, preferred)
        session.log_in(peer)
    except BaseException:
        session.disconnect()
        raise
    return session


def _connect(tree: Any, checked: bool) -> None:
    """Opens the share; once more where the server is short of memory at that moment.

    No password is sent by it, so that a second attempt locks nobody out.
    """
    try:
        tree.connect(require_secure_negotiate=checked)
    except SMBResponseException as error:
        if error.status not in status.SHORT_OF_MEMORY:
            raise
        time.sleep(BREATH_SECONDS)
        tree.connect(require_secure_negotiate=checked)


def _silence(name: str) -> None:
    """Keeps the library's own messages from stderr; what matters comes as an exception."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.propagate = False
