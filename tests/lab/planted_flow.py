"""One TCP stream between two namespaces with a bottleneck planted in it, and what both ends see.

The sender and the receiver are processes of their own; each looks at its own socket 50 times a
second from a thread beside the one that moves bytes, as the product's tcp stage does.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from delay import delay_path

from probes.sockets import tcp_info
from probes.sockets.limits import Glimpse
from probes.system.child import end_with_parent

LOOK_SECONDS = 0.02
BLOCK_BYTES = 256 << 10
LONGEST_PORTION_BYTES = 4 * BLOCK_BYTES
ANSWER_SECONDS = 5.0
"""After the transfer's own time, for the two processes to tell."""
PACE_SECONDS = 0.005
"""A paced end moves what is due this often."""
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Path:
    rtt_seconds: float
    """0.0 is the loopback device of one namespace."""
    bytes_per_second: float | None = None
    queue_bytes: int | None = None
    loss_ratio: float = 0.0
    mtu_bytes: int = 1500


@dataclass(frozen=True)
class Ends:
    """Sockets of the two ends; None: as fast or as large as the system lets them."""

    congestion_control: str = "cubic"
    receive_buffer_bytes: int | None = None
    send_buffer_bytes: int | None = None
    source_bytes_per_second: float | None = None
    sink_bytes_per_second: float | None = None


@dataclass(frozen=True)
class Looks:
    """Looks at both sockets, by one clock that starts with the transfer."""

    sender: tuple[Glimpse, ...]
    receiver: tuple[Glimpse, ...]

    def since(self, seconds: float) -> Looks:
        return Looks(
            *(tuple(g for g in each if g.elapsed_seconds >= seconds) for each in self.ends)
        )

    @property
    def ends(self) -> tuple[tuple[Glimpse, ...], tuple[Glimpse, ...]]:
        return self.sender, self.receiver

    def bytes_per_second(self) -> float:
        """Returns what arrived, by the receiver's kernel."""
        first, last = self.receiver[0], self.receiver[-1]
        arrived = last.figures["received_bytes"] - first.figures["received_bytes"]
        return arrived / (last.elapsed_seconds - first.elapsed_seconds)


def observe_flow(path: Path, ends: Ends, seconds: float, seed: int = 0) -> Looks:
    """One transfer of so many seconds over such a path between such ends.

    Raises RuntimeError when an end does not tell in time.
    """
    with ExitStack() as stack:
        up = stack.enter_context(
            delay_path(
                path.rtt_seconds / 2,
                path.bytes_per_second,
                loss_ratio=path.loss_ratio,
                queue_bytes=path.queue_bytes,
                mtu_bytes=path.mtu_bytes,
                seed=seed,
            )
        )
        far = up.server if path.rtt_seconds else up.client
        address = far.address if path.rtt_seconds else LOOPBACK
        with far.entered():
            listener = stack.enter_context(socket.socket())
        # Before the handshake, which tells the window's scale.
        _set(listener, socket.SO_RCVBUF, ends.receive_buffer_bytes)
        listener.bind((address, 0))
        listener.listen()
        with up.client.entered():
            sender = stack.enter_context(socket.socket())
        _set(sender, socket.SO_SNDBUF, ends.send_buffer_bytes)
        name = ends.congestion_control.encode()
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sender.settimeout(ANSWER_SECONDS)
        sender.connect(listener.getsockname())
        listener.settimeout(ANSWER_SECONDS)
        receiver, _ = listener.accept()
        stack.enter_context(receiver)
        for each in (sender, receiver):
            each.setblocking(True)
        began = time.monotonic()
        until = began + seconds
        processes = [
            stack.enter_context(_Process(lambda: _end(receiver, _sink, ends, began, until))),
            stack.enter_context(_Process(lambda: _end(sender, _source, ends, began, until))),
        ]
        received, sent = (each.answer(until + ANSWER_SECONDS) for each in processes)
        return Looks(tuple(sent), tuple(received))


def _set(connection: socket.socket, option: int, size_bytes: int | None) -> None:
    if size_bytes is not None:
        connection.setsockopt(socket.SOL_SOCKET, option, size_bytes)


Move = Callable[[socket.socket, Ends, float], None]


def _end(connection: socket.socket, move: Move, ends: Ends, began: float, until: float) -> Any:
    """One end's whole work; returns its looks."""
    glimpses: list[Glimpse] = []

    def look() -> None:
        due = time.monotonic()
        while due < until:
            figures = tcp_info.read(connection)
            queues = tcp_info.unread_bytes(connection), tcp_info.unsent_bytes(connection)
            glimpses.append(Glimpse(time.monotonic() - began, figures, *queues))
            # Not in step with a peer that moves bytes at regular times.
            due += LOOK_SECONDS * random.uniform(0.5, 1.5)
            time.sleep(max(0.0, due - time.monotonic()))

    looking = threading.Thread(target=look)
    # The mover may wait for its peer for ever, once that has come to its end.
    threading.Thread(target=move, args=(connection, ends, until), daemon=True).start()
    looking.start()
    looking.join()
    return glimpses


def _source(connection: socket.socket, ends: Ends, until: float) -> None:
    block = memoryview(os.urandom(LONGEST_PORTION_BYTES))
    for size in _portions(ends.source_bytes_per_second, until):
        connection.sendall(block[:size])


def _sink(connection: socket.socket, ends: Ends, until: float) -> None:
    buffer = memoryview(bytearray(LONGEST_PORTION_BYTES))
    for size in _portions(ends.sink_bytes_per_second, until):
        remaining = size
        while remaining > 0:
            got = connection.recv_into(buffer[:remaining])
            if not got:
                return
            # An end that is not paced takes what there is.
            remaining = remaining - got if ends.sink_bytes_per_second else 0


def _portions(rate: float | None, until: float) -> Any:
    """Sizes to move next, each when it is due; an end that fell behind does not hurry."""
    due = time.monotonic()
    while due < until:
        if rate is None:
            yield BLOCK_BYTES
            due = time.monotonic()
            continue
        yield max(1, min(LONGEST_PORTION_BYTES, round(rate * PACE_SECONDS)))
        due = max(due, time.monotonic() - PACE_SECONDS) + PACE_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))


class _Process:
    """A forked process that does one thing and tells what came of it; it ends with the block."""

    def __init__(self, work: Callable[[], Any]) -> None:
        fork, parent = multiprocessing.get_context("fork"), os.getpid()
        self._said, saying = fork.Pipe(duplex=False)

        def run() -> None:
            end_with_parent(parent)
            saying.send(work())

        self._process = fork.Process(target=run, daemon=True)
        self._process.start()
        saying.close()

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._said.close()
        self._process.kill()
        self._process.join()

    def answer(self, deadline: float) -> Any:
        """Returns what it did; waits until the deadline of the monotonic clock."""
        if not self._said.poll(max(0.0, deadline - time.monotonic())):
            raise RuntimeError("an end of the flow did not tell in time")
        try:
            return self._said.recv()
        except EOFError:
            raise RuntimeError("an end of the flow broke") from None
