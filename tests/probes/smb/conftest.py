"""A scripted peer on a socket pair, and a real Samba with a share of its own."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from probes.core.records import Endpoint
from probes.programs.samba import Samba, private_samba
from probes.smb.frames import Wire, prepare
from probes.smb.pipe1 import Link1, Pipe1
from probes.smb.pipe2 import Link2, Pipe2
from tests.living import GENEROUS_SECONDS, connected, deadline_in

PASSWORD = "correct horse 47 %&"


class Peer:
    """The server's end of a connection, driven by a test."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def take(self) -> bytes:
        """Returns the next message from the client."""
        (length,) = struct.unpack(">I", self._exactly(4))
        return self._exactly(length)

    def give(self, message: bytes) -> None:
        self.sock.sendall(struct.pack(">I", len(message)) + message)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data


@pytest.fixture
def ends() -> Iterator[tuple[Wire, Peer]]:
    with connected() as (theirs, ours):
        prepare(ours)
        theirs.settimeout(GENEROUS_SECONDS)
        yield Wire(ours, 1 << 20), Peer(theirs)


@pytest.fixture
def run_in_thread() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Runs a function beside the test and waits for its end."""
    threads: list[threading.Thread] = []

    def start(work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        threads.append(thread)

    yield start
    for thread in threads:
        thread.join(GENEROUS_SECONDS)
        assert not thread.is_alive()


@pytest.fixture
def share(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Serves a fresh folder by a real smbd of its own: (peer to log in to, folder, server)."""

    @contextmanager
    def serve(*options: str, **arguments: Any) -> Iterator[tuple[Endpoint, Path, Samba]]:
        folder = tmp_path_factory.mktemp("share")
        with private_samba(str(folder), password=PASSWORD, options=options, **arguments) as server:
            yield server.endpoint, folder, server

    return serve


SESSION, TREE, FILE2, USER, FILE1 = 0xABC, 5, b"f" * 16, 7, 0x4001


@pytest.fixture
def pipe2(ends: tuple[Wire, Peer]) -> Callable[..., tuple[Pipe2, Peer]]:
    """Our end of a logged-in session of SMB2, with changes of its Link2, and the other end."""

    def piped(**changes: Any) -> tuple[Pipe2, Peer]:
        wire, peer = ends
        wire.deadline = deadline_in()
        fields: dict[str, Any] = {"wire": wire, "session_id": SESSION, "tree_id": TREE}
        fields |= {"file_id": FILE2, "next_message_id": 10, "credits": 100, "multi_credit": True}
        fields |= {"max_read_bytes": 8 << 20, "max_write_bytes": 8 << 20}
        fields |= {"signer": None, "sealer": None}
        return Pipe2(Link2(**{**fields, **changes})), peer

    return piped


@pytest.fixture
def pipe1(ends: tuple[Wire, Peer]) -> Callable[..., tuple[Pipe1, Peer]]:
    """Our end of a logged-in session of SMB1, with changes of its Link1, and the other end."""

    def piped(**changes: Any) -> tuple[Pipe1, Peer]:
        wire, peer = ends
        wire.deadline = deadline_in()
        fields: dict[str, Any] = {"wire": wire, "user_id": USER, "tree_id": TREE, "file_id": FILE1}
        fields |= {"flags2": 0x4000, "max_read_bytes": 130048, "max_write_bytes": 130048}
        fields |= {"max_requests": 3, "signer": None, "sequence": 4}
        return Pipe1(Link1(**{**fields, **changes})), peer

    return piped
