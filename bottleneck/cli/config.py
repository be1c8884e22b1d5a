"""`bottleneck config`: what options are when nobody gives them, and who says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bottleneck.cli import completion, exits, interrupts

if TYPE_CHECKING:
    from bottleneck.configuration import Source


def _commands(incomplete: str) -> list[str]:
    from bottleneck.cli import configured
    from bottleneck.cli.app import app

    return completion.one_of(*configured.kinds(app))(incomplete)


Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[COMMAND]",
        help="Show this command alone, with what is built in.",
        autocompletion=_commands,
    ),
]


def config(command: Name = None) -> int:
    """Show the settings of the configuration files and the environment, each with its origin."""
    with interrupts.held():
        import os
        import sys

        from bottleneck import configuration
        from bottleneck.cli import configured, described, documents
        from bottleneck.cli.app import app
        from probes.stage import Refused

    kinds = configured.kinds(app)
    if command is not None and command not in kinds:
        raise Refused("usage", f"{command!r} takes no settings; these do: {', '.join(kinds)}")
    lines = [_source_line(each) for each in configuration.sources(os.environ)]
    lines = lines or [f"# {configuration.FILE_VARIABLE}: no file is read"]
    for name in [command] if command else kinds:
        found = configuration.settings(name, kinds, os.environ)
        told = [_line(key, setting.value, setting.origin) for key, setting in found.items()]
        if command:
            told += [
                _line(each.key, each.default, "built in")
                for each in described.commands(app)[command].options
                if each.key not in found and configuration.taken(command, each.key)
            ]
        if told:
            lines += ["", f"[{name}]", *told]
    text = "\n".join(lines) + "\n"
    encoding = sys.stdout.encoding or "ascii"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    return exits.DONE if documents.shown(lambda: sys.stdout.write(shown)) else exits.INCOMPLETE


def _source_line(source: Source) -> str:
    from bottleneck import configuration
    from bottleneck.reports.safe import safe

    there = "not there" if configuration.read(source) is None else "read"
    return f"# {safe(source.path)}: {there}"


def _line(key: str, value: object, origin: str) -> str:
    """A line as the file would have it, its origin behind it; what is not set as a comment."""
    from bottleneck.reports.safe import safe

    if value is None:
        return f"# {key} is not set"
    told = value if isinstance(value, bool | int | float | list) else str(value)
    return f"{key} = {safe(json.dumps(told, ensure_ascii=False), 1000)}  # {safe(origin)}"
