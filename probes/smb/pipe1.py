"""Pipelined READ_ANDX, WRITE_ANDX and FLUSH of SMB1 on a session that is logged in.

Sources: MS-CIFS 2.2.4.42, 2.2.4.43, 2.2.4.6, 2.2.4.64, 2.2.4.5, 2.2.4.39 (one reply, no data),
3.1.4.1 (signing); MS-SMB 2.2.4.2, 2.2.4.3 (large reads and writes).
"""

from __future__ import annotations

import hmac
import os
import struct
import time
from dataclasses import dataclass

from probes.smb import status
from probes.smb.frames import Buffer, SmbError, Wire
from probes.smb.pipe import (
    EMPTY,
    IMPERSONATION,
    NORMAL,
    SHARE_ALL,
    CreatedFile,
    Pipe,
    Reply,
    Request,
    Verb,
    shape,
)
from probes.smb.protection import Md5

READ, WRITE, FLUSH, ECHO, CREATE, CLOSE, SHORT_WRITE = 0x2E, 0x2F, 0x05, 0x2B, 0xA2, 0x04, 0x0B
COMMANDS: dict[Verb, int] = {
    "read": READ,
    "write": WRITE,
    "flush": FLUSH,
    "echo": ECHO,
    "create": CREATE,
    "empty": SHORT_WRITE,
    "close": CLOSE,
}
CAP_LARGE_READX, CAP_LARGE_WRITEX = 0x4000, 0x8000
LARGE_BYTES = 127 * 1024
"""Below 128 KiB with its header; what Samba takes. Windows answers short, and then gets less."""
LAST_MESSAGE_ID = 0xFFF0
DEFAULT_IN_FLIGHT_BYTES: dict[Verb, int] = {"read": 1 << 20, "write": 2 << 20}
"""Bytes in flight on a short path: more would wait in socket buffers, out of the CPU's caches."""
LEAST_DEPTH = 2

HEADER_BYTES = 32
_HEADER = struct.Struct("<4sBIBHH8sHHHHH")
_READ_BODY = struct.Struct("<BBBHHIHHIHIH")
_WRITE_BODY = struct.Struct("<BBBHHIIHHHHHIHB")
_FLUSH_BODY = struct.Struct("<BHH")
_CREATE_BODY = struct.Struct("<BBBHBHIIIQIIIIIBH")
_CREATED = struct.Struct("<6xH48xQ")
_EMPTY_BODY = struct.Struct("<BHHIHHBH")
_CLOSE_BODY = struct.Struct("<BHIH")
_READ_REPLY = struct.Struct("<B10xHHH")
_WRITE_REPLY = struct.Struct("<B4xHxxH")
_READ_HEAD_BYTES = 59
"""Header, 12 words and the byte count: the least that precedes a READ's payload."""
_REPLY_FLAG = 0x80
_SIGNED_FLAG2 = 0x0004
_NT_STATUS_FLAG2 = 0x4000
_UNICODE_FLAG2 = 0x8000


@dataclass
class Link1:
    """The state of a logged-in session with an open file, which the pipe takes over."""

    wire: Wire
    user_id: int
    tree_id: int
    file_id: int
    flags2: int
    max_read_bytes: int
    max_write_bytes: int
    max_requests: int
    """MaxMpxCount: requests that the server accepts at once."""
    signer: Md5 | None
    sequence: int
    """Sequence number of the next signed request; its reply has the following one."""


class Pipe1(Pipe):
    """The Pipe of SMB1; MaxMpxCount takes the place of SMB2's credits."""

    _echo_body = struct.pack("<BHH", 1, 1, 0)

    def __init__(self, link: Link1) -> None:
        super().__init__(link.wire)
        self.link = self._link = link
        self._message_id = 0
        self._process_id = os.getpid() & 0xFFFF
        self._head = memoryview(bytearray(_READ_HEAD_BYTES))

    def prepare(self, verb: Verb, request_bytes: int, depth: int) -> tuple[int, int]:
        """Prepares requests; by default the longest."""
        link = self._link
        longest = link.max_read_bytes if verb == "read" else link.max_write_bytes
        request_bytes = min(request_bytes or longest, longest)
        depth = depth or max(LEAST_DEPTH, DEFAULT_IN_FLIGHT_BYTES[verb] // request_bytes)
        return shape(request_bytes, longest, min(depth, link.max_requests))

    def affords(self, size_bytes: int) -> int:
        if len(self._requests) < self._link.max_requests:
            return size_bytes
        self.counters.credit_stalls += 1
        return 0

    def read(self, offset: int, view: memoryview) -> None:
        low, high = len(view) & 0xFFFF, len(view) >> 16
        place = (self._link.file_id, offset & 0xFFFFFFFF)
        body = _READ_BODY.pack(12, 0xFF, 0, 0, *place, low, low, high, 0, offset >> 32, 0)
        self._send("read", offset, body, view)

    def write(self, offset: int, data: memoryview) -> None:
        size = len(data)
        place = (self._link.file_id, offset & 0xFFFFFFFF)
        sizes = (size >> 16, size & 0xFFFF, HEADER_BYTES + _WRITE_BODY.size)
        rest = (offset >> 32, (size + 1) & 0xFFFF, 0)
        body = _WRITE_BODY.pack(14, 0xFF, 0, 0, *place, 0, 0, 0, *sizes, *rest)
        self._send("write", offset, body, payload=data)

    def turn(self, file_id: bytes) -> None:
        self._link.file_id = int.from_bytes(file_id, "little")

    def parse_created(self, body: bytes) -> CreatedFile:
        if len(body) < _CREATED.size or body[0] < 34:
            raise SmbError("the server sent a CREATE reply that is too short")
        file_id, size_bytes = _CREATED.unpack_from(body)
        return CreatedFile(file_id.to_bytes(2, "little"), size_bytes)

    def _create_body(self, path: str, access: int, disposition: int, options: int) -> bytes:
        unicode = self._link.flags2 & _UNICODE_FLAG2
        name = path.encode("utf-16le" if unicode else "ascii")
        # A name in UTF-16 begins at an even offset of the message.
        data = b"\0" + name if unicode else name
        fields = (access, 0, NORMAL, SHARE_ALL, disposition, options, IMPERSONATION, 0)
        return _CREATE_BODY.pack(24, 0xFF, 0, 0, 0, len(name), 0, 0, *fields, len(data)) + data

    def _close_body(self, file_id: bytes) -> bytes:
        """Builds a CLOSE that leaves the time of the last write to the server."""
        return _CLOSE_BODY.pack(3, int.from_bytes(file_id, "little"), 0, 0)

    def _empty_body(self, file_id: bytes) -> bytes:
        """Builds an SMB_COM_WRITE of no bytes at 0, which truncates there (MS-CIFS 2.2.4.12)."""
        return _EMPTY_BODY.pack(5, int.from_bytes(file_id, "little"), 0, 0, 0, 3, 1, 0)

    def _flush_body(self) -> bytes:
        return _FLUSH_BODY.pack(1, self._link.file_id, 0)

    def _send(
        self,
        verb: Verb,
        offset: int,
        body: bytes,
        view: memoryview = EMPTY,
        payload: memoryview = EMPTY,
    ) -> None:
        size = len(view) or len(payload)
        link = self._link
        self._message_id = message_id = self._unused_message_id()
        sequence, security = link.sequence, b""
        flags2 = link.flags2
        if link.signer is not None:
            security = struct.pack("<q", sequence)
            flags2 |= _SIGNED_FLAG2
            link.sequence += 2
        flags = 0x18  # names regardless of case, canonical paths
        ids = (link.tree_id, self._process_id, link.user_id, message_id)
        header = (b"\xffSMB", COMMANDS[verb], 0, flags, flags2, 0, security, 0, *ids)
        head = bytearray(_HEADER.pack(*header) + body)
        self._begin(message_id, Request(verb, offset, size, view, sequence, time.monotonic()))
        parts: list[Buffer] = [head, payload] if payload else [head]
        if link.signer is not None:
            head[14:22] = link.signer.sign(sequence, False, *parts)
        self._wire.send(parts)

    def _unused_message_id(self) -> int:
        message_id = self._message_id
        while True:
            message_id = message_id % LAST_MESSAGE_ID + 1
            if message_id not in self._requests:
                return message_id

    def wait(self) -> Reply:
        length = self._wire.next_frame()
        if length < HEADER_BYTES + 3:
            raise SmbError(f"the server sent a message of {length} bytes, too short for a reply")
        head = self._head[: min(length, _READ_HEAD_BYTES)]
        self._wire.receive(head)
        message_id, request, code = self._understand(head)
        target: memoryview | None = None
        if request.verb == "read" and code == status.SUCCESS:
            start, count = self._payload(request, head, length)
            target = request.view[:count]
            padding = self._receive(start - len(head))
            self._wire.receive(target)
            parts = [padding, target, self._receive(length - start - count)]
        else:
            parts = [self._receive(length - len(head))]
        if self._link.signer is not None:
            self._verify(self._link.signer, request, head, parts)
        return self._end(message_id, code, target, _read_count(head), head[HEADER_BYTES:], parts[0])

    def _understand(self, head: memoryview) -> tuple[int, Request, int]:
        protocol, command, code, flags, flags2, _, _, _, tree_id, _, user_id, message_id = (
            _HEADER.unpack_from(head)
        )
        if protocol != b"\xffSMB" or not flags & _REPLY_FLAG:
            raise SmbError("the server sent a garbled message")
        request = self._requests.get(message_id)
        if request is None or command != COMMANDS[request.verb]:
            raise SmbError(f"the server answered message {message_id}, which was not asked")
        if user_id != self._link.user_id:
            raise SmbError("the server answered for another session")
        if tree_id != self._link.tree_id and request.verb != "echo":
            raise SmbError("the server answered for another share")
        if self._link.signer is not None and not flags2 & _SIGNED_FLAG2:
            raise SmbError("a reply came without the signature that this session has to have")
        if code and not flags2 & _NT_STATUS_FLAG2:
            raise SmbError(f"{request.verb.upper()} was answered with DOS error 0x{code:08x}")
        return message_id, request, code

    def _payload(self, request: Request, head: memoryview, length: int) -> tuple[int, int]:
        """Returns offset in the message and length of a READ's payload, once checked."""
        if length < _READ_HEAD_BYTES or head[HEADER_BYTES] != 12:
            raise SmbError("the server sent a READ reply that is too short")
        _, low, start, high = _READ_REPLY.unpack_from(head, HEADER_BYTES)
        count = low + (high << 16)
        limit = len(request.view)
        if start < _READ_HEAD_BYTES or start + count > length or not 1 <= count <= limit:
            raise SmbError(
                f"the server answered a READ of {limit} bytes "
                f"with {count} bytes at {start} of a message of {length}"
            )
        return start, count

    def _verify(
        self, signer: Md5, request: Request, head: memoryview, parts: list[memoryview]
    ) -> None:
        signature = bytes(head[14:22])
        number = request.sequence + 1
        head[14:22] = struct.pack("<q", number)
        if not hmac.compare_digest(signature, signer.sign(number, True, head, *parts)):
            raise SmbError("a reply came with a wrong signature: it was altered on its way")


def _read_count(head: memoryview) -> int:
    if len(head) < HEADER_BYTES + _WRITE_REPLY.size or head[HEADER_BYTES] != 6:
        return 0
    _, low, high = _WRITE_REPLY.unpack_from(head, HEADER_BYTES)
    return int(low + (high << 16))
