"""Encodes and decodes messages and the greeting that opens a stream; pure, no I/O.

One message is one line of JSON. Decoding is strict: types are checked, numbers finite, unknown keys
refused. Runs on Python 3.9 with the standard library alone.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, Optional, Type, TypeVar

from probes.core import bounded, typed
from probes.core.records import Access, Endpoint

PROTOCOL = 1
MARK = b"copy-bottleneck-agent "
"""Beginning of the greeting; a login banner may precede it."""
MAX_LINE_BYTES = 1 << 20
LIMITS = bounded.Limits(
    MAX_LINE_BYTES,
    MAX_LINE_BYTES,
    containers=20_000,
    keys=20_000,
    values=40_000,
    strings=40_000,
    levels=32,
    digits=64,
)
"""Limits of a line: each value takes some ten times as much memory as it has bytes."""
MAX_JUNK_BYTES = 64 << 10

T = TypeVar("T")
Message = Dict[str, Any]


class WireError(ValueError):
    """A line violates the protocol; the message is one line."""


def encode(message: Message) -> bytes:
    line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise WireError(f"a message of {len(line)} bytes is too long")
    return line


def decode(line: bytes) -> Message:
    try:
        message = bounded.loads(line, LIMITS)
    except bounded.NotBounded as error:
        raise WireError(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise WireError("not a message: no object")
    return message


def greeting(version: str, python: str, host: str) -> bytes:
    """Returns the first line that an agent writes."""
    return MARK + encode({"protocol": PROTOCOL, "version": version, "python": python, "host": host})


def read_greeting(line: bytes) -> Optional[Message]:
    """Decodes a greeting; None: this line is text before the stream.

    Raises:
        WireError: the greeting of another protocol.
    """
    start = line.find(MARK)
    if start < 0:
        return None
    facts = decode(line[start + len(MARK) :])
    if facts.get("protocol") != PROTOCOL:
        raise WireError(
            f"the agent uses protocol {facts.get('protocol')!r}, this program {PROTOCOL}; "
            "install the same version on both hosts"
        )
    return facts


def endpoint_to_plain(endpoint: Endpoint, reader_login: Optional[Access] = None) -> Message:
    """Converts an endpoint with its secrets, for an agent's own pipe only.

    reader_login: login that the reader gave; it is not sent back.
    """
    plain: Message = {}
    for f in dataclasses.fields(endpoint):
        value = getattr(endpoint, f.name)
        if isinstance(value, Access) and value == reader_login:
            value = None
        elif isinstance(value, Access):
            value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        plain[f.name] = value
    return plain


def from_plain(kind: Type[T], value: Any) -> T:
    """Converts plain JSON values into a record.

    Raises:
        WireError: a missing or unknown key, a wrong type, a number that is not finite.
    """
    try:
        return typed.record(kind, value, kind.__name__, exact=True)
    except typed.NotTyped as error:
        raise WireError(str(error)) from None
