"""What a man in the middle makes of one message.

Offsets are those of MS-SMB2 2.2 and MS-CIFS 2.2.4.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

from middle import (
    PENDING,
    SMB1,
    Edit,
    Message,
    Outcome,
    Talk,
    framed,
)

HEADER_BYTES, HEADER1_BYTES = 64, 32
SIGNED, ASYNC = 0x8, 0x2
Change = Callable[[Message], None]


def altered(*changes: Change) -> Edit:
    """The message after these changes."""

    def edit(message: Message, talk: Talk) -> Outcome:
        for change in changes:
            change(message)
        return [framed(message)]

    return edit


def put(offset: int, form: str, value: int) -> Change:
    """One field, little-endian."""
    return lambda message: struct.pack_into("<" + form, message, offset, value)


def cleared(offset: int, form: str, bits: int) -> Change:
    """Bits of one field."""

    def change(message: Message) -> None:
        (value,) = struct.unpack_from("<" + form, message, offset)
        struct.pack_into("<" + form, message, offset, value & ~bits)

    return change


def raised(offset: int, form: str, bits: int) -> Change:
    """Bits of one field."""

    def change(message: Message) -> None:
        (value,) = struct.unpack_from("<" + form, message, offset)
        struct.pack_into("<" + form, message, offset, value | bits)

    return change


def flipped(at: int) -> Change:
    """One bit; negative offsets count from the end."""

    def change(message: Message) -> None:
        message[at] ^= 0x10

    return change


def unsigned(message: Message) -> None:
    """The signature is gone, and so is the flag that says there is one."""
    if message[:4] == SMB1:
        message[14:22] = bytes(8)
        cleared(10, "H", 0x4)(message)
    else:
        message[48:64] = bytes(16)
        cleared(16, "I", SIGNED)(message)


def zeroed(message: Message) -> None:
    """A signature of zeros."""
    where = slice(14, 22) if message[:4] == SMB1 else slice(48, 64)
    message[where] = bytes(where.stop - where.start)


def shortened(size: int) -> Change:
    """Cut off; the frame is as long as what remains."""

    def change(message: Message) -> None:
        del message[size:]

    return change


def failed(code: int, data: bytes = b"", contexts: int = 0) -> Edit:
    """An error reply in its place, unsigned (MS-SMB2 2.2.2)."""

    def edit(message: Message, talk: Talk) -> Outcome:
        unsigned(message)
        put(8, "I", code)(message)
        message[HEADER_BYTES:] = struct.pack("<HBBI", 9, contexts, 0, len(data)) + (data or b"\0")
        return [framed(message)]

    return edit


def failed1(code: int) -> Edit:
    """An error reply of SMB1, unsigned."""

    def edit(message: Message, talk: Talk) -> Outcome:
        unsigned(message)
        put(5, "I", code)(message)
        message[HEADER1_BYTES:] = bytes(3)
        return [framed(message)]

    return edit


def dropped(message: Message, talk: Talk) -> Outcome:
    """Nothing."""
    return []


def late(seconds: float) -> Edit:
    """The message, after a while."""

    def edit(message: Message, talk: Talk) -> Outcome:
        time.sleep(seconds)
        return [framed(message)]

    return edit


def padded(size: int) -> Edit:
    """So many bytes behind the message, in its frame."""
    return lambda message, talk: [framed(message + bytes(size))]


def twice(message: Message, talk: Talk) -> Outcome:
    """The same again."""
    return [framed(message)] * 2


def kept(name: str) -> Edit:
    """Passed on, and remembered."""

    def edit(message: Message, talk: Talk) -> Outcome:
        talk.kept[name] = bytes(message)
        return [framed(message)]

    return edit


def replayed(message: Message, talk: Talk) -> Outcome:
    """The payload and the signature of an earlier reply, under the id that is waited for."""
    old = Message(talk.kept["old"])
    old[24:32] = message[24:32]
    return [framed(old)]


def replayed1(message: Message, talk: Talk) -> Outcome:
    """The same in SMB1, whose id has two bytes."""
    old = Message(talk.kept["old"])
    old[30:32] = message[30:32]
    return [framed(old)]


def instead(message: Message, talk: Talk) -> Outcome:
    """An earlier message in its place, as it was."""
    return [framed(talk.kept["old"])]


def swapped() -> Edit:
    """Two replies that answer each other's request."""

    def edit(message: Message, talk: Talk) -> Outcome:
        if "held" not in talk.kept:
            talk.kept["held"] = bytes(message)
            return []
        first = Message(talk.kept["held"])
        first[24:32], message[24:32] = message[24:32], first[24:32]
        return [framed(first), framed(message)]

    return edit


def pending(message: Message) -> Message:
    """An interim reply to the same request (MS-SMB2 2.2.2), unsigned."""
    interim = Message(message[:HEADER_BYTES])
    unsigned(interim)
    put(8, "I", PENDING)(interim)
    raised(16, "I", ASYNC)(interim)
    put(32, "Q", 77)(interim)
    return interim + struct.pack("<HBBIB", 9, 0, 0, 0, 0)


def after_pendings(count: int) -> Edit:
    """So many interim replies, then the true one."""
    return lambda message, talk: [framed(pending(message))] * count + [framed(message)]


def for_ever(
    make: Callable[[Message, Talk], bytes], seconds: float = 0.2, limit: int = 1000
) -> Edit:
    """The same thing over and over in its place, until the client is gone."""

    def edit(message: Message, talk: Talk) -> Outcome:
        piece = make(message, talk)
        for _ in range(limit):
            try:
                talk.client.sendall(piece)
            except OSError:
                break
            time.sleep(seconds)
        return []

    return edit


def trickled(seconds: float) -> Edit:
    """The message, a byte at a time."""

    def edit(message: Message, talk: Talk) -> Outcome:
        for each in framed(message):
            try:
                talk.client.sendall(bytes([each]))
            except OSError:
                break
            time.sleep(seconds)
        return []

    return edit


def keep_alives(message: Message, talk: Talk) -> bytes:
    """A NetBIOS keep-alive (RFC 1002 4.3.7)."""
    return b"\x85\0\0\0"


def preceded(piece: bytes) -> Edit:
    """Something else first."""
    return lambda message, talk: [piece, framed(message)]


def replaced(piece: bytes) -> Edit:
    """Something else, raw."""
    return lambda message, talk: [piece]


def disguised(message: Message, talk: Talk) -> Outcome:
    """A reply that claims to be one to SESSION_SETUP, whose signature comes later or never."""
    unsigned(message)
    put(12, "H", 1)(message)
    return [framed(message)]


def chained(offset: int) -> Edit:
    """A NextCommand, with the same reply behind it."""

    def edit(message: Message, talk: Talk) -> Outcome:
        unsigned(message)
        put(20, "I", offset)(message)
        message += bytes(-len(message) % 8) + message
        return [framed(message)]

    return edit


def oplock_break(message: Message, talk: Talk) -> Outcome:
    """A break of an oplock that nobody has (MS-SMB2 2.2.23.1), before the reply."""
    head = Message(message[:HEADER_BYTES])
    unsigned(head)
    put(8, "I", 0)(head)
    put(12, "H", 18)(head)
    put(24, "Q", 0xFFFFFFFFFFFFFFFF)(head)
    put(40, "Q", 0)(head)
    return [framed(head + struct.pack("<HBBI16s", 24, 0, 0, 0, b"\xff" * 16)), framed(message)]


def in_clear(message: Message, talk: Talk) -> Outcome:
    """A plain reply in an encrypted session: to every request that may be waiting."""
    pieces = []
    for number in range(2, 200):
        head = struct.pack(
            "<4sHHIHHIIQIIQ16s",
            b"\xfeSMB",
            64,
            1,
            0,
            8,
            64,
            1,
            0,
            number,
            0xFEFF,
            0,
            struct.unpack_from("<Q", message, 44)[0],
            b"",
        )
        pieces.append(framed(head + struct.pack("<HBBII", 17, 80, 0, 4096, 0) + bytes(4096)))
    return pieces


def stalled_server(message: Message, talk: Talk) -> Outcome:
    """From now on nothing is taken from the client, as from a server that is stopped."""
    talk.client.settimeout(None)
    time.sleep(30)
    return []


def reset(message: Message, talk: Talk) -> Outcome:
    """RST in its place."""
    talk.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talk.client.shutdown(socket.SHUT_RD)
    talk.client.close()
    return []


def closed(message: Message, talk: Talk) -> Outcome:
    """The connection ends in its place."""
    talk.client.shutdown(socket.SHUT_RDWR)
    return []


def dialects(*numbers: int) -> Edit:
    """A NEGOTIATE request that offers these alone; contexts stay where they are or go."""

    def edit(message: Message, talk: Talk) -> Outcome:
        put(66, "H", len(numbers))(message)
        context_offset, count = struct.unpack_from("<IH", message, 92)
        rest = bytes(message[context_offset:]) if 0x0311 in numbers and count else b""
        del message[100:]
        message += struct.pack(f"<{len(numbers)}H", *numbers)
        if rest:
            message += bytes(-len(message) % 8)
            put(92, "I", len(message))(message)
            message += rest
        else:
            message[92:100] = bytes(8)
        return [framed(message)]

    return edit


def without_context(kind: int, reply: bool) -> Edit:
    """A NEGOTIATE message without the contexts of one kind (MS-SMB2 2.2.3.1)."""

    def edit(message: Message, talk: Talk) -> Outcome:
        start = at = struct.unpack_from("<I", message, 124 if reply else 92)[0]
        (count,) = struct.unpack_from("<H", message, 70 if reply else 96)
        left: list[bytes] = []
        for _ in range(count):
            found, size = struct.unpack_from("<HH", message, at)
            if found != kind:
                left.append(bytes(message[at : at + 8 + size]))
            at += 8 + size + (-size % 8)
        message[start:] = b"".join(each + bytes(-len(each) % 8) for each in left)
        put(70 if reply else 96, "H", len(left))(message)
        return [framed(message)]

    return edit


def partly(message: Message, talk: Talk) -> Outcome:
    """A READ's reply with 20,000 bytes at most: the rest has to be asked for again."""
    (count,) = struct.unpack_from("<I", message, 68)
    if count > 20_000:
        put(68, "I", 20_000)(message)
        del message[80 + 20_000 :]
    return [framed(message)]


def dos_error(message: Message, talk: Talk) -> Outcome:
    """An error in the way of DOS (MS-CIFS 2.2.3.1): class and code, no NTSTATUS."""
    unsigned(message)
    put(5, "I", 0x00050001)(message)
    cleared(10, "H", 0x4000)(message)
    message[HEADER1_BYTES:] = bytes(3)
    return [framed(message)]
