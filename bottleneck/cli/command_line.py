"""A command line as it was typed, and the documents that it is owed however the program ends."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup, TyperOption

from bottleneck.cli import exits
from bottleneck.documents.formats import KINDS
from bottleneck.login import target
from probes.core.stage import Refused

if TYPE_CHECKING:
    from bottleneck.records.redaction import Redaction


STDOUT = "-"
MEASURING = ("diagnose", "demo", "probe", "watch", "check")
SHOWING = frozenset((*KINDS, "units", "redact", "quiet", "verbose"))
"""Options that say how a run is shown: the command that repeats it goes without."""
SHOWN_PREFIXES = frozenset(("docker", "podman", "sudo", "ip", "kubectl", "lxc", "nsenter"))
"""Programs whose arguments in exec:PREFIX are shown; others' may hold a secret."""
PASSWORDS = frozenset(("--password", "--pass", "-p"))
_SECRET = ("pass", "secret", "token", "=")


@dataclass(frozen=True)
class Option:
    """One option of a command, as its help has it."""

    name: str
    """Name of the function's parameter."""
    flags: tuple[str, ...]
    """Flags as they are written: `--quiet`, `-q`."""
    kind: type
    """bool, int, float, Path or str."""
    is_repeatable: bool
    """Whether it may be given more than once."""
    metavar: str
    """Empty: it takes no value."""
    help: str
    default: Any

    @property
    def key(self) -> str:
        """Returns the long name without dashes: `auth-file`."""
        return self.flags[0].removeprefix("--")


def commands_of(root: object) -> dict[str, TyperCommand]:
    """Returns every command by its name, in the order of the help."""
    assert isinstance(root, TyperGroup)
    return {name: each for name, each in root.commands.items() if isinstance(each, TyperCommand)}


def options_of(command: TyperCommand | TyperGroup) -> tuple[Option, ...]:
    """Returns a command's own options, in the order of its help."""
    return tuple(_option(each) for each in command.params if isinstance(each, TyperOption))


def _option(option: TyperOption) -> Option:
    kind = str if option.multiple else option.type_descriptor.annotation
    return Option(
        name=option.name or "",
        flags=tuple(option.opts),
        kind=kind if kind in (bool, int, float, Path) else str,
        is_repeatable=option.multiple,
        metavar="" if option.is_flag else option.metavar or "",
        help=" ".join((option.help or "").split()),
        default=option.default,
    )


@dataclass(frozen=True)
class Word:
    """An option or a value as it was typed."""

    arguments: tuple[str, ...]
    option: Option | None = None
    value: str | None = None
    """The argument itself, or the value of the option; None: there is none."""


@dataclass(frozen=True)
class CommandLine:
    """Arguments as they were typed."""

    arguments: tuple[str, ...] = ()
    command: str = ""
    """Empty: missing, or no command of this program."""
    words: tuple[Word, ...] = ()
    """Words behind the command."""
    command_after_option: str = ""
    """Command that stands behind one of its options; else empty."""

    @property
    def options(self) -> dict[str, str | None]:
        """Returns the values of the typed options by their keys; of repeated ones the last."""
        return {each.option.key: each.value for each in self.words if each.option}

    @property
    def asks_for_help(self) -> bool:
        """Whether nothing but help is asked for."""
        return not {"-h", "--help"}.isdisjoint(self.arguments)

    @property
    def redacts(self) -> bool:
        """Whether names are to be hidden, also where the rest of the line is wrong."""
        end = self.arguments.index("--") if "--" in self.arguments else None
        return "--redact" in self.arguments[:end]

    @property
    def documents(self) -> dict[str, str]:
        """Returns file, or "-", of each kind of document that a measuring command is asked for."""
        if self.command not in MEASURING or self.asks_for_help:
            return {}
        values = self.options
        if self.command == "probe":
            values = {**values, values.get("format") or "": STDOUT}
        return {kind: path for kind, path in values.items() if kind in KINDS and path}

    @property
    def share(self) -> str | None:
        """Returns TARGET as a report names it; None: none, or none that may be repeated."""
        for each in self.words:
            if each.option is None and each.value is not None:
                try:
                    return target.parse(each.value).name
                except Refused:
                    continue
        return None

    @property
    def repeat_command(self) -> tuple[str, ...]:
        """Returns the command that repeats the run, without secrets; empty: it measures nothing."""
        if self.command not in MEASURING or self.asks_for_help:
            return ()
        words = (each for each in self.words if not each.option or each.option.key not in SHOWING)
        return ("bottleneck", self.command, *(text for each in words for text in _public(each)))

    def check(self) -> None:
        """Raises Refused, "usage", for an option before its command, and for a password.

        Every user of the host can read a password among the arguments.
        """
        for argument in self.arguments:
            name = argument.partition("=")[0]
            if name in PASSWORDS:
                raise Refused(
                    "usage",
                    f"{name}: not allowed, other users can read arguments; use --auth-file FILE, "
                    "BOTTLENECK_PASSWORD or the prompt",
                )
        if self.command_after_option:
            first = self.arguments[0]
            example = f"bottleneck {self.command_after_option} {first}"
            raise Refused("usage", f"{first}: put options after the command, as in '{example}'")


def read(group: TyperGroup, arguments: Sequence[str]) -> CommandLine:
    """Returns the command line, as far as it is understood; `help COMMAND` is `COMMAND --help`."""
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    commands = commands_of(group)
    command = commands.get(arguments[0]) if arguments else None
    if command is None:
        flags = {"-h", "--help", *(flag for each in options_of(group) for flag in each.flags)}
        command_after = next(filter(commands.get, arguments), "")
        is_early = arguments and arguments[0].startswith("-") and arguments[0] not in flags
        name = command_after if is_early else ""
        return CommandLine(tuple(arguments), command_after_option=name)
    options = {flag: each for each in options_of(command) for flag in each.flags}
    return CommandLine(tuple(arguments), arguments[0], tuple(_words(options, arguments[1:])))


def _words(options: dict[str, Option], arguments: Sequence[str]) -> Iterator[Word]:
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        option = options.get(name)
        if argument == "--":
            yield Word((argument,))
            yield from (Word((each,), None, each) for each in rest)
        elif argument == "-" or not argument.startswith("-"):
            yield Word((argument,), None, argument)
        elif equals or option is None or not option.metavar:
            yield Word((argument,), option, value if equals else None)
        else:
            operand = next(rest, None)
            yield Word((argument,) if operand is None else (argument, operand), option, operand)


def _public(word: Word) -> tuple[str, ...]:
    """Returns a word as it was typed, but of a command only what cannot be a secret."""
    value, key = word.value or "", word.option.key if word.option else ""
    scheme = "exec:" if key == "agent" else ""
    if key != "native-command" and not (scheme and value.startswith(scheme)):
        return word.arguments
    try:
        command = shlex.split(value.removeprefix(scheme))
    except ValueError:
        command = ["?", "?"]
    text = f"{scheme}..."
    if not scheme:
        from probes.programs import copy_program

        text = copy_program.public_words(command or [""])
    elif (not command or command[0] in SHOWN_PREFIXES) and not any(
        mark in each.lower() for each in command for mark in _SECRET
    ):
        return word.arguments
    return (*word.arguments[:-1], word.arguments[-1].removesuffix(value) + text)


@dataclass
class Invocation:
    """State of this call of the program: its line, documents and settings."""

    line: CommandLine = field(default_factory=CommandLine)
    documents: dict[str, str] = field(default_factory=dict)
    """File or "-" of each kind; empty: all are written, or their run has taken them over."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Configured values of options that were not given, by their parameters' names."""
    redaction: Redaction | None = None
    """Redaction where names are to be hidden: it knows those of the command line."""
    exit_code: int | None = None
    """Exit code of a check, once stdout has its result."""
    started_utc: str = field(
        default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds")
    )
    began_monotonic: float = field(default_factory=time.monotonic)
    loading_seconds: float = 0.0
    """Time to load the program, which tells a slow host from others."""

    def redact(self) -> Redaction:
        """Hides names from now on, in complaints too."""
        if self.redaction is None:
            from bottleneck.records.redaction import Redaction

            self.redaction = Redaction()
            if self.line.command in MEASURING and "report" not in self.line.options:
                self.redaction.learn_this_host()
            self.redaction.arguments(self.line.arguments)
            exits.hide_by(self.redaction.text)
        return self.redaction

    @property
    def plugin(self) -> bool:
        """Whether a monitoring system reads the answer: Icinga takes stderr for a part of it."""
        return self.line.command == "check" and self.option("format") == "nagios"

    def option(self, key: str, usual: str = "") -> str:
        """Returns the value of an option, wherever it was set."""
        return str(self.line.options.get(key) or self.settings.get(key) or usual)


_current = [Invocation()]


def current() -> Invocation:
    """Returns the state of the present call."""
    return _current[0]


def begin(line: CommandLine) -> None:
    """Forgets an earlier command line, and notes what this one asks for."""
    _current[:] = [Invocation(line, line.documents)]
    exits.begin()
    if line.redacts:
        current().redact()
