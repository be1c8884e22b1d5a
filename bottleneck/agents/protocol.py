"""Records to lines and back, and the greeting that opens a stream; pure, no I/O.

One message is one line of JSON. What arrives is foreign until decoded: types are strict, numbers
finite, unknown keys refused. Runs on Python 3.9 with the standard library alone.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, Optional, Type, TypeVar

from probes.core import bounded, typed
from probes.core.records import Access, Endpoint

PROTOCOL = 1
MARK = b"copy-bottleneck-agent "
"""Opens the greeting's line; whatever stands before it (a login banner) is somebody else's."""
MAX_LINE_BYTES = 1 << 20
LIMITS = bounded.Limits(
    *(MAX_LINE_BYTES, MAX_LINE_BYTES),
    containers=20_000,
    keys=20_000,
    values=40_000,
    strings=40_000,
    levels=32,
    digits=64,
)
"""Of a line: each value takes some ten times as much memory as it has bytes."""
MAX_JUNK_BYTES = 64 << 10

T = TypeVar("T")
Message = Dict[str, Any]


class WireError(ValueError):
    """A line that is not what the protocol allows; the text says what, in one line."""


def encode(message: Message) -> bytes:
    """One message as one line."""
    line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise WireError(f"a message of {len(line)} bytes is too long")
    return line


def decode(line: bytes) -> Message:
    """The message in a line."""
    try:
        message = bounded.loads(line, LIMITS)
    except bounded.NotBounded as error:
        raise WireError(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise WireError("not a message: no object")
    return message


def greeting(version: str, python: str, host: str) -> bytes:
    """The first line that an agent writes."""
    about = {"protocol": PROTOCOL, "version": version, "python": python, "host": host}
    return MARK + encode(about)


def refusal(kind: str, text: str) -> bytes:
    """What stands in for a greeting where no agent will come; replies.refusal reads it."""
    return MARK + encode({"protocol": PROTOCOL, "refused": {"kind": kind, "text": text}})


def read_greeting(line: bytes) -> Optional[Message]:
    """What a greeting tells; None: this line is junk in front of the stream.

    Raises:
        WireError: a greeting, but of a program that speaks another protocol.
    """
    at = line.find(MARK)
    if at < 0:
        return None
    about = decode(line[at + len(MARK) :])
    if about.get("protocol") != PROTOCOL:
        raise WireError(
            f"the agent uses protocol {about.get('protocol')!r}, this program {PROTOCOL}; "
            "install the same version on both hosts"
        )
    return about


def endpoint_to_plain(endpoint: Endpoint, known: Optional[Access] = None) -> Message:
    """An endpoint with its secrets, for an agent's own pipe and for nothing else.

    known: the login that whoever reads this gave; it is not sent back.
    """
    plain: Message = {}
    for f in dataclasses.fields(endpoint):
        value = getattr(endpoint, f.name)
        if isinstance(value, Access) and value == known:
            value = None
        elif isinstance(value, Access):
            value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        plain[f.name] = value
    return plain


def from_plain(kind: Type[T], value: Any) -> T:
    """A record of the kind from JSON's own types.

    Raises:
        WireError: a key missing or too many, a wrong type, a number that is not finite.
    """
    try:
        return typed.record(kind, value, kind.__name__, exact=True)
    except typed.NotTyped as error:
        raise WireError(str(error)) from None
