"""smbprotocol's connection, made safe to leave a password and a copy to.

The library checks signatures only of replies that claim to have one, believes any frame length,
waits without end while a server says PENDING, follows links to other hosts, and keeps the socket
to itself. Here none of that is so.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
import uuid
from typing import Any

from smbprotocol.connection import Commands, Connection
from smbprotocol.header import NtStatus, Smb2Flags
from smbprotocol.transport import Tcp

from probes.smb.frames import Broken, Late, Wire
from probes.smb.session import STEP_SECONDS

KEEP_ALIVE_SECONDS = 20
"""An idle session sends an ECHO that often, and notices so that its server went."""
CONTROL_FRAME_BYTES = 1024 * 1024
"""No reply but that to a READ is longer."""


class ParkableTcp(Tcp):  # type: ignore[misc]
    """The library's transport: guarded frames, a deadline, and a reader that can be parked."""

    def __init__(self, sock: socket.socket, server: str, port: int) -> None:
        super().__init__(server, port, None)
        self._sock = sock
        self.wire = Wire(sock, CONTROL_FRAME_BYTES)
        self.connected = True
        self._wake_read, self._wake_write = socket.socketpair()
        self._parked, self._resume = threading.Event(), threading.Event()

    def connect(self) -> None:
        """Nothing to do: it was made from a connected socket."""

    def send(self, header: Any) -> None:
        message = header if isinstance(header, bytes) else header.pack()
        self.wire.send([message])

    def recv(self, timeout: float) -> bytes:
        """One message; b"" at the end of the connection. TimeoutError: nothing for that long."""
        idle_until = time.monotonic() + timeout
        while self.connected:
            ready = select.select([self._sock, self._wake_read], [], [], 1.0)[0]
            if self._wake_read in ready:
                self._wake_read.recv(1)
                self._parked.set()
                self._resume.wait()
            elif ready:
                message = memoryview(bytearray(self.wire.next_frame()))
                self.wire.receive(message)
                return bytes(message)
            elif self.wire.deadline is not None and time.monotonic() > self.wire.deadline:
                raise Late("no answer in time")
            elif time.monotonic() > idle_until:
                raise TimeoutError("idle")
        return b""

    def park(self) -> None:
        """Takes the socket from the reader thread."""
        self._resume.clear()
        self._parked.clear()
        self._wake_write.send(b"p")
        if not self._parked.wait(STEP_SECONDS):
            raise Broken("the SMB library did not let go of its socket")

    def unpark(self) -> None:
        """Lets the reader thread go on."""
        self._resume.set()

    def close(self) -> None:
        if self.connected:
            self.connected = False
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._resume.set()

    def release(self) -> None:
        """Closes the descriptors; the reader thread has ended."""
        for each in (self._sock, self._wake_read, self._wake_write):
            each.close()


class GuardedConnection(Connection):  # type: ignore[misc]
    """The library's connection on our transport, with no reply unchecked and no wait unbounded."""

    def __init__(self, transport: ParkableTcp) -> None:
        self._ours = transport
        super().__init__(uuid.uuid4(), transport.server, transport.port, require_signing=False)
        self._receive_timeout = KEEP_ALIVE_SECONDS

    @property
    def transport(self) -> ParkableTcp:
        return self._ours

    @transport.setter
    def transport(self, theirs: object) -> None:
        """The library's own transport is never used."""

    def receive(
        self,
        request: Any,
        wait: bool = True,
        timeout: float | None = None,
        resolve_symlinks: bool = True,
    ) -> Any:
        # the transport's deadline ends every wait; the library's own would be moved by the peer
        return super().receive(
            request, wait=wait, timeout=STEP_SECONDS + 10, resolve_symlinks=False
        )

    def verify_signature(self, header: Any, session_id: int, force: bool = False) -> None:
        session = self.session_table.get(session_id)
        command = header["command"].get_value()
        interim = header["status"].get_value() == NtStatus.STATUS_PENDING
        if session is not None and not force and command != Commands.SMB2_SESSION_SETUP:
            # only replies that came unencrypted get here
            trees = session.tree_connect_table.values()
            sealed_tree = command != Commands.SMB2_TREE_CONNECT and any(
                tree.encrypt_data for tree in trees
            )
            if session.encrypt_data or sealed_tree:
                raise Broken("the server answered without the encryption that was agreed")
            signed = header["flags"].has_flag(Smb2Flags.SMB2_FLAGS_SIGNED)
            if session.signing_required and not signed and not interim:
                raise Broken("a reply came without the signature that this session has to have")
        super().verify_signature(header, session_id, force)
