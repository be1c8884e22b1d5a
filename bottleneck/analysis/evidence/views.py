"""Plain values that stages reported as frozen views: what is malformed is as if it was not there.

A report may come from another version, or from a liar; so a view never fails. Its fields say what
may be missing: `float | None` is an amount, `Positive | None` one that may divide, and a field with
a value of its own has that one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from typing import Any, NewType, TypeVar

LARGEST = 2**63
LEAST = 1e-9
"""A figure below it divides nothing: it is rounding, or a forgery."""
Positive = NewType("Positive", float)
"""An amount that may divide."""
T = TypeVar("T")


def view(kind: type[T], value: object) -> T:
    """The view of an object; of anything else that of an empty one."""
    found = value if isinstance(value, dict) else {}
    pairs = (
        (name, read(found[name]))
        for name, read in _readers(typing.cast("Any", kind))
        if name in found
    )
    return kind(**{name: each for name, each in pairs if each is not None})


@functools.cache
def _readers(kind: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field.name, _reader(hints[field.name])) for field in dataclasses.fields(kind))


def _reader(hint: Any) -> Callable[[Any], Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _reader(next(each for each in arguments if each is not type(None)))
    if origin is tuple:
        return functools.partial(_several, arguments[0])
    if dataclasses.is_dataclass(hint):
        inner = typing.cast("type", hint)
        return lambda value: view(inner, value) if value and isinstance(value, dict) else None
    return _SCALARS[hint]


def _several(kind: type, value: Any) -> tuple[Any, ...] | None:
    if not isinstance(value, (list, tuple)):
        return None
    if kind is str:
        return tuple(each for each in value if isinstance(each, str))
    return tuple(view(kind, each) for each in value if isinstance(each, dict))


def amount(value: Any) -> float | None:
    """A finite number, not below zero; None: it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= LARGEST and math.isfinite(value) else None


def positive(value: Any) -> Positive | None:
    """An amount that may divide; None: it is none, or nothing."""
    found = amount(value)
    return Positive(found) if found is not None and found >= LEAST else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_SCALARS: dict[Any, Callable[[Any], Any]] = {
    float: amount,
    Positive: positive,
    str: _text,
    bool: _truth,
}
