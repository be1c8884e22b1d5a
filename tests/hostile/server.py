"""A scripted hostile server: no files, no passwords, only what a script says.

A script is a function of one connection; when it returns, the connection is closed. It can answer
as an SMB2 server does until the login, where the lies begin.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Concatenate, ParamSpec

from edits import ERROR, header
from middle import MORE_PROCESSING, PENDING, SMB1, Witness, command, frame, listen

SESSION = 0x77


class Connection:
    def __init__(self, sock: socket.socket, witness: Witness) -> None:
        self.sock, self.witness = sock, witness

    def take(self) -> bytes:
        """The client's next message. EOFError: it left."""
        request = self._exactly(struct.unpack(">I", self._exactly(4))[0] & 0xFFFFFF)
        self.witness.see(request)
        return request

    def give(self, message: bytes) -> None:
        self.raw(frame(message))

    def raw(self, data: bytes) -> None:
        self.witness.misbehaved += 1
        self.sock.sendall(data)

    def stay(self) -> None:
        """Silent, but there, until the client leaves."""
        self.witness.misbehaved += 1
        while self.sock.recv(1 << 16):
            pass

    def again(self, data: bytes, seconds: float = 0.2) -> None:
        while True:
            self.raw(data)
            time.sleep(seconds)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self.sock.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return data


Script = Callable[[Connection], None]
Given = ParamSpec("Given")


def script(work: Callable[Concatenate[Connection, Given], object]) -> Callable[Given, Script]:
    """Turns f(link, ...) into a function of the further arguments that returns a Script."""

    def of(*arguments: Given.args, **keywords: Given.kwargs) -> Script:
        return lambda link: work(link, *arguments, **keywords) and None

    return of


def play(script: Script, secret: bytes) -> AbstractContextManager[tuple[int, Witness]]:
    def serve(client: socket.socket, witness: Witness) -> None:
        with client, contextlib.suppress(OSError, EOFError):
            script(Connection(client, witness))

    return listen(serve, secret)


# -- messages ----------------------------------------------------------------------------------


def reply(request: bytes, body: bytes, code: int = 0, session: int = 0, shift: int = 0) -> bytes:
    """An SMB2 reply to a request; shift: by how much its number is not the request's."""
    opcode, number = (
        struct.unpack_from(form, request, offset)[0] for form, offset in (("<H", 12), ("<Q", 24))
    )
    return header(opcode, number + shift, session, code, flags=3 if code == PENDING else 1) + body


def contexts(hash_number: int = 1, cipher: int = 2, signature: int = 2) -> bytes:
    """The contexts of a NEGOTIATE reply (MS-SMB2 2.2.4.1): hash, cipher, signature."""
    items = []
    for kind, data in (
        (1, struct.pack("<HHH32s", 1, 32, hash_number, os.urandom(32))),
        (2, struct.pack("<HH", 1, cipher)),
        (8, struct.pack("<HH", 1, signature)),
    ):
        item = struct.pack("<HHI", kind, len(data), 0) + data
        items.append(item + bytes(-len(item) % 8))
    return b"".join(items)


def agreement(
    dialect: int = 0x0311,
    max_bytes: int = 1 << 20,
    context_count: int = 3,
    context_offset: int = 128,
    blob_offset: int = 128,
    blob_bytes: int = 0,
    listed: bytes | None = None,
) -> bytes:
    """Body of a NEGOTIATE reply (MS-SMB2 2.2.4)."""
    modern = dialect == 0x0311
    able = 0x45 if dialect >= 0x0300 else 0x4 if dialect != 0x0202 else 0
    fixed = struct.pack(
        "<HHHH16sI", 65, 1, dialect, context_count if modern else 0, b"hostile-0", able
    )
    fixed += struct.pack("<IIIQQ", max_bytes, max_bytes, max_bytes, 0x01DB000000000000, 0)
    fixed += struct.pack("<HHI", blob_offset, blob_bytes, context_offset if modern else 0)
    return fixed + ((contexts() if listed is None else listed) if modern else b"")


def challenge(
    flags: int = 0xE28A8215,
    target_info: bytes | None = None,
    info_offset: int = 56,
    info_bytes: int | None = None,
    kind: int = 2,
    mark: bytes = b"NTLMSSP\0",
) -> bytes:
    """An NTLM challenge (MS-NLMP 2.2.1.2)."""
    info = TARGET_INFO if target_info is None else target_info
    size = len(info) if info_bytes is None else info_bytes
    head = struct.pack("<8sIHHII8s8s", mark, kind, 0, 0, 56, flags, b"\x01" * 8, b"")
    return head + struct.pack("<HHI8s", size, size, info_offset, b"\x0a\0\0\0\0\0\0\x0f") + info


def pair(kind: int, value: bytes) -> bytes:
    """An AV_PAIR (MS-NLMP 2.2.2.1)."""
    return struct.pack("<HH", kind, len(value)) + value


_NAME = "HOSTILE".encode("utf-16-le")
TARGET_INFO = pair(2, _NAME) + pair(1, _NAME) + pair(7, b"\0" * 7 + b"\x01") + pair(0, b"")


def setup(blob: bytes, session_flags: int = 0, size: int | None = None) -> bytes:
    """Body of a SESSION_SETUP reply (MS-SMB2 2.2.6)."""
    return struct.pack("<HHHH", 9, session_flags, 72, len(blob) if size is None else size) + blob


def nt_lm(capabilities: int, key: bytes) -> bytes:
    """The words of an NT LM 0.12 answer (MS-SMB 2.2.4.5.2.1)."""
    return struct.pack("<HBHHIIIIQHB", 0, 3, 50, 1, 16644, 65536, 0, capabilities, 0, 0, len(key))


# -- scripts -----------------------------------------------------------------------------------


@script
def shouts(link: Connection, data: bytes) -> None:
    link.raw(data)
    link.stay()


@script
def answers(link: Connection, data: bytes) -> None:
    """One answer to the first message, whatever it was."""
    link.take()
    shouts(data)(link)


def drips(link: Connection) -> None:
    for each in frame(reply(link.take(), agreement())):
        link.raw(bytes([each]))
        time.sleep(1)


def silent(link: Connection) -> None:
    link.stay()


def leaves(link: Connection) -> None:
    link.witness.misbehaved += 1


def resets(link: Connection) -> None:
    link.witness.misbehaved += 1
    link.take()
    link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def echoes(link: Connection) -> None:
    while True:
        link.give(link.take())


def floods(link: Connection) -> None:
    link.take()
    link.again(bytes(4) * 4096, 0)


def keeps_alive(link: Connection) -> None:
    link.again(b"\x85\0\0\0", 0.02)


def waits(link: Connection) -> None:
    link.again(frame(reply(link.take(), ERROR, PENDING)))


def again_and_again(link: Connection) -> None:
    link.raw(frame(reply(link.take(), agreement())) * 2000)
    link.stay()


def wildcards(link: Connection) -> None:
    while True:
        link.give(reply(link.take(), agreement(dialect=0x02FF)))


def other_number(link: Connection) -> None:
    link.give(reply(link.take(), agreement(), shift=99))
    link.stay()


@script
def agrees(link: Connection, stays: bool = True, **options: int | bytes) -> None:
    """A negotiation, and then silence."""
    link.give(reply(link.take(), agreement(**options)))  # type: ignore[arg-type]
    if stays:
        link.stay()


@script
def demands(link: Connection, blob: bytes, **options: int) -> None:
    """Answers every login message with this blob, a challenge or not."""
    agrees(stays=False)(link)
    while True:
        link.give(reply(link.take(), setup(blob, **options), MORE_PROCESSING, SESSION))


def _challenge_client(link: Connection, dialect: int) -> bytes:
    """Answers until the client has sent its proof; returns that request."""
    agrees(stays=False, dialect=dialect)(link)
    link.give(reply(link.take(), setup(challenge()), MORE_PROCESSING, SESSION))
    return link.take()


@script
def denies(link: Connection, code: int, dialect: int = 0x0311) -> None:
    request = _challenge_client(link, dialect)
    while True:
        link.give(reply(request, ERROR, code, SESSION))
        request = link.take()


@script
def welcomes(link: Connection, dialect: int, flags: int = 0, blob: bool = True) -> None:
    """A login that needs no password, and yes to whatever comes next, with the shortest body."""
    if blob:
        request = _challenge_client(link, dialect)
    else:
        agrees(stays=False, dialect=dialect)(link)
        request = link.take()
    link.give(reply(request, setup(b"", flags), session=SESSION))
    while True:
        request = link.take()
        if command(request) == "share":
            body = struct.pack("<HBBIII", 16, 1, 0, 0, 0, 0x1FF)
            answer = bytearray(reply(request, body, session=SESSION))
            struct.pack_into("<I", answer, 36, 5)
            link.give(bytes(answer))
        else:
            link.give(reply(request, struct.pack("<HH", 4, 0), session=SESSION))


@script
def cut(link: Connection, size: int) -> None:
    link.give(reply(link.take(), agreement())[:size])
    link.stay()


@script
def smb1(link: Connection, words: bytes, data: bytes) -> None:
    head = bytearray(link.take()[:32])
    head[:5] = SMB1 + b"\x72"
    struct.pack_into("<IBH", head, 5, 0, 0x88, 0xC843)
    body = bytes([len(words) // 2]) + words + struct.pack("<H", len(data)) + data
    link.give(bytes(head) + body)
    link.stay()
