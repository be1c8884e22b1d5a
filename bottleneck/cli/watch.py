"""`bottleneck watch [PID|HOST]`: diagnose a copy that already runs, with no traffic of its own."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated

import typer

from bottleneck.cli import exits, interrupts, options

if TYPE_CHECKING:
    from bottleneck.run.watch import Watch
    from bottleneck.text.units import Style

What = Annotated[
    str | None,
    typer.Argument(
        metavar="[PID|HOST]",
        help="Process ID of the copy (its children are included), or the host at the other end "
        "[default: the busiest SMB connection of this host].",
    ),
]
LONGEST_NAMED = 40
LEAST_SECONDS, MOST_SECONDS = 2.0, 3600.0


@options.group("Watching")
class Watching:
    agent: str = options.value(
        "SPEC",
        "Observe the other host too, through ssh://[user@]host[:port] or exec:COMMAND.",
        "none",
    )
    seconds: float | None = options.value(
        "SECONDS", "Time to observe the copy.", usual="10; with --live until a key or Ctrl-C"
    )
    live: bool = options.flag(
        "Show all running copies of this host, redrawn each second: rate, and where the time goes."
    )


def watch(
    what: What = None, *, watching: Watching, outputs: options.Documents, screen: options.Screen
) -> int:
    """Diagnose a copy that is already running (passive).

    Works with any program, such as cp, rsync, smbclient or an SMB client of the system. Reads
    counters of the system; sends no test data and changes nothing. Without root, your
    own processes are seen in full, of others (as smbd on the server) only the connections.
    """
    with interrupts.defer():
        from bottleneck.agents.bootstrap import command_for
        from bottleneck.cli import documents, measuring
        from bottleneck.run.log import Event
        from bottleneck.run.watch import Options, Watch
        from probes.core.stage import Refused

    agent, seconds = watching.agent, 10.0 if watching.seconds is None else watching.seconds
    output = documents.output(documents.add_report(outputs), screen)
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise Refused("usage", f"--seconds: must be from {LEAST_SECONDS:.0f} to {MOST_SECONDS:.0f}")
    if agent != "none":
        command_for(agent)
    pid, host = _parse_what(what)
    if watching.live:
        if agent != "none" or output.files or output.redaction:
            raise Refused("usage", "--live: use it without --agent, --redact and files to write")
        return _live(pid, host, watching.seconds, output.units)
    setup = Options(pid, host, agent, seconds)
    began = time.monotonic()
    with interrupts.defer():
        with measuring.event_listener(output) as tell_event:

            def tell(label: str) -> None:
                tell_event(Event(label, time.monotonic() - began, seconds + 3.0))

            with Watch(setup, tell) as session:
                sentence = _observe(session)
        # Held until it is written: a late interrupt would lose what was seen.
        if sentence:
            exits.complain(sentence)
        final, diagnosis, broken = measuring.interpret(session.report(), output, bool(sentence))
        done = documents.write_all(final, diagnosis, output)
    if session.interrupted:
        return exits.INTERRUPTED
    if broken:
        return exits.INTERNAL
    copy = diagnosis.main_copy
    sure = copy is not None and copy.verdict.component != "unknown"
    return exits.DONE if sure and done and final.status == "complete" else exits.INCOMPLETE


def _parse_what(what: str | None) -> tuple[int, str]:
    """Returns a process's number, 0: none is named; and the other host's name, empty: none."""
    from probes.core.stage import Refused

    if what is None:
        return 0, ""
    pid = int(what) if re.fullmatch(r"[0-9]{1,10}", what) else 0
    if not what.strip() or (what.isdigit() and not 0 < pid < 1 << 31):
        text = what[:LONGEST_NAMED] or "(empty)"
        raise Refused("usage", f"{text}: not a process ID or a host")
    return pid, "" if pid else what


def _live(pid: int, host: str, seconds: float | None, style: Style) -> int:
    with interrupts.defer():
        from bottleneck.cli import live
        from bottleneck.run.watch import look_up
        from bottleneck.text.units import shown_as

    with shown_as(style):
        return live.show(pid, look_up(host) if host else "", seconds)


def _observe(session: Watch) -> str:
    """Watches, and returns what is to be said about its end; empty: nothing."""
    from bottleneck.run.watch import NothingRuns

    try:
        with interrupts.let_through():
            session.reach()
    except NothingRuns as nothing:
        session.log.note(str(nothing))
        return str(nothing)
    session.observe(_wait)
    if session.interrupted:
        return "interrupted; the result covers the time until then"
    return "; ".join(session.silent.values())


def _wait(seconds: float) -> bool:
    """Waits; False: interrupted."""
    try:
        with interrupts.let_through():
            time.sleep(seconds)
    except KeyboardInterrupt:
        return False
    return True
