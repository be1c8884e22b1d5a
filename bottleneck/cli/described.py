"""The commands as data: what each takes, in the words of its own help."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.models import ArgumentInfo, OptionInfo

Function = Callable[..., Any]
KINDS: tuple[type, ...] = (bool, int, float, Path, str)
"""What a value can be; anything else that an option takes is told as text."""


@dataclass(frozen=True)
class Option:
    """One option of a command."""

    name: str
    """The function's name for it."""
    flags: tuple[str, ...]
    """As they are written: `--quiet`, `-q`."""
    kind: type
    """One of KINDS."""
    many: bool
    """Whether it may be given more than once."""
    metavar: str
    help: str
    default: Any

    @property
    def key(self) -> str:
        """Its long name without dashes: `auth-file`."""
        return next(each for each in self.flags if each.startswith("--")).removeprefix("--")


@dataclass(frozen=True)
class Argument:
    """What a command takes by its place."""

    metavar: str
    help: str
    required: bool


@dataclass(frozen=True)
class Command:
    """One command."""

    name: str
    function: Function

    @property
    def text(self) -> str:
        """What it does: its function's docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def options(self) -> tuple[Option, ...]:
        """In the order of its help."""
        return tuple(each for each in _parameters(self.function) if isinstance(each, Option))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """In their order."""
        return tuple(each for each in _parameters(self.function) if isinstance(each, Argument))


def commands(app: typer.Typer) -> dict[str, Command]:
    """Every command by its name, in the order of the help."""
    found = {}
    for each in app.registered_commands:
        if each.callback is not None and not each.hidden:
            name = each.name or each.callback.__name__.replace("_", "-")
            found[name] = Command(name, each.callback)
    return found


@cache
def _parameters(function: Function) -> tuple[Option | Argument, ...]:
    hints = typing.get_type_hints(function, include_extras=True)
    told = inspect.signature(function).parameters.values()
    return tuple(_parameter(each, hints[each.name]) for each in told)


def _parameter(told: inspect.Parameter, hint: Any) -> Option | Argument:
    info = next(each for each in hint.__metadata__ if isinstance(each, OptionInfo | ArgumentInfo))
    default = None if told.default is inspect.Parameter.empty else told.default
    text = " ".join((info.help or "").split())
    if isinstance(info, ArgumentInfo):
        name = info.metavar or told.name.upper()
        return Argument(name, text, told.default is inspect.Parameter.empty)
    # typer takes the first name for a default, where the option stands in an annotation.
    named = (info.default, *(info.param_decls or ()))
    flags = tuple(each for each in named if isinstance(each, str) and each.startswith("-"))
    kind, many = _kind(hint.__origin__)
    return Option(
        name=told.name,
        flags=flags or (f"--{told.name.replace('_', '-')}",),
        kind=kind,
        many=many,
        metavar="" if kind is bool else info.metavar or told.name.upper(),
        help=text,
        default=default,
    )


def _kind(hint: Any) -> tuple[type, bool]:
    """The type of one value, and whether there may be several."""
    inner = [each for each in _arguments(hint) if each is not type(None)]
    if typing.get_origin(hint) in (list, tuple):
        return _kind(inner[0])[0], True
    if inner and hint not in KINDS:
        return _kind(inner[0])
    return (hint if hint in KINDS else str), False


def _arguments(hint: Any) -> Iterator[Any]:
    yield from (each for each in typing.get_args(hint) if each is not Ellipsis)
