"""Steps of every measuring command: choose, ask, run with progress, write, exit."""

from __future__ import annotations

import getpass
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bottleneck.agents.bootstrap import command_for
from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli import command_line, completion, documents, exits, interrupts, options, streams
from bottleneck.cli.documents import Output
from bottleneck.cli.progress import Intervals, show_progress
from bottleneck.login import credentials
from bottleneck.login.target import (
    Target,
    make_local,
    parse,
    parse_device,
    parse_file,
    parse_metrics,
    parse_peer,
)
from bottleneck.report.report import Report
from bottleneck.run import plan
from bottleneck.run.execution import Session
from bottleneck.run.log import Event
from bottleneck.text import units
from probes.core.records import DIALECTS, Access
from probes.core.stage import USUAL_BUDGET_SECONDS, Refused
from probes.programs import copy_program
from probes.smb.session import security_of
from probes.system import tools

LEAST_BUDGET_SECONDS, QUICK_SECONDS, THOROUGH_SECONDS = 5.0, 20.0, 300.0
"""Budgets of a run; the usual one is probes.core.stage's."""
LATE_SECONDS = 5.0
"""Seconds after its budget at which a run is stopped and its hosts are closed."""
END_LOADINGS, MOST_LOADING_SECONDS = 3.0, 3.0
"""Time for a stopped run's end (and a demo's server's), in loadings of the program; its limit."""
CLOSING_SECONDS = 1.2
"""Seconds that a stopped run waits for each answer while it closes."""


def budget_seconds(times: options.Time, default: float = USUAL_BUDGET_SECONDS) -> float:
    """Returns the run's time from --budget, --quick or --thorough."""
    quick, thorough = (
        (QUICK_SECONDS if times.quick else None),
        (THOROUGH_SECONDS if times.thorough else None),
    )
    limits = [each for each in (times.budget, quick, thorough) if each is not None]
    if len(limits) > 1:
        raise Refused("usage", "use only one of --budget, --quick and --thorough")
    seconds = limits[0] if limits else default
    if not math.isfinite(seconds) or seconds < LEAST_BUDGET_SECONDS:
        raise Refused("usage", f"--budget: must be at least {LEAST_BUDGET_SECONDS:.0f} seconds")
    return seconds


def choose(
    target: str,
    budget: float,
    ends: options.Ends,
    copies: options.Copies = options.USUAL_COPIES,
    others: options.Others = options.NO_OTHERS,
    disk: options.Disk = options.USUAL_DISK,
    stages: tuple[str, ...] | None = None,
    without_target: bool = False,
) -> plan.Options:
    """Returns the options, checked before anything is reached."""
    pending = command_line.current()
    pending.loading_seconds = time.monotonic() - pending.began_monotonic
    folder, share, dialects = ends.folder, others.client_share, copies.dialects
    dialect_names = tuple(each.strip().lower() for each in dialects.split(",")) if dialects else ()
    for each in dialect_names:
        completion.checked_word("--dialects", each, DIALECTS)
    if ends.agent != "none":
        command_for(ends.agent)
    _check_folder(folder)
    place = parse(target, os.path.isdir)
    if place.path:
        place = make_local(str(Path(place.path).absolute()))
        stages = stages or plan.stages(True, budget)
    if share is not None:
        _check_own_share(share)
    if not 2 <= disk.zones <= plan.MOST_ZONES:
        raise Refused("usage", f"--zones: must be from 2 to {plan.MOST_ZONES}")
    file_target = None if without_target else place
    return plan.Options(
        target=place,
        folder=str(folder.resolve()),
        agent=ends.agent,
        server_folder=ends.server_folder,
        client_share=share,
        dialects=dialect_names,
        size_bytes=_size_bytes(copies.size),
        security=_security(copies, place),
        native_command=_native_command(copies.native_command, place),
        budget_seconds=budget,
        tcp_peer=None if others.tcp_peer is None else parse_peer(others.tcp_peer),
        metrics=None if others.metrics is None else parse_metrics(others.metrics),
        file=None if others.file is None else parse_file(others.file, file_target),
        tree=None if others.tree is None else parse_file(others.tree, place, "--tree"),
        device=None if disk.device is None else parse_device(disk.device),
        zones=disk.zones,
        stages=stages or plan.stages(False, budget),
    )


def _size_bytes(word: str | None) -> int | None:
    try:
        return units.parse_size(word) if word else None
    except ValueError as error:
        raise Refused("usage", f"--size: {error}") from None


def _security(copies: options.Copies, target: Target) -> str:
    words = {"signing": copies.signing or "", "encryption": copies.encryption or ""}
    for name, word in words.items():
        if word:
            completion.checked_word(f"--{name}", word, options.ON_OR_OFF)
        if word and target.path:
            text = f"--{name}: TARGET must be //host/share; a mount has options of its own"
            raise Refused("usage", text)
    return security_of(**words)


def _native_command(command: str | None, target: Target) -> tuple[str, ...]:
    """Returns the words of a command that copies, its program by its path."""
    if command is None:
        return ()
    option = "--native-command"
    if Path(command.partition(" ")[0]).name == "smbclient":
        use = "bottleneck diagnose //host/share --agent SPEC"
        text = f"{option}: smbclient uses no mount; use `{use}`: the server copies with smbclient"
        raise Refused("usage", text)
    if not target.path:
        raise Refused("usage", f"{option}: TARGET must be a folder of a mounted share")
    try:
        words = shlex.split(command)
        copy_program.user_program(words)
    except ValueError as error:
        text = f"{option}: {str(error).lower()}; as in 'rsync -a {{source}} {{target}}'"
        raise Refused("usage", text) from None
    program = tools.find_named(words[0])
    if program is None or not os.access(program, os.X_OK):
        raise Refused("usage", f"{option}: {words[0]}: not found on this host")
    return (str(Path(program).absolute()), *words[1:])


def _check_folder(folder: Path) -> None:
    if not os.path.isdir(folder):  # noqa: PTH112 - where it may not be looked at, it is none
        raise Refused("usage", f"--folder {folder}: not found on this host")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise Refused("permission", f"--folder {folder}: no write permission; use another folder")


def _check_own_share(name: str) -> None:
    try:
        share = parse(name).share
    except Refused as refused:
        raise Refused("usage", f"--client-share: {refused.text}") from None
    if not share:
        raise Refused("usage", f"--client-share {name}: not a share; use //CLIENT/SHARE")


def host_text(tcp_peer: str) -> str:
    """Returns the host of --tcp-peer as TARGET names one: where nothing else is to be reached."""
    host = parse_peer(tcp_peer).host
    return f"[{host}]" if ":" in host else host


def log_in_as(login: options.Login, target: Target) -> Access:
    """Returns who logs in; asks for the password at a terminal. A folder needs nobody."""
    if target.path and not (login.user or login.auth_file or login.allow_guest):
        return Access()
    prompt = getpass.getpass if sys.stdin.isatty() else None
    user = login.user or target.username
    access = credentials.access(user, login.domain, login.auth_file, login.allow_guest, prompt)
    if (hidden := command_line.current().redaction) is not None:
        hidden.learn("user", access.username)
        hidden.learn("domain", access.domain)
    return access


def ask_first(setup: plan.Options, yes: bool) -> None:
    """Asks before test files are written; --yes answers for scripts."""
    if yes:
        return
    size = setup.size_bytes or plan.LARGEST_COPY_BYTES
    place = f"{'in' if setup.target.path else 'on'} {setup.target.name}"
    opens = setup.agent != "none" and setup.client_share is None and "smb-copy" in setup.stages
    share = ", may start a temporary SMB share on this computer" if opens else ""
    tree = setup.tree is not None and setup.tree.side == "client"
    pushes = ", pushes and removes the files of --tree" if tree else ""
    text = (
        f"This writes and removes test files of up to {units.size_text(size)} in {setup.folder} "
        f"and {place}{share}{pushes}, and takes up to {setup.budget_seconds:.0f} s. Continue?"
    )
    ask(text, "writing test files", "written")


def ask(question: str, purpose: str, done: str) -> None:
    """Asks at the terminal. Raises Refused, "usage", for every answer but yes, and where none is.

    purpose: what the answer is for; done: what did not happen without it.
    """
    if not sys.stdin.isatty():
        raise Refused("usage", f"cannot ask before {purpose}: not a terminal; use --yes")
    print(streams.wrapped_text(f"{question} [y/N]"), end=" ", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("usage", f"nothing was {done}")


def run(
    setup: plan.Options,
    access: Access,
    output: Output,
    only_steps: bool = False,
    judge: Callable[[Diagnosis], int] | None = None,
) -> int:
    """Measures, writes what was asked for, and returns the exit code of every ending.

    judge: gives that of a run that measured something, in place of the usual one.
    """
    with interrupts.defer():
        report, diagnosis, code = measure(setup, access, output)
        written = documents.write_all(report, diagnosis, output)
    if judge is not None and code in (exits.DONE, exits.INCOMPLETE):
        code = judge(diagnosis)
    elif report.status != "complete" or documents.is_unsure(diagnosis, only_steps):
        code = code or exits.INCOMPLETE
    return code if written else code or exits.INCOMPLETE


def measure(setup: plan.Options, access: Access, output: Output) -> tuple[Report, Diagnosis, int]:
    """Measures; returns the report as shown, its diagnosis, and the exit code of its ending.

    A failure is complained of. Interrupts must be deferred.
    """
    with event_listener(output) as tell:
        session = Session(setup, access, tell, documents.Saving(output))
        code, sentence = _measure(session)
    if not sentence and session.unclosed:
        sentence = "; ".join(session.unclosed)
        code = code or exits.INCOMPLETE
    if sentence:
        session.log.note(sentence)
        # If the run measured nothing, the plugin's answer is this sentence.
        on_stdout = command_line.current().plugin and not session.log.entries()
        exits.complain(sentence, visible=not on_stdout)
    report, diagnosis, broken = interpret(session.report(), output, bool(sentence))
    return report, diagnosis, code or (exits.INTERNAL if broken else exits.DONE)


def interpret(report: Report, output: Output, complained: bool) -> tuple[Report, Diagnosis, bool]:
    """Returns a run's report as shown, its diagnosis, and whether the analysis broke on it.

    A break is complained of, unless something else was.
    """
    report = output.showable(report, command_line.current().line.repeat_command)
    diagnosis, trouble = documents.safe_diagnosis(report)
    if not trouble:
        return report, diagnosis, False
    if not complained:
        exits.complain(trouble)
    return replace(report, status="failed", notes=(*report.notes, trouble)), diagnosis, True


@contextmanager
def event_listener(output: Output) -> Iterator[Callable[[Event], None]]:
    """Yields a function that takes a session's events, without names where they are hidden."""
    intervals = None
    if output.interval_seconds is not None:
        stream = sys.stderr if output.on_stdout else sys.stdout
        intervals = Intervals(output.interval_seconds, stream)
    with show_progress(output.quiet, output.units, intervals) as tell:
        redaction = output.redaction
        if redaction is None:
            yield tell
            return

        def hidden(event: Event) -> None:
            step, outcome = redaction.text(event.step), redaction.text(event.outcome)
            tell(replace(event, step=step, outcome=outcome))

        yield hidden


def _measure(session: Session) -> tuple[int, str]:
    """Returns exit code of the run and a sentence about its end; the session has its status."""
    late: list[bool] = []
    # Where loading took long, the end of the run takes long, too.
    slow = END_LOADINGS * min(command_line.current().loading_seconds, MOST_LOADING_SECONDS)
    seconds = session.world.options.budget_seconds + LATE_SECONDS - slow
    try:
        with interrupts.let_through(), interrupts.ended_by(seconds, CLOSING_SECONDS) as late:
            session.measure()
    except KeyboardInterrupt:
        pass
    except Exception as error:
        if not interrupts.is_behind(error):
            session.status = "failed"
            code, sentence = exits.exit_of_error(error)
            return code, "; ".join([sentence, *(e for e in session.unclosed if sentence not in e)])
    else:
        return exits.DONE, ""
    if not late:
        session.status = "interrupted"
        remains = "; ".join(session.unclosed)
        return exits.INTERRUPTED, f"interrupted; {remains or 'both hosts were cleaned up'}"
    # It did not end by itself: what it measured holds.
    limit = f"its limit of {session.options.budget_seconds:.0f} s"
    parts = [f"stopped: the run exceeded {limit}", *session.unclosed]
    if len(late) > 1:
        parts.append("test files may remain, remove them later with bottleneck cleanup")
    sentence, nothing = "; ".join(parts), not session.log.entries()
    session.status = "failed" if nothing else "partial"
    if not nothing:
        return exits.INCOMPLETE, sentence
    return exits.UNREACHABLE, f"{session.world.options.target.name}: no answer: {sentence}"
