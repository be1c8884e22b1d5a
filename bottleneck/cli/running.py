"""What every measuring command does: choose, ask, run with progress, write, exit."""

from __future__ import annotations

import getpass
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bottleneck import credentials, plan
from bottleneck.analysis.finding import Diagnosis
from bottleneck.bench import Bench, Event
from bottleneck.cli import debt, documents, exits, interrupts
from bottleneck.cli.documents import Output
from bottleneck.cli.progress import watching
from bottleneck.hosts import command_for
from bottleneck.named import parse_device, parse_file
from bottleneck.report import Report
from bottleneck.reports import units
from bottleneck.session import measure
from bottleneck.target import Target, of_folder, parse
from bottleneck.tcp_peer import parse as parse_peer
from probes.records import DIALECTS, Access
from probes.stage import Refused

LEAST_BUDGET_SECONDS = 5.0


def budget_seconds(
    budget: float | None, quick: bool, thorough: bool, default: float = 60.0
) -> float:
    """The run's time from --budget, --quick or --thorough."""
    named = (budget, 20.0 if quick else None, 300.0 if thorough else None)
    told = [each for each in named if each is not None]
    if len(told) > 1:
        raise Refused("usage", "--budget, --quick and --thorough exclude each other")
    seconds = told[0] if told else default
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
    client_share: str | None = None,
    tcp_peer: str | None = None,
    file: str | None = None,
    device: str | None = None,
    zones: int = plan.USUAL_ZONES,
    without_target: bool = False,
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
    if not os.path.isdir(folder):  # noqa: PTH112 - where it may not be looked at, it is none
        raise Refused("usage", f"--folder {folder}: there is no such folder on this host")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise Refused("permission", f"--folder {folder}: no right to write there; choose another")
    named = parse(target, os.path.isdir)
    if named.path:
        named = of_folder(str(Path(named.path).absolute()))
        stages = stages or plan.stages(plan.FOLDER_STAGES, budget)
    if client_share is not None:
        try:
            share = parse(client_share).share
        except Refused as refused:
            raise Refused("usage", f"--client-share: {refused.text}") from None
        if not share:
            raise Refused("usage", f"--client-share {client_share}: write //CLIENT/SHARE")
    if not 2 <= zones <= plan.MOST_ZONES:
        raise Refused("usage", f"--zones: from 2 to {plan.MOST_ZONES}")
    made = plan.Options(
        target=named,
        folder=str(folder.resolve()),
        agent=agent,
        server_folder=server_folder,
        client_share=client_share,
        dialects=wanted,
        size_bytes=size_bytes,
        budget_seconds=budget,
        tcp_peer=parse_peer(tcp_peer) if tcp_peer is not None else None,
        file=None if file is None else parse_file(file, None if without_target else named),
        device=None if device is None else parse_device(device),
        zones=zones,
    )
    return replace(made, stages=stages or plan.stages(plan.SHARE_STAGES, budget))


def host_text(tcp_peer: str) -> str:
    """The host of --tcp-peer as TARGET names one: where nothing else is to be reached."""
    host = parse_peer(tcp_peer).host
    return f"[{host}]" if ":" in host else host


def log_in_as(
    user: str | None,
    domain: str | None,
    auth_file: Path | None,
    allow_guest: bool,
    where: Target,
) -> Access:
    """Who logs in; asks for the password where a terminal is there. A folder needs nobody."""
    if where.path and not (user or auth_file or allow_guest):
        return Access()
    prompt = getpass.getpass if sys.stdin.isatty() else None
    return credentials.access(user or where.username, domain, auth_file, allow_guest, prompt)


def ask_first(chosen: plan.Options, yes: bool) -> None:
    """Asks before test files are written; --yes answers for scripts."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Refused("usage", "test files will be written and nobody can be asked: give --yes")
    size = chosen.size_bytes or plan.LARGEST_COPY_BYTES
    there = f"{'in' if chosen.target.path else 'on'} {chosen.target.name}"
    opens = chosen.agent != "none" and chosen.client_share is None and "smb-copy" in chosen.stages
    share = ", may open a share here for the server alone" if opens else ""
    text = (
        f"Writes and removes test files of up to {units.size_text(size)} in {chosen.folder} "
        f"and {there}{share}, {chosen.budget_seconds:.0f} s. Go on? [y/N] "
    )
    print(text, end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("usage", "nothing was written")


def run(chosen: plan.Options, access: Access, output: Output, only_steps: bool = False) -> int:
    """Measures, writes what was asked for, and tells the exit code of every ending."""
    with interrupts.held():
        known, diagnosis, code = measured(chosen, access, output)
        if not documents.written(known, diagnosis, output):
            code = code or exits.INCOMPLETE
    if code == exits.DONE and (known.status != "complete" or _unsure(diagnosis, only_steps)):
        code = exits.INCOMPLETE
    return code


def measured(chosen: plan.Options, access: Access, output: Output) -> tuple[Report, Diagnosis, int]:
    """Measures; the report as it may be shown, what it means, and the exit code of its ending.

    What ended it is complained of. Interrupts must be held.
    """
    with telling(output) as tell:
        bench = Bench(chosen, access, tell, documents.Saving(output))
        code, sentence = _measure(bench)
    if not sentence and bench.unclosed:
        sentence = "; ".join(bench.unclosed)
        code = code or exits.INCOMPLETE
    if sentence:
        bench.note(sentence)
        exits.complain(sentence)
    known = output.showable(bench.report(), debt.owed.command)
    diagnosis, trouble = documents.diagnosed(known)
    if trouble:
        if not sentence:
            exits.complain(trouble)
        code = code or exits.INTERNAL
        known = replace(known, status="failed", notes=(*known.notes, trouble))
    return known, diagnosis, code


@contextmanager
def telling(output: Output) -> Iterator[Callable[[Event], None]]:
    """Yields where a session tells its events, without names where none are to be shown."""
    with watching(output.quiet, output.units) as tell:
        redaction = output.redaction
        if redaction is None:
            yield tell
            return

        def hidden(event: Event) -> None:
            step, outcome = redaction.text(event.step), redaction.text(event.outcome)
            tell(replace(event, step=step, outcome=outcome))

        yield hidden


def _measure(bench: Bench) -> tuple[int, str]:
    """Exit code of the run, and what is to be said about its end; the bench has its status."""
    try:
        with interrupts.let_through():
            measure(bench)
    except KeyboardInterrupt:
        return _interrupted(bench)
    except Exception as error:
        if interrupts.is_behind(error):
            return _interrupted(bench)
        bench.status = "failed"
        return exits.of_error(error)
    return exits.DONE, ""


def _interrupted(bench: Bench) -> tuple[int, str]:
    bench.status = "interrupted"
    left = "; ".join(bench.unclosed)
    return exits.INTERRUPTED, f"interrupted; {left or 'both hosts were cleaned up'}"


def _unsure(diagnosis: Diagnosis, only_steps: bool) -> bool:
    if diagnosis.altered or only_steps:
        return bool(diagnosis.altered)
    headline = [each for each in diagnosis.copies if each.copy == diagnosis.headline]
    return not headline or headline[0].verdict.component == "unknown"
