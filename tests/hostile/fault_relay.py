#!/usr/bin/env python3
"""Stands between the coordinator and an agent, and alters what the agent says.

Usage: fault_relay.py MODE COMMAND...; the file MODE says how, and may be changed at any time.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

BANNER = b"\x1b]0;owned\x07 MOTD \xff <b>welcome</b>\n"


def lie(line: bytes) -> bytes:
    """Every figure of more than six digits a hundredfold."""
    return re.sub(rb"\d{7,15}", lambda match: match[0] + b"00", line)


ALTERED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda line: line,
    "version": lambda line: re.sub(rb'"version": ?"[^"]*"', b'"version": "99.0.0"', line),
    "garbage": lambda line: line[: len(line) // 2] + b"\n",
    "banner": lambda line: BANNER + line,
    "lie": lie,
}


def main() -> None:
    mode, *command = sys.argv[1:]
    agent = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert agent.stdout is not None
    greeted = False
    for line in agent.stdout:
        how = Path(mode).read_text(encoding="ascii")
        # In mid-stream nobody takes a banner for one.
        altered = ALTERED["" if how == "banner" and greeted else how](line)
        greeted = True
        os.write(1, altered)
    agent.wait()


if __name__ == "__main__":
    main()
