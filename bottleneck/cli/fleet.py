"""`bottleneck fleet`: many clients and servers; which host or link do the slow pairs share?"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bottleneck.cli import exits, fleet_together, interrupts, options
from bottleneck.cli.fleet_together import Tests
from bottleneck.text.safe import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bottleneck.cli.documents import Output
    from bottleneck.fleet.records import Fleet, Pair
    from bottleneck.fleet.result import Result
    from bottleneck.fleet.timetable import Round

MOST_SKIPPED = 20
"""Files without a report that are named on stderr."""
LEAST_BUDGET, MOST_BUDGET = 5.0, 3600.0
Inventory = Annotated[
    Path | None,
    typer.Argument(
        metavar="[INVENTORY]", help="Inventory of Ansible with the clients; see docs/fleet.md."
    ),
]
Format = Annotated[
    str,
    options.format_of("text", "nagios", help="Format on stdout: text, or nagios with its codes."),
]


@options.group("Hosts")
class Hosts:
    """Who is measured with whom."""

    share: list[str] | None = options.value(
        "SHARE", "Share to measure, as //SERVER/SHARE; one for each server (repeatable)."
    )
    clients: str | None = options.value(
        "NAME", "Inventory group of the clients.", usual="clients, else all"
    )
    uplink: list[str] | None = options.value(
        "NAME", "Inventory group whose hosts share one link to all others (repeatable)."
    )
    switch: list[str] | None = options.value(
        "NAME", "Inventory group whose hosts share a switch (repeatable)."
    )


def fleet(
    inventory: Inventory = None,
    *,
    hosts: Hosts,
    tests: Tests,
    who: options.Login,
    wanted: options.Wanted,
    shown: options.Documents,
    quiet: options.Quiet,
    yes: options.Yes = False,
    format: Format = "text",
) -> int:
    """Compare many clients and servers, and name the shared limit.

    Names the host or link that the slow pairs of a client and a server share.
    Needs ansible-core to read INVENTORY and to reach its hosts.
    """
    with interrupts.held():
        from bottleneck.cli import documents, loading
        from bottleneck.fleet import result as results
        from probes.core.stage import Refused

    output = documents.output(shown, quiet)
    usual = loading.target_rate(wanted.target_rate)
    if not LEAST_BUDGET <= tests.budget <= MOST_BUDGET:
        told = f"--budget: must be from {LEAST_BUDGET:g} to {MOST_BUDGET:g}"
        raise Refused("usage", told)
    known = None if inventory is None else _fleet(inventory, hosts)
    known, tests = fleet_together.checked(known, tests)
    if tests.plan:
        return _planned(known, tests, output)
    status = "complete"
    if tests.reports is not None:
        found = _collected(tests.reports)
        if not (found.tests or found.missing or found.unread):
            raise Refused("usage", f"--reports {tests.reports}: no report of a pair found")
    elif known is None or not known.servers:
        text = "fleet: use --reports DIR, or INVENTORY and --share //SERVER/SHARE"
        raise Refused("usage", text)
    else:
        found, status = _measured(known, inventory, hosts, tests, who, usual, yes, quiet.quiet)
    if output.redaction is not None:
        known = hidden(found, known)
    judged = results.of_pairs(found.rates, known, usual, found.missing, _skipped(found))
    unread = tuple(f"{file}: {why}" for file, why in found.unread.items())
    judged = replace(judged, status=status, unread=unread)
    judged = fleet_together.added(judged, known, found, tests)
    code = give(judged, output, format)
    return code if tests.reports is not None else _ended(judged, found, code, format)


def _skipped(found: Any) -> list[str]:
    """The files that are no reports, each named on stderr, if they are not too many."""
    skipped = [f"{file}: {why}" for file, why in found.skipped.items()]
    for each in skipped[:MOST_SKIPPED]:
        exits.complain(each)
    if len(skipped) > MOST_SKIPPED:
        exits.complain(f"{len(skipped) - MOST_SKIPPED} more files skipped")
    return skipped


def _ended(judged: Result, found: Any, code: int, format: str) -> int:
    """The exit code of a run; code: of its result."""
    if judged.status == "interrupted":
        exits.complain("interrupted; continue with --resume")
        return exits.INTERRUPTED
    if judged.findings:
        return code
    exits.complain("; ".join(("no pair was measured", *list(judged.missing.values())[:1])))
    if format == "nagios":
        return code
    return exits.REFUSED if found.refused else exits.UNREACHABLE


def _measured(
    known: Fleet,
    inventory: Path | None,
    hosts: Hosts,
    tests: Tests,
    who: options.Login,
    usual: float | None,
    yes: bool,
    quiet: bool,
) -> tuple[Any, str]:
    """The reports of a run, and how it ended."""
    from bottleneck.cli import running
    from bottleneck.fleet import run
    from bottleneck.fleet.collected import server_of
    from bottleneck.target import target

    assert inventory is not None
    shares = {server_of(each): each for each in hosts.share or ()}
    with run.prepared(tests.keep, tests.resume) as (found, log):
        access = running.log_in_as(who, target.parse(next(iter(shares.values()))))
        if not yes:
            many = f"{len(known.clients)} clients and {len(known.servers)} shares"
            many += fleet_together.load_text(known, tests)
            text = f"This writes and removes test files on {many}. Continue?"
            running.ask(text, "writing test files", "written")
        every = (known, shares, inventory, tests.keep, log, access, tests.budget, tests.all, usual)
        try:
            wanted = run.Run(*every)
            run.measured(wanted, found, first_pairs(known, tests.all), _say(quiet))
            if tests.together is not None:
                run.at_once(wanted, found, fleet_together.copy_of(tests), _say(quiet))
        except KeyboardInterrupt:
            return found, "interrupted"
    if not found.reported():
        return found, "failed"
    lost = found.missing or found.at_once and found.at_once.missing
    return found, "partial" if lost else "complete"


def _say(quiet: bool) -> Callable[[str], None]:
    """Where the progress goes."""
    from bottleneck.cli import command_line

    hidden = command_line.now().redaction
    shown = hidden.text if hidden else str
    return lambda text: (
        None if quiet else print(safe(shown(text), 200), file=sys.stderr, flush=True)
    )


def _fleet(inventory: Path, hosts: Hosts) -> Fleet:
    from bottleneck.fleet import inventory as inventories
    from bottleneck.fleet.collected import server_of
    from probes.core.stage import Refused

    servers = [server_of(each) for each in hosts.share or ()]
    for at, each in enumerate(servers):
        if not each or each in servers[:at]:
            word = "is not //SERVER/SHARE" if not each else "is the second share of its server"
            raise Refused("usage", f"--share {(hosts.share or ())[at][:80]!r} {word}")
    found = inventories.read(inventory)
    segments = {
        "uplink": dict.fromkeys(hosts.uplink or ()),
        "switch": dict.fromkeys(hosts.switch or ()),
    }
    return inventories.fleet(found, hosts.clients, servers, segments)  # type: ignore[arg-type]


def _planned(known: Fleet | None, tests: Tests, output: Output) -> int:
    from bottleneck.cli import documents
    from bottleneck.documents import fleet as shown
    from bottleneck.documents import fleet_rows as rows
    from bottleneck.documents import terminal
    from bottleneck.fleet import timetable
    from bottleneck.run.plan import LARGEST_COPY_BYTES
    from probes.core.stage import Refused

    if known is None or not known.servers:
        raise Refused("usage", "--plan: needs INVENTORY and --share //SERVER/SHARE")
    pairs = first_pairs(known, tests.all)
    rounds = timetable.rounds(known, pairs)
    most = known.pairs if tests.all else known.most_tests
    if output.redaction is not None:
        known, rounds = _hidden_plan(known, rounds)
    seconds = len(rounds) * tests.budget
    figures = {"most_tests": most, "test_seconds": tests.budget, "total_seconds": seconds}
    figures["copy_bytes_at_most"] = LARGEST_COPY_BYTES
    more: tuple[str, ...] = ()
    if tests.together is not None:
        more = fleet_together.planned(known, tests, figures)
    done = True
    for kind, path in output.asked:
        if kind != "json":
            raise Refused("usage", f"--{kind}: not available with --plan; use --json")
        text = rows.plan_json(known, rounds, figures)
        done = _write(kind, path, text) and done
    if output.on_stdout is None:
        blocks = shown.plan_blocks(known, rounds, tests.budget, most, LARGEST_COPY_BYTES, more)
        done = documents.shown(lambda: terminal.show(terminal.console(), blocks)) and done
    return exits.DONE if done else exits.INCOMPLETE


def _hidden_plan(known: Fleet, rounds: list[Round]) -> tuple[Fleet, list[Round]]:
    """The same timetable, with tokens for all names."""
    from bottleneck.fleet.collected import Collected
    from bottleneck.fleet.records import Pair

    shown = hidden(Collected(), known)
    clients = dict(zip(known.clients, shown.clients, strict=True))
    servers = dict(zip(known.servers, shown.servers, strict=True))
    return shown, [
        tuple(Pair(clients[one], servers[other]) for one, other in each) for each in rounds
    ]


def first_pairs(known: Fleet, every: bool) -> list[Pair]:
    """The pairs to begin with: the same for the same hosts, so that a run can be resumed."""
    from random import Random

    from bottleneck.fleet import timetable

    chance = Random("\n".join((*known.clients, "", *known.servers)))
    return timetable.all_pairs(known, chance) if every else timetable.first_pairs(known, chance)


def _collected(folder: Path) -> Any:
    from bottleneck.fleet import collected
    from probes.core.stage import Refused

    try:
        return collected.collect(folder)
    except OSError as error:
        raise Refused("usage", f"--reports {folder}: {error.strerror}") from None


def hidden(found: Any, known: Fleet | None) -> Fleet:
    """Has tokens stand for all names, in the pairs too; the fleet of those tokens."""
    from bottleneck.cli import command_line
    from bottleneck.fleet.records import Fleet, Node, Pair, Segment

    pairs = sorted({*found.tests, *found.missing})
    known = known or Fleet((), ())
    clients = dict.fromkeys((*known.clients, *(each.client for each in pairs)))
    servers = dict.fromkeys((*known.servers, *(each.server for each in pairs)))
    names = {name: f"client-{at}" for at, name in enumerate(clients, 1)}
    stores = {name: f"server-{at}" for at, name in enumerate(servers, 1)}
    redaction = command_line.now().redact()
    for name in (*clients, *servers):
        redaction.learn("host", name)
    renamed = {pair: Pair(names[pair.client], stores[pair.server]) for pair in pairs}
    found.rename(renamed, redaction.text)
    segments = tuple(
        Segment(
            Node(each.node.kind, f"site-{at}"),
            frozenset(names.get(host) or stores.get(host) or "" for host in each.members),
        )
        for at, each in enumerate(known.segments, 1)
    )
    return Fleet(tuple(names.values()), tuple(stores.values()), segments)


def give(judged: Result, output: Output, format: str) -> int:
    """Writes all that was asked for; the exit code."""
    from bottleneck.cli import documents
    from bottleneck.documents import fleet as shown
    from bottleneck.documents import fleet_rows as rows
    from bottleneck.documents import terminal
    from bottleneck.documents.junit import junit_text
    from bottleneck.documents.nagios import nagios_text
    from bottleneck.gate.judged import EXIT_CODES
    from bottleneck.text import units

    judgement = shown.judgement(judged)
    done = True
    for kind, path in output.asked:
        style: units.Style = "si" if kind in ("json", "junit", "csv") else output.units
        with units.shown_as(style):
            match kind:
                case "html":
                    text = shown.page(judged)
                case "ticket":
                    text = shown.ticket(judged)
                case "junit":
                    text = junit_text(judgement)
                case "csv":
                    text = rows.table_csv(judged)
                case _:
                    text = rows.to_json(judged)
        done = _write(kind, path, text) and done
    if output.on_stdout is None and format == "nagios":
        done = documents.shown(lambda: documents.to_stdout(nagios_text(judgement))) and done
    elif output.on_stdout is None:
        with units.shown_as(output.units):
            told: Sequence[Any] = tuple(shown.blocks(judged))[: 1 if output.quiet else None]
            done = documents.shown(lambda: terminal.show(terminal.console(), told)) and done
    if format == "nagios":
        return EXIT_CODES[judgement.state if done else "unknown"]
    return exits.DONE if done and judged.is_decided else exits.INCOMPLETE


def _write(kind: str, path: str, text: str) -> bool:
    from bottleneck.cli import command_line, documents

    if path == command_line.STDOUT:
        return documents.shown(lambda: documents.to_stdout(text))
    return documents.saved(f"--{kind}", path, lambda: text)
