"""Plain JSON values into frozen records, strictly: types, finite numbers, ranges by the unit.

Pure; knows records only by their annotations. Runs on Python 3.9: it travels with the agent.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from probes.core.lenient import LARGEST, UNIONS
from probes.core.records import Access, Endpoint

MOST_NESTED = 32
"""Lists within lists: interfaces upon interfaces are told by whom we do not know."""

T = TypeVar("T")


class NotTyped(ValueError):
    """A value that is not what the record asks for; the text says where and what."""


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def record(kind: type[T], value: object, where: str, exact: bool = False) -> T:
    """An instance of a dataclass from a JSON object.

    Unknown keys are left aside (a later version may have added them) unless `exact`; a missing key
    is None or the field's default where the record has one. Errors: NotTyped.
    """
    if not isinstance(value, dict):
        raise NotTyped(f"{where} must be an object")
    if where.count("[") > MOST_NESTED:
        raise NotTyped(f"{where[:80]} ... is nested too deep")
    hints = _hints(typing.cast("Any", kind))
    found: dict[str, Any] = {}
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    for key in set(value) - {field.name for field in fields} if exact else ():
        raise NotTyped(f"{where} has an unknown key {key[:40]!r}")
    for field in fields:
        name = f"{where}.{field.name}"
        if field.name in value:
            found[field.name] = typed(hints[field.name], value[field.name], name, exact)
        elif type(None) in typing.get_args(hints[field.name]):
            found[field.name] = None
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise NotTyped(f"{where}.{field.name} is missing")
    return kind(**found)


def typed(hint: Any, value: object, where: str, exact: bool = False) -> Any:
    """The value as the annotation asks for it; `where` names it in errors."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        inner = next(each for each in arguments if each is not type(None))
        return None if value is None else typed(inner, value, where, exact)
    if origin is typing.Literal:
        if value not in arguments:
            raise NotTyped(f"{where} must be one of {', '.join(map(str, arguments))}")
        return value
    if origin is tuple:
        items = enumerate(array(value, where))
        return tuple(typed(arguments[0], each, f"{where}[{at}]", exact) for at, each in items)
    if origin is dict:
        pairs = mapping(value, where).items()
        return {
            key: typed(arguments[1], each, f"{where}[{key[:40]!r}]", exact) for key, each in pairs
        }
    if isinstance(hint, type) and issubclass(hint, tuple):
        return row(typing.cast("Any", hint), value, where)
    if dataclasses.is_dataclass(hint):
        return record(typing.cast("type[Any]", hint), value, where, exact)
    if hint is Any:
        return value
    return _SCALARS[hint](value, where)


def row(kind: Any, value: object, where: str) -> Any:
    """A named tuple from an array as long as it has fields. Errors: NotTyped."""
    items, known = array(value, where), _hints(kind)
    if len(items) != len(known):
        raise NotTyped(f"{where} has {len(items)} values instead of {len(known)}")
    return kind(*(typed(known[name], each, f"{where}.{name}") for name, each in zip(known, items)))


def mapping(value: object, where: str) -> dict[str, Any]:
    """The value if it is an object."""
    if not isinstance(value, dict):
        raise NotTyped(f"{where} must be an object")
    return value


def array(value: object, where: str) -> list[Any]:
    """The value if it is an array."""
    if not isinstance(value, list):
        raise NotTyped(f"{where} must be an array")
    return value


def number(value: object, where: str) -> float:
    """A finite number, not below zero: every quantity of a report is an amount."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotTyped(f"{where} must be a number")
    # NaN compares as false; a whole number may be larger than any float.
    if not 0 <= value <= LARGEST:
        raise NotTyped(f"{where} is out of range")
    return float(value)


def whole(value: object, where: str) -> int:
    """A whole number, not below zero."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotTyped(f"{where} must be a whole number")
    if not 0 <= value <= LARGEST:
        raise NotTyped(f"{where} is out of range")
    return value


def text(value: object, where: str) -> str:
    """The value if it is text."""
    if not isinstance(value, str):
        raise NotTyped(f"{where} must be text")
    return value


def truth(value: object, where: str) -> bool:
    """The value if it is true or false."""
    if not isinstance(value, bool):
        raise NotTyped(f"{where} must be true or false")
    return value


_SCALARS: dict[Any, Callable[[object, str], Any]] = {
    float: number,
    int: whole,
    str: text,
    bool: truth,
}


def details(value: object, where: str = "details") -> dict[str, Any]:
    """Details whose one key that rates() computes with is right; rules read the rest with care."""
    found = mapping(value, where)
    name = "window_rates_bytes_per_second"
    for at, rate in enumerate(array(found.get(name, []), f"{where}.{name}")):
        number(rate, f"{where}.{name}[{at}]")
    return found


# -- and back -------------------------------------------------------------------------------------


def to_plain(record: Any) -> Any:
    """A record as JSON's own types; refuses credentials."""
    if isinstance(record, Access):
        raise TypeError("credentials are not written")
    if isinstance(record, Endpoint):
        raise TypeError("an endpoint goes through endpoint_to_plain alone")
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: to_plain(getattr(record, f.name)) for f in dataclasses.fields(record)}
    if isinstance(record, (list, tuple)):
        return [to_plain(each) for each in record]
    if isinstance(record, dict):
        return {key: to_plain(each) for key, each in record.items()}
    return record


def told_to_plain(record: Any) -> Any:
    """The same of what a host tells, without the fields that have a default and hold it."""
    if isinstance(record, tuple):
        return [told_to_plain(each) for each in record]
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return to_plain(record)
    return {
        field.name: told_to_plain(getattr(record, field.name))
        for field in dataclasses.fields(record)
        if getattr(record, field.name) != _default(field)
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
