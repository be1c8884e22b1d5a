"""The documents of a run: where they go, what they show, and writing them, whatever the ending."""

from __future__ import annotations

import json
import os
import platform
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bottleneck import __version__
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli import command_line, completion, exits, streams
from bottleneck.cli.command_line import STDOUT
from bottleneck.cli.options import USUAL_SCREEN, Documents, Quiet, Reading, Screen
from bottleneck.documents import formats, terminal
from bottleneck.documents.answer import verdict
from bottleneck.documents.console import print_report
from bottleneck.documents.document import Text
from bottleneck.documents.formats import KINDS
from bottleneck.report import document_file, last_report, report
from bottleneck.report.report import Report
from bottleneck.text import units
from bottleneck.text.safe import safe
from probes.core.stage import Refused

if TYPE_CHECKING:
    from rich.console import Console

    from bottleneck.records.redaction import Redaction

SAVING_RATIO = 0.03
"""Share of a run's time that saving its report on the way may take."""


@dataclass(frozen=True)
class Output:
    """Where the result goes, and how it reads."""

    asked: tuple[tuple[str, str], ...] = ()
    """Kind and path of each document."""
    quiet: bool = False
    sections: tuple[str, ...] = ()
    units: units.Style = "si"
    redaction: Redaction | None = None
    """None: names are shown."""
    keeps: bool = False
    """Whether the report is kept as the last one."""
    interval_seconds: float | None = None
    """Between two lines of figures while it runs; None: none are asked for."""

    @property
    def on_stdout(self) -> str | None:
        """The kind of the document that stdout holds alone; None: words go there."""
        return next((kind for kind, path in self.asked if path == STDOUT), None)

    def showable(self, known: Report, command: Sequence[str] = ()) -> Report:
        """The report as it may be shown: with its command line, and without names if so asked."""
        if command:
            known = replace(known, tool={**known.tool, "command": list(command)})
        if self.redaction is None:
            return known
        try:
            return self.redaction.report(known)
        except report.ReportError as error:
            note = f"this report cannot be redacted and was skipped: {error}"
            tool = {"version": str(known.tool.get("version", ""))}
            return Report("failed", tool, known.started, 0.0, {}, None, None, notes=(note,))


def in_order(paths: Mapping[str, str | None]) -> tuple[tuple[str, str], ...]:
    """Kind and path of each document that has one, the first of them first."""
    return tuple((kind, path) for kind in KINDS if (path := paths.get(kind)) is not None)


Written = TypeVar("Written", bound=Documents)


def in_format(format: str, shown: Written) -> Written:
    """What is written, with the document that --format puts on stdout.

    Raises Refused, "usage", where the same document goes to a file.
    """
    if format not in KINDS:
        return shown
    if shown.files.get(format, STDOUT) != STDOUT:
        raise Refused("usage", f"--format {format} and --{format} FILE: use only one of them")
    return replace(shown, files={**shown.files, format: STDOUT})


def with_report(shown: Written) -> Written:
    """Returns the documents of a run, with the report beside the ticket if no place is given."""
    path = shown.files.get("ticket", STDOUT)
    if path == STDOUT or "json" in shown.files or not _is_file(path):
        return shown
    beside = f"{path}.json" if path.endswith(".json") else str(Path(path).with_suffix(".json"))
    return replace(shown, files={**shown.files, "json": beside})


def _is_file(path: str) -> bool:
    """Whether a path is that of a file, or of one to be."""
    return bool(Path(path).name) and (Path(path).is_file() or not Path(path).exists())


def output(wanted: Documents | Reading, screen: Quiet = USUAL_SCREEN) -> Output:
    """Where the result goes, once it is sure that it can go there.

    Raises:
        Refused: kind "usage": a path names what no document can be written to, or two the same;
            the style or a section is none.
    """
    shown_too = _sections(screen) if isinstance(screen, Screen) else ()
    completion.checked("--units", wanted.units, units.STYLES)
    redaction = command_line.now().redact() if wanted.redact else None
    style = next(each for each in units.STYLES if each == wanted.units)
    asked = in_order(wanted.files if isinstance(wanted, Documents) else {})
    seen: dict[str, str] = {}
    for kind, path in asked:
        _check(f"--{kind}", path)
        place = path if path == STDOUT else os.path.realpath(path)
        if place in seen and not place.startswith("/dev/"):
            what = "stdout" if path == STDOUT else "one file"
            told = f"--{seen[place]} {path} and --{kind} {path}"
            raise Refused("usage", f"{told}: cannot write both to {what}; use another FILE")
        seen[place] = kind
    return Output(asked, screen.quiet, shown_too, style, redaction)


def _sections(screen: Screen) -> tuple[str, ...]:
    """The sections that are asked for beside the answer."""
    named = [name.strip() for each in screen.section or () for name in each.split(",")]
    for name in named:
        if name not in formats.SECTIONS:
            told = f"--section {name[:40]!r}: must be one of {', '.join(formats.SECTIONS)}"
            raise Refused("usage", told)
    return (formats.ALL,) if screen.verbose else tuple(named)


def _check(option: str, path: str) -> None:
    """Raises Refused, "usage", where no document can be written to the path."""
    if path == STDOUT:
        if "stdout" in streams.closed:
            raise Refused("usage", f"{option} -: stdout is closed; use a file")
        return
    try:
        target = Path(os.path.realpath(path))
        mode = os.stat(path).st_mode if os.path.exists(path) else None  # noqa: PTH110, PTH116 - as given
        if not path or mode is not None and stat.S_ISDIR(mode):
            raise Refused("usage", f"{option} {path or '(empty)'}: a directory; use a file in it")
        # A file is replaced by a finished one beside it; a pipe or a device is written to.
        beside = mode is None or stat.S_ISREG(mode)
        document_file.check(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise Refused("usage", f"{option} {path}: {why}") from None
    if beside and not target.parent.is_dir():
        raise Refused("usage", f"{option} {path}: directory {target.parent} not found")
    if not os.access(target.parent if beside else path, os.W_OK):
        raise Refused("usage", f"{option} {path}: no write permission")


def diagnosed(known: Report) -> tuple[Diagnosis, str]:
    """What a report means; where the analysis breaks on it, that of an empty one and the reason."""
    try:
        return diagnose(known), ""
    except Exception as error:
        return diagnose(replace(known, entries=())), exits.of_error(error)[1]


def text_of(kind: str, known: Report, diagnosis: Diagnosis, style: units.Style = "si") -> str:
    """A document of one of KINDS; figures for persons in the style."""
    if kind == "json":
        return report.dumps(known, diagnosis)
    with units.shown_as(style):
        read = diagnosis if style == "si" else diagnosed(known)[0]
        return formats.text_of(kind, known, read)


@dataclass
class Saving:
    """Keeps what is known so far in the file of --json, in SAVING_RATIO of a run's time."""

    output: Output
    clock: Callable[[], float] = time.monotonic
    broken: bool = False
    due: float = 0.0
    """Moment of the clock before which nothing is written."""

    def __call__(self, so_far: Report) -> None:
        path = dict(self.output.asked).get("json", STDOUT)
        began = self.clock()
        if path == STDOUT or self.broken or began < self.due:
            return
        if Path(path).exists() and not Path(path).is_file():
            return  # a pipe or a device takes the final report alone
        try:
            known = self.output.showable(so_far, command_line.now().line.repeating)
            document_file.write(path, report.dumps(known, diagnosed(known)[0]))
            ended = self.clock()
            self.due = ended + (ended - began) / SAVING_RATIO
        except OSError:
            # Complained of once, when the final report cannot be written either.
            self.broken = True


def written(
    known: Report,
    diagnosis: Diagnosis,
    output: Output,
    texts: Mapping[str, str] | None = None,
    quietly: bool = False,
) -> bool:
    """Writes all that was asked for; whether all could be written, each of which is complained of.

    known: as Output.showable() gives it; diagnosis: of that, in the style "si"; texts: of documents
    that are another's work, and by the kind "" what stdout shows where it holds none; quietly:
    nothing is said of what the system does not let write.
    """
    command_line.now().documents = {}
    keeps = output.keeps and bool(known.entries)
    kept = keeps and last_report.keep(text_of("json", known, diagnosis))

    def text(kind: str) -> str:
        made = (texts or {}).get(kind)
        return text_of(kind, known, diagnosis, output.units) if made is None else made

    files = [(kind, path) for kind, path in output.asked if path != STDOUT]
    wrote = [path for kind, path in files if saved(f"--{kind}", path, partial(text, kind), quietly)]
    done = len(wrote) == len(files)
    if output.on_stdout is not None or texts:
        on_stdout = output.on_stdout or ""
        return shown(lambda: to_stdout(text(on_stdout)), quietly) and done
    return shown(lambda: _print(known, diagnosis, output, kept, wrote), quietly) and done


def saved(option: str, path: str, text: Callable[[], str], quietly: bool = False) -> bool:
    """Has an option's document written; whether it could be, which is complained of."""
    kind = option.removeprefix("--")
    it = {"json": "the report", "output": "it"}.get(kind, f"the {kind}")
    try:
        document_file.write(path, text())
    except OSError as error:
        if not quietly:
            exits.complain(f"{option} {path}: {error.strerror}; {it} was not written")
    except Exception as error:
        exits.complain(f"{option} {path}: {exits.of_error(error)[1]}; {it} was not written")
    else:
        return True
    return False


def shown(write: Callable[[], object], quietly: bool = False) -> bool:
    """Has something written to stdout; whether it could be, which is complained of."""
    try:
        write()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        # rich ends with SystemExit where whoever read our output has enough.
        exits.abandon()
    except OSError as error:
        if not quietly:
            exits.complain(f"stdout: {error.strerror}; the result was not written")
        exits.abandon()
        return False
    except Exception as error:
        exits.complain(f"stdout: {exits.of_error(error)[1]}; the result was not written")
        return False
    return True


def answered(
    format: str, plain: object, words: Callable[[Console], object], style: units.Style = "si"
) -> bool:
    """Has a command's answer written, as JSON or for a person; whether it could be."""

    def write() -> None:
        if format == "json":
            to_stdout(json.dumps(plain, indent=1, allow_nan=False) + "\n")
            return
        with units.shown_as(style):
            words(terminal.console())

    return shown(write)


def to_stdout(text: str) -> None:
    """A whole document on stdout, in UTF-8 whatever the terminal's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def _print(
    known: Report, diagnosis: Diagnosis, output: Output, kept: bool, paths: Sequence[str]
) -> None:
    """The console's words; paths: of the files that were written."""
    if not known.entries and exits.said:
        return  # the line on stderr has said why nothing was measured
    with units.shown_as(output.units):
        told = diagnosis if output.units == "si" else diagnosed(known)[0]
        console = terminal.console()
        if output.quiet:
            terminal.show(console, verdict(known, told))
            return
        print_report(known, told, console, output.sections, kept)
        if paths:
            terminal.show(console, (Text(f"Written: {', '.join(map(safe, paths))}."),))


def settle(status: str, sentence: str) -> None:
    """Writes documents without steps, with the sentence as their note, that are still owed.

    One complaint has been made by then: of what cannot be written nothing more is said, and
    the others are.
    """
    asked = command_line.now()
    paths, asked.documents = asked.documents, {}
    if not paths:
        return
    made = Report(
        status=status,
        tool={"version": __version__, "python": platform.python_version()},
        started=asked.started,
        elapsed_seconds=time.monotonic() - asked.began,
        target={"share": asked.line.share},
        client=None,
        server=None,
        notes=(sentence,),
    )
    output = Output(in_order(paths), redaction=asked.redaction)
    made = output.showable(made)
    written(made, diagnosed(made)[0], output, quietly=True)


def is_unsure(diagnosis: Diagnosis, only_steps: bool) -> bool:
    """Whether the copy that leads has no bottleneck that is named; only_steps: none was wanted."""
    if diagnosis.altered or only_steps:
        return bool(diagnosis.altered)
    headline = [each for each in diagnosis.copies if each.copy == diagnosis.headline]
    return not headline or headline[0].verdict.component == "unknown"
