"""Sessions of SMB1 by the impacket library, the only one that supports it.

For SMB1 only: impacket does not check a server's signatures. Here replies are checked, the login is
tried once and never falls back to NTLMv1, and the copy itself is ours: probes.smb.pipe1.
"""

from __future__ import annotations

import hmac
import struct
import time
import uuid
from typing import Any

from impacket import smb

from probes.core.records import Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files.free_space import credible_room
from probes.smb import session
from probes.smb.facts import CAPABILITIES_1, Interface, SessionFacts, names, security_mode, to_iso
from probes.smb.frames import DeadlinePassed, SmbError, Wire
from probes.smb.pipe import Pipe
from probes.smb.pipe1 import CAP_LARGE_READX, CAP_LARGE_WRITEX, LARGE_BYTES, Link1, Pipe1
from probes.smb.protection import Md5

CAP_LARGE_FILES = 0x0008
CAP_EXTENDED_SECURITY = 0x80000000
SMB1_OFF = "SMB1 is off on the server (good)"

_REPLY = b"\x80"
"""SMB_FLAGS_REPLY (MS-CIFS 2.2.3.1), the highest bit of Flags; the library checks the command."""
OTHER_SHARES = {"LPT1:": "printer", "IPC": "named pipe", "COMM": "serial device"}
"""Kind of share by the Service of a TREE_CONNECT_ANDX reply (MS-CIFS 2.2.4.55.2)."""
_QUERY_FS_SIZE_INFO = 0x0103
_FS_SIZE = struct.Struct("<qqII")
_TREE_SUPPORT = struct.Struct("<4xH")


class _Transport:
    """The interface of impacket's NetBIOS session, on checked frames under a deadline."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def send_packet(self, data: bytes) -> None:
        self._wire.send([data])

    def receive(self) -> bytes:
        message = memoryview(bytearray(self._wire.next_frame()))
        self._wire.receive(message)
        return bytes(message)


class _Smb(smb.SMB):  # type: ignore[misc]
    """impacket's SMB1 client, which requests all that the server offers and checks signatures."""

    tree_support = 0
    """OptionalSupport of the last TREE_CONNECT_ANDX reply."""
    service = ""
    """Service of that reply: the kind of share."""

    def sendSMB(self, packet: Any) -> None:
        for command in packet["Data"]:
            parameters: Any = getattr(command, "fields", {}).get("Parameters")
            if "MaxMpxCount" in getattr(parameters, "fields", {}):
                # The library offers 2 requests in flight and files below 4 GiB.
                parameters["MaxMpxCount"] = self._dialects_parameters["MaxMpxCount"]
                parameters["Capabilities"] |= CAP_LARGE_FILES
        super().sendSMB(packet)

    def recvSMB(self) -> Any:
        message = self._sess.receive()
        if not message[9:10] >= _REPLY:
            raise SmbError("the server sent a message that is no reply")
        if self._SignatureEnabled:
            number = self._SignSequenceNumber - 1
            signer = Md5(bytes(self._SigningSessionKey) + bytes(self._SigningChallengeResponse))
            right = signer.sign(number, True, message[:14], struct.pack("<q", number), message[22:])
            if not hmac.compare_digest(right, message[14:22]):
                raise SmbError("a reply came without its right signature")
        packet = smb.NewSMBPacket(data=message)
        if packet["Command"] == smb.SMB.SMB_COM_TREE_CONNECT_ANDX and packet["Data"]:
            parameters = smb.SMBCommand(packet["Data"][0])["Parameters"]
            if len(parameters) >= _TREE_SUPPORT.size:
                (self.tree_support,) = _TREE_SUPPORT.unpack_from(parameters)
            data = bytes(smb.SMBCommand(packet["Data"][0])["Data"])
            self.service = data.partition(b"\0")[0].decode("ascii", "replace")
        return packet


class Smb1Session(session.Session):
    _library = "impacket"
    _control_frame_bytes = 256 * 1024
    _plain_errors = (Exception,)

    def __init__(self, peer: Endpoint, security: str) -> None:
        super().__init__(peer, security)
        self._server_mode = 0
        self._smb: Any = None

    def negotiate(self, dialect: str | None, preferred: tuple[str, ...]) -> None:
        """Negotiates NT LM 0.12 with extended security."""
        host = self._peer.host
        self._wire.deadline = time.monotonic() + self.step_seconds
        try:
            self._smb = _Smb(host, host, session=_Transport(self._wire))
        except DeadlinePassed:
            raise self._silent() from None
        except Refused:
            raise
        except Exception as error:
            # Any other answer is none to NT LM 0.12.
            raise session.DialectMissing(SMB1_OFF) from error
        finally:
            self._wire.deadline = None
        parameters = self._smb._dialects_parameters
        if parameters["DialectIndex"] == 0xFFFF:
            raise session.DialectMissing(SMB1_OFF)
        if not parameters["Capabilities"] & CAP_EXTENDED_SECURITY:
            text = f"{host} offers SMB1 without NTLMv2; its password would be exposed"
            raise session.DialectMissing(text)
        if self._security == "encrypted":
            raise Unavailable("SMB1 has no encryption")
        self._server_mode = mode = parameters["SecurityMode"]
        if self._security == "plain" and mode & smb.SMB.SECURITY_SIGNATURES_REQUIRED:
            raise Unavailable(f"{host} requires signing")
        if self._security == "signed":
            if not mode & (
                smb.SMB.SECURITY_SIGNATURES_ENABLED | smb.SMB.SECURITY_SIGNATURES_REQUIRED
            ):
                raise Unavailable(f"{host} does not sign in SMB1 (Samba: server signing = auto)")
            # The library signs only where the server seems to require it.
            self._smb._SignatureRequired = True
            parameters["SecurityMode"] = mode | smb.SMB.SECURITY_SIGNATURES_REQUIRED

    def log_in(self) -> None:
        access = session.login(self._peer)
        if not access.username:
            raise Unavailable("SMB1 needs a login by password; Kerberos is not supported")
        with self._step("login"):
            self._smb.login(access.username, access.password, access.domain, ntlm_fallback=False)
        self.guest = bool(self._smb.isGuestSession())
        if self.guest:
            session.refuse_guest(self._peer, access)
        if self.guest and self._security == "signed":
            raise Unavailable(f"guests of {self._where} have no key to be {self._security}")
        with self._step(f"share {self._peer.share}"):
            self._tree = self._smb.tree_connect_andx(rf"\\{self._peer.host}\{self._peer.share}")
            session.refuse_other_shares(self._peer, OTHER_SHARES.get(self._smb.service, ""))
        self._where = f"//{self._peer.host}/{self._peer.share}"

    @property
    def facts(self) -> SessionFacts:
        parameters = self._smb._dialects_parameters
        capabilities = parameters["Capabilities"]
        guid = bytes(self._smb._dialects_data["ServerGUID"])[:16].ljust(16, b"\0")
        required = bool(self._server_mode & smb.SMB.SECURITY_SIGNATURES_REQUIRED)
        by_choice = "client" if self._security == "signed" else None
        return SessionFacts(
            dialect="smb1",
            signing=Md5.name if self._smb._SignatureEnabled else None,
            signing_required_by="server" if required else by_choice,
            encryption=None,
            encryption_required_by=None,
            security_mode=security_mode(
                bool(self._server_mode & smb.SMB.SECURITY_SIGNATURES_ENABLED), required
            ),
            max_read_bytes=self._longest(CAP_LARGE_READX),
            max_write_bytes=self._longest(CAP_LARGE_WRITEX),
            credits=parameters["MaxMpxCount"],
            server_guid=str(uuid.UUID(bytes_le=guid)),
            server_time=to_iso(parameters["HighDateTime"] << 32 | parameters["LowDateTime"]),
            capabilities=names(capabilities, CAPABILITIES_1),
            connect_seconds=self._connect_seconds,
        )

    def space(self, handle: session.Handle) -> session.Space:
        """Queries SMB_QUERY_FS_SIZE_INFO, MS-CIFS 2.2.8.2.4."""
        with self._step("free space"):
            level = struct.pack("<H", _QUERY_FS_SIZE_INFO)
            self._smb.send_trans2(self._tree, smb.SMB.TRANS2_QUERY_FS_INFORMATION, "\0", level, "")
            reply = self._smb.recvSMB()
            reply.isValidAnswer(smb.SMB.SMB_COM_TRANSACTION2)
            data = smb.SMBCommand(reply["Data"][0])
            parameters = smb.SMBTransaction2Response_Parameters(data["Parameters"])
            total, free, sectors, sector_bytes = _FS_SIZE.unpack(
                bytes(data["Data"][-parameters["TotalDataCount"] :])[: _FS_SIZE.size]
            )
        unit_bytes = sectors * sector_bytes
        return session.Space(*credible_room(free * unit_bytes, total * unit_bytes))

    def interfaces(self) -> tuple[Interface, ...]:
        """Returns none: SMB1 has no request for them."""
        return ()

    def _names(self, folder: str) -> list[str]:
        entries = self._smb.list_path(self._peer.share, f"{folder}\\*")
        return [str(entry.get_longname()) for entry in entries]

    def _take_over(self, handle: session.Handle) -> Pipe:
        library, facts = self._smb, self.facts
        key = bytes(library._SigningSessionKey) + bytes(library._SigningChallengeResponse)
        return Pipe1(
            Link1(
                wire=self._wire,
                user_id=library._uid,
                tree_id=self._tree,
                file_id=_number(handle),
                flags2=library.get_flags()[1],
                max_read_bytes=facts.max_read_bytes,
                max_write_bytes=facts.max_write_bytes,
                max_requests=max(1, facts.credits),
                signer=Md5(key) if library._SignatureEnabled else None,
                sequence=library._SignSequenceNumber,
            )
        )

    def _give_back(self, link: Link1) -> None:
        self._smb._SignSequenceNumber = link.sequence

    def _close(self, handle: session.Handle) -> None:
        self._smb.close(self._tree, _number(handle))

    def _log_off(self) -> None:
        self._smb.disconnect_tree(self._tree)
        self._smb.logoff()

    def _hang_up(self) -> None:
        self._sock.close()

    def _status(self, error: Exception) -> int | None:
        return error.get_error_code() if isinstance(error, smb.SessionError) else None

    def _create(
        self, path: str, access: int, disposition: int, options: int, sharing: int
    ) -> session.Handle:
        flags = self._smb.get_flags()[1]
        name = path.encode("utf-16le") if flags & smb.SMB.FLAGS2_UNICODE else path.encode()
        create = smb.SMBCommand(smb.SMB.SMB_COM_NT_CREATE_ANDX)
        create["Parameters"] = smb.SMBNtCreateAndX_Parameters()
        create["Data"] = smb.SMBNtCreateAndX_Data(flags=flags)
        for field, value in {
            "FileNameLength": len(name),
            "CreateFlags": 0,  # no oplock: nobody could answer its break
            "AccessMask": access,
            "CreateOptions": options,
            "ShareAccess": sharing,
            "Disposition": disposition,
        }.items():
            create["Parameters"][field] = value
        create["Data"]["FileName"] = name
        if flags & smb.SMB.FLAGS2_UNICODE:
            create["Data"]["Pad"] = 0
        packet = smb.NewSMBPacket()
        packet["Tid"] = self._tree
        packet.addCommand(create)
        self._smb.sendSMB(packet)
        reply = self._smb.recvSMB()
        reply.isValidAnswer(smb.SMB.SMB_COM_NT_CREATE_ANDX)
        parameters = smb.SMBNtCreateAndXResponse_Parameters(
            smb.SMBCommand(reply["Data"][0])["Parameters"]
        )
        return session.Handle(
            path, parameters["Fid"].to_bytes(2, "little"), parameters["EndOfFile"]
        )

    def _longest(self, capability: int) -> int:
        """Returns the longest READ or WRITE; a signed WRITE stays within MaxBufferSize."""
        parameters = self._smb._dialects_parameters
        large = parameters["Capabilities"] & capability
        if large and not (capability == CAP_LARGE_WRITEX and self._smb._SignatureEnabled):
            return LARGE_BYTES
        return max(1024, (int(parameters["MaxBufferSize"]) - 64) & ~1023)


def _number(handle: session.Handle) -> int:
    return int.from_bytes(handle.id, "little")
