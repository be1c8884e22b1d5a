"""JSON and TOML from elsewhere, within limits: their cost is counted before they are parsed.

A parser makes up to fifty bytes of memory of each byte that it reads (`[],` becomes a list), so
that a limit of bytes alone does not protect. Runs on Python 3.9 with the standard library alone;
loads_toml is not called there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

_NO_BRACKETS = bytes(each for each in range(256) if each not in b"[]{}")
_OPENING = b"[{"


class Limits(NamedTuple):
    """Largest document that is parsed: bytes and counts."""

    content_bytes: int = 16 << 20
    unicode_bytes: int = 4 << 20
    """Limit of a document that is not ASCII: one rare character makes four bytes of every other."""
    containers: int = 250_000
    """Arrays and objects."""
    keys: int = 100_000
    values: int = 500_000
    strings: int = 250_000
    """Strings, keys included."""
    levels: int = 64
    digits: int = 1000
    """Characters of one number."""


USUAL = Limits()
LARGEST_TOML_BYTES = 256 << 10
MOST_LINES = 5_000
MOST_DOTS = 200
"""Dots in one line: limits the parts of a key's or a table's name."""


class NotBounded(ValueError):
    """A text is malformed or exceeds a limit; its message is one line."""


def loads(content: bytes, limits: Limits = USUAL) -> Any:
    """Parses a JSON text: finite numbers, no key twice in an object.

    Errors: NotBounded.
    """
    check(content, limits)

    def short_int(text: str) -> int:
        return int(_checked_digits(text, limits))

    def finite_float(text: str) -> float:
        value = float(_checked_digits(text, limits))
        if value in (float("inf"), float("-inf")):
            raise NotBounded(f"{text[:40]} is out of range")
        return value

    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=refuse_constant,
            parse_float=finite_float,
            parse_int=short_int,
        )
    except NotBounded:
        raise
    except (ValueError, RecursionError) as error:
        raise _parse_error("JSON", error) from None


def _parse_error(kind: str, error: Exception) -> NotBounded:
    if isinstance(error, UnicodeDecodeError):
        return NotBounded("not a report: not UTF-8 text")
    reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
    return NotBounded(f"not {kind}: {reason.splitlines()[0][:160]}")


def loads_toml(content: bytes, largest_bytes: int = LARGEST_TOML_BYTES) -> dict[str, Any]:
    """Parses a TOML text. Errors: NotBounded.

    Parsing time grows faster than the text: each key is looked up along all parts of its table's
    name, and each part of a dotted key along all parts before it.
    """
    import tomllib

    if len(content) > largest_bytes:
        raise NotBounded(f"larger than {largest_bytes} bytes")
    lines = content.split(b"\n")
    if len(lines) > MOST_LINES:
        raise NotBounded(f"not TOML: more than {MOST_LINES} lines")
    if any(line.count(b".") > MOST_DOTS for line in lines):
        raise NotBounded(f"not TOML: a line has more than {MOST_DOTS} dots")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _parse_error("TOML", error) from None


def check(content: bytes, limits: Limits = USUAL) -> None:
    """Counts the objects that parsing a text would make, without parsing. Errors: NotBounded."""
    if len(content) > limits.content_bytes:
        raise NotBounded(f"larger than {limits.content_bytes} bytes")
    if len(content) > limits.unicode_bytes and not content.isascii():
        raise NotBounded(f"larger than {limits.unicode_bytes} bytes, and not ASCII alone")
    # Escaped backslashes first: a quote behind them is then not taken for an escaped one.
    quoted = content.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in content else content
    _check_count(quoted.count(b'"') // 2, limits.strings, "strings")
    outside = b"".join(quoted.split(b'"')[::2])
    containers = outside.count(b"[") + outside.count(b"{")
    _check_count(containers, limits.containers, "arrays and objects")
    _check_count(outside.count(b":"), limits.keys, "keys")
    _check_count(outside.count(b",") + containers, limits.values, "values")
    level = 0
    for bracket in outside.translate(None, _NO_BRACKETS):
        level += 1 if bracket in _OPENING else -1
        if level > limits.levels:
            raise NotBounded(f"nested more than {limits.levels} levels deep")


def _check_count(count: int, limit: int, kind: str) -> None:
    if count > limit:
        raise NotBounded(f"too many {kind}: {count}, where {limit} are read")


def _checked_digits(text: str, limits: Limits) -> str:
    if len(text) > limits.digits:
        raise NotBounded(f"a number of {len(text)} characters")
    return text


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise NotBounded(f"the key {key[:80]!r} occurs twice")
        members[key] = value
    return members


def refuse_constant(name: str) -> None:
    """Refuses NaN and Infinity, which no JSON has. Errors: NotBounded."""
    raise NotBounded(f"{name} is not a number")
