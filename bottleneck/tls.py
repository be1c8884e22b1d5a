"""TLS between a coordinator and an agent that listens, and what passes through it.

TLS 1.3 alone (RFC 8446). A certificate is made for one listener's life and is believed for its
fingerprint, which the token carries, and for nothing else. The socket never waits: both ends have
more to look after than one connection.
"""

from __future__ import annotations

import hashlib
import math
import re
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bottleneck.credentials import PART_BYTES
from probes.host.system import os
from probes.host.tcp_info import keep_alive
from probes.host.waiting import select

CHUNK_BYTES = 1 << 16
LOOK_SECONDS = 0.25
WRITE_SECONDS = 20.0
"""How long the other end may leave what is sent to it unread."""
KEEPALIVE_SECONDS = 10
KEEPALIVE_TRIES = 4
"""A host that is gone without a word is noticed after this many times that long."""
SIGN = b"\n"
"""A line without words: the caller is there. Nobody is handed it."""
SIGN_SECONDS = 10.0


class Broken(Exception):
    """The connection cannot go on; the text says why."""


def fingerprint(certificate: bytes) -> bytes:
    """Of a certificate in DER."""
    return hashlib.sha256(certificate).digest()[:PART_BYTES]


def listening() -> tuple[ssl.SSLContext, bytes]:
    """A listener's TLS with a certificate of its own, and that one's fingerprint."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bottleneck agent")])
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=366))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    # ssl reads files alone: this one is memory, and is gone once it was read.
    with os.fdopen(os.memfd_create("certificate"), "wb") as file:
        file.write(key.private_bytes(pem, *plain) + made.public_bytes(pem))
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context, fingerprint(made.public_bytes(serialization.Encoding.DER))


def calling() -> ssl.SSLContext:
    """A caller's TLS: it is the caller's to compare the fingerprint."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass
class Stream:
    """TLS over a socket that never waits."""

    connection: socket.socket
    tls: ssl.SSLObject
    incoming: ssl.MemoryBIO
    outgoing: ssl.MemoryBIO
    unsent: bytes = b""
    plain: bytes = b""
    """What was heard and not taken yet."""
    ended: bool = False
    """Whether the other end sends no more."""

    def hear(self, most_bytes: int = CHUNK_BYTES) -> int:
        """Takes what has come; how many bytes it were."""
        try:
            chunk = self.connection.recv(most_bytes)
        except BlockingIOError:
            return 0
        self.ended = not chunk
        self.incoming.write(chunk)
        return len(chunk)

    def shaken(self) -> bool:
        """Goes on with the handshake; whether it is over. What it wants to say is not sent yet."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def decrypt(self) -> None:
        """Has in plain what was heard."""
        try:
            while chunk := self.tls.read(CHUNK_BYTES):
                self.plain += chunk
        except ssl.SSLWantReadError:
            return

    def write(self, text: bytes) -> None:
        """Encrypts; flush() sends it."""
        self.tls.write(text)

    def flush(self) -> int:
        """Sends as much as the socket takes; how many bytes it were."""
        self.unsent += self.outgoing.read()
        if not self.unsent:
            return 0
        try:
            sent = self.connection.send(self.unsent)
        except BlockingIOError:
            return 0
        self.unsent = self.unsent[sent:]
        return sent


def over(connection: socket.socket, context: ssl.SSLContext, asked_for: str = "") -> Stream:
    """TLS on a connection. asked_for: the name that a caller asks for; empty: this end listens."""
    connection.setblocking(False)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(
        incoming, outgoing, server_side=not asked_for, server_hostname=asked_for or None
    )
    return Stream(connection, tls, incoming, outgoing)


def settle(connection: socket.socket) -> None:
    """Readies a connection whose two ends have proven themselves: quick, and noticing a loss."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    silent_ms = 1000 * KEEPALIVE_SECONDS * KEEPALIVE_TRIES
    keep_alive(connection, KEEPALIVE_SECONDS, KEEPALIVE_SECONDS, KEEPALIVE_TRIES, silent_ms)


@dataclass
class Relay:
    """Passes bytes between a stream and two pipes until the agent's end of it has ended.

    The other end's end is passed on: what is on its way still arrives.
    """

    stream: Stream
    source: int
    sink: int
    end_sink: Callable[[], object] | None = None
    """Closes it. None: this is the caller's end, and the agent is behind the stream."""
    is_alive: Callable[[], bool] | None = None
    """Whether a sign of life is sent; None: the other end sends them."""
    silent_seconds: float = math.inf
    """Without a byte for so long the other end is taken for gone, whatever TCP says."""
    closing_seconds: float = math.inf
    """What the agent gets to end after the caller has."""
    passing: bytes = b""
    """To the sink."""
    source_open: bool = True
    between_lines: bool = True
    """Whether what was taken from the source, or heard, so far was whole lines."""
    heard: float = field(default_factory=time.monotonic)
    sent: float = field(default_factory=time.monotonic)
    signed: float = field(default_factory=time.monotonic)
    until: float = math.inf

    def run(self) -> None:
        """Raises Broken, or OSError where the connection does."""
        stream = self.stream
        os.set_blocking(self.sink, False)
        stream.flush()
        self._hear()
        connection = stream.connection
        while not self._is_over():
            reads: list[int | socket.socket] = []
            if self.source_open and not stream.unsent:
                reads.append(self.source)
            if not stream.ended and not self.passing:
                reads.append(connection)
            writes: list[int | socket.socket] = [connection] if stream.unsent else []
            writes += [self.sink] if self.passing else []
            readable, writable, _ = select.select(reads, writes, [], LOOK_SECONDS)
            if connection in readable:
                stream.hear()
                self._hear()
            if self.source in readable:
                self._take()
            if self.sink in writable:
                self.passing = self.passing[os.write(self.sink, self.passing) :]
            self._keep_up()

    def _is_over(self) -> bool:
        if self.end_sink is None:
            return self.stream.ended and not self.passing
        return not self.source_open and not self.stream.unsent

    def _hear(self) -> None:
        """Has what came ready for the sink, without signs of life."""
        self.stream.decrypt()
        came, self.stream.plain = self.stream.plain, b""
        if came:
            self.heard = time.monotonic()
            if self.end_sink is not None:
                lines = re.sub(rb"\n\n+", b"\n", came)
                came = lines.lstrip(b"\n") if self.between_lines else lines
                self.between_lines = lines.endswith(b"\n")
            self.passing += came

    def _take(self) -> None:
        chunk = os.read(self.source, CHUNK_BYTES)
        self.source_open = bool(chunk)
        if chunk:
            self.stream.write(chunk)
        if self.end_sink is None:
            self.between_lines = chunk.endswith(b"\n")
            if not chunk:
                # Nothing is unsent here. The agent ends, and its last words still arrive.
                self.stream.connection.shutdown(socket.SHUT_WR)

    def _keep_up(self) -> None:
        """Sends what is to be sent, shows life, passes an end on, and minds the time."""
        stream, now = self.stream, time.monotonic()
        if self.is_alive is not None and now > self.signed + SIGN_SECONDS:
            self.signed = now
            if self.source_open and self.between_lines and self.is_alive():
                stream.write(SIGN)
        if stream.flush() or not stream.unsent:
            self.sent = now
        if stream.ended and not self.passing and self.end_sink is not None:
            self.until = min(self.until, now + self.closing_seconds)
            self.end_sink()
        elif now > self.heard + self.silent_seconds:
            raise Broken(f"nothing received for {self.silent_seconds:.0f} s")
        if now > self.sent + WRITE_SECONDS:
            raise Broken(f"it read nothing for {WRITE_SECONDS:.0f} s")
        if now > self.until:
            raise Broken("the agent did not end with its client")
