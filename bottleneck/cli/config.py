"""`bottleneck config`: the values of options that nobody gives, and where they come from."""

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
    with interrupts.defer():
        import os
        import sys

        from bottleneck.cli import configuration, documents
        from probes.core.stage import Refused

    commands = configuration.commands(context.find_root().command)
    if command is not None and command not in commands:
        raise Refused("usage", f"config: {command!r}: must be one of {', '.join(commands)}")
    lines = [_source_line(each) for each in configuration.sources(os.environ)]
    lines = lines or [f"# {configuration.FILE_VARIABLE}: no configuration file"]
    for name in [command] if command else commands:
        settings = configuration.settings(name, commands, os.environ)
        entries = [_line(key, setting.value, setting.origin) for key, setting in settings.items()]
        if command:
            entries += [
                _line(key, option.default, "built in")
                for key, option in commands[command].items()
                if key not in settings and configuration.can_set(command, key)
            ]
        if entries:
            lines += ["", f"[{name}]", *entries]
    text = "\n".join(lines) + "\n"
    encoding = sys.stdout.encoding or "ascii"
    printable = text.encode(encoding, "backslashreplace").decode(encoding)
    return exits.DONE if documents.show(lambda: sys.stdout.write(printable)) else exits.INCOMPLETE


def _source_line(source: Source) -> str:
    from bottleneck.cli import configuration
    from bottleneck.text.safe import safe

    state = "not found" if configuration.read(source) is None else "read"
    return f"# {safe(source.path)}: {state}"


def _line(key: str, value: object, origin: str) -> str:
    """Returns a line as the file would have it, with its origin; an unset option as a comment."""
    from bottleneck.text.safe import safe

    if value is None:
        return f"# {key} is not set"
    plain = value if isinstance(value, bool | int | float | list) else str(value)
    return f"{key} = {safe(json.dumps(plain, ensure_ascii=False), 1000)}  # {safe(origin)}"
