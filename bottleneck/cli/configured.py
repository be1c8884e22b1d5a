"""Options that the command line leaves open, from the environment and the configuration files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bottleneck.cli import interrupts

if TYPE_CHECKING:
    import typer

    from bottleneck.cli.described import Command
    from bottleneck.configuration import Kinds

UNTOUCHED = frozenset(("agent", "config", "demo", "estimate", "history", "schema"))
"""Commands that are what their arguments say, on every host and for everybody."""


def default_map(app: typer.Typer, arguments: list[str]) -> dict[str, dict[str, Any]]:
    """Defaults for typer's parser, by the command and the name of its parameter.

    Raises:
        Refused: kind "usage": a file or a variable is not what it has to be.
    """
    if not arguments or arguments[0].startswith("-") or "--help" in arguments:
        return {}
    with interrupts.held():
        from bottleneck.cli import described
        from bottleneck.configuration import settings, sources

        # It imports what knows the folders, too.
        sources(os.environ)
    name = arguments[0]
    known = described.commands(app)
    if name not in known or name in UNTOUCHED:
        return {}
    command = known[name]
    found = settings(name, kinds(app), os.environ, _given(command, arguments[1:]))
    named = {option.key: option.name for option in command.options}
    return {name: {named[key]: setting.value for key, setting in found.items()}}


def kinds(app: typer.Typer) -> dict[str, Kinds]:
    """Of every command that may be configured its options: their type, and whether of several."""
    from bottleneck.cli import described

    return {
        name: {option.key: (option.kind, option.many) for option in command.options}
        for name, command in described.commands(app).items()
        if name not in UNTOUCHED
    }


def _given(command: Command, arguments: list[str]) -> Iterator[str]:
    """The options that a command line tells."""
    flags = {flag: option.key for option in command.options for flag in option.flags}
    for argument in arguments:
        if argument == "--":
            return
        key = flags.get(argument.partition("=")[0])
        if key is not None:
            yield key
