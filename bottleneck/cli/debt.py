"""The documents that a command line asks for: owed in every ending, also where no run began."""

from __future__ import annotations

import platform
import shlex
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bottleneck.cli import exits

if TYPE_CHECKING:
    from bottleneck.redaction import Redaction

MEASURING = ("diagnose", "demo", "probe", "watch", "check")
KINDS = ("json", "html", "ticket", "junit")
FLAGS = frozenset(
    (
        *("--allow-guest", "--quick", "--thorough", "--yes", "--quiet", "-q", "--verbose", "-v"),
        "--redact",
    )
)
"""Options that take no value: what follows them may be TARGET."""
SHOWING = frozenset((*(f"--{kind}" for kind in KINDS), "--history", "--units", "--redact")) | {
    "--quiet",
    "-q",
    "--verbose",
    "-v",
}
"""Options that say how a run is shown: what repeats it goes without."""
REACHING = frozenset(("docker", "podman", "sudo", "ip", "kubectl", "lxc", "nsenter"))
"""Programs whose arguments in exec:PREFIX are shown; others' may hold a secret."""
_SECRET = ("pass", "secret", "token", "=")


@dataclass
class Debt:
    """What the arguments asked for, until it is written."""

    paths: dict[str, str] = field(default_factory=dict)
    """File or "-" of each kind; empty: nothing is owed."""
    share: str | None = None
    started: str = ""
    began: float = 0.0
    command: tuple[str, ...] = ()
    """What repeats the run, the program's name first, without secrets; empty: it measures none."""
    on_stdout: bool = False
    """Whether one of the documents is to be all that stdout holds."""
    redaction: Redaction | None = None
    """Where the arguments ask for it: it knows their names."""

    def paid(self) -> None:
        """The documents are written, or their run has taken them over."""
        self.paths = {}

    def settle(self, status: str, sentence: str) -> None:
        """Writes documents without steps, with the sentence as their note, that are still owed.

        One complaint has been made by then: of what cannot be written nothing more is said, and
        the others are.
        """
        paths, self.paths = self.paths, {}
        if not paths:
            return
        from bottleneck import __version__, document_file
        from bottleneck.cli import documents
        from bottleneck.report import Report

        made = Report(
            status=status,
            tool={"version": __version__, "python": platform.python_version()},
            started=self.started,
            elapsed_seconds=time.monotonic() - self.began,
            target={"share": self.share},
            client=None,
            server=None,
            notes=(sentence,),
        )
        made = made if self.redaction is None else self.redaction.report(made)
        diagnosis = documents.diagnosed(made)[0]
        on_stdout = False
        for kind in KINDS:
            if kind not in paths:
                continue
            path = paths[kind]
            try:
                text = documents.text_of(kind, made, diagnosis)
                if path != documents.STDOUT:
                    document_file.write(path, text)
                elif not on_stdout:
                    on_stdout = True
                    documents.to_stdout(text)
                    sys.stdout.flush()
            except (OSError, ValueError):
                if path == documents.STDOUT:
                    exits.abandon_stdout()
            except Exception as error:
                exits.complain(f"--{kind}: {exits.of_error(error)[1]}; it is not there")


owed = Debt()
"""That of the command line that runs."""


def owe(arguments: list[str]) -> None:
    """Notes what a command line asks for; before typer reads it, which may refuse it."""
    owed.paths, owed.share, owed.command, owed.redaction = {}, None, (), None
    owed.on_stdout = False
    owed.started = datetime.now(UTC).isoformat(timespec="seconds")
    owed.began = time.monotonic()
    exits.hide_by(None)
    before_end = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--redact" in before_end:
        from bottleneck.redaction import Redaction

        owed.redaction = Redaction()
        owed.redaction.learn_arguments(arguments)
        exits.hide_by(owed.redaction.text)
    if not arguments or arguments[0] not in MEASURING or "--help" in arguments:
        return
    owed.command = ("bottleneck", *_repeating(arguments))
    option = ""
    for argument in before_end[1:]:
        name, equals, value = argument.partition("=")
        kind = (option or name).removeprefix("--")
        if option and kind in KINDS:
            owed.paths[kind], option = argument, ""
        elif not option and kind in KINDS and equals and argument.startswith("--"):
            owed.paths[kind] = value
        elif argument.startswith("-") and argument != "-":
            option = "" if equals or argument in FLAGS else argument
        elif option:
            option = ""
        elif owed.share is None:
            owed.share = _share(argument)
    owed.on_stdout = "-" in owed.paths.values()


def _repeating(arguments: list[str]) -> list[str]:
    """The arguments without what only says how the run is shown, and without secrets."""
    found: list[str] = []
    option = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if option:
            found += [] if option in SHOWING else [_public(option, argument)]
            option = ""
        elif not argument.startswith("-"):
            found.append(argument)
        else:
            if name not in SHOWING:
                found.append(f"{name}={_public(name, value)}" if equals else argument)
            option = "" if equals or argument in FLAGS else name
    return found


def _public(option: str, value: str) -> str:
    """An option's value, but of a command that may hold a secret only that there is one."""
    if option != "--agent" or not value.startswith("exec:"):
        return value
    try:
        words = shlex.split(value.removeprefix("exec:"))
    except ValueError:
        words = ["?"]
    plain = not words or words[0] in REACHING
    hidden = any(mark in each.lower() for each in words for mark in _SECRET)
    return value if plain and not hidden else "exec:..."


def _share(argument: str) -> str | None:
    """TARGET as a report names it; None: it is not that, and is not repeated."""
    from bottleneck.target import parse
    from probes.stage import Refused

    try:
        return parse(argument).name
    except Refused:
        return None
