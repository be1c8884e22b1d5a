"""The options that several commands share: the same names everywhere, in groups that go together.

A command takes a group as one argument; `expanded_command` gives typer an option for each field.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, dataclass_transform

import typer

from bottleneck.cli import completion, knobs
from bottleneck.documents.formats import FORMATS, SECTIONS
from bottleneck.text.units import STYLES
from probes.core.records import DIALECTS, FILE_COPY, OWN_COPIES

Command = Callable[..., int]
T = TypeVar("T")
HERE = "the current directory"
ON_OR_OFF = ("on", "off")


def default_help(help: str, default: object) -> str:
    """Returns a sentence of the help with a default: `Size of the file [default: 1GB].`"""
    text = f"{default:g}" if isinstance(default, float) else default
    return help if default in (None, "") else f"{help.removesuffix('.')} [default: {text}]."


def value(
    metavar: str,
    help: str,
    default: object = None,
    complete: completion.Completion | None = None,
    usual: str = "",
    also: str = "",
    **settings: object,
) -> Any:
    """Returns a field of a group: an option that takes a value, and has the field's name.

    usual: the default in the help, where it is found later. also: a second name.
    """
    texts = {"help": default_help(help, usual or default), "show_default": False}
    option = {"metavar": metavar, "autocompletion": complete, **texts, **settings}
    return field(default=default, metadata={"option": option, "short": (also,) if also else ()})


def flag(help: str, *short: str) -> Any:
    """Returns a field of a group: an option that takes none."""
    return field(default=False, metadata={"option": {"help": help}, "short": short})


@dataclass_transform(frozen_default=True)
def group(panel: str) -> Callable[[type[T]], type[T]]:
    """Makes a frozen dataclass whose fields are options below one heading of the help."""

    def decorate(kind: type[T]) -> type[T]:
        # A class takes what its type does not declare: each group has its own heading.
        kind.panel = panel  # type: ignore[attr-defined]
        return dataclass(frozen=True)(kind)

    return decorate


def format_of(*words: str, help: str) -> Any:
    """Returns the option --format, which takes one of the words; the first is its default."""
    return typer.Option(
        "--format",
        metavar="NAME",
        help=default_help(help, words[0]),
        show_default=False,
        autocompletion=completion.one_of(*words),
        callback=lambda word: completion.checked_word("--format", word, words),
        rich_help_panel="Output",
    )


TextOrJson = Annotated[str, format_of("text", "json", help="Format of the output: text or json.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before writing test files.")]


@group("Login")
class Login:
    user: str | None = value(
        "NAME",
        "User name for the SMB login; the password comes from --auth-file, BOTTLENECK_PASSWORD or "
        "a prompt.",
    )
    domain: str | None = value("NAME", "Domain or workgroup of the user.")
    auth_file: Path | None = value("FILE", "Login file as for smbclient, mode 0600.")
    allow_guest: bool = flag("Log in as guest if no user is given.")


@group("Expectations")
class Expectations:
    """A stored report, and the expectations of it or of a measurement."""

    report: str | None = value(
        "FILE", "Judge a stored report: a file, or the newest one of a folder or 'pattern*'."
    )
    warn: list[str] | None = value(
        "EXPR",
        "WARNING if this is true: 'pull.uncached < 80MB/s'. Or WARNING outside a Nagios range: "
        "pull.uncached=80MB/s: (repeatable). Names: those of the copies, headline, tcp.pull, "
        "path.rtt, disk.server.read, loss, cpu.server; an unknown name lists all.",
    )
    crit: list[str] | None = value(
        "EXPR", "CRITICAL if true; as --warn (repeatable). UNKNOWN if it was not measured."
    )
    expect_cap: list[str] | None = value(
        "VERDICT",
        "Expected bottleneck, as [COPY=]component[/side[/cause]]. CRITICAL if another one is found "
        "with high confidence (repeatable).",
    )
    baseline: str | None = value(
        "FILE",
        "Compare with an earlier report, or with all of a folder or 'pattern*': WARNING if "
        "significantly slower, CRITICAL if slower by a third or more.",
    )
    tolerance: str = value(
        "SHARE",
        "Accepted loss against --baseline; always at least 9%, or 20% for a single run.",
        "5%",
    )
    verified: bool = flag("UNKNOWN for a cached or uncached copy whose source was not verified.")
    max_age: str | None = value("AGE", "UNKNOWN if --report is older than AGE: 26h, 90min or 7d.")


@group("Hosts and agents")
class Ends:
    """The server's end of a copy, and the client's."""

    agent: str = value(
        "SPEC",
        "Measure on the server too, through ssh://[user@]host[:port] or exec:COMMAND. It needs "
        "python3, and nothing is installed there.",
        "none",
    )
    # A right that is missing is no wrong usage.
    folder: Path = value("DIR", "Directory for test files.", Path(), usual=HERE, readable=False)
    server_folder: str | None = value("DIR", "Path of the share on the server.", usual="detected")


@group("Hosts and agents")
class Others:
    """Shares, hosts and files beside TARGET."""

    client_share: str | None = value(
        "SHARE",
        "Share of this host, as //CLIENT/SHARE, for copies started by the server.",
        usual="a private one",
    )
    tcp_peer: str | None = value(
        "URL", "Measure TCP with iperf3://host[:port], where no agent can run."
    )
    metrics: str | None = value(
        "URL",
        "Read the server's counters around each test at http://HOST:PORT/metrics (node_exporter, "
        "Samba), where no agent can run.",
    )
    file: str | None = value(
        "FILE",
        "Measure this file too: pull FILE from below TARGET, or push ./FILE or /FILE of this host.",
        rich_help_panel="Copies",
    )
    tree: str | None = value(
        "DIR",
        "Also copy a folder file by file: pull DIR from below TARGET, or push ./DIR or /DIR of "
        "this host.",
        rich_help_panel="Copies",
    )


@group("Disk")
class Disk:
    """A block device."""

    device: str | None = value(
        "DEV", "Measure this block device by zone, read-only; server:DEV for one on the server."
    )
    zones: int = value(
        "N", "Number of zones to divide a disk into; with --access write, files in --folder.", 9
    )


def _switch(help: str) -> Any:
    words = completion.one_of(*ON_OR_OFF)
    return value("on|off", help, complete=words, usual="as the server requires")


@group("Copies")
class Copies:
    dialects: str | None = value(
        "LIST",
        "Comma-separated SMB dialects: smb1, 2.0.2, 2.1, 3.0, 3.0.2, 3.1.1.",
        usual="the highest offered, plus smb1 if enabled",
        also="--dialect",
        complete=completion.list_of(DIALECTS),
    )
    signing: str | None = _switch("Sign every SMB message of the copies, or none.")
    encryption: str | None = _switch("Encrypt every SMB message of the copies, or none.")
    size: str | None = value("BYTES", "Size of the test file, as 256MiB.", usual="automatic")
    native_command: str | None = value(
        "COMMAND",
        "Copy to and from a mounted share with this program, as 'rsync -a {source} {target}'.",
        usual="cp",
    )


@group("Copies")
class OneCopy:
    """The one copy to make."""

    copy: str | None = value(
        "NAME",
        f"Make only this copy, once or --runs times: {', '.join(OWN_COPIES)}, or {FILE_COPY} (only "
        "that of --file).",
        usual="all",
        complete=completion.one_of(*OWN_COPIES, FILE_COPY),
    )


@group(knobs.PANEL)
class Knobs:
    """Settings of a stage."""

    words: Mapping[str, str] = field(default_factory=dict, metadata={"named": knobs.KNOBS})


@group("Copies")
class Requests:
    """Requests of the copies over SMB."""

    words: Mapping[str, str] = field(default_factory=dict, metadata={"named": knobs.OF_COPIES})


@group("Time")
class Repeats:
    """Number of runs of a stage, and how often its rate is printed meanwhile."""

    interval: float | None = value(
        "SECONDS", "Print the rate of every SECONDS while the test runs, as iperf3 -i.", min=0.1
    )
    runs: int | None = value(
        "N",
        "Run the test N times after a warm-up run, and show mean, deviation, range and outliers.",
        usual="1, without warm-up",
        min=1,
    )


@group("Time")
class Time:
    """Time limit of the whole run."""

    budget: float | None = value(
        "SECONDS", "Time limit for everything; what does not fit is skipped.", usual="60"
    )
    quick: bool = flag("Same as --budget 20.")
    thorough: bool = flag("Same as --budget 300.")


@group("Output")
class Goal:
    """Rate that a copy is to reach."""

    target_rate: str | None = value("RATE", "Also report what RATE needs, as 100MB/s or 1Gbit/s.")


def _units() -> Any:
    text = "Units of rates: si (MB/s), iec (MiB/s) or bits (Mbit/s)."
    return value("NAME", text, "si", completion.one_of(*STYLES))


def _redact() -> Any:
    return flag("Replace host names, users, addresses and paths with stable tokens in all output.")


@group("Output")
class Presentation:
    """Units of a result."""

    units: str = _units()
    redact: bool = False


@group("Output")
class RedactablePresentation(Presentation):
    """Units of a result, and whether names are hidden."""

    redact: bool = _redact()


@group("Output")
class Documents:
    """Files of a result, and its presentation."""

    files: Mapping[str, str] = field(default_factory=dict, metadata={"named": FORMATS})
    """Paths by the format of each document; an option each, as for all of `named`."""
    units: str = _units()
    redact: bool = _redact()


@group("Output")
class Quiet:
    """Option for little output."""

    quiet: bool = flag("Print only the verdict; no progress.", "-q")


@group("Output")
class Verbose:
    """Option for much output."""

    verbose: bool = flag("Print all sections, for every copy.", "-v")


@group("Output")
class Screen(Verbose, Quiet):
    """Amount of output."""

    section: list[str] | None = value(
        "NAME",
        f"Also show a section: {', '.join(SECTIONS)}. A list or repeatable.",
        complete=completion.one_of(*SECTIONS),
    )


USUAL_COPIES, NO_OTHERS, USUAL_DISK, USUAL_SCREEN = Copies(), Others(), Disk(), Screen()
"""Values for a command without such options."""


def expanded_command(command: Command) -> Command:
    """Returns the command as typer takes it: with an option for each field of its groups."""
    hints = typing.get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command).parameters.values():
        kind = groups.get(each.name)
        plain = [each.replace(annotation=hints[each.name])]
        parameters += plain if kind is None else _options(each, kind)

    @wraps(command)
    def flat(**values: Any) -> int:
        for name, kind in groups.items():
            assert isinstance(kind, type)
            values[name] = kind(**{e.name: _read(e, values) for e in fields(kind) if e.metadata})
        return command(**values)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _read(field: Field[Any], values: dict[str, Any]) -> Any:
    """Returns a field's value out of what the command line gave."""
    if "named" not in field.metadata:
        return values.pop(field.name)
    rows = field.metadata["named"]
    words = ((each.name, values.pop(each.name.replace("-", "_"))) for each in rows)
    values = {name: word for name, word in words if word not in (None, False)}
    return {name: knobs.YES if word is True else word for name, word in values.items()}


def _options(group: inspect.Parameter, kind: Any) -> Iterator[inspect.Parameter]:
    below: dict[str, Any] = {"rich_help_panel": getattr(kind, "panel", None)}
    hints = typing.get_type_hints(kind)
    for each in fields(kind):
        if not each.metadata:
            continue
        if "named" in each.metadata:
            for row in each.metadata["named"]:
                texts = {"help": row.help, **({"metavar": row.metavar} if row.metavar else {})}
                option = typer.Option(f"--{row.name}", **texts, **below)
                names = {"name": row.name.replace("-", "_")}
                if row.metavar:
                    word = Annotated[str | None, option]
                    yield group.replace(**names, default=None, annotation=word)
                else:
                    yield group.replace(**names, default=False, annotation=Annotated[bool, option])
            continue
        name = f"--{each.name.rstrip('_').replace('_', '-')}"
        option = typer.Option(name, *each.metadata["short"], **{**below, **each.metadata["option"]})
        hint = Annotated[hints[each.name], option]  # type: ignore[valid-type,name-defined]
        yield group.replace(name=each.name, default=each.default, annotation=hint)
