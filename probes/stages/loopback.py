"""TCP to this same host, memory to memory: the ceiling of CPU, network stack and this tool itself.

Both ends run on one host as two processes, each with the code that the tcp stage runs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Iterator

from probes.core.records import SIDES, Endpoint
from probes.core.stage import RunFacts, Running, Stage, Turn
from probes.stages import tcp

STAGE = Stage("loopback", measures="the limit of this tool on that host", explains=False)
ADDRESS = "127.0.0.1"

Setting = tcp.OneWay


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a turn on each host that has an agent."""
    for side in SIDES if facts.agent else SIDES[:1]:
        setting = Setting("push", 1)
        yield Turn(f"loopback {side}", setting, 0.6, least_seconds=0.4, initiator=side, peer="own")


def respond(setting: Setting) -> AbstractContextManager[Endpoint]:
    """Listens on the loopback address only."""
    return tcp.respond(replace(setting, address=ADDRESS))


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Does as tcp.initiate, to the responder on this host."""
    return tcp.initiate(setting, replace(peer, host=ADDRESS))
