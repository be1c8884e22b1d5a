"""Pipelined requests of SMB 2.0.2 to 3.1.1 on a session that is logged in.

Sources: MS-SMB2 2.2.1 (header), 2.2.13-22 (bodies), 3.2.4.1.2 (credits), 3.2.5.1 (replies).
"""

from __future__ import annotations

import hmac
import struct
import time
from dataclasses import dataclass
from typing import NamedTuple

from probes.smb import pipe, status
from probes.smb.frames import Buffer, SmbError, Wire
from probes.smb.protection import HEAD_BYTES, Sealer, Signer

READ, WRITE, FLUSH, ECHO, CREATE, CLOSE, QUERY_INFO, SET_INFO = 8, 9, 7, 13, 5, 6, 16, 17
COMMANDS: dict[pipe.Verb, int] = {
    "read": READ,
    "write": WRITE,
    "flush": FLUSH,
    "echo": ECHO,
    "create": CREATE,
    "close": CLOSE,
    "space": QUERY_INFO,
    "empty": SET_INFO,
}
CREDIT_BYTES = 64 * 1024
"""Payload that one credit pays for; also the longest request without multi-credit."""
CREDITS_ASKED = 512
"""Credits requested in each header; the server may grant fewer."""
DEFAULT_REQUEST_BYTES = 1024 * 1024
DEFAULT_IN_FLIGHT_BYTES: dict[pipe.Verb, int] = {"read": 4 << 20, "write": 8 << 20}
"""Bytes in flight on a short path: payload that waits in socket buffers leaves the CPU's caches, so
more READs only cost; more WRITEs keep the server's writers busy."""
FEWEST_LONG, MANY_SHORT = 4, 8
"""Long requests below which the credits are divided into so many short ones."""
DEFAULT_DEPTHS = (2, 32)
"""Lowest and highest default depth, for very long and short requests."""
GRANTED_AT_ONCE = 32
"""Credits that a server grants for one ECHO; Samba's maximum."""

HEADER_BYTES = 64
IDENTITY_BYTES = 16
_HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
_READ_BODY = struct.Struct("<HBBIQ16sIIIHHB")
_WRITE_BODY = struct.Struct("<HHIQ16sIIHHI")
_FLUSH_BODY = struct.Struct("<HHI16s")
"""A CLOSE has the same body."""
_LENGTH_BODY = struct.Struct("<HBBIHHI16sQ")
_FILE, _END_OF_FILE = 1, 20
"""SMB2_0_INFO_FILE, FileEndOfFileInformation: MS-SMB2 2.2.39, MS-FSCC 2.4.13."""
_CREATE_BODY = struct.Struct("<HBBIQQIIIIIHHII")
_CREATED = struct.Struct("<48xQ8x16s")
_CONTEXTS_PLACE = struct.Struct("<80xII")
_CONTEXT = struct.Struct("<IHHxxHI")
"""Next, NameOffset, NameLength, DataOffset, DataLength of a create context (MS-SMB2 2.2.13.2)."""
QUERY_IDENTITY = b"QFid"
_ASK_IDENTITY = _CONTEXT.pack(0, _CONTEXT.size, len(QUERY_IDENTITY), 0, 0) + QUERY_IDENTITY
_FROM_SERVER, _ASYNC, _SIGNED = 1, 2, 8
_NO_SIGNATURE = bytes(16)
_PROTOCOL = b"\xfeSMB"


@dataclass
class Link2:
    """The state of a logged-in session with an open file, which the pipe takes over."""

    wire: Wire
    session_id: int
    tree_id: int
    file_id: bytes
    next_message_id: int
    credits: int
    multi_credit: bool
    """Whether LARGE_MTU was agreed: requests beyond 64 KiB that cost several credits."""
    max_read_bytes: int
    max_write_bytes: int
    signer: Signer | None
    sealer: Sealer | None


class _Head(NamedTuple):
    message_id: int
    status: int
    flags: int
    granted: int
    request: pipe.Request


class Pipe2(pipe.Pipe):
    """The Pipe of SMB2 and SMB3."""

    _echo_body = struct.pack("<HH", 4, 0)

    def __init__(self, link: Link2) -> None:
        super().__init__(link.wire)
        self.link = self._link = link
        self._head = memoryview(bytearray(HEAD_BYTES))
        self._frame = memoryview(bytearray(0))

    def prepare(self, verb: pipe.Verb, request_bytes: int, depth: int) -> tuple[int, int]:
        """Gathers credits by ECHO until they suffice or the server grants no more."""
        link = self._link
        longest = link.max_read_bytes if verb == "read" else link.max_write_bytes
        if not link.multi_credit:
            longest = min(longest, CREDIT_BYTES)
        is_default = not request_bytes
        request_bytes = min(request_bytes or DEFAULT_REQUEST_BYTES, longest)
        if not depth:
            lowest, highest = DEFAULT_DEPTHS
            depth = max(lowest, min(highest, DEFAULT_IN_FLIGHT_BYTES[verb] // request_bytes))
        request_bytes, depth = pipe.shape(request_bytes, longest, depth)
        needed = self._charge(request_bytes) * depth
        while link.credits < needed:
            credits = link.credits
            if credits < 1:
                raise SmbError("the server left this session without credits")
            for _ in range(min(credits, -(-(needed - credits) // GRANTED_AT_ONCE))):
                self.echo()
            while self._requests:
                self.wait()
            if link.credits <= credits:
                break
        if is_default and link.credits * CREDIT_BYTES < FEWEST_LONG * request_bytes:
            # Many short requests keep the path busy; a single long one would not.
            share = max(1, link.credits // MANY_SHORT)
            request_bytes = (1 << (share.bit_length() - 1)) * CREDIT_BYTES
            # One more than the credits pay for, so that credit_stalls shows the lack of them.
            depth = max(depth, link.credits * CREDIT_BYTES // request_bytes + 1)
        if self._charge(request_bytes) > link.credits:
            request_bytes = link.credits * CREDIT_BYTES
        return request_bytes, depth

    def affords(self, size_bytes: int) -> int:
        """Returns the affordable size; with nothing in flight at least what the credits pay for."""
        available = self._link.credits
        if self._charge(size_bytes) <= available:
            return size_bytes
        self.counters.credit_stalls += 1
        if self._requests:
            return 0
        if available < 1:
            raise SmbError("the server left this session without credits")
        return min(size_bytes, available * CREDIT_BYTES)

    def read(self, offset: int, view: memoryview) -> None:
        place = (len(view), offset, self._link.file_id)
        body = _READ_BODY.pack(49, HEAD_BYTES, 0, *place, 0, 0, 0, 0, 0, 0)
        self._send("read", offset, body, view)

    def write(self, offset: int, data: memoryview) -> None:
        place = (HEADER_BYTES + 48, len(data), offset, self._link.file_id)
        body = _WRITE_BODY.pack(49, *place, 0, 0, 0, 0, 0)
        self._send("write", offset, body, payload=data)

    def turn(self, file_id: bytes) -> None:
        self._link.file_id = file_id

    def wait(self) -> pipe.Reply:
        """Waits for the next reply; counts interim ones, and takes their credits."""
        while True:
            length = self._wire.next_frame()
            reply = self._read_sealed(length) if self._link.sealer else self._read_plain(length)
            if reply is not None:
                return reply
            self.counters.pending_replies += 1

    def parse_created(self, body: bytes) -> pipe.CreatedFile:
        if len(body) < _CREATED.size:
            raise SmbError("the server sent a CREATE reply that is too short")
        size_bytes, file_id = _CREATED.unpack_from(body)
        return pipe.CreatedFile(file_id, size_bytes, identity_of(body))

    def _create_body(self, path: str, access: int, disposition: int, options: int) -> bytes:
        name = path.encode("utf-16-le")
        fields = (access, pipe.NORMAL, pipe.SHARE_ALL, disposition, options)
        name_at = HEADER_BYTES + _CREATE_BODY.size
        contexts_at = name_at + len(name) + 7 & ~7
        place = (name_at, len(name), contexts_at, len(_ASK_IDENTITY))
        body = _CREATE_BODY.pack(57, 0, 0, pipe.IMPERSONATION, 0, 0, *fields, *place) + name
        return body.ljust(contexts_at - HEADER_BYTES, b"\0") + _ASK_IDENTITY

    def _close_body(self, file_id: bytes) -> bytes:
        return _FLUSH_BODY.pack(24, 0, 0, file_id)

    def _empty_body(self, file_id: bytes) -> bytes:
        offset = HEADER_BYTES + _LENGTH_BODY.size - 8
        return _LENGTH_BODY.pack(33, _FILE, _END_OF_FILE, 8, offset, 0, 0, file_id, 0)

    def _flush_body(self) -> bytes:
        return _FLUSH_BODY.pack(24, 0, 0, self._link.file_id)

    def _charge(self, size_bytes: int) -> int:
        return max(1, -(-size_bytes // CREDIT_BYTES))

    def _send(
        self,
        verb: pipe.Verb,
        offset: int,
        body: bytes,
        view: memoryview = pipe.EMPTY,
        payload: memoryview = pipe.EMPTY,
    ) -> None:
        size = len(view) or len(payload)
        link = self._link
        charge = self._charge(size)
        message_id = link.next_message_id
        charged = charge if link.multi_credit else 0
        flags = _SIGNED if link.signer is not None and link.sealer is None else 0
        ids = (message_id, 0xFEFF, link.tree_id, link.session_id)
        cost = (charged, 0, COMMANDS[verb], CREDITS_ASKED)
        header = (_PROTOCOL, HEADER_BYTES, *cost, flags, 0, *ids, _NO_SIGNATURE)
        head = bytearray(_HEADER.pack(*header) + body)
        link.next_message_id += charge
        link.credits -= charge
        self._begin(message_id, pipe.Request(verb, offset, size, view, 0, time.monotonic()))
        parts: list[Buffer] = [head, payload] if payload else [head]
        if link.sealer is not None:
            parts = list(link.sealer.seal(head, payload))
        elif link.signer is not None:
            head[48:64] = link.signer.sign(message_id, False, *parts)
        self._wire.send(parts)

    def _read_plain(self, length: int) -> pipe.Reply | None:
        """Receives a reply that is not encrypted; None: an interim one."""
        if length < HEADER_BYTES + 2:
            raise SmbError(f"the server sent a message of {length} bytes, too short for a reply")
        head = self._head[: min(length, HEAD_BYTES)]
        self._wire.receive(head)
        info = self._understand(head)
        target = self._payload(info, head, length)
        parts: list[memoryview] = []
        if target is None:
            parts.append(self._receive(length - len(head)))
        else:
            start = head[66]
            parts.append(self._receive(start - HEAD_BYTES))
            self._wire.receive(target)
            parts += [target, self._receive(length - start - len(target))]
        if self._link.signer is not None and info.status != status.PENDING:
            self._verify(info, head, parts)
        return self._settle(info, head, target, parts[0])

    def _read_sealed(self, length: int) -> pipe.Reply | None:
        """Receives an encrypted reply, whose content is not used before its tag is checked."""
        sealer = self._link.sealer
        assert sealer is not None
        if len(self._frame) < length + 16:
            self._frame = memoryview(bytearray(length + 4096))
        self._wire.receive(self._frame[:length])
        target: memoryview | None = None

        def place(head: memoryview, inner: int) -> memoryview | None:
            nonlocal target
            target = self._payload(self._understand(head), head, inner)
            return target

        plain = sealer.unseal(self._frame, length, place)
        return self._settle(self._understand(plain), plain, target, pipe.EMPTY)

    def _understand(self, head: memoryview) -> _Head:
        """Checks and parses the header of a reply to one of our requests; changes nothing."""
        protocol, size, _, code, command, granted, *rest = _HEADER.unpack_from(head)
        flags, following, message_id, _, tree, session, _ = rest
        request = self._requests.get(message_id)
        if protocol != _PROTOCOL or size != HEADER_BYTES or following or not flags & _FROM_SERVER:
            what = "without the encryption that was agreed" if protocol == b"\xfdSMB" else "garbled"
            raise SmbError(f"the server sent a message {what}")
        if request is None or command != COMMANDS[request.verb]:
            raise SmbError(f"the server answered message {message_id}, which was not asked")
        if session != self._link.session_id:
            raise SmbError("the server answered for another session")
        # An ECHO's tree is undefined, an asynchronous reply has an AsyncId (2.2.1.1, 2.2.1.2).
        if tree != self._link.tree_id and not flags & _ASYNC and request.verb != "echo":
            raise SmbError("the server answered for another share")
        if code == status.PENDING and not flags & _ASYNC:
            raise SmbError("the server sent STATUS_PENDING without an asynchronous header")
        return _Head(message_id, code, flags, granted, request)

    def _payload(self, info: _Head, head: memoryview, length: int) -> memoryview | None:
        """Returns the buffer for a reply's payload, once its place and length are checked."""
        if info.request.verb != "read" or info.status != status.SUCCESS:
            return None
        if length < HEAD_BYTES:
            raise SmbError("the server sent a READ reply that is too short")
        start, count = head[66], int.from_bytes(head[68:72], "little")
        if start < HEAD_BYTES or start + count > length or not 1 <= count <= len(info.request.view):
            raise SmbError(
                f"the server answered a READ of {len(info.request.view)} bytes "
                f"with {count} bytes at {start} of a message of {length}"
            )
        return info.request.view[:count]

    def _verify(self, info: _Head, head: memoryview, parts: list[memoryview]) -> None:
        assert self._link.signer is not None
        if not info.flags & _SIGNED:
            raise SmbError("a reply came without the signature that this session has to have")
        signature = bytes(head[48:64])
        head[48:64] = _NO_SIGNATURE
        right = self._link.signer.sign(info.message_id, True, head, *(p for p in parts if p))
        if not hmac.compare_digest(signature, right):
            raise SmbError("a reply came with a wrong signature: it was altered on its way")

    def _settle(
        self, info: _Head, head: memoryview, target: memoryview | None, rest: memoryview
    ) -> pipe.Reply | None:
        self._link.credits += info.granted
        if info.status == status.PENDING:
            return None
        written = int.from_bytes(head[68:72], "little") if len(head) >= 72 else 0
        return self._end(info.message_id, info.status, target, written, head[HEADER_BYTES:], rest)


def identity_of(body: bytes) -> bytes:
    """Returns the file's number and its volume's from the body of a CREATE reply; b"": none.

    Source: MS-SMB2 2.2.14.2.9, SMB2_CREATE_QUERY_ON_DISK_ID.
    """
    if len(body) < _CONTEXTS_PLACE.size:
        return b""
    start, following = _CONTEXTS_PLACE.unpack_from(body)[0] - HEADER_BYTES, 1
    while start > 0 and following and start + _CONTEXT.size <= len(body):
        following, name_at, name_bytes, data_at, size = _CONTEXT.unpack_from(body, start)
        identity = body[start + data_at :][: min(size, IDENTITY_BYTES)]
        if body[start + name_at :][:name_bytes] == QUERY_IDENTITY:
            return identity if len(identity) == IDENTITY_BYTES and any(identity[:8]) else b""
        start += following
    return b""
