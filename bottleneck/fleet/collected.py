"""Collects the reports of a folder by pair; other files are skipped and reported."""

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
from bottleneck.fleet.records import Pair, Rate
from bottleneck.login import target
from bottleneck.records.redaction.texts import is_token
from bottleneck.report import report
from bottleneck.report.report import Report, ReportError
from probes.core.records import OWN_COPIES, SMB_PORT
from probes.core.stage import Refused

PAIR_NAME = re.compile(r"([^@]+)@([^@]+?)(?:\.run\d+)?\.json")
"""File names of a pair: CLIENT@SERVER.json, and .run2.json for a repetition."""
MOST_REPORTS = 100_000
AT_ONCE = ".together"
"""Ending of the name of a report made while other clients copied, which judges no pair."""
_AT_ONCE_NAME = re.compile(rf".+@.+{re.escape(AT_ONCE)}(?:\.run\d+)?\.json")


@dataclass
class FleetRates:
    """Contents of a fleet's reports."""

    rates: dict[str, list[Rate]] = field(default_factory=dict)
    """Rates by name of the copy."""
    tests: Counter[Pair] = field(default_factory=Counter)
    """Number of reports of each pair, those without a rate included."""
    missing: dict[Pair, str] = field(default_factory=dict)
    """Pairs without any rate, with the reason."""
    refused: set[Pair] = field(default_factory=set)
    """Pairs whose login was refused."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Files that are no report of a pair, with the reason."""
    unread: dict[str, str] = field(default_factory=dict)
    """Files and folders that may hold a pair's report and cannot be read, with the reason."""
    report_files: dict[Pair, tuple[Path, float]] = field(default_factory=dict)
    """Path of each pair's report of this run, and the time of its arrival by this host's clock."""
    at_once: FleetRates | None = None
    """Reports of copies that all clients made at the same time."""

    def read(self, file: Path, pair: Pair | None = None) -> None:
        """Adds the report in a file; a file that is no report of a pair is skipped.

        pair: None: taken from the file's name or the report.
        """
        try:
            loaded = report.load(file)
            self.add(pair or pair_of(file.name, loaded), loaded)
        except (ReportError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.skipped[file.name] = f"{why}; skipped"
            if pair_in_name := pair or _named_pair(file.name):
                self.missing.setdefault(pair_in_name, f"its report cannot be read: {why}")
            elif not isinstance(error, report.OtherDocument | IsADirectoryError):
                self.unread[file.name] = f"cannot be read: {why}"

    def add(self, pair: Pair, loaded: Report) -> None:
        self.tests[pair] += 1
        try:
            diagnosis = diagnose(loaded)
        except Exception as error:
            # A malformed report costs only its own pair.
            self.missing[pair] = f"cannot be diagnosed: {type(error).__name__}"
            return
        copies = list(_copies(diagnosis))
        for copy in copies:
            self.rates.setdefault(copy.copy, []).append(_rate_of(pair, copy, diagnosis))
        if copies:
            self.missing.pop(pair, None)
            return
        for each in steps.copies(loaded):
            if each.name in OWN_COPIES and each.memory is not None:
                limit = Rate(pair, each.memory.rate.median, at_most=True)
                self.rates.setdefault(each.name, []).append(limit)
        every = (each for many in self.rates.values() for each in many)
        if not any(each.pair == pair and not each.at_most for each in every):
            sentences = [*(each.verdict.sentence for each in diagnosis.copies), *loaded.notes]
            self.missing[pair] = sentences[0] if sentences else f"no copy ({loaded.status})"

    def rename(self, names: Mapping[Pair, Pair], text: Callable[[str], str]) -> None:
        """Replaces the names of the pairs; text: redacts a sentence."""
        for copy, many in self.rates.items():
            self.rates[copy] = [replace(each, pair=names[each.pair]) for each in many]
        self.tests = Counter({names[pair]: count for pair, count in self.tests.items()})
        self.refused = {names[pair] for pair in self.refused}
        self.missing = {names[pair]: text(why) for pair, why in self.missing.items()}
        self.report_files = {names[pair]: entry for pair, entry in self.report_files.items()}
        if self.at_once is not None:
            self.at_once.rename(names, text)
        self.skipped = {f"file {index}": w for index, w in enumerate(self.skipped.values(), 1)}
        self.unread = {f"file {index}": w for index, w in enumerate(self.unread.values(), 1)}

    def pairs(self) -> set[Pair]:
        """Returns the pairs that have a rate, or an upper limit."""
        return {each.pair for many in self.rates.values() for each in many}


def collect(folder: Path) -> FleetRates:
    """Collects all reports in and below a folder: *.json, in the order of their names.

    Errors: OSError: the folder cannot be listed.
    """
    collected = FleetRates()
    if not folder.is_dir():
        raise NotADirectoryError(20, "not a directory")
    files = sorted(
        file
        for file in _json_files(folder, collected)
        if not file.name.startswith(".") and not _AT_ONCE_NAME.fullmatch(file.name)
    )
    for file in files[:MOST_REPORTS]:
        collected.read(file)
    if len(files) > MOST_REPORTS:
        collected.skipped["..."] = f"{len(files) - MOST_REPORTS} more files; skipped"
        collected.unread["..."] = f"{len(files) - MOST_REPORTS} more files"
    return collected


def _json_files(folder: Path, collected: FleetRates) -> Iterator[Path]:
    """Yields *.json in and below a folder; a folder that cannot be listed is added to unread."""

    def note(error: OSError) -> None:
        name, why = Path(str(error.filename)).name, f"cannot be listed: {error.strerror}"
        collected.unread[name], collected.skipped[name] = why, f"{why}; skipped"

    for path, folders, names in os.walk(folder, onerror=note):
        folders[:] = [each for each in folders if not each.startswith(".") and each != "lost+found"]
        yield from (Path(path, name) for name in (*folders, *names) if name.endswith(".json"))


def pair_of(name: str, loaded: Report) -> Pair:
    """Returns the pair of a report, by its file's name, else by its content.

    Errors: ReportError: the names are redacted or missing.
    """
    if pair := _named_pair(name):
        return pair
    client = loaded.client.name if loaded.client else ""
    server = server_of(loaded.target.get("share"))
    if is_token(client) or is_token(server):
        raise ReportError("its names are redacted; name the file CLIENT@SERVER.json")
    if not client or not server:
        raise ReportError("no client or server in it; name the file CLIENT@SERVER.json")
    return Pair(client, server)


def _named_pair(name: str) -> Pair | None:
    """Returns the pair in a file's name; None: there is none."""
    match = PAIR_NAME.fullmatch(name)
    return Pair(match[1], match[2]) if match else None


def server_of(share: object) -> str:
    """Returns the server in a share's name, with any port but SMB's; empty: there is none."""
    try:
        parsed = target.parse(str(share))
    except Refused:
        return ""
    return parsed.host and parsed.host + (f":{parsed.port}" * (parsed.port != SMB_PORT))


def _copies(diagnosis: Diagnosis) -> Iterator[CopyDiagnosis]:
    """Yields the user's four copies, each in the first dialect."""
    names: set[str] = set()
    for each in diagnosis.copies:
        if each.copy in OWN_COPIES and each.copy not in names and each.bytes_per_second:
            names.add(each.copy)
            yield each


def _rate_of(pair: Pair, copy: CopyDiagnosis, diagnosis: Diagnosis) -> Rate:
    verdict = copy.verdict
    has_cap = verdict.component not in ("unknown", "instrument")
    return Rate(
        pair,
        copy.bytes_per_second or 0.0,
        Words(*verdict.key) if has_cap else None,
        verdict.confidence if has_cap else 0.0,
        healthy=bool(diagnosis.healthy),
    )
