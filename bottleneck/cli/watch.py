"""`bottleneck watch [PID|HOST]`: diagnose a copy that already runs, with no traffic of its own."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from bottleneck.cli import exits, interrupts, options

What = Annotated[
    str | None,
    typer.Argument(
        metavar="[PID|HOST]",
        help="A process that copies, or the host at the other end; default: the busiest SMB "
        "connection of this host.",
    ),
]
Agent = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="SPEC",
        help="The copy's other end: ssh://[user@]host[:port], exec:PREFIX, or none.",
    ),
]
Seconds = Annotated[
    float, typer.Option("--seconds", metavar="N", help="How long to watch; default 10.")
]
LEAST_SECONDS, MOST_SECONDS = 2.0, 3600.0


def watch(
    what: What = None,
    agent: Agent = "none",
    seconds: Seconds = 10.0,
    json: options.Json = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Diagnose a copy that is already running; nothing is sent and nothing is changed."""
    with interrupts.held():
        from bottleneck.analysis import diagnose
        from bottleneck.bench import Event
        from bottleneck.cli import progress, running
        from bottleneck.hosts import command_for
        from bottleneck.watch import NothingRuns, Options, Watch
        from probes.stage import Refused

    output = running.output(json, quiet, verbose)
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise Refused("usage", f"--seconds: from {LEAST_SECONDS:.0f} to {MOST_SECONDS:.0f}")
    if agent != "none":
        command_for(agent)
    pid = int(what) if what is not None and what.isascii() and what.isdigit() else 0
    if what is not None and (not what.strip() or (what.isdigit() and not 0 < pid < 1 << 31)):
        raise Refused("usage", f"{what or '(empty)'}: neither a process's number nor a host")
    wanted = Options(pid, "" if pid or what is None else what, agent, seconds)
    began = time.monotonic()
    with interrupts.held(), progress.watching(quiet) as shown:

        def tell(label: str) -> None:
            shown(Event(label, time.monotonic() - began, seconds + 3.0))

        with Watch(wanted, tell) as session:
            try:
                with interrupts.let_through():
                    session.reach()
            except NothingRuns as nothing:
                exits.complain(str(nothing))
                session.notes.append(str(nothing))
                final = session.report()
                running.written(final, diagnose(final), output)
                return exits.INCOMPLETE
            session.observe(_wait)
        final = session.report()
    diagnosis = diagnose(final)
    if session.interrupted:
        exits.complain("interrupted; this is what was seen until then")
    done = running.written(final, diagnosis, output)
    if session.interrupted:
        return exits.INTERRUPTED
    chosen = diagnosis.chosen
    sure = done and chosen is not None and chosen.verdict.component != "unknown"
    return exits.DONE if sure else exits.INCOMPLETE


def _wait(seconds: float) -> bool:
    """Waits; False: interrupted."""
    try:
        with interrupts.let_through():
            time.sleep(seconds)
    except KeyboardInterrupt:
        return False
    return True
