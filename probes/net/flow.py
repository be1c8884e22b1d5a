"""The data connections of one transfer at one end: a thread each, and what they have moved."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any, List

from probes.host import payload


@dataclass
class Flow:
    """Connections at work."""

    connections: List[socket.socket]
    moved: List[int] = field(default_factory=list)
    """Payload bytes by connection."""
    calls: List[int] = field(default_factory=list)
    """send() or recv() calls by connection."""
    ended: threading.Event = field(default_factory=threading.Event)
    errors: List[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.moved = [0] * len(self.connections)
        self.calls = [0] * len(self.connections)

    def run(self, move: Any, *arguments: Any) -> None:
        """Starts one thread a connection; `ended` is set after the last."""
        threads = [
            threading.Thread(target=self._guard, args=(move, index, *arguments), daemon=True)
            for index in range(len(self.connections))
        ]

        def wait() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.ended.set()

        threading.Thread(target=wait, daemon=True).start()

    def _guard(self, move: Any, index: int, *arguments: Any) -> None:
        try:
            move(self, index, *arguments)
        except OSError as error:
            self.errors.append(str(error))

    def why(self) -> str:
        """The first error, as the end of a sentence."""
        return f": {self.errors[0]}" if self.errors else ""


def send(flow: Flow, index: int, ring: memoryview, buffer_bytes: int, until: float) -> None:
    """Sends payload in buffers of a size until a moment of the monotonic clock."""
    connection = flow.connections[index]
    offset = 0
    while time.monotonic() < until:
        sent = connection.send(payload.block(ring, offset, buffer_bytes))
        offset += sent
        flow.moved[index] += sent
        flow.calls[index] += 1
    connection.shutdown(socket.SHUT_WR)


def receive(flow: Flow, index: int, buffer_bytes: int) -> None:
    """Receives until the other end has no more."""
    connection = flow.connections[index]
    buffer = memoryview(bytearray(buffer_bytes))
    while True:
        got = connection.recv_into(buffer)
        if not got:
            return
        flow.moved[index] += got
        flow.calls[index] += 1
