"""The options that several commands share: the same names everywhere, in groups that go together.

A command takes a group as one argument; `grouped` shows its fields to typer, one option each.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from bottleneck.cli import completion
from bottleneck.reports import sections
from bottleneck.reports.formats import FORMATS
from bottleneck.units import STYLES
from probes.records import DIALECTS
from probes.stage import Refused

Command = Callable[..., int]


def value(
    metavar: str,
    help: str,
    default: object = None,
    complete: completion.Completion | None = None,
    short: tuple[str, ...] = (),
    **more: object,
) -> Any:
    """A field of a group: an option that takes a value, and has the field's name."""
    told = {"metavar": metavar, "help": help, "autocompletion": complete, **more}
    return field(default=default, metadata={"option": told, "short": short})


def flag(help: str, *short: str) -> Any:
    """A field of a group: an option that takes none."""
    return field(default=False, metadata={"option": {"help": help}, "short": short})


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


TextOrJson = Annotated[str, format_of("text", "json", help="text or json.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before writing test files.")]


@dataclass(frozen=True)
class Login:
    """Who logs in."""

    user: str | None = value("NAME", "Who logs in.")
    domain: str | None = value("D", "Domain of the user.")
    auth_file: Path | None = value(
        "F", "username =, password =, domain = as smbclient's; mode 0600."
    )
    allow_guest: bool = flag("A guest session will do where nobody is named.")


@dataclass(frozen=True)
class Expected:
    """A stored report, and what it or a measurement is held against."""

    report: str | None = value(
        "F", "Judge a stored report instead: a file, or the newest of a folder or 'pattern*'."
    )
    warn: list[str] | None = value(
        "EXPR",
        "WARNING where it holds: 'pull.uncached < 80MB/s'; or a Nagios range of what is well: "
        "pull.uncached=80MB/s: . Repeatable.",
    )
    crit: list[str] | None = value("EXPR", "CRITICAL where it holds; as --warn.")
    expect_cap: list[str] | None = value(
        "CAP", "[COPY=]component[/side[/cause]]: another sure cap is CRITICAL. Repeatable."
    )
    baseline: Path | None = value(
        "F",
        "An earlier report: what is slower by more than the noise of both is WARNING, and CRITICAL "
        "from a third on.",
    )
    tolerance: str = value(
        "SHARE",
        "What may be lost against --baseline; the noise alone takes 9 %, and 20 % of one run.",
        "5%",
    )
    max_age: str | None = value("AGE", "Of --report: older is UNKNOWN; 26h, 90min, 7d.")


@dataclass(frozen=True)
class Ends:
    """The server's end of a copy, and the client's."""

    agent: str = value(
        "SPEC",
        "The server's end: ssh://[user@]host[:port], exec:PREFIX, tcp://host:port, or none.",
        "none",
    )
    # A right that is missing is no wrong usage.
    folder: Path = value("DIR", "Where this host reads and writes copies.", Path(), readable=False)
    server_folder: str | None = value("DIR", "The share's folder as the server's path.")


@dataclass(frozen=True)
class Others:
    """What else than TARGET is reached or read."""

    client_share: str | None = value(
        "//CLIENT/SHARE",
        "This host's own share, for copies that the server starts; default: a private one.",
    )
    tcp_peer: str | None = value(
        "PEER", "iperf3://host[:port] or ttcp://host[:port], for TCP where no agent can run."
    )
    file: str | None = value(
        "F", "Also look at this file, and pull it: below TARGET, or as ./F or /F on this host."
    )


@dataclass(frozen=True)
class Disk:
    """A block device."""

    device: str | None = value(
        "DEV", "Read this block device zone by zone, and nothing else; server:DEV at the agent."
    )
    zones: int = value("N", "Into so many zones a disk is divided.", 9)


@dataclass(frozen=True)
class Copies:
    """Which copies are made."""

    dialects: str | None = value(
        "LIST",
        "Of smb1,2.0.2,2.1,3.0,3.0.2,3.1.1; default: the best offered, and smb1 where on.",
        complete=completion.list_of(DIALECTS),
    )
    size: str | None = value("BYTES", "File size, as 256MiB or 1GB; default: fitting.")


@dataclass(frozen=True)
class Time:
    """How long all of it may take."""

    budget: float | None = value("SECONDS", "Time of the whole run; default 60.")
    quick: bool = flag("A budget of 20 s.")
    thorough: bool = flag("A budget of 300 s.")


@dataclass(frozen=True)
class Wanted:
    """What a copy is to reach."""

    target_rate: str | None = value(
        "RATE", "Also say what it would take to reach RATE, as 100MB/s or 1Gbit/s."
    )


def _units() -> Any:
    told = "Rates in si (MB/s), iec (MiB/s) or bits (Mbit/s)."
    return value("U", told, "si", completion.one_of(*STYLES))


def _redact() -> Any:
    return flag("Host names, users, addresses and paths as stable tokens in everything written.")


@dataclass(frozen=True)
class Reading:
    """How something reads."""

    units: str = _units()
    redact: bool = False


@dataclass(frozen=True)
class Shown(Reading):
    """How something reads that names can be hidden in."""

    redact: bool = _redact()


@dataclass(frozen=True)
class Documents:
    """What is written of a result, and how it reads."""

    files: Mapping[str, str] = field(default_factory=dict, metadata={"of_formats": True})
    """By the format of each document; an option each."""
    units: str = _units()
    redact: bool = _redact()


@dataclass(frozen=True)
class Kept(Documents):
    """The same of a run, whose figures can be kept."""

    history: str | None = value(
        "F", "Keep the run's figures there, and show how they went: a file, default or none."
    )


@dataclass(frozen=True)
class Quiet:
    """That little is shown."""

    quiet: bool = flag("No progress, the verdict alone.", "-q")


@dataclass(frozen=True)
class Verbose:
    """That much is shown."""

    verbose: bool = flag("Show every section, and the evidence of every copy.", "-v")


@dataclass(frozen=True)
class Screen(Verbose, Quiet):
    """How much is shown."""

    section: list[str] | None = value(
        "NAME",
        f"Also show a section: {', '.join(sections.NAMES)}. A list or repeatable.",
        complete=completion.one_of(*sections.NAMES),
    )


USUAL_COPIES, NO_OTHERS, USUAL_DISK, USUAL_SCREEN = Copies(), Others(), Disk(), Screen()
"""Where a command has no such options."""


def grouped(command: Command) -> Command:
    """The command as typer takes it: with an option for each field of the groups that it takes."""
    hints = typing.get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command).parameters.values():
        kind = groups.get(each.name)
        told = [each.replace(annotation=hints[each.name])]
        parameters += told if kind is None else _options(each, kind)

    @wraps(command)
    def flat(**given: Any) -> int:
        for name, kind in groups.items():
            assert isinstance(kind, type)
            given[name] = kind(**{e.name: _taken(e, given) for e in fields(kind) if e.metadata})
        return command(**given)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _taken(field: Field[Any], given: dict[str, Any]) -> Any:
    """A field's value out of what the command line gave."""
    if "of_formats" not in field.metadata:
        return given.pop(field.name)
    paths = ((each.name, given.pop(each.name)) for each in FORMATS)
    return {name: path for name, path in paths if path is not None}


def _options(group: inspect.Parameter, kind: Any) -> Iterator[inspect.Parameter]:
    hints = typing.get_type_hints(kind)
    for each in fields(kind):
        if not each.metadata:
            continue
        if "of_formats" in each.metadata:
            for form in FORMATS:
                path = typer.Option(f"--{form.name}", metavar="F", help=form.help)
                written = Annotated[str | None, path]
                yield group.replace(name=form.name, default=None, annotation=written)
            continue
        name = f"--{each.name.replace('_', '-')}"
        option = typer.Option(name, *each.metadata["short"], **each.metadata["option"])
        hint = Annotated[hints[each.name], option]  # type: ignore[valid-type,name-defined]
        yield group.replace(name=each.name, default=each.default, annotation=hint)
