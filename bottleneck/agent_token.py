"""The token of an agent that listens: from the environment or a prompt, never an argument."""

from __future__ import annotations

import getpass
import os
import sys

from bottleneck import seals
from probes.stage import Refused

VARIABLE = "BOTTLENECK_AGENT_TOKEN"
_taken: list[str] = []


def take_from_environment() -> None:
    """Takes it out of the environment: no process that we start inherits it."""
    told = os.environ.pop(VARIABLE, None)
    if told is not None:
        _taken[:] = [told]


def token() -> str:
    """What was told, or what somebody at the terminal types, once.

    Raises Refused, "login", where nobody tells one.
    """
    take_from_environment()
    if not _taken and sys.stdin.isatty():
        _taken[:] = [getpass.getpass("Token of the agent that listens: ")]
    if not _taken or not seals.normal(_taken[0]):
        raise Refused(
            "login",
            f"--agent tcp:// needs the token that `bottleneck agent --listen` shows: set {VARIABLE}"
            ", or run this at a terminal",
        )
    return _taken[0]
