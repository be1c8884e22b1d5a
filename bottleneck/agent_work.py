"""What an agent's children do: one piece of work for each kind of request.

Runs on Python 3.9 with the standard library alone.
"""

from __future__ import annotations

import os
import select
from typing import Any, Callable

from bottleneck import wire
from probes.host.child import Event, Work
from probes.net import callers
from probes.records import Endpoint
from probes.stage import Last

Tell = Callable[[Event], None]


def ask(request: wire.Message, answer: Callable[..., Any]) -> Work:
    """A function's answer."""

    def work(tell: Tell, control_fd: int) -> None:
        tell({"answer": wire.to_plain(answer(**request["arguments"]))})

    return work


def _peer(request: wire.Message) -> Endpoint:
    return wire.from_plain(Endpoint, request["peer"])


def hold(request: wire.Message, module: Any) -> Work:
    """Something that is there until it is closed."""

    def work(tell: Tell, control_fd: int) -> None:
        peer = _peer(request)
        held = module.hold(wire.from_plain(module.Setting, request["setting"]), peer)
        _keep(held, peer, tell, control_fd)

    return work


def respond(request: wire.Message, module: Any, peer: str) -> Work:
    """A stage's passive end, until it is closed; peer: of the session, empty: whoever it is."""

    def work(tell: Tell, control_fd: int) -> None:
        told = _peer(request)
        callers.expect(told.host, peer)
        held = module.respond(wire.from_plain(module.Setting, request["setting"]))
        _keep(held, told, tell, control_fd)

    return work


def _keep(held: Any, peer: Endpoint, tell: Tell, control_fd: int) -> None:
    with held as endpoint:
        tell({"endpoint": wire.endpoint_to_plain(endpoint, peer.access)})
        os.read(control_fd, 1)
    tell({"closed": True})


def observe(request: wire.Message, module: Any) -> Work:
    """What was seen until it was closed."""
    setting = wire.from_plain(module.Setting, request["setting"])

    def work(tell: Tell, control_fd: int) -> None:
        def window() -> Any:
            """The copy's time, or None: nobody wants to know."""
            line = os.read(control_fd, select.PIPE_BUF)
            return wire.decode(line)["window"] if line else None

        tell({"observed": wire.to_plain(module.observe(setting, control_fd, window))})

    return work


def initiate(request: wire.Message, module: Any) -> Work:
    """A stage's samples and details."""

    def work(tell: Tell, control_fd: int) -> None:
        setting = wire.from_plain(module.Setting, request["setting"])
        running = module.initiate(setting, _peer(request))
        opened = False
        while True:
            try:
                sample = next(running)
            except StopIteration as end:
                tell({"details": wire.to_plain(end.value)})
                return
            event: Event = {"sample": [sample.elapsed_seconds, sample.moved_bytes]}
            if isinstance(sample, Last):
                event["last"] = True
            tell(event)
            if opened and "last" not in event:
                continue
            opened = True
            # The window's ends wait until both hosts were read: what follows would be in it, and
            # a file server's process that ended before would not.
            if not os.read(control_fd, 1):
                return

    return work
