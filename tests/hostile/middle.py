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
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

SMB1, SMB2, SEALED = b"\xffSMB", b"\xfeSMB", b"\xfdSMB"
NAMES2 = {0: "negotiate", 1: "login", 2: "logoff", 3: "share", 4: "unshare", 5: "open"}
NAMES2 |= {6: "close", 7: "flush", 8: "read", 9: "write", 11: "ioctl", 13: "echo", 14: "list"}
NAMES2 |= {16: "query"}
NAMES1 = {0x72: "negotiate", 0x73: "login", 0x75: "share", 0xA2: "open"}
NAMES1 |= {0x04: "close", 0x05: "flush", 0x2E: "read", 0x2F: "write"}
PENDING = 0x103
MORE_PROCESSING = 0xC0000016
LARGE_BYTES = 16 * 1024
"""A sealed message beyond that carries payload."""

Message = bytearray
Buffer = bytes | bytearray
Outcome = list[bytes] | None


@dataclass
class Witness:
    """Counts of a client's doings at a hostile end; the same for all behaviours."""

    secret: bytes
    logins: int = 0
    """Answers to a challenge: each costs the account one attempt."""
    weak_logins: int = 0
    """Logins that are not NTLMv2."""
    leaks: int = 0
    """Messages with the password in them."""
    connections: int = 0
    misbehaved: int = 0
    """Times that the behaviour did what it is there for."""

    def see(self, message: Buffer) -> None:
        """Looks at one message of the client (MS-NLMP 2.2.1.3)."""
        wide = self.secret.decode().encode("utf-16-le")
        self.leaks += self.secret in message or wide in message
        offset = message.find(b"NTLMSSP\0\x03\0\0\0")
        if offset >= 0:
            self.logins += 1
            (response_bytes,) = struct.unpack_from("<H", message, offset + 20)
            self.weak_logins += response_bytes <= 24


@dataclass
class Talk:
    client: socket.socket
    server: socket.socket
    counts: Counter[int] = field(default_factory=Counter)
    """Messages that each tamper looked for so far, this one included."""
    stored: dict[str, bytes] = field(default_factory=dict)
    """Messages that a tamper keeps for later."""


Edit = Callable[[Message, Talk], Outcome]
"""From a message to what is sent in its place: nothing, several, or (None) it as it now is."""


@dataclass(frozen=True)
class Tamper:
    """A message to look for, and what to make of it."""

    moment: str
    """A name of NAMES2 for a reply, "request:" and that for a request; "logged in" for the login's
    last reply, "sealed" for any encrypted one, "payload" for a READ's in clear or sealed, "any"."""
    edits: tuple[Edit, ...]
    nth: int = 1
    every: bool = False
    """All from the nth on."""

    def fits(self, moments: set[str], talk: Talk) -> bool:
        """Whether this message is the one; counts it."""
        if self.moment not in moments:
            return False
        talk.counts[id(self)] += 1
        count = talk.counts[id(self)]
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


def frame(message: Buffer) -> bytes:
    """A message with its length in front (MS-SMB2 2.1)."""
    return struct.pack(">I", len(message)) + bytes(message)


@contextmanager
def listen(
    serve: Callable[[socket.socket, Witness], None], secret: bytes
) -> Iterator[tuple[int, Witness]]:
    """Serves each client in a thread of its own until the end of the block: port, what was seen."""
    witness, clients = Witness(secret), list[socket.socket]()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                witness.connections += 1
                clients.append(client)
                threading.Thread(target=serve, args=(client, witness), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield int(listener.getsockname()[1]), witness
        finally:
            _end(listener, *clients)
            thread.join(5)


def run_middle(
    server: tuple[str, int], tampers: tuple[Tamper, ...], secret: bytes
) -> AbstractContextManager[tuple[int, Witness]]:
    """A middle at work: its port, and what it saw."""

    def tampered(message: Message, words: set[str], talk: Talk, witness: Witness) -> list[bytes]:
        outcome: Outcome = None
        for tamper in tampers:
            if tamper.fits(words, talk):
                witness.misbehaved += 1
                for edit in tamper.edits:
                    outcome = edit(message, talk)
                break
        return [frame(message)] if outcome is None else outcome

    def requests(talk: Talk, witness: Witness) -> None:
        for message in _messages(talk.client, talk.server):
            witness.see(message)
            _pass(talk.server, tampered(message, moments(message, False), talk, witness))

    def serve(client: socket.socket, witness: Witness) -> None:
        with client, socket.create_connection(server, timeout=10) as real:
            real.settimeout(None)
            talk = Talk(client, real)
            asking = threading.Thread(target=requests, args=(talk, witness), daemon=True)
            asking.start()
            for message in _messages(real, client):
                words = moments(message, True) | {"any"}
                _pass(client, tampered(message, words, talk, witness))
            asking.join()

    return listen(serve, secret)


def _messages(source: socket.socket, other: socket.socket) -> Iterator[Message]:
    """Whole messages until either end closes; then both are closed."""
    with contextlib.suppress(OSError), source.makefile("rb", buffering=1 << 18) as stream:
        while len(head := stream.read(4)) == 4:
            length = struct.unpack(">I", head)[0] & 0xFFFFFF
            message = stream.read(length)
            if len(message) < length:
                break
            yield Message(message)
    _end(source, other)


def _end(*connections: socket.socket) -> None:
    for each in connections:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _pass(target: socket.socket, pieces: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        for piece in pieces:
            target.sendall(piece)
