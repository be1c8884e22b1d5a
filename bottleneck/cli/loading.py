"""Files that a user names as reports, with every way in which they can be none."""

from __future__ import annotations

import glob
import io
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from bottleneck.analysis import steps
from bottleneck.captures import capture, captured_report, packets
from bottleneck.captures.capture import Capture
from bottleneck.estimate import observations, supplied_report
from bottleneck.estimate.observations import Observations
from bottleneck.readers import case, registry
from bottleneck.readers.figure import Figure, NotTold, Output
from bottleneck.records.trend import began
from bottleneck.report import report
from bottleneck.report.report import LIMITS, Report
from bottleneck.text import units
from probes.core.records import SIDES
from probes.core.stage import Refused

STDIN = Path("-")
MOST_LOADED = 32
"""Files of a folder that are read, those changed last."""
QUIET_SECONDS = 2.0
"""Time of reading a capture before its progress is shown."""
BESIDE_STAGES = ("disk", "tcp")
"""Stages of a report that bear upon a captured copy."""
_PATTERN = frozenset("*?[")


@dataclass(frozen=True)
class TypedFigures:
    """Figures of a case that the user gives beside its files."""

    copies: tuple[str, ...] = ()
    """Copies in words: `pull 38MB/s`."""
    link: str | None = None
    rtt: str | None = None
    side: str | None = None
    """Host that the files' figures are of: client, server; None: each file's name tells."""
    tcp: str | None = None
    disk_read: str | None = None
    disk_write: str | None = None
    """Rates in the copies' direction: from the sender's disk to the receiver's."""


def load(file: Path) -> Report:
    """Returns the report in a file, or the one that observations or other tools' figures make.

    Errors: Refused, "usage": it cannot be read, or it is none of them.
    """
    return load_case((str(file),), TypedFigures())


def load_case(names: Sequence[str], typed: TypedFigures) -> Report:
    """Returns the report of one case: of a file as it is, of several and of words all together.

    Errors: Refused, "usage", one line: what cannot be read, or what is asked for.
    """
    today = datetime.now(UTC).date().isoformat()
    parts: list[Observations] = []
    questions: list[str] = []
    captures: list[Capture] = []
    reports: dict[Path, Report] = {}
    for name in names:
        side, path = _split_side(name, typed.side)
        try:
            part = _read(path, side, today)
        except NotTold as question:
            questions.append(f"{path}: {question}".replace("FILE", str(path)))
            continue
        except report.ReportError as error:
            raise Refused("usage", f"{path}: {error}") from None
        except OSError as error:
            raise Refused("usage", f"{path}: {error.strerror}{_in_figures(name)}") from None
        if isinstance(part, Capture):
            captures.append(part)
            continue
        if isinstance(part, Report):
            if len(names) == 1 and typed == TypedFigures():
                return part
            reports[path] = part
            continue
        parts.append(part)
    if questions:
        raise Refused("usage", "; ".join(questions))
    if reports and not captures:
        sentence = "is a report: explain it alone, or beside a packet capture"
        raise Refused("usage", f"{next(iter(reports))} {sentence}")
    try:
        captured = captured_report.report_of(*captures) if captures else None
        senders = {each.sender for each in steps.copies(captured)} if captured else set()
        parts.append(_in_words(typed, today, senders))
        figures = case.joined_case(parts)
        if captured is None:
            return supplied_report.report_of(figures)
        if figures.copy or figures.client or (figures.path and figures.path.rtt):
            raise report.ReportError("copies, links and round trips: the capture itself has these")
        measured = (entry for each in reports.values() for entry in each.entries)
        beside = (entry for entry in measured if entry[0].stage in BESIDE_STAGES)
        entries = (*captured.entries, *supplied_report.entries_of(figures), *beside)
        return replace(captured, entries=entries)
    except (report.ReportError, units.UnitError, packets.CaptureError) as error:
        raise Refused("usage", f"{names[0] if names else 'figures'}: {error}") from None


def _in_figures(name: str) -> str:
    """Returns where a sentence in place of a file belongs; empty: it is none."""
    text = "; give figures with --copy 'pull 38MB/s', or in a file: `bottleneck explain --template`"
    return text if " " in name else ""


def _split_side(name: str, side: str | None) -> tuple[str | None, Path]:
    """Returns the host and the file of `server:fio.json`."""
    prefix, _, rest = name.partition(":")
    return (prefix, Path(rest)) if prefix in SIDES and rest else (side, Path(name))


def _in_words(typed: TypedFigures, date: str, senders: Set[str]) -> Observations:
    """Returns what options tell. Errors: ReportError, UnitError.

    senders: those of captured copies.
    """
    copies = tuple(map(case.copy_of, typed.copies))
    trip = None if typed.rtt is None else units.parse_seconds(typed.rtt)
    figures: list[Figure] = [*copies, observations.Path(trip)]
    senders = senders | set(map(_sender, copies))
    rates = (("tcp", typed.tcp), ("read", typed.disk_read), ("write", typed.disk_write))
    entries = [(kind, units.parse_rate(text)) for kind, text in rates if text]
    if entries and len(senders) != 1:
        raise report.ReportError(
            "--tcp, --disk-read, --disk-write: use them with one copy (--copy)"
        )
    for kind, rate in entries:
        (sender,) = senders
        side = steps.other(sender) if kind == "write" else sender
        figures.append(
            observations.Tcp(side, rate) if kind == "tcp" else observations.Disk(side, kind, rate)
        )
    words = case.case_of_figures(figures, date)
    host = None if typed.link is None else observations.Host(link=units.parse_rate(typed.link))
    return replace(words, client=host, server=host)


def _sender(copy: observations.Copy) -> str:
    initiator = "server" if copy.copy.startswith("server.") else "client"
    return steps.sender(copy.copy.removeprefix("server.").partition(".")[0], initiator)


def _read(file: Path, side: str | None, date: str) -> Report | Observations | Capture:
    """Returns what a file holds. Errors: ReportError, NotTold, OSError."""
    is_piped = file == STDIN
    if (captured := _captured(file)) is not None:
        return captured
    content = sys.stdin.buffer.read(LIMITS.content_bytes + 1) if is_piped else report.read(file)
    if not content:
        raise report.ReportError("empty")
    text = registry.text_of(content)
    if content.startswith(registry.UTF16):
        content = text.encode()
    if observations.is_toml(content):
        return observations.loads(content, None, date)
    if content.startswith(b"# ") and b"copy-bottleneck/ticket/" in content:
        raise report.ReportError("a ticket, which is for persons; give the .json file of its run")
    if registry.reader_of(text) is not None:
        return case.case_of_figures(registry.figures(Output(text, side)), date)
    if not text.lstrip().startswith("{"):
        return observations.loads(content, None, date)
    document = report.document(content)
    if observations.is_observations(document):
        return observations.loads(content, document, date)
    if "schema" not in document:
        keys = ", ".join(list(document)[:4])
        raise report.ReportError(f"JSON of another program (keys: {keys[:80]}); {registry.KNOWN}")
    return report.from_elsewhere(document)


def _captured(file: Path) -> Capture | None:
    """Returns the contents of a packet capture; None: the file is none. Errors: ReportError."""
    with ExitStack() as stack:
        content = cast("io.BufferedReader", sys.stdin.buffer)
        if file != STDIN:
            if not file.is_file():
                return None
            content = stack.enter_context(file.open("rb"))
        if not packets.is_capture(content.peek(4)):
            return None
        reading = Reading(file, content)
        stack.callback(reading.clear)
        try:
            return capture.read(content, reading)
        except packets.CaptureError as error:
            raise report.ReportError(str(error)) from None


class Reading:
    """Progress of reading a long file, on stderr if that is a terminal."""

    def __init__(self, file: Path, content: BinaryIO) -> None:
        self._size = file.stat().st_size if file != STDIN else 0
        self._content, self._begun = content, time.monotonic()
        self._is_shown = False

    def __call__(self) -> None:
        if self._size and sys.stderr.isatty() and time.monotonic() - self._begun > QUIET_SECONDS:
            share = min(1.0, self._content.tell() / self._size)
            print(f"\rreading the capture: {share:.0%}", end="", file=sys.stderr, flush=True)
            self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            print(end="\r\x1b[K", file=sys.stderr, flush=True)


def target_rate(text: str | None) -> float | None:
    """Returns bytes per second of --target-rate; None: it was not given.

    Errors: Refused, "usage": it is no rate.
    """
    try:
        rate = None if text is None else units.parse_rate(text)
    except units.UnitError as error:
        raise Refused("usage", f"--target-rate: {error}") from None
    if rate is not None and rate < 1:
        raise Refused("usage", f"--target-rate {(text or '')[:40]!r}: must be at least 1 byte/s")
    return rate


def newest(name: str) -> Report:
    """Returns the report in a file; of a folder (its *.json) or a pattern the one that began last.

    Errors: Refused, "usage": there is none, or the file is no report.
    """
    # One by one: a folder of the largest ones that are read would not fit into memory.
    return max(each_of(name), key=began)


def each_of(name: str, skipped: list[str] | None = None) -> Iterator[Report]:
    """Yields the report in a file; of a folder (its *.json) or a pattern the files changed last.

    skipped: gets a line for each file of a folder that cannot be read as a report.
    Errors: Refused, "usage": there is none, or the file is no report.
    """
    path = Path(name)
    if path.is_dir():
        files = [each for each in path.glob("*.json") if each.is_file()]
    elif _PATTERN & set(name) and not path.exists():
        files = [Path(each) for each in glob.glob(name)]  # noqa: PTH207 - absolute ones too
    else:
        yield load(path)
        return
    none = True
    ordered = sorted(files, key=_changed_time, reverse=True)
    if skipped is not None and len(ordered) > MOST_LOADED:
        skipped.append(f"{name}: {len(ordered)} files, the {MOST_LOADED} changed last are read")
    for each in ordered[:MOST_LOADED]:
        try:
            report = load(each)
        except Refused as refused:
            # A judgement, a baseline of another form: a folder may hold other documents.
            if skipped is not None:
                skipped.append(f"skipped: {refused.text}")
            continue
        none = False
        yield report
    if none:
        raise Refused("usage", f"{name}: no report found")


def age_seconds(report: Report) -> float:
    """Returns seconds since a run began; below 0 where that lies ahead by this host's clock."""
    return (datetime.now(UTC) - began(report)).total_seconds()


def _changed_time(path: Path) -> float:
    """Returns the time of the last change; the earliest of all where the file has gone."""
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - whatever the pattern gave
    except OSError:
        return -math.inf
