"""Which dialects a file server offers: asked on connections of their own, without a login.

Sources: MS-SMB2 2.2.3 (NEGOTIATE), 2.2.4 (its reply); MS-CIFS 2.2.4.52 for SMB1.
"""

from __future__ import annotations

import os
import struct
import time
import uuid

from probes.meaning import Called, Port
from probes.records import DIALECTS, Details, Endpoint
from probes.smb.facts import security_mode
from probes.smb.frames import Broken, Wire
from probes.smb.session import connect

ANSWER_SECONDS = 3.0
ANSWER_BYTES = 64 * 1024
NUMBERS = {"2.0.2": 0x0202, "2.1": 0x0210, "3.0": 0x0300, "3.0.2": 0x0302, "3.1.1": 0x0311}

_HEADER2 = struct.Struct("<4sHHIHHIIQIIQ16s")
_REQUEST2 = struct.Struct("<HHHHI16sIHH")
_REPLY2 = struct.Struct("<HHH")
_STATUS2 = struct.Struct("<8xI")
_HEADER1 = struct.Struct("<4sBIBHH8sHHHHH")
_CONTEXT = struct.Struct("<HHI")
_SIGNING_ENABLED, _SIGNING_REQUIRED = 1, 2
_SIGNING_ENABLED_1, _SIGNING_REQUIRED_1 = 4, 8
_CAPABILITIES = 0x7F


def offered(host: Called, port: Port) -> Details:
    """What a server says to one question per dialect.

    Returns dialects (names, oldest first), signing (of the newest: "signing required", "signing
    enabled", "signing off"; absent where it speaks none) and connect_seconds. Raises Refused where
    nothing takes the connection.
    """
    peer = Endpoint(host=host, port=port)
    began = time.monotonic()
    connect(peer).close()
    seconds = time.monotonic() - began
    modes = {each: mode for each in DIALECTS if (mode := _asked(peer, each)) is not None}
    told: Details = {"dialects": list(modes), "connect_seconds": seconds}
    if modes:
        told["signing"] = list(modes.values())[-1]
    return told


def _asked(peer: Endpoint, dialect: str) -> str | None:
    """What it says of signing in a dialect; None: it does not speak it."""
    with connect(peer) as sock:
        wire = Wire(sock, ANSWER_BYTES)
        wire.deadline = time.monotonic() + ANSWER_SECONDS
        try:
            wire.send([question_1() if dialect == "smb1" else question(dialect)])
            message = memoryview(bytearray(wire.next_frame()))
            wire.receive(message)
        except Broken:
            return None
    return parse_1(bytes(message)) if dialect == "smb1" else parse(bytes(message), dialect)


def question(dialect: str) -> bytes:
    """A NEGOTIATE of SMB2 for one dialect alone."""
    number = NUMBERS[dialect]
    contexts = b""
    at, count = 0, 0
    if dialect == "3.1.1":
        # the one context that a client has to send: SHA-512 for the preauthentication's hash
        salt = os.urandom(32)
        data = struct.pack("<HHH", 1, len(salt), 1) + salt
        contexts = _CONTEXT.pack(1, len(data), 0) + data
        at, count = _HEADER2.size + _REQUEST2.size + 2 + 2, 1
    identity = uuid.uuid4().bytes if number > NUMBERS["2.0.2"] else bytes(16)
    capabilities = _CAPABILITIES if number >= NUMBERS["3.0"] else 0
    header = _HEADER2.pack(b"\xfeSMB", 64, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, bytes(16))
    body = _REQUEST2.pack(36, 1, _SIGNING_ENABLED, 0, capabilities, identity, at, count, 0)
    padding = bytes(2) if contexts else b""
    return header + body + struct.pack("<H", number) + padding + contexts


def parse(message: bytes, dialect: str) -> str | None:
    """What the reply says of signing; None: it is another dialect, an error or no such reply."""
    if len(message) < _HEADER2.size + _REPLY2.size or message[:4] != b"\xfeSMB":
        return None
    size, mode, number = _REPLY2.unpack_from(message, _HEADER2.size)
    if _STATUS2.unpack_from(message)[0] or size != 65 or number != NUMBERS[dialect]:
        return None
    return security_mode(bool(mode & _SIGNING_ENABLED), bool(mode & _SIGNING_REQUIRED))


def question_1() -> bytes:
    """A NEGOTIATE of SMB1 for NT LM 0.12 alone, with extended security and Unicode."""
    header = _HEADER1.pack(b"\xffSMB", 0x72, 0, 0x18, 0xC801, 0, bytes(8), 0, 0xFFFF, 1, 0, 0)
    names = b"\x02NT LM 0.12\0"
    return header + b"\0" + struct.pack("<H", len(names)) + names


def parse_1(message: bytes) -> str | None:
    """The same of SMB1; None: not spoken."""
    at = _HEADER1.size
    if len(message) < at + 4 or message[:4] != b"\xffSMB" or message[at] < 17:
        return None
    index, mode = struct.unpack_from("<HB", message, at + 1)
    if struct.unpack_from("<I", message, 5)[0] or index != 0:
        return None
    return security_mode(bool(mode & _SIGNING_ENABLED_1), bool(mode & _SIGNING_REQUIRED_1))
