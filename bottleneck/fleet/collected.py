"""The reports of a folder as the pairs that they are of; what is no report is told and skipped."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bottleneck.analysis import steps
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis, Words
from bottleneck.fleet.records import Pair, Seen
from bottleneck.records.redaction.texts import is_token
from bottleneck.report import report
from bottleneck.report.report import Report, ReportError
from bottleneck.target import target
from probes.core.records import OWN_COPIES, SMB_PORT
from probes.core.stage import Refused

PAIR_NAME = re.compile(r"([^@]+)@([^@]+?)(?:\.run\d+)?\.json")
"""CLIENT@SERVER.json, and .run2.json for a further one: who collects reports knows the names."""
MOST_REPORTS = 100_000
AT_ONCE = ".together"
"""At the end of the name of a report that was made while others copied: no pair is judged by it."""
_AT_ONCE_NAME = re.compile(rf".+@.+{re.escape(AT_ONCE)}(?:\.run\d+)?\.json")


@dataclass
class Collected:
    """What the reports of a fleet hold."""

    seen: dict[str, list[Seen]] = field(default_factory=dict)
    """By the name of the copy."""
    made: Counter[Pair] = field(default_factory=Counter)
    """Reports of each pair, also of those without a rate."""
    missing: dict[Pair, str] = field(default_factory=dict)
    """Pairs without any rate, and why."""
    refused: set[Pair] = field(default_factory=set)
    """Pairs whose login was refused."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Files that are no report of a pair, and why."""
    unread: dict[str, str] = field(default_factory=dict)
    """Files and folders that may hold a pair's report and cannot be read, and why."""
    kept: dict[Pair, tuple[Path, float]] = field(default_factory=dict)
    """Of the pairs of this run: where the report is, and when it came, by this host's clock."""
    at_once: Collected | None = None
    """What was made while all clients copied at the same time."""

    def read(self, file: Path, pair: Pair | None = None) -> None:
        """Takes over what a file says; one that is no report of a pair is skipped.

        pair: None: the one that its name or the report says.
        """
        try:
            known = report.load(file)
            self.add(pair or pair_of(file.name, known), known)
        except (ReportError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.skipped[file.name] = f"{why}; skipped"
            if named := pair or _named_pair(file.name):
                self.missing.setdefault(named, f"its report cannot be read: {why}")
            elif not isinstance(error, report.OtherDocument | IsADirectoryError):
                self.unread[file.name] = f"cannot be read: {why}"

    def add(self, pair: Pair, known: Report) -> None:
        """Takes over what a report says of its pair."""
        self.made[pair] += 1
        try:
            found = diagnose(known)
        except Exception as error:
            # A strange report costs its own pair alone.
            self.missing[pair] = f"cannot be diagnosed: {type(error).__name__}"
            return
        copies = list(_copies(found))
        for copy in copies:
            self.seen.setdefault(copy.copy, []).append(_seen(pair, copy, found))
        if copies:
            self.missing.pop(pair, None)
            return
        for each in steps.copies(known):
            if each.name in OWN_COPIES and each.memory is not None:
                limit = Seen(pair, each.memory.rate.median, at_most=True)
                self.seen.setdefault(each.name, []).append(limit)
        every = (each for many in self.seen.values() for each in many)
        if not any(each.pair == pair and not each.at_most for each in every):
            told = [*(each.verdict.sentence for each in found.copies), *known.notes]
            self.missing[pair] = told[0] if told else f"no copy ({known.status})"

    def rename(self, names: Mapping[Pair, Pair], text: Callable[[str], str]) -> None:
        """Has other names stand for the pairs; text: what a sentence becomes."""
        for copy, many in self.seen.items():
            self.seen[copy] = [replace(each, pair=names[each.pair]) for each in many]
        self.made = Counter({names[pair]: count for pair, count in self.made.items()})
        self.refused = {names[pair] for pair in self.refused}
        self.missing = {names[pair]: text(why) for pair, why in self.missing.items()}
        self.kept = {names[pair]: told for pair, told in self.kept.items()}
        if self.at_once is not None:
            self.at_once.rename(names, text)
        self.skipped = {f"file {at}": w for at, w in enumerate(self.skipped.values(), 1)}
        self.unread = {f"file {at}": w for at, w in enumerate(self.unread.values(), 1)}

    def reported(self) -> set[Pair]:
        """Pairs of which there is a rate, or an upper limit."""
        return {each.pair for many in self.seen.values() for each in many}


def collect(folder: Path) -> Collected:
    """All reports of a folder and those below it: *.json, in the order of their names.

    Errors: OSError where it cannot be listed.
    """
    found = Collected()
    if not folder.is_dir():
        raise NotADirectoryError(20, "not a directory")
    files = sorted(
        file
        for file in _json_files(folder, found)
        if not file.name.startswith(".") and not _AT_ONCE_NAME.fullmatch(file.name)
    )
    for file in files[:MOST_REPORTS]:
        found.read(file)
    if len(files) > MOST_REPORTS:
        found.skipped["..."] = f"{len(files) - MOST_REPORTS} more files; skipped"
        found.unread["..."] = f"{len(files) - MOST_REPORTS} more files"
    return found


def _json_files(folder: Path, found: Collected) -> Iterator[Path]:
    """Yields *.json of a folder and those below it; one that cannot be listed is unread."""

    def note(error: OSError) -> None:
        name, why = Path(str(error.filename)).name, f"cannot be listed: {error.strerror}"
        found.unread[name], found.skipped[name] = why, f"{why}; skipped"

    for at, folders, names in os.walk(folder, onerror=note):
        folders[:] = [each for each in folders if not each.startswith(".") and each != "lost+found"]
        yield from (Path(at, name) for name in (*folders, *names) if name.endswith(".json"))


def pair_of(name: str, known: Report) -> Pair:
    """The pair that a report is of: as its file is named, else as it says itself.

    Errors: ReportError: the names are replaced or missing.
    """
    if named := _named_pair(name):
        return named
    client = known.client.name if known.client else ""
    server = server_of(known.target.get("share"))
    if is_token(client) or is_token(server):
        raise ReportError("its names are redacted; name the file CLIENT@SERVER.json")
    if not client or not server:
        raise ReportError("no client or server in it; name the file CLIENT@SERVER.json")
    return Pair(client, server)


def _named_pair(name: str) -> Pair | None:
    """Returns the pair that a file's name has."""
    named = PAIR_NAME.fullmatch(name)
    return Pair(named[1], named[2]) if named else None


def server_of(share: object) -> str:
    """The server in a share's name, with its port if that is not SMB's; empty: there is none."""
    try:
        named = target.parse(str(share))
    except Refused:
        return ""
    return named.host and named.host + (f":{named.port}" * (named.port != SMB_PORT))


def _copies(found: Diagnosis) -> Iterator[CopyDiagnosis]:
    """The user's four copies, each in the dialect that comes first."""
    seen: set[str] = set()
    for each in found.copies:
        if each.copy in OWN_COPIES and each.copy not in seen and each.bytes_per_second:
            seen.add(each.copy)
            yield each


def _seen(pair: Pair, copy: CopyDiagnosis, found: Diagnosis) -> Seen:
    verdict = copy.verdict
    named = verdict.component not in ("unknown", "instrument")
    rate = copy.bytes_per_second or 0.0
    return Seen(
        pair,
        rate,
        Words(*verdict.named) if named else None,
        verdict.confidence if named else 0.0,
        healthy=bool(found.healthy),
    )
