"""The report that --json asks for: owed in every ending, also where no run ever began."""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

MEASURING = ("diagnose", "demo", "probe", "watch")
FLAGS = frozenset(
    ("--allow-guest", "--quick", "--thorough", "--yes", "--quiet", "-q", "--verbose", "-v")
)
"""Options that take no value: what follows them may be TARGET."""


@dataclass
class Debt:
    """What the arguments asked for, until it is written."""

    path: str = ""
    """File, or "-"; empty: nothing is owed."""
    share: str | None = None
    started: str = ""
    began: float = 0.0

    def paid(self) -> None:
        """The report is written, or its run has taken it over."""
        self.path = ""

    def settle(self, status: str, sentence: str) -> None:
        """Writes a report without steps, with the sentence as its note, if one is still owed.

        Raises:
            OSError: it cannot be written.
        """
        if not self.path:
            return
        from bottleneck import __version__, report
        from bottleneck.analysis import diagnose

        path, self.path = self.path, ""
        made = report.Report(
            status=status,
            tool={"version": __version__, "python": platform.python_version()},
            started=self.started,
            elapsed_seconds=time.monotonic() - self.began,
            target={"share": self.share},
            client=None,
            server=None,
            notes=(sentence,),
        )
        if path == "-":
            sys.stdout.write(report.dumps(made, diagnose(made)))
            sys.stdout.flush()
        else:
            report.save(made, diagnose(made), Path(path))


owed = Debt()
"""That of the command line that runs."""


def owe(arguments: list[str]) -> None:
    """Notes what a command line asks for; before typer reads it, which may refuse it."""
    owed.path, owed.share = "", None
    owed.started = datetime.now(UTC).isoformat(timespec="seconds")
    owed.began = time.monotonic()
    if not arguments or arguments[0] not in MEASURING or "--help" in arguments:
        return
    option = ""
    for argument in arguments[1:]:
        if argument == "--":
            break
        name, equals, value = argument.partition("=")
        if option == "--json":
            owed.path, option = argument, ""
        elif name == "--json" and equals:
            owed.path, option = value, ""
        elif argument.startswith("-"):
            option = "" if equals or argument in FLAGS else argument
        elif option:
            option = ""
        elif owed.share is None:
            owed.share = _share(argument)


def _share(argument: str) -> str | None:
    """TARGET as a report names it; None: it is not that, and is not repeated."""
    from bottleneck.target import parse
    from probes.stage import Refused

    try:
        return parse(argument).name
    except Refused:
        return None
