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
from bottleneck.cli.options import USUAL_SCREEN, Documents, Presentation, Quiet, Screen
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
    """Destinations and style of the result."""

    files: tuple[tuple[str, str], ...] = ()
    """Kind and path of each document."""
    quiet: bool = False
    sections: tuple[str, ...] = ()
    units: units.Style = "si"
    redaction: Redaction | None = None
    """None: names are shown."""
    keeps: bool = False
    """Whether the report is kept as the last one."""
    interval_seconds: float | None = None
    """Seconds between two lines of figures while it runs; None: no such lines."""

    @property
    def on_stdout(self) -> str | None:
        """Returns the kind of the document that stdout holds alone; None: words go there."""
        return next((kind for kind, path in self.files if path == STDOUT), None)

    def showable(self, original: Report, command: Sequence[str] = ()) -> Report:
        """Returns the report as shown: with its command line, and without names if so asked."""
        if command:
            original = replace(original, tool={**original.tool, "command": list(command)})
        if self.redaction is None:
            return original
        try:
            return self.redaction.report(original)
        except report.ReportError as error:
            note = f"this report cannot be redacted and was skipped: {error}"
            tool = {"version": str(original.tool.get("version", ""))}
            return Report("failed", tool, original.started, 0.0, {}, None, None, notes=(note,))


def in_order(paths: Mapping[str, str | None]) -> tuple[tuple[str, str], ...]:
    """Returns kind and path of each document that has one, in the order of KINDS."""
    return tuple((kind, path) for kind in KINDS if (path := paths.get(kind)) is not None)


Written = TypeVar("Written", bound=Documents)


def in_format(format: str, outputs: Written) -> Written:
    """Returns the documents, with the one that --format puts on stdout.

    Raises Refused, "usage", where the same document goes to a file.
    """
    if format not in KINDS:
        return outputs
    if outputs.files.get(format, STDOUT) != STDOUT:
        raise Refused("usage", f"--format {format} and --{format} FILE: use only one of them")
    return replace(outputs, files={**outputs.files, format: STDOUT})


def add_report(outputs: Written) -> Written:
    """Returns the documents of a run, with the report beside the ticket if no place is given."""
    path = outputs.files.get("ticket", STDOUT)
    if path == STDOUT or "json" in outputs.files or not _is_file(path):
        return outputs
    neighbour = f"{path}.json" if path.endswith(".json") else str(Path(path).with_suffix(".json"))
    return replace(outputs, files={**outputs.files, "json": neighbour})


def _is_file(path: str) -> bool:
    """Whether a path is that of a file, or of one to be."""
    return bool(Path(path).name) and (Path(path).is_file() or not Path(path).exists())


def output(request: Documents | Presentation, screen: Quiet = USUAL_SCREEN) -> Output:
    """Returns where the result goes, once it is sure that it can go there.

    Raises:
        Refused: kind "usage": a path names what no document can be written to, or two the same;
            the style or a section is none.
    """
    sections = _sections(screen) if isinstance(screen, Screen) else ()
    completion.checked_word("--units", request.units, units.STYLES)
    redaction = command_line.current().redact() if request.redact else None
    style = next(each for each in units.STYLES if each == request.units)
    files = in_order(request.files if isinstance(request, Documents) else {})
    owners: dict[str, str] = {}
    for kind, path in files:
        _check(f"--{kind}", path)
        place = path if path == STDOUT else os.path.realpath(path)
        if place in owners and not place.startswith("/dev/"):
            place_text = "stdout" if path == STDOUT else "one file"
            text = f"--{owners[place]} {path} and --{kind} {path}"
            raise Refused("usage", f"{text}: cannot write both to {place_text}; use another FILE")
        owners[place] = kind
    return Output(files, screen.quiet, sections, style, redaction)


def _sections(screen: Screen) -> tuple[str, ...]:
    """Returns the sections that are asked for beside the answer."""
    names = [name.strip() for each in screen.section or () for name in each.split(",")]
    for name in names:
        if name not in formats.SECTIONS:
            text = f"--section {name[:40]!r}: must be one of {', '.join(formats.SECTIONS)}"
            raise Refused("usage", text)
    return (formats.ALL,) if screen.verbose else tuple(names)


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
        is_file = mode is None or stat.S_ISREG(mode)
        document_file.check(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise Refused("usage", f"{option} {path}: {reason}") from None
    if is_file and not target.parent.is_dir():
        raise Refused("usage", f"{option} {path}: directory {target.parent} not found")
    if not os.access(target.parent if is_file else path, os.W_OK):
        raise Refused("usage", f"{option} {path}: no write permission")


def safe_diagnosis(run_report: Report) -> tuple[Diagnosis, str]:
    """Returns a report's diagnosis; if the analysis breaks, that of an empty one and why."""
    try:
        return diagnose(run_report), ""
    except Exception as error:
        return diagnose(replace(run_report, entries=())), exits.exit_of_error(error)[1]


def text_of(kind: str, run_report: Report, diagnosis: Diagnosis, style: units.Style = "si") -> str:
    """Returns a document of one of KINDS; figures for persons in the style."""
    if kind == "json":
        return report.dumps(run_report, diagnosis)
    with units.shown_as(style):
        styled = diagnosis if style == "si" else safe_diagnosis(run_report)[0]
        return formats.text_of(kind, run_report, styled)


@dataclass
class Saving:
    """Writer of what is known so far to the file of --json, in SAVING_RATIO of a run's time."""

    output: Output
    clock: Callable[[], float] = time.monotonic
    broken: bool = False
    due: float = 0.0
    """Moment of the clock before which nothing is written."""

    def __call__(self, so_far: Report) -> None:
        path = dict(self.output.files).get("json", STDOUT)
        began = self.clock()
        if path == STDOUT or self.broken or began < self.due:
            return
        if Path(path).exists() and not Path(path).is_file():
            return  # a pipe or a device takes the final report alone
        try:
            run_report = self.output.showable(so_far, command_line.current().line.repeat_command)
            document_file.write(path, report.dumps(run_report, safe_diagnosis(run_report)[0]))
            ended = self.clock()
            self.due = ended + (ended - began) / SAVING_RATIO
        except OSError:
            # Complained of once, when the final report cannot be written either.
            self.broken = True


def write_all(
    run_report: Report,
    diagnosis: Diagnosis,
    output: Output,
    texts: Mapping[str, str] | None = None,
    quietly: bool = False,
) -> bool:
    """Writes all that was asked for; False: something could not be written, which is complained of.

    run_report: as Output.showable() gives it; diagnosis: of that, in the style "si"; texts:
    documents made elsewhere, by kind, and by "" the text for stdout where it holds no document;
    quietly: without complaints of what the system does not let write.
    """
    command_line.current().documents = {}
    keeps = output.keeps and bool(run_report.entries)
    is_recorded = keeps and last_report.keep(text_of("json", run_report, diagnosis))

    def text(kind: str) -> str:
        ready = (texts or {}).get(kind)
        return text_of(kind, run_report, diagnosis, output.units) if ready is None else ready

    files = [(kind, path) for kind, path in output.files if path != STDOUT]
    wrote = [path for kind, path in files if save(f"--{kind}", path, partial(text, kind), quietly)]
    done = len(wrote) == len(files)
    if output.on_stdout is not None or texts:
        on_stdout = output.on_stdout or ""
        return show(lambda: to_stdout(text(on_stdout)), quietly) and done
    return show(lambda: _print(run_report, diagnosis, output, is_recorded, wrote), quietly) and done


def save(option: str, path: str, text: Callable[[], str], quietly: bool = False) -> bool:
    """Writes an option's document; False: it could not be written, which is complained of."""
    kind = option.removeprefix("--")
    it = {"json": "the report", "output": "it"}.get(kind, f"the {kind}")
    try:
        document_file.write(path, text())
    except OSError as error:
        if not quietly:
            exits.complain(f"{option} {path}: {error.strerror}; {it} was not written")
    except Exception as error:
        exits.complain(f"{option} {path}: {exits.exit_of_error(error)[1]}; {it} was not written")
    else:
        return True
    return False


def show(write: Callable[[], object], quietly: bool = False) -> bool:
    """Lets a function write to stdout; False: it could not, which is complained of."""
    try:
        write()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        # rich ends with SystemExit where the reader of our output has gone.
        exits.abandon()
    except OSError as error:
        if not quietly:
            exits.complain(f"stdout: {error.strerror}; the result was not written")
        exits.abandon()
        return False
    except Exception as error:
        exits.complain(f"stdout: {exits.exit_of_error(error)[1]}; the result was not written")
        return False
    return True


def answer(
    format: str, plain: object, words: Callable[[Console], object], style: units.Style = "si"
) -> bool:
    """Writes a command's answer, as JSON or for a person; False: it could not be written."""

    def write() -> None:
        if format == "json":
            to_stdout(json.dumps(plain, indent=1, allow_nan=False) + "\n")
            return
        with units.shown_as(style):
            words(terminal.console())

    return show(write)


def to_stdout(text: str) -> None:
    """Writes a whole document to stdout, in UTF-8 whatever the terminal's encoding is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def _print(
    report: Report, diagnosis: Diagnosis, output: Output, is_recorded: bool, paths: Sequence[str]
) -> None:
    """Writes the result for a person; paths: of the files that were written."""
    if not report.entries and exits.complaints:
        return  # the line on stderr has said why nothing was measured
    with units.shown_as(output.units):
        styled = diagnosis if output.units == "si" else safe_diagnosis(report)[0]
        console = terminal.console()
        if output.quiet:
            terminal.show(console, verdict(report, styled))
            return
        print_report(report, styled, console, output.sections, is_recorded)
        if paths:
            terminal.show(console, (Text(f"Written: {', '.join(map(safe, paths))}."),))


def write_pending(status: str, sentence: str) -> None:
    """Writes the documents that are still owed, without steps, with the sentence as their note.

    One complaint has been made by then: nothing more is said of one that cannot be written.
    """
    pending = command_line.current()
    paths, pending.documents = pending.documents, {}
    if not paths:
        return
    run_report = Report(
        status=status,
        tool={"version": __version__, "python": platform.python_version()},
        started=pending.started_utc,
        elapsed_seconds=time.monotonic() - pending.began_monotonic,
        target={"share": pending.line.share},
        client=None,
        server=None,
        notes=(sentence,),
    )
    output = Output(in_order(paths), redaction=pending.redaction)
    run_report = output.showable(run_report)
    write_all(run_report, safe_diagnosis(run_report)[0], output, quietly=True)


def is_unsure(diagnosis: Diagnosis, only_steps: bool) -> bool:
    """Whether the main copy has no named bottleneck; only_steps: no copy was wanted."""
    if diagnosis.altered or only_steps:
        return bool(diagnosis.altered)
    headline = [each for each in diagnosis.copies if each.copy == diagnosis.headline]
    return not headline or headline[0].verdict.component == "unknown"
