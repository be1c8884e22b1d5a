"""What a command line asks for in every ending, also where no run began: its documents.

The one place that knows of the command line under way: what was typed, when, and what of it is
still to be written.
"""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bottleneck import __version__
from bottleneck.cli import exits
from bottleneck.cli.command_line import CommandLine

if TYPE_CHECKING:
    from bottleneck.redaction import Redaction

STDOUT = "-"


@dataclass
class Pending:
    """What was asked for, until it is written."""

    line: CommandLine = field(default_factory=CommandLine)
    documents: dict[str, str] = field(default_factory=dict)
    """File or "-" of each kind; empty: all are written, or their run has taken them over."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What a configuration says of options that were not given, by their parameters' names."""
    redaction: Redaction | None = None
    """Where names are to be hidden: it knows those of the command line."""
    answered: int | None = None
    """The exit code of the answer of a check, once stdout has it."""
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    began: float = field(default_factory=time.monotonic)
    loading_seconds: float = 0.0
    """What it took to load the program, which tells a host that is slow from others."""

    def redact(self) -> Redaction:
        """Hides names from now on, in complaints too."""
        if self.redaction is None:
            from bottleneck.redaction import Redaction

            self.redaction = Redaction()
            self.redaction.learn_arguments(self.line.arguments)
            exits.hide_by(self.redaction.text)
        return self.redaction

    def option(self, key: str, usual: str = "") -> str:
        """What an option is, wherever it was set."""
        return str(self.line.given.get(key) or self.settings.get(key) or usual)

    def settle(self, status: str, sentence: str) -> None:
        """Writes documents without steps, with the sentence as their note, that are still owed.

        One complaint has been made by then: of what cannot be written nothing more is said, and
        the others are.
        """
        paths, self.documents = self.documents, {}
        if not paths:
            return
        from bottleneck.cli import documents
        from bottleneck.report import Report

        made = Report(
            status=status,
            tool={"version": __version__, "python": platform.python_version()},
            started=self.started,
            elapsed_seconds=time.monotonic() - self.began,
            target={"share": self.line.share},
            client=None,
            server=None,
            notes=(sentence,),
        )
        output = documents.Output(documents.in_order(paths), redaction=self.redaction)
        made = output.showable(made)
        documents.written(made, documents.diagnosed(made)[0], output, quietly=True)


_current = [Pending()]


def now() -> Pending:
    """That of the command line under way."""
    return _current[0]


def begin(line: CommandLine) -> None:
    """Forgets an earlier command line, and notes what this one asks for."""
    _current[:] = [Pending(line, line.documents)]
    exits.begin()
    if line.redacts:
        now().redact()
