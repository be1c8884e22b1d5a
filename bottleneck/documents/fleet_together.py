"""Several clients at once, in words and for programs: what each gets, and what limits the sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bottleneck.analysis.phrases import cap_text
from bottleneck.documents.document import Block, Table, columns
from bottleneck.fleet.records import ClientRates, Node, Suspect, Together
from bottleneck.gate.judged import Ruling, State
from bottleneck.text.safe import safe
from bottleneck.text.units import link_text, rate_text, seconds_text, size_text

LONGEST_NAME = 40
MOST_CLIENTS = 16
ALIKE = 1.25
"""Highest rate over the lowest up to which rates are told as their mean."""


def name_of(node: Node) -> str:
    """Returns `server nas2`."""
    return f"{node.kind} {safe(node.name, LONGEST_NAME)}"


def headline(test: Together) -> str:
    """Returns the answer in one line."""
    if test.kind == "none":
        return f"No fault found: no shared limit up to {rate_text(test.total)}"
    if len(test.suspects) == 1:
        return f"Bottleneck: {_suspect_text(test.suspects[0], test)}"
    if test.suspects:
        every = " or ".join(_suspect_text(each, test) for each in test.suspects)
        return f"Bottleneck: not identified, {every}"
    return f"Bottleneck: not identified ({test.reason})"


def _suspect_text(each: Suspect, test: Together) -> str:
    name = name_of(each.node)
    if each.verdict is None:
        return name
    rate = _link_text(each, test)
    return f"{name} ({cap_text(each.verdict)}{rate and ', '}{rate})"


def _link_text(each: Suspect, test: Together) -> str:
    """Returns `100 Mbit/s`, where a link limits and the sum looks like one; else empty."""
    bits = test.link_bits_per_second
    link = each.verdict is not None and each.verdict.component == "network"
    return link_text(bits) if link and bits is not None else ""


def sentences(test: Together) -> Iterator[str]:
    """Yields the facts behind the headline, one sentence each."""
    if not test.clients:
        yield f"Nothing is concluded about {test.requested} clients at once, because {test.reason}."
        return
    verb = test.copy.partition(".")[0]
    count = f"{len(test.clients)} clients"
    if len(test.clients) < test.requested:
        count = f"{len(test.clients)} of {test.requested} clients"
    because = ""
    if test.kind == "shared" and len(test.suspects) == 1:
        because = f", because {_limit_text(test.suspects[0], test)} limits the sum"
    yield f"{count} at once {verb} {rate_text(test.total)} in all, {_each_text(test)}{because}."
    yield (
        f"One by itself gets {rate_text(test.fastest_single)}. All copied at the same time for "
        f"{seconds_text(test.seconds)}."
    )
    if test.kind == "none":
        yield "Each gets about what it gets by itself: the clients reach no shared limit."
    if test.reason:
        yield f"It is undecided what limits the sum, because {test.reason}."
    elif len(test.suspects) > 1:
        every = " or ".join(_limit_text(each, test) for each in test.suspects)
        yield f"A shared limit is reached: {every}."
    for each in test.clients:
        if each.is_starved:
            yield (
                f"{safe(each.pair.client, LONGEST_NAME)} is starved: it gets "
                f"{rate_text(each.bytes_per_second)}, and an equal share is "
                f"{rate_text(each.fair_bytes_per_second)}."
            )


def _limit_text(each: Suspect, test: Together) -> str:
    """Returns `the link of server nas1 (100 Mbit/s)`."""
    if each.verdict is None:
        return name_of(each.node)
    part = {"network": "link", "cpu": "CPU"}.get(each.verdict.component, each.verdict.component)
    rate = _link_text(each, test)
    return f"the {part} of {name_of(each.node)}" + (f" ({rate})" if rate else "")


def _each_text(test: Together) -> str:
    rates = sorted(each.bytes_per_second for each in test.clients)
    if rates[-1] <= ALIKE * rates[0]:
        return f"{rate_text(test.total / len(rates))} each"
    return f"{rate_text(rates[0])} to {rate_text(rates[-1])} each"


def blocks(test: Together | None) -> Iterator[Block]:
    """Yields a table of what each client gets; nothing where no clients copied at once."""
    if test is None or not test.clients:
        return
    table = Table(
        f"{test.copy}: {len(test.clients)} clients at once",
        columns(
            "client", "by itself", "at once", "equal share", "limited by, by itself", right="1 2 3"
        ),
    )
    for each in sorted(test.clients, key=lambda each: not each.is_starved)[:MOST_CLIENTS]:
        table.add(
            safe(each.pair.client, LONGEST_NAME),
            rate_text(each.alone_bytes_per_second),
            rate_text(each.bytes_per_second) + (" *" if each.is_starved else "  "),
            rate_text(each.fair_bytes_per_second),
            cap_text(each.verdict) if each.verdict else "-",
        )
    table.left_out = len(test.clients) - len(table.rows)
    if any(each.is_starved for each in test.clients):
        table.note = "* starved: clearly less than an equal share of what the client can use"
    yield table


def cases(test: Together | None) -> Iterator[Ruling]:
    """Yields a case for each client, critical where it is starved, for JUnit and Nagios."""
    for each in test.clients if test else ():
        state: State = "critical" if each.is_starved else "ok"
        rate = rate_text(each.bytes_per_second)
        pair = f"{safe(each.pair.client, LONGEST_NAME)} with {safe(each.pair.server, LONGEST_NAME)}"
        yield Ruling(
            f"{pair}: {test.copy if test else ''}, {len(test.clients) if test else 0} at once",
            f"{each.pair.client}.{each.pair.server}.together",
            state,
            f"{rate}, starved" if each.is_starved else rate,
            each.bytes_per_second,
            "bytes_per_second",
            "",
            "",
        )


def state(test: Together | None) -> State:
    """Returns the state of all clients at once."""
    if test is None or test.is_decided:
        return "critical" if test and any(each.is_starved for each in test.clients) else "ok"
    return "unknown"


def to_plain(test: Together) -> dict[str, Any]:
    """Returns the values of the JSON document: bytes per second, seconds and ratios."""
    return {
        "copy": test.copy,
        "server": test.server,
        "clients": test.requested,
        "kind": test.kind,
        "sum_bytes_per_second": test.total if test.clients else None,
        "alone_bytes_per_second": test.fastest_single if test.clients else None,
        "overlap_seconds": test.seconds,
        "confidence": test.confidence,
        "suspects": [
            {**each.node._asdict(), "verdict": asdict(each.verdict) if each.verdict else None}
            for each in test.suspects
        ],
        "reason": test.reason,
        "taken": [_taken_row(each) for each in test.clients],
    }


def _taken_row(each: ClientRates) -> dict[str, Any]:
    return {
        "client": each.pair.client,
        "alone_bytes_per_second": each.alone_bytes_per_second,
        "bytes_per_second": each.bytes_per_second,
        "equal_share_bytes_per_second": each.fair_bytes_per_second,
        "starved": each.is_starved,
        "verdict": asdict(each.verdict) if each.verdict else None,
    }


def rows(test: Together | None) -> Iterator[tuple[str, str, str, float]]:
    """Yields the CSV rows: client, server, `together.pull.cached` and the rate."""
    for each in test.clients if test else ():
        yield (*each.pair, f"together.{test.copy if test else ''}", each.bytes_per_second)


def plan_lines(
    clients: int, copy: str, seconds: float, budget_seconds: float, most_bytes: int
) -> tuple[str, ...]:
    """Returns the load of a test with all clients at once."""
    return (
        f"Then {clients} clients at once: {copy}, about {seconds_text(seconds)} each, at most "
        f"{seconds_text(budget_seconds)} with its preparation.",
        f"Moved at once: at most {size_text(most_bytes)} in all, then removed.",
    )
