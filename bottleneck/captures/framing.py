"""SMB messages in one direction of a TCP stream whose payload may be cut or encrypted.

Each message follows 4 bytes of its length (MS-SMB2 2.1). Where a capture cut these bytes off, the
next reply is as long as its request asked for, or as the last large message; the stream is in step
again at each segment that begins with a length and a protocol's four bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

NEGOTIATE, READ, WRITE, CANCEL, CHANGE_NOTIFY = 0, 8, 9, 12, 15
PENDING = 0x103
"""STATUS_PENDING of an interim reply (MS-SMB2 3.3.4.2)."""
COMMANDS = dict(
    enumerate(
        "NEGOTIATE SESSION_SETUP LOGOFF TREE_CONNECT TREE_DISCONNECT CREATE CLOSE FLUSH READ WRITE "
        "LOCK IOCTL CANCEL ECHO QUERY_DIRECTORY CHANGE_NOTIFY QUERY_INFO SET_INFO "
        "OPLOCK_BREAK".split()
    )
)
"""Names of SMB 2 commands by number (MS-SMB2 2.2.1)."""
MAGICS = {b"\xfeSMB": "smb2", b"\xfdSMB": "encrypted", b"\xffSMB": "smb1", b"\xfcSMB": "compressed"}
_SMB1_COMMANDS = dict(
    zip(b"\x2e\x2f\x72\x73\x75\xa2\x2d\x04\x05\x32", (8, 9, 0, 1, 3, 5, 5, 6, 7, 16), strict=True)
)
"""Corresponding SMB 2 command by SMB1 command (MS-CIFS 2.2.2.1)."""
READ_HEADER_BYTES = 84
"""Length field, SMB 2 header and fixed part of a READ's reply; also the size of a WRITE's reply."""
WRITE_HEADER_BYTES = 116
LARGE_BYTES = 8192
"""Least size of a message whose size the next one without a header may have."""
_KEPT_HEADER_BYTES = 200
_MOST_UNSEEN = 64
"""Messages that are assumed in a stretch without any header."""

Moment = Literal["begin", "end"]


class Message(NamedTuple):
    """One message."""

    protocol: str
    """smb2, encrypted, smb1, compressed; empty: its header was cut off."""
    command: int | None
    number: int | None
    """MessageId; None: unknown."""
    size: int
    """Bytes, those of the length field included."""
    status: int
    payload_bytes: int
    """Bytes that a READ asks for, or that a WRITE carries; 0: unknown."""
    is_signed: bool
    head: bytes
    """The bytes that were kept, length field included."""


def message_of(head: bytes, size: int) -> Message:
    """Parses what was kept of a message, its length field included."""
    protocol = MAGICS.get(head[4:8], "")
    command = number = None
    status = payload_bytes = 0
    is_signed = False
    if protocol == "smb2" and len(head) >= 24:
        status, command, _, flags = struct.unpack_from("<IHHI", head, 12)
        is_signed = bool(flags & 8)
        if len(head) >= 36:
            number = struct.unpack_from("<Q", head, 28)[0]
        elif len(head) >= 30:
            # The lower half alone, told apart from whole numbers.
            number = struct.unpack_from("<H", head, 28)[0] | 1 << 80
        if command in (READ, WRITE) and len(head) >= 76 and not flags & 1:
            payload_bytes = struct.unpack_from("<I", head, 72)[0]
    elif protocol == "smb1" and len(head) >= 14:
        command, status = (
            _SMB1_COMMANDS.get(head[8], 100 + head[8]),
            struct.unpack_from("<I", head, 9)[0],
        )
        if len(head) >= 36:
            number = struct.unpack_from("<H", head, 34)[0]
        if command == READ and not head[13] & 0x80 and len(head) >= 51:
            payload_bytes = struct.unpack_from("<H", head, 47)[0]
    return Message(protocol, command, number, size, status, payload_bytes, is_signed, head)


class Framer:
    """Boundaries of messages in one direction; segments come in the order of the stream."""

    def __init__(self, next_reply_bytes: Callable[[], int] | None = None) -> None:
        """next_reply_bytes: size of the next message by its request; 0: none is due."""
        self.boundary: int | None = None
        """Offset in the stream of the next length field; None: unknown."""
        self.message: Message | None = None
        """Message that has begun and not ended."""
        self._next_reply_bytes = next_reply_bytes
        self.large_bytes = 0
        """Size of the last large message; 0: there was none."""
        self._lost_at: int | None = None
        self._partial_head = b""
        self._is_sure = True

    def adopt(self, boundary: int, large_bytes: int = 0) -> None:
        """Sets an unknown boundary to where the other direction shows that a message is likely.

        A new request follows a reply, and a reply the end of its request.
        """
        if self.boundary is None:
            self.boundary, self.message, self._is_sure = boundary, None, False
            self.large_bytes = self.large_bytes or large_bytes

    def feed(self, start: int, size: int, data: bytes) -> Iterator[tuple[Moment, Message]]:
        """Yields the beginnings and ends of messages in the next segment.

        start: its offset in the stream; size: bytes on the wire; data: the first, as kept.
        """
        end = start + size
        if self.boundary is not None and start == self.boundary + len(self._partial_head):
            data, start = self._partial_head + data, self.boundary
        self._partial_head = b""
        if self.boundary is None and len(data) > 12 and data[4:8] not in MAGICS:
            inside = _find_magic(data)
            if inside > 0:
                start, data = start + inside, data[inside:]
        if len(data) >= 8 and not data[0] and data[4:8] in MAGICS and self.boundary != start:
            yield from self._back_in_step(start)
        while self.boundary is not None and self.boundary <= end:
            if self.message is not None:
                yield "end", self.message
                self.message = None
            if self.boundary == end:
                break
            offset = self.boundary - start
            head = data[offset : offset + 4 + _KEPT_HEADER_BYTES] if offset >= 0 else b""
            message = self._next(head, end)
            if message is not None:
                if message.size > LARGE_BYTES:
                    self.large_bytes = message.size
                yield "begin", message
                self.message = message
                self.boundary += message.size
            elif self._partial_head:
                break

    def _back_in_step(self, start: int) -> Iterator[tuple[Moment, Message]]:
        """Ends a message of a wrongly assumed size; adds those that passed without a header."""
        if self.message is not None and self.boundary is not None:
            yield "end", self.message
        elif self.boundary is None and self._lost_at is not None and self.large_bytes:
            unseen = Message("", None, None, self.large_bytes, 0, 0, False, b"")
            for _ in range(min(_MOST_UNSEEN, round((start - self._lost_at) / self.large_bytes))):
                yield "begin", unseen
                yield "end", unseen
        self.boundary, self.message, self._is_sure = start, None, True

    def _next(self, head: bytes, end: int) -> Message | None:
        """Returns the message at the boundary; None: the boundary moved, is unknown, or waits."""
        assert self.boundary is not None
        length = int.from_bytes(head[1:4], "big")
        is_whole = len(head) == end - self.boundary
        if is_whole and len(head) < 80 and (len(head) < 4 or len(head) < 4 + length):
            # The next segment has the rest of the header.
            self._partial_head = head
            return None
        if head[:1] == b"\x85" and not length:
            self.boundary += 4  # a keep-alive (RFC 1002 4.3.7)
            return None
        is_magic = head[4:8] in MAGICS
        if len(head) >= 8 and not is_magic and (inside := _find_magic(head)) >= 0:
            self.boundary += inside  # an interim reply came unnoticed before it
            return None
        is_readable = len(head) >= (4 if self._is_sure else 8) and not head[0] and length >= 32
        if is_readable and (len(head) < 8 or is_magic):
            self._is_sure = len(head) >= 8
            return message_of(head[: 4 + min(length, _KEPT_HEADER_BYTES)], 4 + length)
        size = self._next_reply_bytes() if self._next_reply_bytes else self.large_bytes
        self._is_sure = False
        if not size:
            self._lost_at, self.boundary = self.boundary, None
            return None
        return Message("", None, None, size, 0, 0, False, b"")


def _find_magic(data: bytes) -> int:
    """Returns the offset of a later length field in kept bytes; below 0: there is none."""
    start = data.find(b"SMB", 8)
    is_magic = start >= 5 and data[start - 1 : start + 3] in MAGICS and not data[start - 5]
    return start - 5 if is_magic else -1
