"""Answers of a file server: to our own READs and WRITEs, and to the libraries that log in.

The first byte chooses who reads, see KINDS; what follows are frames as they travel: four bytes of
length, then a message. To a session each request is answered by the next of them.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from probes.core.records import DIALECTS, Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import payload
from probes.smb import facts, leftovers, server_query, transfer
from probes.smb import session as sessions
from probes.smb.frames import SmbError, Wire
from probes.smb.impacket_session import Smb1Session
from probes.smb.pipe import Pipe
from probes.smb.pipe1 import Link1, Pipe1
from probes.smb.pipe2 import Link2, Pipe2
from probes.smb.protection import HmacSha256, Md5, Sealer
from probes.smb.session import Session
from probes.smb.smbprotocol_session import Smb2Session
from probes.smb.transfer import Transfer
from probes.sockets.tcp_info import wait_at_most
from probes.stages.small_files import SmallFiles

PEER = Endpoint(host="server", port=445, share="share", access=Access("user", "secret"))
KEY = b"k" * 16
SESSION, TREE, USER = 0x77, 5, 9
PIECE_BYTES = 4096
FRAME_LIMIT_BYTES = 128 * 1024
TICK_SECONDS = 0.1
"""Time that a server waits for the next request before it says something unasked."""
MOST_FRAMES = 64
RING = payload.make_ring(b"ring")


def one_input(data: bytes) -> None:
    """Ends with an answer, or Broken, Refused or Unavailable in one line."""
    if data:
        try:
            KINDS[data[0] % len(KINDS)](data[1:])
        except (SmbError, Refused, Unavailable) as error:
            text = getattr(error, "text", "") or str(error)
            assert "\n" not in text and text, error


# -- parsers -----------------------------------------------------------------------------------


def parsers(data: bytes) -> None:
    """Gives the data to every parser that takes a message or a body by itself."""
    for interface in facts.interfaces(data):
        assert interface.rate_bytes_per_second >= 0
    for dialect in DIALECTS:
        smb1 = dialect == "smb1"
        signing = server_query.parse_1(data) if smb1 else server_query.parse(data, dialect)
        assert signing is None or signing.startswith("signing")
    with contextlib.suppress(struct.error):
        facts.read_clock(data)
    with contextlib.suppress(SmbError):
        transfer.parse_room(data)


# -- our own data path -------------------------------------------------------------------------


@contextlib.contextmanager
def spoken(stream: bytes) -> Iterator[Wire]:
    """Our end of a connection whose server has said all of it and left."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wait_at_most(ours, 1)
        # what we ask goes unread, and must not wait either
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        theirs.sendall(stream)
        theirs.shutdown(socket.SHUT_WR)
        wire = Wire(ours, FRAME_LIMIT_BYTES)
        wire.deadline = time.monotonic() + 3
        yield wire


def frames(stream: bytes) -> list[bytes]:
    """Returns the messages of a stream; the last may be shorter than its length."""
    messages = []
    while len(stream) > 4 and len(messages) < MOST_FRAMES:
        size = int.from_bytes(stream[1:4], "big")
        messages.append(stream[4 : 4 + size])
        stream = stream[4 + size :]
    return messages


def framed(messages: list[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(each)) + each for each in messages)


def signed(message: bytes) -> bytes:
    """Signs a message as a hostile server does that has the key."""
    if len(message) < 64:
        return message
    flags = struct.pack("<I", int.from_bytes(message[16:20], "little") | 8)
    number = int.from_bytes(message[24:32], "little")
    bare = message[:16] + flags + message[20:48] + bytes(16) + message[64:]
    return bare[:48] + HmacSha256(KEY).sign(number, True, bare) + bare[64:]


def link2(wire: Wire, sealer: Sealer | None = None, sign: bool = False) -> Link2:
    return Link2(
        wire=wire,
        session_id=SESSION,
        tree_id=TREE,
        file_id=b"f" * 16,
        next_message_id=0,
        credits=8,
        multi_credit=True,
        max_read_bytes=1 << 16,
        max_write_bytes=1 << 16,
        signer=HmacSha256(KEY) if sign else None,
        sealer=sealer,
    )


def plain2(data: bytes) -> None:
    """SMB2 and SMB3, neither signed nor encrypted."""
    with spoken(data) as wire:
        worked(Pipe2(link2(wire)))


def signed2(data: bytes) -> None:
    """SMB2 and SMB3, signed."""
    with spoken(framed(list(map(signed, frames(data))))) as wire:
        worked(Pipe2(link2(wire, sign=True)))


def sealed2(cipher: str) -> Callable[[bytes], None]:
    """SMB3, encrypted with the cipher."""

    def consume(data: bytes) -> None:
        theirs = Sealer(cipher, KEY, KEY, SESSION)
        messages = [b"".join(map(bytes, theirs.seal(each, b""))) for each in frames(data)]
        with spoken(framed(messages)) as wire:
            worked(Pipe2(link2(wire, Sealer(cipher, KEY, KEY, SESSION))))

    return consume


def plain1(data: bytes, signer: Md5 | None = None) -> None:
    """SMB1."""
    with spoken(data) as wire:
        worked(Pipe1(Link1(wire, USER, TREE, 3, 0xC807, 1 << 16, 1 << 16, 8, signer, 0)))


def signed1(data: bytes) -> None:
    """SMB1, signed."""
    messages = frames(data)
    for index, message in enumerate(messages):
        if len(message) >= 32:
            flags2 = int.from_bytes(message[10:12], "little") | 4
            head = message[:10] + struct.pack("<H", flags2) + message[12:14]
            bare = head + struct.pack("<q", 2 * index + 1) + message[22:]
            signature = Md5(KEY).sign(2 * index + 1, True, bare)
            messages[index] = bare[:14] + signature + bare[22:]
    plain1(framed(messages), Md5(KEY))


def worked(pipe: Pipe) -> None:
    """Sends every kind of a stage's requests, until the stream ends."""
    views = [memoryview(bytearray(PIECE_BYTES)) for _ in range(3)]
    for index, view in enumerate(views):
        pipe.read(index * PIECE_BYTES, view)
    pipe.write(0, RING[:PIECE_BYTES])
    pipe.flush()
    pipe.echo()
    pipe.create(7, "name")
    if isinstance(pipe, Pipe2):
        transfer.ShareRoom(pipe, b"f" * 16, "share").ask()
    while pipe.in_flight:
        reply = pipe.wait()
        assert 0 <= reply.moved_bytes <= PIECE_BYTES
        assert len(reply.view) == (reply.moved_bytes if reply.verb == "read" else 0)
        if reply.verb == "create":
            pipe.turn(pipe.parse_created(reply.body).id)
        elif reply.verb == "space":
            transfer.parse_room(reply.body)
    request, depth = pipe.prepare("read", PIECE_BYTES, 2)
    for _ in Transfer(pipe, "read", 4 * request, RING).replies(
        request, depth, lambda sent: sent < 6
    ):
        pass
    deque(transfer.fetch(pipe, iter([(0, 100)]), request, depth, lambda index, part: None), 0)
    SmallFiles(pipe, "small", 100, RING).make(2, time.monotonic() + 1)


# -- sessions ----------------------------------------------------------------------------------


class Answering(threading.Thread):
    """A server that answers each request with the next frame, whatever it was, and then leaves."""

    def __init__(self, theirs: socket.socket, stream: bytes) -> None:
        super().__init__(daemon=True)
        self._theirs, self._stream = theirs, stream
        self.start()

    def run(self) -> None:
        last = b""
        with self._theirs, contextlib.suppress(OSError):
            self._theirs.settimeout(TICK_SECONDS)
            for message in frames(self._stream):
                with contextlib.suppress(TimeoutError):
                    last = self._theirs.recv(1 << 16) or last
                self._theirs.sendall(framed([answering(message, last[4:])]))


def answering(message: bytes, request: bytes) -> bytes:
    """Returns the message with the number of the request."""
    for mark, start, end in ((b"\xfeSMB", 24, 32), (b"\xffSMB", 30, 32)):
        if message[:4] == mark and request[:4] == mark:
            return message[:start] + request[start:end] + message[end:]
    return message


@contextlib.contextmanager
def answered_by(stream: bytes) -> Iterator[None]:
    """Leads both libraries' connections to an Answering server; one at a time."""
    threads = []

    def connect(peer: Endpoint) -> socket.socket:
        ours, theirs = socket.socketpair()
        wait_at_most(ours, 1)
        threads.append(Answering(theirs, stream))
        return ours

    usual, sessions.connect = sessions.connect, connect
    try:
        yield
    finally:
        sessions.connect = usual
        for each in threads:
            each.join()


def modern(dialect: str | None) -> Callable[[bytes], None]:
    def consume(data: bytes) -> None:
        with answered_by(data):
            session = Smb2Session(PEER, "").start(dialect, ())
            try:
                visited(session)
                list(leftovers.entries(session, "", "*"))
            finally:
                session.disconnect()

    return consume


def old(data: bytes) -> None:
    with answered_by(data):
        session = Smb1Session(PEER, "").start(None, ())
        try:
            visited(session)
        finally:
            session.disconnect()


def visited(session: Session) -> None:
    session.facts.details()
    folder = session.create_folder("run")
    room = session.space(folder)
    assert isinstance(room.free_bytes, int)
    session.interfaces()
    session.names("other")
    file = session.create_file("run\\file")
    with session.pipe(file) as pipe:
        deque(transfer.fetch(pipe, iter([(0, 100)]), 100, 1, lambda offset, part: None), 0)
    session.close(file)
    session.close(session.open_file("other\\a", write=False))


KINDS: tuple[Callable[[bytes], None], ...] = (
    parsers,
    plain2,
    signed2,
    sealed2("aes-128-gcm"),
    sealed2("aes-128-ccm"),
    plain1,
    signed1,
    modern("2.1"),
    modern("3.1.1"),
    modern(None),
    old,
)
