"""The token of an agent that listens: which certificate it shows, and what a caller proves."""

from __future__ import annotations

import base64
import getpass
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bottleneck import environment
from bottleneck.credentials import private_text
from probes.stage import Refused

VARIABLE = "BOTTLENECK_AGENT_TOKEN"
FILE_VARIABLE = "BOTTLENECK_AGENT_TOKEN_FILE"
PART_BYTES = 15
"""Of each half, 120 bits: nobody finds a second certificate for one, or guesses the other."""
_taken: list[str] = []


@dataclass(frozen=True)
class Token:
    """What is shown at the listener and typed at the caller."""

    fingerprint: bytes
    """Of the listener's certificate: the first bytes of its SHA-256."""
    secret: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """In groups that a person can read out: abcd-efgh-..."""
        letters = base64.b32encode(self.fingerprint + self.secret).decode().lower()
        return "-".join(letters[at : at + 4] for at in range(0, len(letters), 4))

    @property
    def name(self) -> str:
        """The server name that the caller's TLS asks for (RFC 6066): of the public half alone."""
        return f"{self.fingerprint.hex()}.bottleneck"


def parse(text: str) -> Token:
    """A token, however it was typed. Raises Refused, "login"."""
    letters = re.sub(r"[\s-]", "", text).upper()
    try:
        both = base64.b32decode(letters)
    except ValueError:
        both = b""
    if len(both) != 2 * PART_BYTES:
        raise Refused("login", "the token is not whole: it is 12 groups of 4 letters and digits")
    return Token(both[:PART_BYTES], both[PART_BYTES:])


def take_from_environment() -> None:
    """Takes it out of the environment: no process that we start inherits it."""
    told = environment.take(VARIABLE)
    if told is not None:
        _taken[:] = [told]


def token() -> Token:
    """What the environment or its file told, or what somebody at the terminal types, once.

    Raises Refused, "login", where nobody tells one, and "usage" for a file that others may read.
    """
    take_from_environment()
    file = os.environ.get(FILE_VARIABLE)
    if not _taken and file:
        _taken[:] = [private_text(Path(file), FILE_VARIABLE)]
    if not _taken and sys.stdin.isatty():
        _taken[:] = [getpass.getpass("Token of the agent that listens: ")]
    if not _taken or not _taken[0].strip():
        raise Refused(
            "login",
            f"--agent tcp:// needs the token that `bottleneck agent --listen` shows: set {VARIABLE}"
            f", or {FILE_VARIABLE} to a file of mode 0600 with it, or run this at a terminal",
        )
    return parse(_taken[0])
