"""Several clients at once, in words and for programs: what each gets, and what limits the sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bottleneck.analysis.phrases import cap_text
from bottleneck.documents.document import Block, Table, columns
from bottleneck.fleet.records import Node, Suspect, Taken, Together
from bottleneck.gate.judged import Judged, State
from bottleneck.text.safe import safe
from bottleneck.text.units import link_text, rate_text, seconds_text, size_text

LONGEST_NAME = 40
MOST_CLIENTS = 16
ALIKE = 1.25
"""Rates of which the highest is no more than so many times the lowest are told as their mean."""


def name_of(node: Node) -> str:
    """`server nas2`."""
    return f"{node.kind} {safe(node.name, LONGEST_NAME)}"


def headline(told: Together) -> str:
    """The answer in one line."""
    if told.kind == "none":
        return f"No fault found: no shared limit up to {rate_text(told.total)}"
    if len(told.suspects) == 1:
        return f"Bottleneck: {_suspect(told.suspects[0], told)}"
    if told.suspects:
        every = " or ".join(_suspect(each, told) for each in told.suspects)
        return f"Bottleneck: not identified, {every}"
    return f"Bottleneck: not identified ({told.reason})"


def _suspect(each: Suspect, told: Together) -> str:
    named = name_of(each.node)
    if each.verdict is None:
        return named
    rate = _link(each, told)
    return f"{named} ({cap_text(each.verdict)}{rate and ', '}{rate})"


def _link(each: Suspect, told: Together) -> str:
    """`100 Mbit/s`, where a link limits and the sum looks like one; else empty."""
    bits = told.link_bits_per_second
    link = each.verdict is not None and each.verdict.component == "network"
    return link_text(bits) if link and bits is not None else ""


def sentences(told: Together) -> Iterator[str]:
    """What stands behind the headline, one sentence each."""
    if not told.taken:
        yield f"Nothing is concluded about {told.requested} clients at once, because {told.reason}."
        return
    verb = told.copy.partition(".")[0]
    count = f"{len(told.taken)} clients"
    if len(told.taken) < told.requested:
        count = f"{len(told.taken)} of {told.requested} clients"
    because = ""
    if told.kind == "shared" and len(told.suspects) == 1:
        because = f", because {_limit(told.suspects[0], told)} limits the sum"
    yield f"{count} at once {verb} {rate_text(told.total)} in all, {_each(told)}{because}."
    yield (
        f"One by itself gets {rate_text(told.fastest_single)}. All copied at the same time for "
        f"{seconds_text(told.seconds)}."
    )
    if told.kind == "none":
        yield "Each gets about what it gets by itself: the clients reach no shared limit."
    if told.reason:
        yield f"It is undecided what limits the sum, because {told.reason}."
    elif len(told.suspects) > 1:
        every = " or ".join(_limit(each, told) for each in told.suspects)
        yield f"A shared limit is reached: {every}."
    for each in told.taken:
        if each.starved:
            yield (
                f"{safe(each.pair.client, LONGEST_NAME)} is starved: it gets "
                f"{rate_text(each.bytes_per_second)}, and an equal share is "
                f"{rate_text(each.fair_bytes_per_second)}."
            )


def _limit(each: Suspect, told: Together) -> str:
    """`the link of server nas1 (100 Mbit/s)`."""
    if each.verdict is None:
        return name_of(each.node)
    part = {"network": "link", "cpu": "CPU"}.get(each.verdict.component, each.verdict.component)
    rate = _link(each, told)
    return f"the {part} of {name_of(each.node)}" + (f" ({rate})" if rate else "")


def _each(told: Together) -> str:
    rates = sorted(each.bytes_per_second for each in told.taken)
    if rates[-1] <= ALIKE * rates[0]:
        return f"{rate_text(told.total / len(rates))} each"
    return f"{rate_text(rates[0])} to {rate_text(rates[-1])} each"


def blocks(told: Together | None) -> Iterator[Block]:
    """What each client gets, as a table; none where no clients copied at once."""
    if told is None or not told.taken:
        return
    table = Table(
        f"{told.copy}: {len(told.taken)} clients at once",
        columns(
            "client", "by itself", "at once", "equal share", "limited by, by itself", right="1 2 3"
        ),
    )
    for each in sorted(told.taken, key=lambda each: not each.starved)[:MOST_CLIENTS]:
        table.add(
            safe(each.pair.client, LONGEST_NAME),
            rate_text(each.alone_bytes_per_second),
            rate_text(each.bytes_per_second) + (" *" if each.starved else "  "),
            rate_text(each.fair_bytes_per_second),
            cap_text(each.verdict) if each.verdict else "-",
        )
    table.left_out = len(told.taken) - len(table.rows)
    if any(each.starved for each in told.taken):
        table.note = "* starved: clearly less than an equal share of what the client can use"
    yield table


def cases(told: Together | None) -> Iterator[Judged]:
    """For JUnit and Nagios: a case for each client, critical where it is starved."""
    for each in told.taken if told else ():
        state: State = "critical" if each.starved else "ok"
        shown = rate_text(each.bytes_per_second)
        who = f"{safe(each.pair.client, LONGEST_NAME)} with {safe(each.pair.server, LONGEST_NAME)}"
        yield Judged(
            f"{who}: {told.copy if told else ''}, {len(told.taken) if told else 0} at once",
            f"{each.pair.client}.{each.pair.server}.together",
            state,
            f"{shown}, starved" if each.starved else shown,
            each.bytes_per_second,
            "bytes_per_second",
            "",
            "",
        )


def state(told: Together | None) -> State:
    """Of all clients at once."""
    if told is None or told.is_decided:
        return "critical" if told and any(each.starved for each in told.taken) else "ok"
    return "unknown"


def to_plain(told: Together) -> dict[str, Any]:
    """For the JSON document: bytes per second, seconds and ratios."""
    return {
        "copy": told.copy,
        "server": told.server,
        "clients": told.requested,
        "kind": told.kind,
        "sum_bytes_per_second": told.total if told.taken else None,
        "alone_bytes_per_second": told.fastest_single if told.taken else None,
        "overlap_seconds": told.seconds,
        "confidence": told.confidence,
        "suspects": [
            {**each.node._asdict(), "verdict": asdict(each.verdict) if each.verdict else None}
            for each in told.suspects
        ],
        "reason": told.reason,
        "taken": [_taken(each) for each in told.taken],
    }


def _taken(each: Taken) -> dict[str, Any]:
    return {
        "client": each.pair.client,
        "alone_bytes_per_second": each.alone_bytes_per_second,
        "bytes_per_second": each.bytes_per_second,
        "equal_share_bytes_per_second": each.fair_bytes_per_second,
        "starved": each.starved,
        "verdict": asdict(each.verdict) if each.verdict else None,
    }


def rows(told: Together | None) -> Iterator[tuple[str, str, str, float]]:
    """For the CSV: client, server, `together.pull.cached` and the rate."""
    for each in told.taken if told else ():
        yield (*each.pair, f"together.{told.copy if told else ''}", each.bytes_per_second)


def plan_lines(
    clients: int, copy: str, seconds: float, budget_seconds: float, most_bytes: int
) -> tuple[str, ...]:
    """What a run at once would load."""
    return (
        f"Then {clients} clients at once: {copy}, about {seconds_text(seconds)} each, at most "
        f"{seconds_text(budget_seconds)} with its preparation.",
        f"Moved at once: at most {size_text(most_bytes)} in all, then removed.",
    )
