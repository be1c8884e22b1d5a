"""The product's own agent, watched: how much memory its children took, and whom they asked.

Usage: watched_agent.py LOG STEP_SECONDS (0: the product's own limits).

Each line of LOG is a JSON object: {"number", "peak_bytes"} of a request's child that has ended, or
{"asked": [host, port]} for each connection and name that anything in it looked for.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

from bottleneck.agents import server
from probes.smb import frames, session

LOG, STEP_SECONDS = sys.argv[1], float(sys.argv[2])


def log(**line: Any) -> None:
    """Appends one line; children have no descriptors of their parent's."""
    fd = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, json.dumps(line).encode() + b"\n")
    os.close(fd)


def hear(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes who is asked for (sys.audit events of the standard library's socket)."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        log(asked=[str(arguments[1][0]), arguments[1][1]])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        log(asked=[str(arguments[0]), 0])


def wait(pid: int, options: int = 0) -> tuple[int, int]:
    """waitpid(2) that remembers what the child took at most."""
    ended, status, usage = os.wait4(pid, options)
    wait.peak_bytes = usage.ru_maxrss * 1024  # type: ignore[attr-defined]
    return ended, status


class WatchedHost(server.Agent):
    def reap(self, task: server.Task) -> None:
        super().reap(task)
        log(number=task.number, peak_bytes=wait.peak_bytes)  # type: ignore[attr-defined]


if __name__ == "__main__":
    if STEP_SECONDS:
        # before the drivers are imported: they take the limit by name
        session.STEP_SECONDS = frames.STALL_SECONDS = STEP_SECONDS
    # each child of its own would take most of a second to import it
    importlib.import_module("probes.smb.impacket_session")
    os.waitpid = wait
    sys.addaudithook(hear)
    server.Agent = WatchedHost  # type: ignore[misc]  # the one that is watched
    server.main()
