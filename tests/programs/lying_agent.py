"""Relays the stream of the agent that its command starts, and tells some replies otherwise.

Usage: lying_agent.py PATH VALUE COMMAND...

PATH is keys with dots between: VALUE (JSON) takes the place of what is there, in each reply that
has it; with a `!` behind PATH only in the last sample's. An empty VALUE: it is left out. An empty
PATH: the line VALUE takes the place of each reply that tells a sample.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading


def relay(agent: subprocess.Popen[bytes]) -> None:
    assert agent.stdin is not None
    while chunk := os.read(0, 1 << 16):
        agent.stdin.write(chunk)
        agent.stdin.flush()
    agent.stdin.close()


def altered_reply(line: bytes, path: str, value: str) -> bytes:
    """One reply, or what is told instead."""
    if not line.startswith(b"{"):
        return line
    reply = json.loads(line)
    if not path:
        return value.encode() + b"\n" if "sample" in reply else line
    if path.endswith("!") and not reply.get("last"):
        return line
    *parents, last = path.rstrip("!").split(".")
    place = reply
    for key in parents:
        place = place.get(key) if isinstance(place, dict) else None
    if not isinstance(place, dict) or last not in place:
        return line
    if not value:
        del place[last]
        return json.dumps(reply).encode() + b"\n"
    place[last] = "HERE"
    # VALUE as it is written: no encoder would write some of them
    return json.dumps(reply).replace('"HERE"', value).encode() + b"\n"


def main() -> None:
    path, value, *command = sys.argv[1:]
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    threading.Thread(target=relay, args=(agent,), daemon=True).start()
    assert agent.stdout is not None
    for line in agent.stdout:
        remaining = altered_reply(line, path, value)
        while remaining:
            remaining = remaining[os.write(1, remaining) :]


if __name__ == "__main__":
    main()
