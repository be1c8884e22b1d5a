"""A scripted man in the middle: passes SMB messages between a client and a real server, and lies.

A behaviour is a Tamper: which messages it looks for (a Moment), and what it makes of each. Every
message of the client is also looked at for what must never cross a network.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SMB1, SMB2, SEALED = b"\xffSMB", b"\xfeSMB", b"\xfdSMB"
NAMES2 = {
    0: "negotiate",
    1: "login",
    2: "logoff",
    3: "share",
    4: "unshare",
    5: "open",
    6: "close",
    7: "flush",
    8: "read",
    9: "write",
    11: "ioctl",
    13: "echo",
    16: "query",
}
NAMES1 = {
    0x72: "negotiate",
    0x73: "login",
    0x75: "share",
    0xA2: "open",
    0x04: "close",
    0x05: "flush",
    0x2E: "read",
    0x2F: "write",
}
PENDING = 0x103
MORE_PROCESSING = 0xC0000016
LARGE_BYTES = 16 * 1024
"""A sealed message beyond that carries payload."""

Message = bytearray
Buffer = bytes | bytearray
Outcome = list[bytes]


@dataclass
class Witness:
    """What a hostile end saw of a client; the same for all behaviours."""

    secret: bytes
    logins: int = 0
    """Answers to a challenge: each costs the account one attempt."""
    weak_logins: int = 0
    """Those that are not NTLMv2."""
    leaks: int = 0
    """Messages with the password in them."""
    connections: int = 0
    applied: int = 0
    """How often the behaviour did what it is there for."""

    def see(self, message: Buffer) -> None:
        """Looks at one message of the client (MS-NLMP 2.2.1.3)."""
        wide = self.secret.decode().encode("utf-16-le")
        self.leaks += self.secret in message or wide in message
        at = message.find(b"NTLMSSP\0\x03\0\0\0")
        if at >= 0:
            self.logins += 1
            (response_bytes,) = struct.unpack_from("<H", message, at + 20)
            self.weak_logins += response_bytes <= 24


@dataclass
class Talk:
    """One connection under way, as a Tamper sees it."""

    client: socket.socket
    server: socket.socket
    seen: Counter[int] = field(default_factory=Counter)
    """Messages that each tamper looked for so far, this one included."""
    asked: dict[int, bytes] = field(default_factory=dict)
    """Requests by message id; in clear alone."""
    kept: dict[str, bytes] = field(default_factory=dict)
    """What a tamper keeps for later."""


Edit = Callable[[Message, Talk], Outcome]
"""From a message to what is sent in its place: nothing, it altered, or several."""


@dataclass(frozen=True)
class Tamper:
    """What to look for, and what to make of it."""

    moment: str
    """NAMES2's word for a reply, "request:" and that for a request; "logged in" for the login's
    last reply, "sealed" for any encrypted one, "payload" for a READ's in clear or sealed, "any"."""
    edit: Edit
    nth: int = 1
    every: bool = False
    """All from the nth on."""

    def fits(self, moments: set[str], talk: Talk) -> bool:
        """Whether this message is the one; counts it."""
        if self.moment not in moments:
            return False
        talk.seen[id(self)] += 1
        count = talk.seen[id(self)]
        return count == self.nth or self.every and count > self.nth


def command(message: Buffer) -> str:
    """The moment's word of a message in clear; "" for others."""
    if message[:4] == SMB1:
        return NAMES1.get(message[4], "")
    if message[:4] == SMB2 and len(message) >= 64:
        return NAMES2.get(struct.unpack_from("<H", message, 12)[0], "")
    return ""


def status(message: Buffer) -> int:
    """NTSTATUS of a reply in clear."""
    return int(struct.unpack_from("<I", message, 5 if message[:4] == SMB1 else 8)[0])


def message_id(message: Buffer) -> int:
    """MessageId, or Mid in SMB1."""
    if message[:4] == SMB1:
        return int(struct.unpack_from("<H", message, 30)[0])
    return int(struct.unpack_from("<Q", message, 24)[0])


def moments(message: Buffer, reply: bool) -> set[str]:
    """The words that name this message."""
    if message[:4] == SEALED:
        large = len(message) > LARGE_BYTES
        words = {"sealed", "payload"} if large else {"sealed"}
        return words if reply else {f"request:{word}" for word in words}
    word = command(message)
    if not reply:
        return {f"request:{word}"}
    if word == "login" and status(message) != MORE_PROCESSING:
        return {"login", "logged in"}
    if word == "read" and status(message) == 0:
        return {"read", "payload"}
    if word and status(message) == PENDING:
        return set()
    return {word}


class Middle:
    """Listens for clients, passes them on to a server, and applies one tamper to each."""

    def __init__(self, server: tuple[str, int], tampers: tuple[Tamper, ...], secret: bytes) -> None:
        self._server = server
        self._tampers = tampers
        self.witness = Witness(secret)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._closing = False

    def serve(self) -> None:
        """Takes clients until closed."""
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.witness.connections += 1
            server = socket.create_connection(self._server, timeout=10)
            server.settimeout(None)
            self._open += [client, server]
            talk = Talk(client, server)
            for pump in (self._requests, self._replies):
                threading.Thread(target=pump, args=(talk,), daemon=True).start()

    def close(self) -> None:
        """Ends every connection."""
        self._closing = True
        for each in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _requests(self, talk: Talk) -> None:
        for message in _messages(talk.client, talk.server):
            self.witness.see(message)
            if message[:4] in (SMB1, SMB2):
                talk.asked[message_id(message)] = bytes(message[:512])
            _pass(talk.server, self._tampered(message, moments(message, False), talk))

    def _replies(self, talk: Talk) -> None:
        for message in _messages(talk.server, talk.client):
            words = moments(message, True) | {"any"}
            _pass(talk.client, self._tampered(message, words, talk))

    def _tampered(self, message: Message, words: set[str], talk: Talk) -> Outcome:
        for tamper in self._tampers:
            if tamper.fits(words, talk):
                self.witness.applied += 1
                return tamper.edit(message, talk)
        return [framed(message)]


def framed(message: Buffer) -> bytes:
    """A message with its length in front (MS-SMB2 2.1)."""
    return struct.pack(">I", len(message)) + bytes(message)


def _messages(source: socket.socket, other: socket.socket) -> Iterator[Message]:
    """Whole messages until either end closes; then both are closed."""
    try:
        with source.makefile("rb", buffering=1 << 18) as stream:
            while len(head := stream.read(4)) == 4:
                length = struct.unpack(">I", head)[0] & 0xFFFFFF
                message = stream.read(length)
                if len(message) < length:
                    return
                yield Message(message)
    except OSError:
        return
    finally:
        for each in (source, other):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _pass(target: socket.socket, pieces: Outcome) -> None:
    for piece in pieces:
        try:
            target.sendall(piece)
        except OSError:
            return


@contextmanager
def between(
    server: tuple[str, int], tampers: tuple[Tamper, ...], secret: bytes
) -> Iterator[tuple[int, Witness]]:
    """A middle at work: its port, and what it saw."""
    middle = Middle(server, tampers, secret)
    thread = threading.Thread(target=middle.serve, daemon=True)
    thread.start()
    try:
        yield middle.port, middle.witness
    finally:
        middle.close()
        thread.join(5)
