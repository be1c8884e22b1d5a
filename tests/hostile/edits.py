"""Changes that a man in the middle makes to one message.

Offsets are those of MS-SMB2 2.2 and MS-CIFS 2.2.4.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from middle import PENDING, SMB1, Edit, Message, Outcome, Talk, frame

HEADER_BYTES, HEADER1_BYTES = 64, 32
SIGNED, ASYNC = 0x8, 0x2
ERROR = struct.pack("<HBBIB", 9, 0, 0, 0, 0)
"""Body of an error reply (MS-SMB2 2.2.2)."""
Given = ParamSpec("Given")


def edit(work: Callable[Concatenate[Message, Talk, Given], Outcome]) -> Callable[Given, Edit]:
    """An edit for each set of further arguments."""

    def of(*arguments: Given.args, **keywords: Given.kwargs) -> Edit:
        return lambda message, talk: work(message, talk, *arguments, **keywords)

    return of


def _put(message: Message, offset: int, form: str, value: int) -> None:
    struct.pack_into("<" + form, message, offset, value)


def _bits(message: Message, offset: int, form: str, clear: int, bits: int = 0) -> None:
    (value,) = struct.unpack_from("<" + form, message, offset)
    _put(message, offset, form, value & ~clear | bits)


@edit
def put(message: Message, talk: Talk, offset: int, form: str, value: int) -> None:
    """One field, little-endian."""
    _put(message, offset, form, value)


@edit
def cleared(message: Message, talk: Talk, offset: int, form: str, bits: int) -> None:
    _bits(message, offset, form, bits)


@edit
def flipped(message: Message, talk: Talk, offset: int) -> None:
    """One bit; negative offsets count from the end."""
    message[offset] ^= 0x10


def other_tree(message: Message, talk: Talk) -> None:
    """A reply of a tree that nobody asked; an asynchronous one, as of a busy disk, has none."""
    _bits(message, 16, "I", ASYNC)
    _put(message, 36, "I", 0x7777)


def asynchronous(message: Message, talk: Talk | None) -> None:
    """A reply with an AsyncId in place of its TreeId (MS-SMB2 2.2.1.1)."""
    _bits(message, 16, "I", 0, ASYNC)
    _put(message, 32, "Q", 77)


def payload_byte(message: Message, talk: Talk) -> None:
    """One byte in the middle of what a READ brought."""
    message[len(message) // 2] ^= 0x01


def unsigned(message: Message, talk: Talk | None = None) -> None:
    """The signature is gone, and so is the flag that says there is one."""
    zeroed(message)
    if message[:4] == SMB1:
        _bits(message, 10, "H", 0x4)
    else:
        _bits(message, 16, "I", SIGNED)


def zeroed(message: Message, talk: Talk | None = None) -> None:
    where = slice(14, 22) if message[:4] == SMB1 else slice(48, 64)
    message[where] = bytes(where.stop - where.start)


@edit
def shortened(message: Message, talk: Talk, size: int) -> None:
    """Cut off; the frame is as long as what remains."""
    del message[size:]


@edit
def failed(message: Message, talk: Talk, code: int, data: bytes = b"", contexts: int = 0) -> None:
    """An error reply in its place, unsigned (MS-SMB2 2.2.2)."""
    unsigned(message)
    _put(message, 8, "I", code)
    message[HEADER_BYTES:] = struct.pack("<HBBI", 9, contexts, 0, len(data)) + (data or b"\0")


@edit
def falsely_signed_failure(message: Message, talk: Talk, code: int) -> None:
    """An error reply that claims to be a signed one."""
    _put(message, 8, "I", code)
    _put(message, 16, "I", 1)
    message[48:] = b"\x01" * 16 + ERROR


@edit
def failed1(message: Message, talk: Talk, code: int) -> None:
    """An error reply of SMB1, unsigned."""
    unsigned(message)
    _put(message, 5, "I", code)
    message[HEADER1_BYTES:] = bytes(3)


def dos_error(message: Message, talk: Talk) -> None:
    """An error in the way of DOS (MS-CIFS 2.2.3.1): class and code, no NTSTATUS."""
    failed1(0x00050001)(message, talk)
    _bits(message, 10, "H", 0x4000)


@edit
def answer(message: Message, talk: Talk, data: bytes) -> None:
    """An IOCTL's reply with another answer (MS-SMB2 2.2.32)."""
    struct.pack_into("<IIII", message, 96, 112, 0, 112, len(data))
    message[112:] = data


@edit
def room(message: Message, talk: Talk, total: int, free: int, sectors: int, each: int) -> None:
    """A QUERY_INFO's reply with other figures (MS-FSCC 2.5.4)."""
    figures = struct.pack("<qqqII", total, free, free, sectors, each)
    struct.pack_into("<HI", message, 66, 72, len(figures))
    message[72:] = figures


@edit
def listing(message: Message, talk: Talk, data: bytes) -> None:
    """A QUERY_DIRECTORY's reply with these entries (MS-SMB2 2.2.34), whatever was asked for."""
    _put(message, 8, "I", 0)
    message[HEADER_BYTES:] = struct.pack("<HHI", 9, 72, len(data)) + data


def dropped(message: Message, talk: Talk) -> Outcome:
    return []


@edit
def late(message: Message, talk: Talk, seconds: float) -> None:
    time.sleep(seconds)


@edit
def padded(message: Message, talk: Talk, size: int) -> None:
    message += bytes(size)


def twice(message: Message, talk: Talk) -> Outcome:
    return [frame(message)] * 2


def keep(message: Message, talk: Talk) -> None:
    """Passed on, and remembered."""
    talk.stored["old"] = bytes(message)


def replayed(message: Message, talk: Talk) -> Outcome:
    """Payload and signature of an earlier reply, under the id (8 or 2 bytes) that is waited for."""
    old, where = Message(talk.stored["old"]), slice(24, 32)
    if message[:4] == SMB1:
        where = slice(30, 32)
    old[where] = message[where]
    return [frame(old)]


def instead(message: Message, talk: Talk) -> Outcome:
    return [frame(talk.stored["old"])]


def swapped(message: Message, talk: Talk) -> Outcome:
    """Two replies that answer each other's request."""
    if "held" not in talk.stored:
        talk.stored["held"] = bytes(message)
        return []
    first = Message(talk.stored["held"])
    first[24:32], message[24:32] = message[24:32], first[24:32]
    return [frame(first), frame(message)]


def pending(message: Message) -> bytes:
    """An interim reply to the same request (MS-SMB2 2.2.2), unsigned, in its frame."""
    interim = Message(message[:HEADER_BYTES])
    unsigned(interim)
    asynchronous(interim, None)
    _put(interim, 8, "I", PENDING)
    return frame(interim + ERROR)


@edit
def after_pendings(message: Message, talk: Talk, count: int) -> Outcome:
    """So many interim replies, then the true one."""
    return [pending(message)] * count + [frame(message)]


def _slowly(talk: Talk, pieces: list[bytes], seconds: float) -> Outcome:
    """Until the client is gone."""
    with contextlib.suppress(OSError):
        for piece in pieces:
            talk.client.sendall(piece)
            time.sleep(seconds)
    return []


def pending_for_ever(message: Message, talk: Talk) -> Outcome:
    return _slowly(talk, [pending(message)] * 1000, 0.2)


def keep_alives(message: Message, talk: Talk) -> Outcome:
    """NetBIOS keep-alives (RFC 1002 4.3.7) for ever in its place."""
    return _slowly(talk, [b"\x85\0\0\0"] * 1000, 0.05)


@edit
def trickled(message: Message, talk: Talk, seconds: float) -> Outcome:
    return _slowly(talk, [bytes([each]) for each in frame(message)], seconds)


@edit
def preceded(message: Message, talk: Talk, piece: bytes) -> Outcome:
    return [piece, frame(message)]


@edit
def replaced(message: Message, talk: Talk, piece: bytes) -> Outcome:
    return [piece]


def disguised(message: Message, talk: Talk) -> None:
    """A reply that claims to be one to SESSION_SETUP, whose signature comes later or never."""
    unsigned(message)
    _put(message, 12, "H", 1)


@edit
def chained(message: Message, talk: Talk, offset: int) -> None:
    """A NextCommand, with the same reply behind it."""
    unsigned(message)
    _put(message, 20, "I", offset)
    message += bytes(-len(message) % 8) + message


def oplock_break(message: Message, talk: Talk) -> Outcome:
    """A break of an oplock that nobody has (MS-SMB2 2.2.23.1), before the reply."""
    head = Message(message[:HEADER_BYTES])
    unsigned(head)
    _put(head, 8, "I", 0)
    _put(head, 12, "H", 18)
    _put(head, 24, "Q", 0xFFFFFFFFFFFFFFFF)
    _put(head, 40, "Q", 0)
    return [frame(head + struct.pack("<HBBI16s", 24, 0, 0, 0, b"\xff" * 16)), frame(message)]


def in_clear(message: Message, talk: Talk) -> Outcome:
    """A plain reply in an encrypted session: to every request that may be waiting."""
    (session,) = struct.unpack_from("<Q", message, 44)
    body = struct.pack("<HBBII", 17, 80, 0, 4096, 0) + bytes(4096)
    return [frame(header(8, number, session) + body) for number in range(2, 200)]


def header(
    order: int, number: int, session: int = 0, code: int = 0, credit: int = 64, flags: int = 1
) -> bytes:
    fields = (b"\xfeSMB", 64, 1, code, order, credit, flags, 0, number, 0xFEFF, 0, session, b"")
    return struct.pack("<4sHHIHHIIQIIQ16s", *fields)


def stalled_server(message: Message, talk: Talk) -> Outcome:
    """From now on nothing is taken from the client, as from a server that is stopped."""
    talk.client.settimeout(None)
    time.sleep(30)
    return []


def reset(message: Message, talk: Talk) -> Outcome:
    talk.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talk.client.shutdown(socket.SHUT_RD)
    talk.client.close()
    return []


def closed(message: Message, talk: Talk) -> Outcome:
    talk.client.shutdown(socket.SHUT_RDWR)
    return []


@edit
def dialects(message: Message, talk: Talk, *numbers: int) -> None:
    """A NEGOTIATE request that offers these alone, none of them with contexts."""
    _put(message, 66, "H", len(numbers))
    message[92:] = bytes(8) + struct.pack(f"<{len(numbers)}H", *numbers)


@edit
def without_context(message: Message, talk: Talk, kind: int, reply: bool) -> None:
    """A NEGOTIATE message without the contexts of one kind (MS-SMB2 2.2.3.1)."""
    start = offset = struct.unpack_from("<I", message, 124 if reply else 92)[0]
    (count,) = struct.unpack_from("<H", message, 70 if reply else 96)
    remaining: list[bytes] = []
    for _ in range(count):
        number, size = struct.unpack_from("<HH", message, offset)
        if number != kind:
            remaining.append(bytes(message[offset : offset + 8 + size]))
        offset += 8 + size + (-size % 8)
    message[start:] = b"".join(each + bytes(-len(each) % 8) for each in remaining)
    _put(message, 70 if reply else 96, "H", len(remaining))


def partly(message: Message, talk: Talk) -> None:
    """A READ's reply with 20,000 bytes at most: the rest has to be asked for again."""
    (count,) = struct.unpack_from("<I", message, 68)
    if count > 20_000:
        _put(message, 68, "I", 20_000)
        del message[80 + 20_000 :]
