"""One transfer of ours, run as the product runs it: each end a child process of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

from bottleneck.agents import protocol
from probes.core import typed
from probes.core.records import Endpoint
from probes.net import transfer
from probes.net.transfer import Shape, Transfer
from probes.system.child import Child, spawn

Tell = Callable[[dict[str, Any]], None]


class Place(Protocol):
    """Host or network namespace in which an end of a transfer runs."""

    @property
    def address(self) -> str:
        """Its IP address."""

    def entered(self) -> AbstractContextManager[None]:
        """Starts the block's processes there."""


def run_transfer(shape: Shape, client: Place, server: Place) -> Transfer:
    """Runs a transfer that the client initiates; RuntimeError if an end broke off."""

    def hold(tell: Tell, control_fd: int) -> None:
        with transfer.respond(server.address, shape.seconds, shape.window_bytes) as endpoint:
            tell({"endpoint": protocol.endpoint_to_plain(endpoint)})
            os.read(control_fd, 1)

    with server.entered():
        responder = spawn(hold)
    try:
        event = _line(responder)
        if "endpoint" not in event:
            raise RuntimeError(f"the responder: {event or 'no word'}")
        peer = replace(protocol.from_plain(Endpoint, event["endpoint"]), host=server.address)

        def run(tell: Tell, control_fd: int) -> None:
            running = transfer.initiate(shape, peer)
            while True:
                try:
                    next(running)
                except StopIteration as end:
                    tell({"moved": typed.to_plain(end.value)})
                    return

        with client.entered():
            initiator = spawn(run)
        try:
            event = _line(initiator)
        finally:
            _end(initiator)
    finally:
        _end(responder)
    if "moved" not in event:
        raise RuntimeError(f"the initiator: {event or 'no word'}")
    return protocol.from_plain(Transfer, event["moved"])


def _line(child: Child) -> dict[str, Any]:
    with os.fdopen(os.dup(child.events_fd), encoding="utf-8") as events:
        event: dict[str, Any] = json.loads(events.readline() or "{}")
    return event


def _end(child: Child) -> None:
    child.kill()
    os.waitpid(child.pid, 0)
    os.close(child.events_fd)
    os.close(child.control_fd)
