"""`bottleneck config`: what options are when nobody gives them, and who says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bottleneck.cli import completion, exits, interrupts

if TYPE_CHECKING:
    from bottleneck.cli.configuration import Source


def _commands(ctx: typer.Context, incomplete: str) -> list[str]:
    from bottleneck.cli import configuration

    return completion.one_of(*configuration.commands(ctx.find_root().command))(incomplete)


Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[COMMAND]",
        help="Show only this command, with its built-in defaults.",
        autocompletion=_commands,
    ),
]


def config(context: typer.Context, command: Name = None) -> int:
    """Show the settings in effect and where they come from."""
    with interrupts.held():
        import os
        import sys

        from bottleneck.cli import configuration, documents
        from probes.core.stage import Refused

    known = configuration.commands(context.find_root().command)
    if command is not None and command not in known:
        raise Refused("usage", f"config: {command!r}: must be one of {', '.join(known)}")
    lines = [_source_line(each) for each in configuration.sources(os.environ)]
    lines = lines or [f"# {configuration.FILE_VARIABLE}: no configuration file"]
    for name in [command] if command else known:
        found = configuration.settings(name, known, os.environ)
        told = [_line(key, setting.value, setting.origin) for key, setting in found.items()]
        if command:
            told += [
                _line(key, option.default, "built in")
                for key, option in known[command].items()
                if key not in found and configuration.taken(command, key)
            ]
        if told:
            lines += ["", f"[{name}]", *told]
    text = "\n".join(lines) + "\n"
    encoding = sys.stdout.encoding or "ascii"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    return exits.DONE if documents.shown(lambda: sys.stdout.write(shown)) else exits.INCOMPLETE


def _source_line(source: Source) -> str:
    from bottleneck.cli import configuration
    from bottleneck.text.safe import safe

    there = "not found" if configuration.read(source) is None else "read"
    return f"# {safe(source.path)}: {there}"


def _line(key: str, value: object, origin: str) -> str:
    """A line as the file would have it, its origin behind it; what is not set as a comment."""
    from bottleneck.text.safe import safe

    if value is None:
        return f"# {key} is not set"
    told = value if isinstance(value, bool | int | float | list) else str(value)
    return f"{key} = {safe(json.dumps(told, ensure_ascii=False), 1000)}  # {safe(origin)}"
