"""Whether a server offers SMB 3.1.1 compression: asked on a connection of its own, without a login.

Our sessions never offer it: a server that compresses would make the payload's size no measure of
the link. Source: MS-SMB2 2.2.3, 2.2.3.1.1, 2.2.3.1.3 and 2.2.4.1.3.
"""

from __future__ import annotations

import os
import struct
import time
import uuid
from collections.abc import Iterator

from probes.records import Endpoint
from probes.smb.frames import Broken, Wire
from probes.smb.session import connect
from probes.stage import Refused

ALGORITHMS = {1: "lznt1", 2: "lz77", 3: "lz77+huffman", 4: "pattern-v1", 5: "lz4"}
ANSWER_SECONDS = 2.0
ANSWER_BYTES = 64 * 1024

_HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
_REQUEST = struct.Struct("<HHHHI16sIHHH")
_REPLY = struct.Struct("<HHHH16sIIIIQQHHI")
_CONTEXT = struct.Struct("<HHI")
_PREAUTH, _COMPRESSION = 1, 3
_SHA_512, _CHAINED = 1, 1
_SIGNING_ENABLED = 1
_3_1_1 = 0x0311


def offered(peer: Endpoint) -> tuple[str, ...] | None:
    """Names of the algorithms that the server would use; (): none. None: it gave no answer."""
    try:
        sock = connect(peer)
    except Refused:
        return None
    with sock:
        wire = Wire(sock, ANSWER_BYTES)
        wire.deadline = time.monotonic() + ANSWER_SECONDS
        try:
            wire.send([question(uuid.uuid4().bytes, os.urandom(32))])
            message = memoryview(bytearray(wire.next_frame()))
            wire.receive(message)
        except Broken:
            return None
    return parse(bytes(message))


def question(client_guid: bytes, salt: bytes) -> bytes:
    """A NEGOTIATE of 3.1.1 alone that offers every algorithm."""
    contexts = [
        (_PREAUTH, struct.pack("<HHH", 1, len(salt), _SHA_512) + salt),
        (
            _COMPRESSION,
            struct.pack("<HHI", len(ALGORITHMS), 0, _CHAINED)
            + struct.pack(f"<{len(ALGORITHMS)}H", *ALGORITHMS),
        ),
    ]
    header = _HEADER.pack(b"\xfeSMB", _HEADER.size, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, bytes(16))
    start = _aligned(_HEADER.size + _REQUEST.size)
    body = _REQUEST.pack(
        36, 1, _SIGNING_ENABLED, 0, 0, client_guid, start, len(contexts), 0, _3_1_1
    )
    message = header + body
    for kind, data in contexts:
        message = message.ljust(_aligned(len(message)), b"\0")
        message += _CONTEXT.pack(kind, len(data), 0) + data
    return message


def parse(message: bytes) -> tuple[str, ...] | None:
    """Algorithms in a NEGOTIATE reply; None where it is none of 3.1.1."""
    if len(message) < _HEADER.size + _REPLY.size:
        return None
    header = _HEADER.unpack_from(message)
    fields = _REPLY.unpack_from(message, _HEADER.size)
    if header[0] != b"\xfeSMB" or header[3] or header[4] or fields[2] != _3_1_1:
        return None
    for kind, data in _contexts(message, fields[13], fields[3]):
        if kind == _COMPRESSION and len(data) >= 8:
            (count,) = struct.unpack_from("<H", data)
            told = struct.unpack_from(f"<{min(count, (len(data) - 8) // 2)}H", data, 8)
            return tuple(ALGORITHMS[number] for number in told if number in ALGORITHMS)
    return ()


def _contexts(message: bytes, start: int, count: int) -> Iterator[tuple[int, bytes]]:
    for _ in range(count):
        if start < _HEADER.size or start + _CONTEXT.size > len(message):
            return
        kind, size, _ = _CONTEXT.unpack_from(message, start)
        begin = start + _CONTEXT.size
        yield kind, message[begin : begin + size]
        start = _aligned(begin + size)


def _aligned(offset: int) -> int:
    return (offset + 7) & ~7
