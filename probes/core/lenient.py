"""Plain JSON values into frozen records, leniently: malformed values are treated as missing.

A report may come from another version or be forged; so nothing here fails (typed.py does). A
record's fields say what may be missing: `float | None` is an amount, `Positive | None` one that may
divide, and a field with a default keeps it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from typing import Any, Callable, Dict, List, NewType, Optional, Tuple, Type, TypeVar

LARGEST = 2**63
"""No honest count of bytes or seconds is above it."""
LEAST = 1e-9
"""A figure below it is never a divisor: it is rounding, or a forgery."""
Positive = NewType("Positive", float)
"""An amount that may divide."""
UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
T = TypeVar("T")


def record(kind: Type[T], value: object) -> T:
    """Returns the record of an object; anything else counts as an empty object."""
    members = mapping(value)
    pairs = (
        (name, read(members[name]))
        for name, read in _readers(typing.cast("Any", kind))
        if name in members
    )
    return kind(**{name: each for name, each in pairs if each is not None})


@functools.cache
def _readers(kind: Any) -> Tuple[Tuple[str, Callable[[Any], Any]], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field.name, _reader(hints[field.name])) for field in dataclasses.fields(kind))


def _reader(hint: Any) -> Callable[[Any], Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        return _reader(next(each for each in arguments if each is not type(None)))
    if origin is tuple:
        return functools.partial(_typed_items, arguments[0])
    if dataclasses.is_dataclass(hint):
        inner = typing.cast("type", hint)
        return lambda value: record(inner, value) if value and isinstance(value, dict) else None
    return _SCALARS[hint]


def _typed_items(kind: type, value: Any) -> Optional[Tuple[Any, ...]]:
    if not isinstance(value, (list, tuple)):
        return None
    if kind is str:
        return tuple(each for each in value if isinstance(each, str))
    return tuple(record(kind, each) for each in value if isinstance(each, dict))


def amount(value: object) -> Optional[float]:
    """Returns a finite number that is not below zero; None: the value is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= LARGEST and math.isfinite(value) else None


def positive(value: object) -> Optional[Positive]:
    """Returns an amount of at least LEAST; None: the value is none."""
    number = amount(value)
    return Positive(number) if number is not None and number >= LEAST else None


def mapping(value: object) -> Dict[str, Any]:
    """Returns the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def array(value: object) -> List[Any]:
    """Returns the values if it is an array, else an empty list."""
    return list(value) if isinstance(value, (list, tuple)) else []


_SCALARS: Dict[Any, Callable[[Any], Any]] = {
    float: amount,
    Positive: positive,
    str: lambda value: value if isinstance(value, str) else None,
    bool: lambda value: value if isinstance(value, bool) else None,
}
