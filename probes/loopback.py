"""TCP to this same host, memory to memory: the ceiling of CPU, stack and this tool itself.

Both ends run on one host as two processes, each with the code that the tcp stage runs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from probes import tcp
from probes.records import Endpoint
from probes.stage import Running

NAME = "loopback"
ADDRESS = "127.0.0.1"

Setting = tcp.Setting


def respond(setting: Setting) -> AbstractContextManager[Endpoint]:
    """Listens on the loopback address alone."""
    return tcp.respond(replace(setting, address=ADDRESS))


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """As tcp.initiate, to the responder on this host."""
    return tcp.initiate(setting, replace(peer, host=ADDRESS))
