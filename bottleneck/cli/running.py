"""What every measuring command does: choose, ask, run with progress, write, exit."""

from __future__ import annotations

import getpass
import json
import math
import os
import shutil
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from bottleneck import credentials, plan, report
from bottleneck.analysis import diagnose
from bottleneck.analysis.finding import Diagnosis
from bottleneck.bench import Bench
from bottleneck.cli import exits
from bottleneck.cli.progress import watching
from bottleneck.hosts import AgentLost, command_for
from bottleneck.report import Report
from bottleneck.reports import units
from bottleneck.reports.console import print_report
from bottleneck.reports.safe import safe
from bottleneck.session import measure
from bottleneck.target import Target, parse
from probes.records import Access
from probes.stage import Refused

DIALECTS = ("smb1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1")
LEAST_BUDGET_SECONDS = 5.0
LONGEST_SUMMARY = 2000


@dataclass(frozen=True)
class Output:
    """Where the result goes."""

    json: str | None
    quiet: bool
    verbose: bool


def budget_seconds(budget: float | None, quick: bool, thorough: bool) -> float:
    """The run's time from --budget, --quick or --thorough."""
    told = [each for each in (budget, 20.0 if quick else None, 300.0 if thorough else None) if each]
    if len(told) > 1:
        raise Refused("usage", "--budget, --quick and --thorough exclude each other")
    seconds = told[0] if told else 60.0
    if not math.isfinite(seconds) or seconds < LEAST_BUDGET_SECONDS:
        raise Refused("usage", f"--budget: at least {LEAST_BUDGET_SECONDS:.0f} seconds are needed")
    return seconds


def choose(
    target: str,
    folder: Path,
    agent: str,
    server_folder: str | None,
    dialects: str | None,
    size: str | None,
    budget: float,
    stages: tuple[str, ...] | None = None,
) -> plan.Options:
    """The options, checked before anything is reached."""
    wanted = tuple(each.strip().lower() for each in dialects.split(",")) if dialects else ()
    for each in wanted:
        if each not in DIALECTS:
            raise Refused("usage", f"--dialects: {each!r} is none of {', '.join(DIALECTS)}")
    try:
        size_bytes = units.parse_size(size) if size else None
    except ValueError as error:
        raise Refused("usage", f"--size: {error}") from None
    if agent != "none":
        command_for(agent)
    if not folder.is_dir():
        raise Refused("usage", f"--folder {folder}: there is no such folder on this host")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise Refused("permission", f"--folder {folder}: no right to write there; choose another")
    made = plan.Options(
        target=parse(target),
        folder=str(folder.resolve()),
        agent=agent,
        server_folder=server_folder,
        dialects=wanted,
        size_bytes=size_bytes,
        budget_seconds=budget,
    )
    return replace(made, stages=stages) if stages else made


def log_in_as(
    user: str | None,
    domain: str | None,
    auth_file: Path | None,
    allow_guest: bool,
    where: Target,
) -> Access:
    """Who logs in; asks for the password where a terminal is there."""
    prompt = getpass.getpass if sys.stdin.isatty() else None
    return credentials.access(user or where.username, domain, auth_file, allow_guest, prompt)


def ask_first(chosen: plan.Options, yes: bool) -> None:
    """Asks before test files are written; --yes answers for scripts."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused("usage", "test files will be written and nobody can be asked: give --yes")
    size = chosen.size_bytes or plan.LARGEST_COPY_BYTES
    text = (
        f"Writes and removes test files of up to {units.size_text(size)} in {chosen.folder} "
        f"and on {chosen.target.name}, {chosen.budget_seconds:.0f} s. Go on? [y/N] "
    )
    print(text, end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("usage", "nothing was written")


def run(chosen: plan.Options, access: Access, output: Output, only_steps: bool = False) -> int:
    """Measures, writes what was asked for, and tells the exit code of every ending."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _interrupt)
    with watching(output.quiet) as tell:
        bench = Bench(chosen, access, tell, lambda so_far: _save(so_far, output))
        code = _measure(bench)
    final = bench.report()
    diagnosis = diagnose(final)
    write(final, diagnosis, output)
    if code == exits.DONE and (final.status != "complete" or _unsure(diagnosis, only_steps)):
        code = exits.INCOMPLETE
    return code


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _measure(bench: Bench) -> int:
    try:
        measure(bench)
    except KeyboardInterrupt:
        bench.status = "interrupted"
        exits.complain("interrupted; both hosts were cleaned up")
        return exits.INTERRUPTED
    except Refused as error:
        bench.status = "failed"
        bench.note(error.text)
        exits.complain(error.text)
        return exits.OF_REFUSAL[error.kind]
    except AgentLost as error:
        bench.status = "failed"
        bench.note(str(error))
        exits.complain(str(error))
        return exits.UNREACHABLE
    return exits.DONE


def _unsure(diagnosis: Diagnosis, only_steps: bool) -> bool:
    if only_steps:
        return False
    headline = [each for each in diagnosis.copies if each.copy == diagnosis.headline]
    return not headline or headline[0].verdict.component == "unknown"


def _save(so_far: Report, output: Output) -> None:
    if output.json and output.json != "-":
        report.save(so_far, diagnose(so_far), Path(output.json))


def write(final: Report, diagnosis: Diagnosis, output: Output) -> None:
    """The documents that were asked for, and the console unless stdout holds one of them."""
    if output.json == "-":
        document: dict[str, Any] = report.to_json(final, diagnosis)
        json.dump(document, sys.stdout, indent=1, allow_nan=False)
        print()
        return
    if output.json:
        report.save(final, diagnosis, Path(output.json))
    if not final.entries:
        # Nothing was measured: the line on stderr has said why.
        return
    # Width of a pipe is nobody's wish: what a reader of a log can take.
    width = None if sys.stdout.isatty() else shutil.get_terminal_size((100, 24)).columns
    if output.quiet:
        summary = safe(diagnosis.summary, LONGEST_SUMMARY)
        encoding = sys.stdout.encoding or "ascii"
        print(summary.encode(encoding, "backslashreplace").decode(encoding))
        return
    print_report(final, diagnosis, Console(width=width, highlight=False), output.verbose)
