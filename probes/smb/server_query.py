"""Finds out a file server's dialects without a login, or the facts of a session by one login.

Each request has a connection of its own. Sources: MS-SMB2 2.2.3 (NEGOTIATE; 2.2.3.1.1: its
context), 2.2.4 (its reply); MS-CIFS 2.2.4.52 for SMB1.
"""

from __future__ import annotations

import os
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from probes.core.field_types import Port, Text
from probes.core.records import DIALECTS, Details, Endpoint
from probes.core.stage import Refused
from probes.smb import recycle_bin
from probes.smb.facts import NUMBERS, security_mode
from probes.smb.frames import SmbError, Wire, connect
from probes.smb.login import open_session

ANSWER_SECONDS = 3.0
ANSWER_BYTES = 64 * 1024

_HEADER2 = struct.Struct("<4sHHIHHIIQIIQ16s")
_REQUEST2 = struct.Struct("<HHHHI16sIHHH")
_REPLY2 = struct.Struct("<HHHH16sIIIIQQHHI")
_HEADER1 = struct.Struct("<4sBIBHH8sHHHHH")
_CONTEXT = struct.Struct("<HHI")
_CONTEXT_AT = 104
"""Offset of the first context in a NEGOTIATE request of one dialect: aligned to 8 bytes."""
_PREAUTH, _SHA_512 = 1, 1
_SIGNING_ENABLED, _SIGNING_REQUIRED = 1, 2
_SIGNING_ENABLED_1, _SIGNING_REQUIRED_1 = 4, 8
_CAPABILITIES = 0x7F


@dataclass(frozen=True)
class Setting:
    """Dialect of the login; "": the best that the server offers."""

    dialect: Text = ""
    security: Text = ""
    """Argument of open_session()."""


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Logs in to peer.share, once, and opens peer.folder; yields the peer with the facts.

    They are SessionFacts, free_bytes and total_bytes of the folder's file system, may_write (None:
    unknown) and bins (names of folders that may be recycle bins). Nothing is written there, and the
    session ends before the yield. Raises Refused, Unavailable.
    """
    with open_session(peer, setting.dialect, setting.security) as session:
        facts = {
            **session.facts.details(),
            **vars(session.room(peer.folder)),
            "may_write": session.may_write(),
            "bins": [*filter(recycle_bin.USUAL.fullmatch, recycle_bin.names(session, ""))],
        }
    yield replace(peer, access=None, facts=facts)


def query_dialects(host: Text, port: Port) -> Details:
    """Asks a server for each dialect separately.

    Returns dialects (names, oldest first), signing (of the newest: "signing required", "signing
    enabled", "signing off"; absent where it supports none) and connect_seconds. Raises Refused
    where nothing accepts the connection, or the server refuses this host.
    """
    peer = Endpoint(host=host, port=port)
    began = time.monotonic()
    connect(peer).close()
    seconds = time.monotonic() - began
    modes = {each: mode for each in DIALECTS if (mode := _mode(peer, each)) is not None}
    details: Details = {"dialects": list(modes), "connect_seconds": seconds}
    if modes:
        details["signing"] = list(modes.values())[-1]
    return details


def identity(peer: Endpoint) -> bytes:
    """Returns a file server's ServerGuid, the same by each of its addresses; empty: it has none."""
    with suppress(Refused):
        for dialect in ("3.1.1", "3.0", "2.1"):
            fields = _fields(_ask(peer, question(dialect)), dialect)
            if fields is not None:
                return bytes(fields[4])
    return b""


def _mode(peer: Endpoint, dialect: str) -> str | None:
    """Returns the server's mode of signing in a dialect; None: it does not support it."""
    if dialect == "smb1":
        return parse_1(_ask(peer, question_1()))
    return parse(_ask(peer, question(dialect)), dialect)


def _ask(peer: Endpoint, sent: bytes) -> bytes:
    """Returns the answer to a message; empty: none, or no message. Raises Refused as connect()."""
    with connect(peer) as sock:
        wire = Wire(sock, ANSWER_BYTES, peer.host)
        wire.deadline = time.monotonic() + ANSWER_SECONDS
        try:
            wire.send([sent])
            message = memoryview(bytearray(wire.next_frame()))
            wire.receive(message)
        except SmbError:
            return b""
    return bytes(message)


def question(dialect: str) -> bytes:
    """Builds an SMB2 NEGOTIATE for a single dialect."""
    number = NUMBERS[dialect]
    context = b""
    if dialect == "3.1.1":
        # The only context that a client must send: SHA-512 as the preauthentication's hash.
        salt = os.urandom(32)
        data = struct.pack("<HHH", 1, len(salt), _SHA_512) + salt
        context = _CONTEXT.pack(_PREAUTH, len(data), 0) + data
    identity = uuid.uuid4().bytes if number > NUMBERS["2.0.2"] else bytes(16)
    capabilities = _CAPABILITIES if number >= NUMBERS["3.0"] else 0
    start = _CONTEXT_AT if context else 0
    message = _HEADER2.pack(b"\xfeSMB", 64, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, bytes(16))
    message += _REQUEST2.pack(
        36, 1, _SIGNING_ENABLED, 0, capabilities, identity, start, bool(context), 0, number
    )
    return message.ljust(start, b"\0") + context


def parse(message: bytes, dialect: str) -> str | None:
    """Returns a reply's mode of signing; None: another dialect, an error or no such reply."""
    fields = _fields(message, dialect)
    if fields is None:
        return None
    return security_mode(bool(fields[1] & _SIGNING_ENABLED), bool(fields[1] & _SIGNING_REQUIRED))


def _fields(message: bytes, dialect: str) -> tuple[Any, ...] | None:
    """Parses the body of a NEGOTIATE reply in that dialect; None: another message, or an error."""
    if len(message) < _HEADER2.size + _REPLY2.size:
        return None
    header = _HEADER2.unpack_from(message)
    fields = _REPLY2.unpack_from(message, _HEADER2.size)
    if header[0] != b"\xfeSMB" or header[3] or header[4]:
        return None
    return fields if (fields[0], fields[2]) == (65, NUMBERS[dialect]) else None


def question_1() -> bytes:
    """Builds an SMB1 NEGOTIATE for NT LM 0.12 only, with extended security and Unicode."""
    header = _HEADER1.pack(b"\xffSMB", 0x72, 0, 0x18, 0xC801, 0, bytes(8), 0, 0xFFFF, 1, 0, 0)
    names = b"\x02NT LM 0.12\0"
    return header + b"\0" + struct.pack("<H", len(names)) + names


def parse_1(message: bytes) -> str | None:
    """Returns an SMB1 reply's mode of signing; None: not supported."""
    start = _HEADER1.size
    if len(message) < start + 4 or message[:4] != b"\xffSMB" or message[start] < 17:
        return None
    index, mode = struct.unpack_from("<HB", message, start + 1)
    if struct.unpack_from("<I", message, 5)[0] or index != 0:
        return None
    return security_mode(bool(mode & _SIGNING_ENABLED_1), bool(mode & _SIGNING_REQUIRED_1))
