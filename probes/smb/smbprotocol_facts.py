"""Facts of a session of the smbprotocol library, and further queries to its server.

Runs between the library's own steps: the callers bound each query and catch its errors.
"""

from __future__ import annotations

import shlex
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from smbprotocol import Dialects
from smbprotocol.connection import Ciphers, Commands, SecurityMode, SigningAlgorithms
from smbprotocol.exceptions import SMBException, SMBResponseException
from smbprotocol.ioctl import IOCTLFlags, SMB2IOCTLRequest

from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.smb import facts
from probes.smb.facts import Interface, SessionFacts
from probes.smb.frames import SmbError
from probes.smb.smbprotocol_connection import GuardedConnection

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
_IOCTL_REPLY = struct.Struct("<HHI16sIIIIII")
_HEADER_BYTES = 64
_NO_FILE = b"\xff" * 16


def numbers(table: dict[int, str], preferred: tuple[str, ...]) -> list[int] | None:
    """Returns the library's numbers of the names in a table; None: the library's own choice."""
    return [number for name in preferred for number, n in table.items() if n == name] or None


_FILE_ADD_FILE = 0x2


@dataclass(frozen=True)
class Agreement:
    """A connection, the session on it and, once there is one, its tree connection."""

    connection: GuardedConnection
    session: Any = None
    tree: Any = None

    @property
    def dialect(self) -> str:
        """Name of the dialect, one of facts.NUMBERS."""
        return next(name for name, n in facts.NUMBERS.items() if n == self.connection.dialect)

    @property
    def server_requires_signing(self) -> bool:
        """Whether the server requires signing, by its NEGOTIATE reply."""
        mode = self.connection.server_security_mode
        return bool(mode & SecurityMode.SMB2_NEGOTIATE_SIGNING_REQUIRED)

    @property
    def may_write(self) -> bool:
        """Whether the share lets this user add files (MaximalAccess, MS-SMB2 2.2.10)."""
        (rights,) = struct.unpack_from("<I", self.connection.bodies[Commands.SMB2_TREE_CONNECT], 12)
        return bool(rights & _FILE_ADD_FILE)

    @property
    def encryption(self) -> str | None:
        """Cipher of every message on the tree; None: they are not encrypted."""
        if not (self.session.encrypt_data or self.tree.encrypt_data):
            return None
        if self.connection.dialect < Dialects.SMB_3_1_1:
            return "aes-128-ccm"
        return ENCRYPTION[self.connection.cipher_id]

    @property
    def signing(self) -> str | None:
        """Algorithm that signs every message; None: they are not signed, or encrypted."""
        if self.encryption or not self.session.signing_required:
            return None
        number, agreed = self.connection.dialect, self.connection.signing_algorithm_id
        if number >= Dialects.SMB_3_1_1 and agreed is not None:
            return SIGNING[agreed]
        return "aes-cmac" if number >= Dialects.SMB_3_0_0 else "hmac-sha256"

    def facts(self, security: str, connect_seconds: float) -> SessionFacts:
        """Returns the negotiated parameters; security: the one requested by this client."""
        connection = self.connection
        window = connection.sequence_window
        return SessionFacts(
            dialect=self.dialect,
            signing=self.signing,
            signing_required_by=(
                "server"
                if self.server_requires_signing
                else "client"
                if security == "signed"
                else None
            ),
            encryption=self.encryption,
            encryption_required_by=self._encryption_required_by(),
            security_mode=facts.security_mode(
                bool(connection.server_security_mode & SecurityMode.SMB2_NEGOTIATE_SIGNING_ENABLED),
                self.server_requires_signing,
            ),
            max_read_bytes=connection.max_read_size,
            max_write_bytes=connection.max_write_size,
            credits=window["high"] - window["low"],
            server_guid=str(connection.server_guid),
            server_time=facts.read_clock(connection.bodies[Commands.SMB2_NEGOTIATE]),
            capabilities=self.capabilities,
            connect_seconds=connect_seconds,
        )

    def interfaces(self) -> tuple[Interface, ...]:
        """Queries the server's network interfaces, if it reports them (MS-SMB2 3.2.4.20.10)."""
        if not self.connection.supports_multi_channel:
            return ()
        return facts.interfaces(self._ask(facts.QUERY_NETWORK_INTERFACE_INFO))

    def refuse_link(self, peer: Endpoint, path: str) -> None:
        """Raises Refused where a path is a DFS link and the server reports its target.

        The tree may be that of IPC$, and not connected yet. No other host is asked.
        """
        unc_path = rf"\{peer.host}\{peer.share}\{path}".rstrip("\\")
        link = target = ""
        with suppress(SMBException, SmbError, OSError):
            if self.tree.tree_connect_id is None:
                self.tree.connect(require_secure_negotiate=False)
            request = struct.pack("<H", 4) + f"{unc_path}\0".encode("utf-16-le")
            link, target = facts.referral(self._ask(facts.DFS_GET_REFERRALS, request), unc_path)
        if target and target.lower() != link.lower():
            # The user's folder may be below the link.
            folder = f"//{peer.host}/{peer.share}/{peer.folder}/".replace("\\", "/")
            location = f"{target}/{folder.partition(f'{link}/')[2]}".rstrip("/")
            command = f"bottleneck diagnose {shlex.quote(location)}"
            raise Refused("share", f"{link} is a DFS link to {target}: use {command}")

    def _ask(self, code: int, data: bytes = b"") -> bytes:
        """Returns the output of an FSCTL without a file; empty: refused, or too short a reply."""
        request = SMB2IOCTLRequest()
        request["ctl_code"] = code
        request["file_id"] = _NO_FILE
        request["buffer"] = data
        request["max_output_response"] = facts.ANSWER_BYTES
        request["flags"] = IOCTLFlags.SMB2_0_IOCTL_IS_FSCTL
        try:
            sent = self.connection.send(request, self.session.session_id, self.tree.tree_connect_id)
            body = bytes(self.connection.receive(sent)["data"].get_value())
        except SMBResponseException:
            return b""
        if len(body) < _IOCTL_REPLY.size:
            return b""
        *_, start, size, _, _ = _IOCTL_REPLY.unpack_from(body)
        start = max(start - _HEADER_BYTES, _IOCTL_REPLY.size)
        return body[start : start + size]

    def _encryption_required_by(self) -> str | None:
        if self.encryption is None:
            return None
        (flags,) = struct.unpack_from("<H", self.connection.bodies[Commands.SMB2_SESSION_SETUP], 2)
        if flags & facts.SESSION_ENCRYPT_DATA:
            return "server"
        return "share" if self.tree.encrypt_data else "client"

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Names of facts.CAPABILITIES that the server has."""
        names = facts.names(self.connection.server_capabilities.get_value(), facts.CAPABILITIES)
        # 3.1.1 negotiates encryption by a context and does not set the bit.
        if self.connection.supports_encryption and "encryption" not in names:
            names += ("encryption",)
        return names
