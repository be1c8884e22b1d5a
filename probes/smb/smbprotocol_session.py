"""Sessions of SMB 2.0.2 to 3.1.1 by the smbprotocol library: everything but READ and WRITE.

The library logs in, opens and closes; for the copy itself its reader thread is paused and the
socket passed to probes.smb.pipe2.
"""

from __future__ import annotations

import copy
import time
from contextlib import suppress
from typing import Any

from smbprotocol import Dialects
from smbprotocol.connection import Capabilities, Commands
from smbprotocol.exceptions import SMBAuthenticationError, SMBException, SMBResponseException
from smbprotocol.session import SMB2SessionSetupRequest
from smbprotocol.tree import TreeConnect

from probes.core.records import SMB_PORT, Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.smb import status
from probes.smb.facts import NUMBERS, Interface, SessionFacts
from probes.smb.frames import DeadlinePassed, SmbError
from probes.smb.pipe import EXISTING, FOLDER, Pipe
from probes.smb.pipe2 import Link2, Pipe2
from probes.smb.protection import Sealer, signer
from probes.smb.session import (
    STEP_SECONDS,
    DialectMissing,
    Handle,
    Session,
    Space,
    login,
    refuse_guest,
    refuse_other_shares,
)
from probes.smb.smbprotocol_connection import (
    GuardedConnection,
    GuardedSession,
    ParkableTcp,
    list_folder,
    open_path,
)
from probes.smb.smbprotocol_facts import ENCRYPTION, SIGNING, Agreement, numbers
from probes.smb.transfer import parse_room, room_question

HARMLESS_CAPABILITIES = (
    Capabilities.SMB2_GLOBAL_CAP_MULTI_CHANNEL
    | Capabilities.SMB2_GLOBAL_CAP_PERSISTENT_HANDLES
    | Capabilities.SMB2_GLOBAL_CAP_DIRECTORY_LEASING
)
"""Capabilities that a server reports only to a client with the same; they require nothing."""


BREATH_SECONDS = 0.2
LOOK_SECONDS = 2.0
"""Time to search the largest file of a share."""
MOST_ENTRIES = 20_000
"""Entries of one folder."""
FILE_LIST_DIRECTORY = 1
OTHER_SHARES = {2: "named pipe", 3: "printer"}
"""Kind of share by the ShareType of a TREE_CONNECT reply (MS-SMB2 2.2.10)."""


class Smb2Session(Session):
    """A Session of SMB2 or SMB3; dialects are those of NUMBERS, None: the best one offered."""

    _library = "smbprotocol"
    _control_frame_bytes = 1024 * 1024
    _plain_errors = (SMBException, SmbError, OSError)

    def __init__(self, peer: Endpoint, security: str) -> None:
        super().__init__(peer, security)
        self._transport = ParkableTcp(self._sock, self._wire, peer.host, peer.port or SMB_PORT)
        self._connection = GuardedConnection(self._transport, require_signing=security == "signed")
        self._agreed = Agreement(self._connection)
        self._session: Any = None
        self._files: dict[bytes, Any] = {}

    def negotiate(self, dialect: str | None, preferred: tuple[str, ...]) -> None:
        number = NUMBERS[dialect] if dialect else None
        name = f"SMB {dialect}" if dialect else "SMB 2 or 3"
        refusal = DialectMissing(f"{self._where} does not offer {name}")
        sent = self._connection.client_security_mode
        self._connection.client_capabilities |= HARMLESS_CAPABILITIES
        try:
            with self._step("negotiate", quiet=True):
                self._connection.connect(
                    dialect=number,
                    preferred_encryption_algos=numbers(ENCRYPTION, preferred),
                    preferred_signing_algos=numbers(SIGNING, preferred),
                )
        except DeadlinePassed:
            raise self._silent() from None
        except Refused:
            raise
        except SmbError as error:
            raise DialectMissing(f"{refusal}: {error}") from error
        except Exception as error:
            # Any other answer is none to a NEGOTIATE.
            raise refusal from error
        if number is not None and self._connection.dialect != number:
            raise refusal
        # The library stores the server's mode as our own, and 3.0's check of the negotiation would
        # then send the server another mode than we sent first.
        self._connection.client_security_mode = sent
        if self._security == "encrypted" and not self._connection.supports_encryption:
            spoken = self._agreed.dialect
            raise Unavailable(f"{self._where} offers no supported encryption in SMB {spoken}")
        if self._security == "plain" and self._agreed.server_requires_signing:
            raise Unavailable(f"{self._where} requires signing")

    def log_in(self) -> None:
        peer = self._peer
        access = login(peer)
        session = self._session_of(access, self._security == "encrypted")
        with self._step("login"):
            self._authenticate(session, access)
        self._session = session
        self.guest = session.signing_key is None
        if self.guest:
            refuse_guest(peer, access)
        self._tree = self._connect_tree(session, self.guest)
        self._agreed = Agreement(self._connection, session, self._tree)
        self._where = f"//{peer.host}/{peer.share}"
        if self._agreed.encryption and self._security not in ("", "encrypted"):
            instead = ", which takes the place of signing" if self._security == "signed" else ""
            raise Unavailable(f"{self._where} requires encryption{instead}")

    def _session_of(self, access: Access, encrypted: bool) -> GuardedSession:
        """Creates the library's session, for a login by password or by a Kerberos ticket."""
        user = f"{access.domain}\\{access.username}" if access.domain else access.username
        return GuardedSession(
            self._connection,
            user or None,
            access.password if user else None,
            require_encryption=encrypted,
            auth_protocol="ntlm" if user else "kerberos",
        )

    def _authenticate(self, session: GuardedSession, access: Access) -> None:
        """Logs in. Raises Refused and Unavailable, with a remedy for a ticket or a guest."""
        try:
            session.connect()
        except SMBResponseException:
            raise
        except SMBAuthenticationError as error:
            if access.domain or access.username:
                raise
            text = (
                f"{self._where}: login: Kerberos: {_last_reason(error)}; use the server name "
                "of its principal, check klist, or use --user NAME"
            )
            raise Refused("login", text) from error
        except SMBException as error:
            if "authenticated as a guest" not in str(error):
                raise
            refuse_guest(self._peer, access)
            if not self._agreed.server_requires_signing:
                text = (
                    f"guests of {self._where} have no key, so sessions cannot be {self._security}"
                )
                raise Unavailable(text) from error
            text = (
                f"{self._where}: login: guests cannot sign and this server requires signing; "
                "use --user NAME"
            )
            raise Refused("login", text) from error

    def _connect_tree(self, session: GuardedSession, guest: bool) -> TreeConnect:
        share = self._peer.share
        tree = TreeConnect(session, rf"\\{self._peer.host}\{share}")
        number = self._connection.dialect
        with self._step(f"share {share}"):
            required = session.signing_required
            # 3.1.1 requires this one request to be signed (MS-SMB2 3.2.4.1.1); in 3.0 as well its
            # reply says whether the share is encrypted, which must not be altered.
            if number >= Dialects.SMB_3_0_0 and not guest and not session.encrypt_data:
                session.signing_required = True
            # Below 3.1.1 a downgrade is detected by a second, signed query.
            choice = number >= Dialects.SMB_3_0_0 or len(self._connection.negotiated_dialects) > 1
            try:
                _connect(tree, choice and not guest)
            except SMBResponseException as error:
                if error.status in status.ELSEWHERE and "dfs" in self._agreed.capabilities:
                    pipes = TreeConnect(session, rf"\\{self._peer.host}\IPC$")
                    Agreement(self._connection, session, pipes).refuse_link(self._peer, "")
                raise
            finally:
                session.signing_required = required
        kind = self._connection.bodies[Commands.SMB2_TREE_CONNECT][2]
        refuse_other_shares(self._peer, OTHER_SHARES.get(kind, ""))
        return tree

    @property
    def facts(self) -> SessionFacts:
        return self._agreed.facts(self._security, self._connect_seconds)

    def space(self, handle: Handle) -> Space:
        with self._step("free space"), self.pipe(handle) as pipe:
            pipe.ask("space", 0, room_question(handle.id))
            return Space(*parse_room(pipe.wait().body))

    def may_write(self) -> bool | None:
        return self._agreed.may_write

    def interfaces(self) -> tuple[Interface, ...]:
        with self._step("interfaces"):
            return self._agreed.interfaces()

    def _create(
        self, path: str, access: int, disposition: int, options: int, sharing: int
    ) -> Handle:
        try:
            file = open_path(self._tree, path, access, disposition, options, sharing)
        except SMBResponseException as error:
            if error.status in status.ELSEWHERE:
                self._agreed.refuse_link(self._peer, path)
            raise
        self._files[file.file_id] = file
        return Handle(path, file.file_id, file.end_of_file)

    def _close(self, handle: Handle) -> None:
        self._files.pop(handle.id).close()

    def _names(self, folder: str) -> list[str]:
        handle = open_path(self._tree, folder, FILE_LIST_DIRECTORY, EXISTING, FOLDER)
        return [entry.name for entry in list_folder(handle, "*", MOST_ENTRIES)]

    def largest_file(self, folder: str) -> tuple[int, str]:
        until = time.monotonic() + LOOK_SECONDS
        largest, pending = (0, ""), [""]
        while pending and time.monotonic() < until:
            place = pending.pop(0)
            path = "\\".join(filter(None, (folder, place.replace("/", "\\"))))
            with suppress(Refused), self._step(f"list {path}"):
                handle = open_path(self._tree, path, FILE_LIST_DIRECTORY, EXISTING, FOLDER)
                entries = list_folder(handle, "*", MOST_ENTRIES, until)
                names = [(each, f"{place}/{each.name}".lstrip("/")) for each in entries]
                pending += [n for e, n in names if e.is_plain_folder and e.name not in (".", "..")]
                largest = max((largest, *((e.size_bytes, n) for e, n in names if e.is_plain_file)))
        return largest

    def _take_over(self, handle: Handle) -> Pipe:
        connection = self._connection
        self._settle_echoes()
        self._transport.park()
        window = connection.sequence_window
        return Pipe2(
            Link2(
                wire=self._wire,
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
        )

    def _give_back(self, link: Link2) -> None:
        window = self._connection.sequence_window
        window["low"] = link.next_message_id
        window["high"] = link.next_message_id + link.credits
        if self._cut:
            self._transport.close()
        self._transport.unpark()

    def _usable(self) -> bool:
        return self._transport.connected and super()._usable()

    def _log_off(self) -> None:
        self._tree.disconnect()
        self._session.disconnect(close=False)

    def _hang_up(self) -> None:
        self._transport.close()
        if self._connection._t_worker is not None:
            self._connection._t_worker.join(timeout=2 * STEP_SECONDS)
        self._transport.release()

    def _status(self, error: Exception) -> int | None:
        return error.status if isinstance(error, SMBResponseException) else None

    def _settle_echoes(self) -> None:
        """Waits for a keep-alive ECHO in flight, whose reply is for the library."""
        until = time.monotonic() + STEP_SECONDS
        while self._connection.outstanding_requests:
            if time.monotonic() > until:
                raise SmbError("the server does not answer")
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
    """Returns GSSAPI's last and most precise message, in one line."""
    text = " ".join(str(error).split()).partition(", Context:")[0]
    return text.rpartition("Minor")[2].strip(" (0123456789):.") or text


def _connect(tree: Any, checked: bool) -> None:
    """Connects the tree; tries once more where the server is short of memory at that moment.

    It sends no password, so that a second attempt locks nobody out.
    """
    try:
        tree.connect(require_secure_negotiate=checked)
    except SMBResponseException as error:
        if error.status not in status.SHORT_OF_MEMORY:
            raise
        time.sleep(BREATH_SECONDS)
        tree.connect(require_secure_negotiate=checked)


SESSION_FLAG_BINDING = 0x01
"""Flag of a SESSION_SETUP request (MS-SMB2 2.2.5)."""


class _BindingConnection(GuardedConnection):
    """A connection whose login joins an existing session."""

    def send(self, message: Any, *arguments: Any, **keywords: Any) -> Any:
        if isinstance(message, SMB2SessionSetupRequest):
            message["flags"] = SESSION_FLAG_BINDING
        return super().send(message, *arguments, **keywords)


class Channel(Smb2Session):
    """One more connection of a session; its pipe works on files that the session opened.

    Source: MS-SMB2 3.2.4.2.3.1 (establishing an additional channel), 3.2.5.3.3 (the reply to
    binding), 3.3.5.5.2 (a server's requirements).
    """

    def __init__(self, first: Smb2Session, peer: Endpoint) -> None:
        super().__init__(peer, first._security)
        signs = first._security == "signed"
        self._connection = _BindingConnection(self._transport, require_signing=signs)
        self._connection.client_guid = first._connection.client_guid
        self._agreed = Agreement(self._connection)
        self._first = first

    def log_in(self) -> None:
        """Joins the first connection's session, signed with its key; logs the user in again.

        Raises Unavailable where the server allows no further connection.
        """
        first = self._first._session
        joined = self._session_of(login(self._peer), encrypted=False)
        # The request is signed with the session's key, even where the session is unsigned.
        as_first = copy.copy(first)
        as_first.signing_required, as_first.encrypt_data = True, False
        joined.session_id = first.session_id
        self._connection.session_table[first.session_id] = as_first
        with self._step("join the session"):
            try:
                joined.connect()
            except SMBResponseException as error:
                text = f"{self._where}: the server does not allow a second connection in a session"
                raise Unavailable(f"{text} (0x{error.status:08x})") from error
        joined.encrypt_data = first.encrypt_data
        joined.encryption_key = first.encryption_key
        joined.decryption_key = first.decryption_key
        joined.tree_connect_table = first.tree_connect_table
        # Only the first connection has the reply to TREE_CONNECT.
        self._connection.bodies = {**self._first._connection.bodies, **self._connection.bodies}
        self._session, self._tree = joined, self._first._tree
        self._agreed = Agreement(self._connection, joined, self._tree)

    def _log_off(self) -> None:
        """Does nothing: the first connection ends the session."""


def open_channel(first: Smb2Session, peer: Endpoint) -> Channel:
    """Opens one more channel of a session. Raises Refused; Unavailable where none is possible."""
    connection = first._connection
    if connection.dialect < Dialects.SMB_3_0_0 or not connection.supports_multi_channel:
        raise Unavailable(f"{peer.host} offers one connection per session")
    if first._session.signing_key is None:
        raise Unavailable(f"{peer.host}: a guest's session has one connection")
    try:
        return Channel(first, peer).start(first._agreed.dialect, ())
    except (SMBException, SmbError) as error:
        raise Unavailable(f"{peer.host}: no second connection: {error}") from error
