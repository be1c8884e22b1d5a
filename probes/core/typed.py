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
"""Depth of lists within lists: nested interfaces may come from a forged report."""

T = TypeVar("T")


class NotTyped(ValueError):
    """A value does not have the type that the record asks for; the text says where and which."""


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def record(kind: type[T], value: object, where: str, exact: bool = False) -> T:
    """Returns an instance of a dataclass from a JSON object.

    Unknown keys are ignored (a later version may have added them) unless `exact`; a missing key
    is None or the field's default where the record has one. Errors: NotTyped.
    """
    if not isinstance(value, dict):
        raise NotTyped(f"{where} must be an object")
    if where.count("[") > MOST_NESTED:
        raise NotTyped(f"{where[:80]} ... is nested too deep")
    hints = _hints(typing.cast("Any", kind))
    values: dict[str, Any] = {}
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    for key in set(value) - {field.name for field in fields} if exact else ():
        raise NotTyped(f"{where} has an unknown key {key[:40]!r}")
    for field in fields:
        name = f"{where}.{field.name}"
        if field.name in value:
            values[field.name] = parse(hints[field.name], value[field.name], name, exact)
        elif type(None) in typing.get_args(hints[field.name]):
            values[field.name] = None
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise NotTyped(f"{where}.{field.name} is missing")
    return kind(**values)


def parse(hint: Any, value: object, where: str, exact: bool = False) -> Any:
    """Returns the value as the annotation asks for it; `where` names it in errors."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        inner = next(each for each in arguments if each is not type(None))
        return None if value is None else parse(inner, value, where, exact)
    if origin is typing.Literal:
        if value not in arguments:
            raise NotTyped(f"{where} must be one of {', '.join(map(str, arguments))}")
        return value
    if origin is tuple:
        items = enumerate(array(value, where))
        return tuple(parse(arguments[0], each, f"{where}[{index}]", exact) for index, each in items)
    if origin is dict:
        pairs = mapping(value, where).items()
        return {key: parse(arguments[1], e, f"{where}[{key[:40]!r}]", exact) for key, e in pairs}
    if isinstance(hint, type) and issubclass(hint, tuple):
        return row(typing.cast("Any", hint), value, where)
    if dataclasses.is_dataclass(hint):
        return record(typing.cast("type[Any]", hint), value, where, exact)
    return value if hint is Any else _SCALARS[hint](value, where)


def row(kind: Any, value: object, where: str) -> Any:
    """Returns a named tuple from an array of as many values as it has fields. Errors: NotTyped."""
    items, hints = array(value, where), _hints(kind)
    if len(items) != len(hints):
        raise NotTyped(f"{where} has {len(items)} values instead of {len(hints)}")
    return kind(*(parse(hints[name], each, f"{where}.{name}") for name, each in zip(hints, items)))


def mapping(value: object, where: str) -> dict[str, Any]:
    """Returns the value if it is an object. Errors: NotTyped."""
    if not isinstance(value, dict):
        raise NotTyped(f"{where} must be an object")
    return value


def array(value: object, where: str) -> list[Any]:
    """Returns the value if it is an array. Errors: NotTyped."""
    if not isinstance(value, list):
        raise NotTyped(f"{where} must be an array")
    return value


def number(value: object, where: str) -> float:
    """Returns a finite number that is not below zero, as all of a report. Errors: NotTyped."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotTyped(f"{where} must be a number")
    # NaN compares as false; a whole number may be larger than any float.
    if not 0 <= value <= LARGEST:
        raise NotTyped(f"{where} is out of range")
    return float(value)


def whole_number(value: object, where: str) -> int:
    """Returns a whole number that is not below zero. Errors: NotTyped."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotTyped(f"{where} must be a whole number")
    if not 0 <= value <= LARGEST:
        raise NotTyped(f"{where} is out of range")
    return value


def text(value: object, where: str) -> str:
    """Returns the value if it is text. Errors: NotTyped."""
    if not isinstance(value, str):
        raise NotTyped(f"{where} must be text")
    return value


def truth(value: object, where: str) -> bool:
    """Returns the value if it is true or false. Errors: NotTyped."""
    if not isinstance(value, bool):
        raise NotTyped(f"{where} must be true or false")
    return value


_SCALARS: dict[Any, Callable[[object, str], Any]] = {
    float: number,
    int: whole_number,
    str: text,
    bool: truth,
}


def details(value: object, where: str = "details") -> dict[str, Any]:
    """Returns details after a check of the rates; rules check other values. Errors: NotTyped."""
    members = mapping(value, where)
    name = "window_rates_bytes_per_second"
    for index, rate in enumerate(array(members.get(name, []), f"{where}.{name}")):
        number(rate, f"{where}.{name}[{index}]")
    return members


# -- and back -------------------------------------------------------------------------------------


def to_plain(record: Any) -> Any:
    """Returns a record as JSON's own types; refuses credentials."""
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


def to_compact(record: Any) -> Any:
    """Returns a record as JSON's own types, without the fields that hold their default."""
    if isinstance(record, tuple):
        return [to_compact(each) for each in record]
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return to_plain(record)
    return {
        field.name: to_compact(getattr(record, field.name))
        for field in dataclasses.fields(record)
        if getattr(record, field.name) != _default(field)
    }


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
