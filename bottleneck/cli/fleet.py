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
    """Clients and servers to measure."""

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
    login: options.Login,
    goal: options.Goal,
    outputs: options.Documents,
    quiet: options.Quiet,
    yes: options.Yes = False,
    format: Format = "text",
) -> int:
    """Compare many clients and servers, and name the shared limit.

    Names the host or link that the slow pairs of a client and a server share.
    Needs ansible-core to read INVENTORY and to reach its hosts.
    """
    with interrupts.defer():
        from bottleneck.cli import documents, loading
        from bottleneck.fleet import result as results
        from probes.core.stage import Refused

    output = documents.output(outputs, quiet)
    usual = loading.target_rate(goal.target_rate)
    if not LEAST_BUDGET <= tests.budget <= MOST_BUDGET:
        text = f"--budget: must be from {LEAST_BUDGET:g} to {MOST_BUDGET:g}"
        raise Refused("usage", text)
    layout = None if inventory is None else _read_fleet(inventory, hosts)
    layout, tests = fleet_together.checked_fleet(layout, tests)
    if tests.plan:
        return _print_plan(layout, tests, output)
    status = "complete"
    if tests.reports is not None:
        reports = _collect(tests.reports)
        if not (reports.tests or reports.missing or reports.unread):
            raise Refused("usage", f"--reports {tests.reports}: no report of a pair found")
    elif layout is None or not layout.servers:
        text = "fleet: use --reports DIR, or INVENTORY and --share //SERVER/SHARE"
        raise Refused("usage", text)
    else:
        reports, status = _measure(layout, inventory, hosts, tests, login, usual, yes, quiet.quiet)
    if output.redaction is not None:
        layout = hide_names(reports, layout)
    skipped = _name_skipped(reports)
    result = results.judge_pairs(reports.rates, layout, usual, reports.missing, skipped)
    unread = tuple(f"{file}: {reason}" for file, reason in reports.unread.items())
    result = replace(result, status=status, unread=unread)
    result = fleet_together.add_together(result, layout, reports, tests)
    code = give(result, output, format)
    return code if tests.reports is not None else _exit_code(result, reports, code, format)


def _name_skipped(reports: Any) -> list[str]:
    """Returns the files that are no reports; names them on stderr, if they are not too many."""
    skipped = [f"{file}: {reason}" for file, reason in reports.skipped.items()]
    for each in skipped[:MOST_SKIPPED]:
        exits.complain(each)
    if len(skipped) > MOST_SKIPPED:
        exits.complain(f"{len(skipped) - MOST_SKIPPED} more files skipped")
    return skipped


def _exit_code(result: Result, reports: Any, code: int, format: str) -> int:
    if result.status == "interrupted":
        exits.complain("interrupted; continue with --resume")
        return exits.INTERRUPTED
    if result.findings:
        return code
    exits.complain("; ".join(("no pair was measured", *list(result.missing.values())[:1])))
    if format == "nagios":
        return code
    return exits.REFUSED if reports.refused else exits.UNREACHABLE


def _measure(
    fleet: Fleet,
    inventory: Path | None,
    hosts: Hosts,
    tests: Tests,
    login: options.Login,
    usual: float | None,
    yes: bool,
    quiet: bool,
) -> tuple[Any, str]:
    """Returns the reports of a run, and how it ended."""
    from bottleneck.cli import measuring
    from bottleneck.fleet import run
    from bottleneck.fleet.collected import server_of
    from bottleneck.login import target

    assert inventory is not None
    shares = {server_of(each): each for each in hosts.share or ()}
    with run.prepare_folder(tests.keep, tests.resume) as (reports, log):
        access = measuring.log_in_as(login, target.parse(next(iter(shares.values()))))
        if not yes:
            counts = f"{len(fleet.clients)} clients and {len(fleet.servers)} shares"
            counts += fleet_together.load_text(fleet, tests)
            text = f"This writes and removes test files on {counts}. Continue?"
            measuring.ask(text, "writing test files", "written")
        parts = (fleet, shares, inventory, tests.keep, log, access, tests.budget, tests.all, usual)
        say = _progress_writer(quiet)
        try:
            setup = run.Run(*parts)
            run.measure_pairs(setup, reports, first_pairs(fleet, tests.all), say)
            if tests.together is not None:
                run.at_once(setup, reports, fleet_together.copy_of(tests), say)
        except KeyboardInterrupt:
            return reports, "interrupted"
    if not reports.pairs():
        return reports, "failed"
    missing = reports.missing or reports.at_once and reports.at_once.missing
    return reports, "partial" if missing else "complete"


def _progress_writer(quiet: bool) -> Callable[[str], None]:
    from bottleneck.cli import command_line

    redaction = command_line.current().redaction
    redact = redaction.text if redaction else str
    return lambda text: (
        None if quiet else print(safe(redact(text), 200), file=sys.stderr, flush=True)
    )


def _read_fleet(inventory: Path, hosts: Hosts) -> Fleet:
    from bottleneck.fleet import inventory as inventories
    from bottleneck.fleet.collected import server_of
    from probes.core.stage import Refused

    servers = [server_of(each) for each in hosts.share or ()]
    for index, each in enumerate(servers):
        if not each or each in servers[:index]:
            word = "is not //SERVER/SHARE" if not each else "is the second share of its server"
            raise Refused("usage", f"--share {(hosts.share or ())[index][:80]!r} {word}")
    listing = inventories.read(inventory)
    groups = {"uplink": hosts.uplink, "switch": hosts.switch}
    segments = {kind: dict.fromkeys(names or ()) for kind, names in groups.items()}
    return inventories.fleet(listing, hosts.clients, servers, segments)  # type: ignore[arg-type]


def _print_plan(fleet: Fleet | None, tests: Tests, output: Output) -> int:
    from bottleneck.cli import documents
    from bottleneck.documents import fleet as view
    from bottleneck.documents import fleet_rows as rows
    from bottleneck.documents import terminal
    from bottleneck.fleet import timetable
    from bottleneck.run.plan import LARGEST_COPY_BYTES
    from probes.core.stage import Refused

    if fleet is None or not fleet.servers:
        raise Refused("usage", "--plan: needs INVENTORY and --share //SERVER/SHARE")
    rounds = timetable.rounds(fleet, first_pairs(fleet, tests.all))
    limit = fleet.pairs if tests.all else fleet.most_tests
    if output.redaction is not None:
        fleet, rounds = _hidden_plan(fleet, rounds)
    seconds = len(rounds) * tests.budget
    figures = {"most_tests": limit, "test_seconds": tests.budget, "total_seconds": seconds}
    figures["copy_bytes_at_most"] = LARGEST_COPY_BYTES
    load: tuple[str, ...] = ()
    if tests.together is not None:
        load = fleet_together.plan_load(fleet, tests, figures)
    done = True
    for kind, path in output.files:
        if kind != "json":
            raise Refused("usage", f"--{kind}: not available with --plan; use --json")
        done = _write(kind, path, rows.plan_json(fleet, rounds, figures)) and done
    if output.on_stdout is None:
        blocks = view.plan_blocks(fleet, rounds, tests.budget, limit, LARGEST_COPY_BYTES, load)
        done = documents.show(lambda: terminal.show(terminal.console(), blocks)) and done
    return exits.DONE if done else exits.INCOMPLETE


def _hidden_plan(fleet: Fleet, rounds: list[Round]) -> tuple[Fleet, list[Round]]:
    """Returns the timetable with tokens for all names."""
    from bottleneck.fleet.collected import FleetRates
    from bottleneck.fleet.records import Pair

    redacted = hide_names(FleetRates(), fleet)
    clients = dict(zip(fleet.clients, redacted.clients, strict=True))
    servers = dict(zip(fleet.servers, redacted.servers, strict=True))
    return redacted, [tuple(Pair(clients[one], servers[other]) for one, other in e) for e in rounds]


def first_pairs(fleet: Fleet, every: bool) -> list[Pair]:
    """Returns the pairs to begin with: the same for the same hosts, so that a run can resume."""
    from random import Random

    from bottleneck.fleet import timetable

    chance = Random("\n".join((*fleet.clients, "", *fleet.servers)))
    return timetable.all_pairs(fleet, chance) if every else timetable.first_pairs(fleet, chance)


def _collect(folder: Path) -> Any:
    from bottleneck.fleet import collected
    from probes.core.stage import Refused

    try:
        return collected.collect(folder)
    except OSError as error:
        raise Refused("usage", f"--reports {folder}: {error.strerror}") from None


def hide_names(reports: Any, fleet: Fleet | None) -> Fleet:
    """Replaces all names by tokens, in the pairs too; returns the fleet of those tokens."""
    from bottleneck.cli import command_line
    from bottleneck.fleet.records import Fleet, Node, Pair, Segment

    pairs = sorted({*reports.tests, *reports.missing})
    fleet = fleet or Fleet((), ())
    clients = dict.fromkeys((*fleet.clients, *(each.client for each in pairs)))
    servers = dict.fromkeys((*fleet.servers, *(each.server for each in pairs)))
    names = {name: f"client-{number}" for number, name in enumerate(clients, 1)}
    stores = {name: f"server-{number}" for number, name in enumerate(servers, 1)}
    redaction = command_line.current().redact()
    for name in (*clients, *servers):
        redaction.learn("host", name)
    renamed = {pair: Pair(names[pair.client], stores[pair.server]) for pair in pairs}
    reports.rename(renamed, redaction.text)
    segments = tuple(
        Segment(
            Node(each.node.kind, f"site-{number}"),
            frozenset(names.get(host) or stores.get(host) or "" for host in each.members),
        )
        for number, each in enumerate(fleet.segments, 1)
    )
    return Fleet(tuple(names.values()), tuple(stores.values()), segments)


def give(result: Result, output: Output, format: str) -> int:
    """Writes all that was asked for, and returns the exit code."""
    from bottleneck.cli import documents
    from bottleneck.documents import fleet as view
    from bottleneck.documents import fleet_rows as rows
    from bottleneck.documents import terminal
    from bottleneck.documents.junit import junit_text
    from bottleneck.documents.nagios import nagios_text
    from bottleneck.gate.judged import EXIT_CODES
    from bottleneck.text import units

    judgement = view.judgement(result)
    done = True
    for kind, path in output.files:
        style: units.Style = "si" if kind in ("json", "junit", "csv") else output.units
        with units.shown_as(style):
            match kind:
                case "html":
                    text = view.page(result)
                case "ticket":
                    text = view.ticket(result)
                case "junit":
                    text = junit_text(judgement)
                case "csv":
                    text = rows.table_csv(result)
                case _:
                    text = rows.to_json(result)
        done = _write(kind, path, text) and done
    if output.on_stdout is None and format == "nagios":
        done = documents.show(lambda: documents.to_stdout(nagios_text(judgement))) and done
    elif output.on_stdout is None:
        with units.shown_as(output.units):
            parts: Sequence[Any] = tuple(view.blocks(result))[: 1 if output.quiet else None]
            done = documents.show(lambda: terminal.show(terminal.console(), parts)) and done
    if format == "nagios":
        return EXIT_CODES[judgement.state if done else "unknown"]
    return exits.DONE if done and result.is_decided else exits.INCOMPLETE


def _write(kind: str, path: str, text: str) -> bool:
    from bottleneck.cli import command_line, documents

    if path == command_line.STDOUT:
        return documents.show(lambda: documents.to_stdout(text))
    return documents.save(f"--{kind}", path, lambda: text)
