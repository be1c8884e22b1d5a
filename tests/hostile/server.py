"""A scripted hostile server: no files, no passwords, only what a script says.

A script is a function of one connection; when it returns, the connection is closed. It can answer
as an SMB2 server does until the login, where the lies begin.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from middle import MORE_PROCESSING, PENDING, Witness, command, framed, message_id

LARGEST_FRAME_BYTES = 1 << 20


class Link:
    """One client, as a script sees it."""

    def __init__(self, sock: socket.socket, witness: Witness) -> None:
        self.sock = sock
        self.witness = witness
        self.asked = b""
        """The last request."""

    def take(self) -> bytes:
        """The client's next message. EOFError: it left."""
        self.asked = self._exactly(struct.unpack(">I", self._exactly(4))[0] & 0xFFFFFF)
        self.witness.see(self.asked)
        return self.asked

    def give(self, message: bytes) -> None:
        """Sends one message in its frame."""
        self.raw(framed(message))

    def raw(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self.witness.applied += 1
        self.sock.sendall(data)

    def stay(self) -> None:
        """Silent, but there, until the client leaves."""
        self.witness.applied += 1
        while self.sock.recv(1 << 16):
            pass

    def again(self, data: bytes, seconds: float = 0.2) -> None:
        """The same for ever."""
        while True:
            self.raw(data)
            time.sleep(seconds)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.sock.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data


Script = Callable[[Link], None]


class Server:
    """Listens, and plays one script to whoever comes."""

    def __init__(self, script: Script, secret: bytes) -> None:
        self._script = script
        self.witness = Witness(secret)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []

    def serve(self) -> None:
        """Takes clients until closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.witness.connections += 1
            self._open.append(client)
            threading.Thread(target=self._play, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Ends every connection."""
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _play(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, EOFError):
            self._script(Link(client, self.witness))


@contextmanager
def playing(script: Script, secret: bytes) -> Iterator[tuple[int, Witness]]:
    """A hostile server at work: its port, and what it saw."""
    server = Server(script, secret)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server.port, server.witness
    finally:
        server.close()
        thread.join(5)


def reply(
    request: bytes,
    body: bytes,
    code: int = 0,
    session_id: int = 0,
    flags: int = 1,
    credit: int = 64,
    number: int | None = None,
) -> bytes:
    """An SMB2 reply to a request (MS-SMB2 2.2.1.2)."""
    order = struct.unpack_from("<H", request, 12)[0]
    number = message_id(request) if number is None else number
    head = struct.pack(
        "<4sHHIHHIIQIIQ16s",
        b"\xfeSMB",
        64,
        1,
        code,
        order,
        credit,
        flags,
        0,
        number,
        0xFEFF,
        0,
        session_id,
        b"",
    )
    return head + body


ERROR = struct.pack("<HBBIB", 9, 0, 0, 0, 0)


def interim(request: bytes) -> bytes:
    """STATUS_PENDING."""
    return reply(request, ERROR, PENDING, flags=3)


def contexts(hash_number: int = 1, cipher: int = 2, signature: int = 2) -> bytes:
    """The contexts of a NEGOTIATE reply (MS-SMB2 2.2.4.1): hash, cipher, signature."""
    found = []
    for kind, data in (
        (1, struct.pack("<HHH32s", 1, 32, hash_number, os.urandom(32))),
        (2, struct.pack("<HH", 1, cipher)),
        (8, struct.pack("<HH", 1, signature)),
    ):
        item = struct.pack("<HHI", kind, len(data), 0) + data
        found.append(item + bytes(-len(item) % 8))
    return b"".join(found)


def agreement(
    dialect: int = 0x0311,
    mode: int = 1,
    longest: int = 1 << 20,
    count: int = 3,
    context_offset: int = 128,
    blob_offset: int = 128,
    blob_bytes: int = 0,
    listed: bytes | None = None,
) -> bytes:
    """Body of a NEGOTIATE reply (MS-SMB2 2.2.4)."""
    modern = dialect == 0x0311
    fixed = struct.pack(
        "<HHHH16sIIIIQQHHI",
        65,
        mode,
        dialect,
        count if modern else 0,
        b"hostile-server-0",
        0x45 if dialect >= 0x0300 else 0x4 if dialect != 0x0202 else 0,
        longest,
        longest,
        longest,
        0x01DB000000000000,
        0,
        blob_offset,
        blob_bytes,
        context_offset if modern else 0,
    )
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
    return (
        struct.pack("<8sIHHII8s8s", mark, kind, 0, 0, 56, flags, b"\x01" * 8, b"")
        + struct.pack("<HHI8s", size, size, info_offset, b"\x0a\0\0\0\0\0\0\x0f")
        + info
    )


def pair(kind: int, value: bytes) -> bytes:
    """An AV_PAIR (MS-NLMP 2.2.2.1)."""
    return struct.pack("<HH", kind, len(value)) + value


_NAME = "HOSTILE".encode("utf-16-le")
TARGET_INFO = pair(2, _NAME) + pair(1, _NAME) + pair(7, b"\0" * 7 + b"\x01") + pair(0, b"")


def setup(blob: bytes, session_flags: int = 0, offset: int = 72, size: int | None = None) -> bytes:
    """Body of a SESSION_SETUP reply (MS-SMB2 2.2.6)."""
    return (
        struct.pack("<HHHH", 9, session_flags, offset, len(blob) if size is None else size) + blob
    )


def agreed(**more: int | bytes) -> Callable[[Link], None]:
    """Answers the NEGOTIATE request."""

    def script(link: Link) -> None:
        link.give(reply(link.take(), agreement(**more)))  # type: ignore[arg-type]

    return script


def challenged(link: Link, dialect: int = 0x0311, blob: bytes | None = None) -> bytes:
    """Answers until the client has sent its proof; returns that request."""
    agreed(dialect=dialect)(link)
    body = setup(challenge() if blob is None else blob)
    link.give(reply(link.take(), body, MORE_PROCESSING, session_id=0x77))
    return link.take()


def logged_in(link: Link, dialect: int, session_flags: int = 0, code: int = 0) -> None:
    """Lets the client in without knowing its password."""
    request = challenged(link, dialect)
    link.give(reply(request, setup(b"", session_flags), code, session_id=0x77))


def obliging(link: Link) -> None:
    """Says yes to whatever comes next, with the shortest body."""
    while True:
        request = link.take()
        if command(request) == "share":
            body = struct.pack("<HBBIII", 16, 1, 0, 0, 0, 0x1FF)
            answer = bytearray(reply(request, body, session_id=0x77))
            struct.pack_into("<I", answer, 36, 5)
            link.give(bytes(answer))
        else:
            link.give(reply(request, struct.pack("<HH", 4, 0), session_id=0x77))
