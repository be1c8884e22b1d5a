"""The options that several commands share: the same names everywhere, in groups that go together.

A command takes a group as one argument; `grouped` shows its fields to typer, one option each.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from bottleneck.cli import completion
from bottleneck.reports.units import STYLES
from probes.records import DIALECTS
from probes.stage import Refused

Command = Callable[..., int]


def value(name: str, metavar: str, help: str, complete: completion.Completion | None = None) -> Any:
    """An option that takes a value."""
    return typer.Option(name, metavar=metavar, help=help, autocompletion=complete)


def flag(*names: str, help: str) -> Any:
    """An option that takes none."""
    return typer.Option(*names, help=help)


def format_of(*words: str, help: str) -> Any:
    """The option --format, which takes one of the words."""

    def checked(word: str) -> str:
        if word in words:
            return word
        known = " nor ".join(words) if len(words) == 2 else ", ".join(words)
        told = "neither" if len(words) == 2 else "none of"
        raise Refused("usage", f"--format {word!r} is {told} {known}")

    complete = completion.one_of(*words)
    return typer.Option(
        "--format", metavar="F", help=help, autocompletion=complete, callback=checked
    )


Agent = Annotated[
    str,
    value(
        *("--agent", "SPEC"),
        "The server's end: ssh://[user@]host[:port], exec:PREFIX, tcp://host:port, or none.",
    ),
]
TargetRate = Annotated[
    str | None,
    value(
        *("--target-rate", "RATE"),
        "Also say what it would take to reach RATE, as 100MB/s or 1Gbit/s.",
    ),
]
TextOrJson = Annotated[str, format_of("text", "json", help="text or json.")]
Units = Annotated[
    str,
    value(
        *("--units", "U", "Rates in si (MB/s), iec (MiB/s) or bits (Mbit/s)."),
        completion.one_of(*STYLES),
    ),
]
Redact = Annotated[
    bool,
    flag(
        "--redact",
        help="Host names, users, addresses and paths as stable tokens in everything written.",
    ),
]
Yes = Annotated[bool, flag("--yes", help="Do not ask before writing test files.")]
Quiet = Annotated[bool, flag("--quiet", "-q", help="No progress, the verdict alone.")]
Verbose = Annotated[bool, flag("--verbose", "-v", help="The evidence of every copy.")]


@dataclass(frozen=True)
class Login:
    """Who logs in."""

    user: Annotated[str | None, value("--user", "NAME", "Who logs in.")] = None
    domain: Annotated[str | None, value("--domain", "D", "Domain of the user.")] = None
    auth_file: Annotated[
        Path | None,
        value("--auth-file", "F", "username =, password =, domain = as smbclient's; mode 0600."),
    ] = None
    allow_guest: Annotated[
        bool, flag("--allow-guest", help="A guest session will do where nobody is named.")
    ] = False


@dataclass(frozen=True)
class Ends:
    """The server's end of a copy, and the client's."""

    agent: Agent = "none"
    folder: Annotated[
        Path,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Where this host reads and writes copies.",
            readable=False,  # a right that is missing is no wrong usage
        ),
    ] = Path()
    server_folder: Annotated[
        str | None, value("--server-folder", "DIR", "The share's folder as the server's path.")
    ] = None


@dataclass(frozen=True)
class Others:
    """What else than TARGET is reached or read."""

    client_share: Annotated[
        str | None,
        value(
            *("--client-share", "//CLIENT/SHARE"),
            "This host's own share, for copies that the server starts; default: a private one.",
        ),
    ] = None
    tcp_peer: Annotated[
        str | None,
        value(
            *("--tcp-peer", "PEER"),
            "iperf3://host[:port] or ttcp://host[:port], for TCP where no agent can run.",
        ),
    ] = None
    file: Annotated[
        str | None,
        value(
            *("--file", "F"),
            "Also look at this file, and pull it: below TARGET, or as ./F or /F on this host.",
        ),
    ] = None


@dataclass(frozen=True)
class Disk:
    """A block device."""

    device: Annotated[
        str | None,
        value(
            *("--device", "DEV"),
            "Read this block device zone by zone, and nothing else; server:DEV at the agent.",
        ),
    ] = None
    zones: Annotated[int, value("--zones", "N", "Into so many zones a disk is divided.")] = 9


@dataclass(frozen=True)
class Copies:
    """Which copies are made."""

    dialects: Annotated[
        str | None,
        value(
            *("--dialects", "LIST"),
            "Of smb1,2.0.2,2.1,3.0,3.0.2,3.1.1; default: the best offered, and smb1 where on.",
            completion.list_of(DIALECTS),
        ),
    ] = None
    size: Annotated[
        str | None, value("--size", "BYTES", "File size, as 256MiB or 1GB; default: fitting.")
    ] = None


@dataclass(frozen=True)
class Time:
    """How long all of it may take."""

    budget: Annotated[
        float | None, value("--budget", "SECONDS", "Time of the whole run; default 60.")
    ] = None
    quick: Annotated[bool, flag("--quick", help="A budget of 20 s.")] = False
    thorough: Annotated[bool, flag("--thorough", help="A budget of 300 s.")] = False


@dataclass(frozen=True)
class Documents:
    """What is written of a result, and how it reads."""

    json: Annotated[
        str | None, value("--json", "F", "Also write the report there; - is stdout alone.")
    ] = None
    html: Annotated[
        str | None, value("--html", "F", "Also write the report as one page for a browser.")
    ] = None
    ticket: Annotated[
        str | None, value("--ticket", "F", "Also write one page of Markdown for a ticket.")
    ] = None
    junit: Annotated[str | None, value("--junit", "F", "Also write the copies as JUnit XML.")] = (
        None
    )
    units: Units = "si"
    redact: Redact = False


@dataclass(frozen=True)
class Kept(Documents):
    """The same of a run, whose figures can be kept."""

    history: Annotated[
        str | None,
        value(
            *("--history", "F"),
            "Keep the run's figures there, and show how they went: a file, default or none.",
        ),
    ] = None


@dataclass(frozen=True)
class Screen:
    """How much is shown."""

    quiet: Quiet = False
    verbose: Verbose = False


USUAL_COPIES, NO_OTHERS, USUAL_DISK = Copies(), Others(), Disk()
"""Where a command has no such options."""


def grouped(command: Command) -> Command:
    """The command as typer takes it: with an option for each field of the groups that it takes."""
    hints = typing.get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command).parameters.values():
        if each.name not in groups:
            parameters.append(each.replace(annotation=hints[each.name]))
            continue
        told = typing.get_type_hints(hints[each.name], include_extras=True)
        parameters += [
            each.replace(name=field.name, default=field.default, annotation=told[field.name])
            for field in fields(hints[each.name])
        ]

    @wraps(command)
    def flat(**given: Any) -> int:
        for name, kind in groups.items():
            assert isinstance(kind, type)
            given[name] = kind(**{each.name: given.pop(each.name) for each in fields(kind)})
        return command(**given)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat
