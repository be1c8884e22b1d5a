"""Further channels of a session: connections of their own that carry its files too.

Source: MS-SMB2 3.2.4.2.3.1 (establishing an additional channel), 3.2.5.3.3 (the reply to binding),
3.3.5.5.2 (what a server asks of it).
"""

from __future__ import annotations

import copy
from typing import Any

from smbprotocol import Dialects
from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.session import SMB2SessionSetupRequest

from probes.records import Endpoint
from probes.smb.frames import Broken
from probes.smb.session import login
from probes.smb.smbprotocol_connection import GuardedConnection, GuardedSession
from probes.smb.smbprotocol_facts import Agreement
from probes.smb.smbprotocol_session import Smb2Session
from probes.stage import Unavailable

_BINDING = 0x01
"""SMB2_SESSION_FLAG_BINDING of a SESSION_SETUP request (MS-SMB2 2.2.5)."""


class _BindingConnection(GuardedConnection):
    """A connection whose login joins a session that is there."""

    def send(self, message: Any, *arguments: Any, **more: Any) -> Any:
        if isinstance(message, SMB2SessionSetupRequest):
            message["flags"] = _BINDING
        return super().send(message, *arguments, **more)


class Channel(Smb2Session):
    """One more connection of a session: its pipe carries the files that the session opened."""

    def __init__(self, first: Smb2Session, peer: Endpoint) -> None:
        super().__init__(peer, first._security)
        signs = first._security == "signed"
        self._connection = _BindingConnection(self._transport, require_signing=signs)
        self._connection.client_guid = first._connection.client_guid
        self._agreed = Agreement(self._connection)
        self._first = first

    def log_in(self) -> None:
        """Joins the first one's session, signed with its key; the same user logs in once more.

        Raises Unavailable where the server lets no further connection join.
        """
        access, first = login(self._peer), self._first._session
        user = f"{access.domain}\\{access.username}" if access.domain else access.username
        joined = GuardedSession(
            self._connection,
            user or None,
            access.password if user else None,
            require_encryption=False,
            auth_protocol="ntlm" if user else "kerberos",
        )
        # The request is signed as the session's own, whatever else of the session is not.
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
        # The share was opened by the first connection alone.
        self._connection.told = {**self._first._connection.told, **self._connection.told}
        self._session, self._tree = joined, self._first._tree
        self._agreed = Agreement(self._connection, joined, self._tree)

    def _log_off(self) -> None:
        """Nothing: the first connection ends the session."""


def further(first: Smb2Session, peer: Endpoint) -> Channel:
    """One more channel of a session. Raises Refused, and Unavailable where there can be none."""
    connection = first._connection
    if connection.dialect < Dialects.SMB_3_0_0 or not connection.supports_multi_channel:
        raise Unavailable(f"{peer.host} offers one connection per session")
    if first._session.signing_key is None:
        raise Unavailable(f"{peer.host}: a guest's session has one connection")
    try:
        return Channel(first, peer).start(first._agreed.dialect, ())
    except (SMBException, Broken) as error:
        raise Unavailable(f"{peer.host}: no second connection: {error}") from error
