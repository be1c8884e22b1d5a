"""What servers that are none say; see server.Script."""

from __future__ import annotations

import socket
import struct
import time

import server as s
from middle import MORE_PROCESSING, SMB1, framed
from server import Link, Script


def shouts(data: bytes) -> Script:
    """A server of another kind, that speaks first and then stays."""

    def script(link: Link) -> None:
        link.raw(data)
        link.stay()

    return script


def answers(data: bytes) -> Script:
    """One answer to the first message, whatever it was."""

    def script(link: Link) -> None:
        link.take()
        link.raw(data)
        link.stay()

    return script


def drips(link: Link) -> None:
    for each in framed(s.reply(link.take(), s.agreement())):
        link.raw(bytes([each]))
        time.sleep(1)


def silent(link: Link) -> None:
    link.stay()


def leaves(link: Link) -> None:
    link.witness.applied += 1


def resets(link: Link) -> None:
    link.witness.applied += 1
    link.take()
    link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def echoes(link: Link) -> None:
    while True:
        link.give(link.take())


def floods(link: Link) -> None:
    link.take()
    while True:
        link.raw(bytes(4) * 4096)


def keeps_alive(link: Link) -> None:
    link.again(b"\x85\0\0\0", 0.02)


def again_and_again(link: Link) -> None:
    request = link.take()
    message = framed(s.reply(request, s.agreement()))
    link.raw(message * 2000)
    link.stay()


def wildcards(link: Link) -> None:
    while True:
        link.give(s.reply(link.take(), s.agreement(dialect=0x02FF)))


def other_number(link: Link) -> None:
    link.give(s.reply(link.take(), s.agreement(), number=99))
    link.stay()


def challenges_for_ever(link: Link) -> None:
    s.agreed()(link)
    while True:
        link.give(s.reply(link.take(), s.setup(s.challenge()), MORE_PROCESSING, session_id=0x77))


def denies(code: int, dialect: int = 0x0311) -> Script:
    def script(link: Link) -> None:
        request = s.challenged(link, dialect)
        while True:
            link.give(s.reply(request, s.ERROR, code, session_id=0x77))
            request = link.take()

    return script


def blob(blob: bytes, **more: int) -> Script:
    """A challenge that is none."""

    def script(link: Link) -> None:
        s.agreed()(link)
        while True:
            body = s.setup(blob, **more)
            link.give(s.reply(link.take(), body, MORE_PROCESSING, session_id=0x77))

    return script


def welcomes(dialect: int, flags: int = 0, blob: bool = True) -> Script:
    """A login that needs no password."""

    def script(link: Link) -> None:
        if blob:
            s.logged_in(link, dialect, flags)
        else:
            s.agreed(dialect=dialect)(link)
            link.give(s.reply(link.take(), s.setup(b"", flags), session_id=0x77))
        s.obliging(link)

    return script


def agrees(**more: int | bytes) -> Script:
    """A negotiation, and then silence."""

    def script(link: Link) -> None:
        s.agreed(**more)(link)
        link.stay()

    return script


def cut(size: int) -> Script:
    def script(link: Link) -> None:
        link.give(s.reply(link.take(), s.agreement())[:size])
        link.stay()

    return script


def smb1(words: bytes, data: bytes, code: int = 0) -> Script:
    """An answer to SMB1's NEGOTIATE."""

    def script(link: Link) -> None:
        request = link.take()
        head = bytearray(request[:32])
        head[:5] = SMB1 + b"\x72"
        struct.pack_into("<IBH", head, 5, code, 0x88, 0xC843)
        body = bytes([len(words) // 2]) + words + struct.pack("<H", len(data)) + data
        link.give(bytes(head) + body)
        link.stay()

    return script


def nt_lm(capabilities: int, key: bytes) -> bytes:
    """The words of an NT LM 0.12 answer (MS-SMB 2.2.4.5.2.1)."""
    return struct.pack("<HBHHIIIIQHB", 0, 3, 50, 1, 16644, 65536, 0, capabilities, 0, 0, len(key))
