"""An estimate for a person and for a program: each ceiling with the rule of thumb behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console

from bottleneck.analysis.estimate import HISTORY_YEAR, Estimate, Missing
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.sentences import part_name
from bottleneck.reports.document import Block, Table, Text, columns, points
from bottleneck.reports.terminal import show
from bottleneck.units import (
    bits_beside,
    link_text,
    rate_text,
    seconds_text,
    size_text,
)
from bottleneck.words import cap_text, confidence_text

SCHEMA = "copy-bottleneck/estimate/1"
GIVEN = (
    *("verb", "cached", "dialect", "link_bits_per_second", "mtu_bytes", "ip_version", "vlan_tags"),
    *("rtt_seconds", "window_bytes", "streams", "request_bytes", "depth", "loss_ratio"),
    *("read_bytes_per_second", "write_bytes_per_second", "ram_bytes", "size_bytes"),
)
"""What the document repeats of the figures."""
NOT_ESTIMATED = (
    "CPU of both hosts, signing and encryption, others' traffic and I/O: no rule of thumb holds; "
    "`bottleneck diagnose` measures them."
)


def print_estimate(found: Estimate, console: Console) -> None:
    """Writes it; readable from 80 columns on."""
    show(console, _blocks(found))


def _blocks(found: Estimate) -> Iterator[Block]:
    yield Text(found.verdict.sentence, "strong")
    yield Text(f"Confidence: {confidence_text(found.verdict)}; nothing of it was measured.")
    table = Table("Ceilings, lowest first", columns("", "rate", "", right="1 2"))
    for each in found.claims:
        rate = each.ceiling.bytes_per_second
        table.add(cap_text(each.ceiling), rate_text(rate), bits_beside(rate))
    yield table
    if found.in_turn is not None and found.overlapped is not None:
        yield from points("The copy", [_expected(found.in_turn, found.overlapped), *_times(found)])
    rules = [f"{cap_text(each.ceiling)}: {each.evidence[0]}." for each in found.claims]
    yield from points("Rules of thumb", [*rules, *_history(found)])
    missing = [f"{part_name((e.component, e.side))}: give {e.needs}." for e in found.missing]
    yield from points("Not known", [*missing, NOT_ESTIMATED])


def _expected(in_turn: float, overlapped: float) -> str:
    if in_turn >= overlapped:
        return f"at most {rate_text(overlapped)}."
    return (
        f"{rate_text(overlapped)} where disks and link all work at once (several requests on "
        f"their way), {rate_text(in_turn)} where each waits for the one before it."
    )


def _times(found: Estimate) -> list[str]:
    lines = []
    size, seconds = found.given.size_bytes, found.seconds
    if size is not None and seconds is not None:
        least, most = (seconds_text(each) for each in seconds)
        span = least if least == most else f"{least} to {most}"
        lines.append(f"{size_text(size)} take {span}.")
    cold = found.cold_seconds
    if cold is not None:
        lines.append(
            f"{seconds_text(cold)} of that, or of any shorter copy, are its "
            f"{found.cold_round_trips} round trips of connect, login, open, close and slow start."
        )
    return lines


def _history(found: Estimate) -> list[str]:
    past = found.history
    if past is None:
        return []
    link = link_text(found.given.link_bits_per_second or 0)
    return [
        f"In {HISTORY_YEAR} a rule of thumb for {link} was {rate_text(past)}: what the PCs of then "
        "made of it."
    ]


def estimate_json(found: Estimate) -> str:
    """The same as one JSON document: bytes, seconds and ratios."""
    seconds = found.seconds
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "given": _given(found),
        "ceilings": [_ceiling(each) for each in found.claims],
        "unknown": [_unknown(each) for each in found.missing],
        "expected_bytes_per_second": {"low": found.in_turn, "high": found.overlapped},
        "verdict": asdict(found.verdict),
        "seconds": None if seconds is None else {"low": seconds[0], "high": seconds[1]},
        "cold_round_trips": found.cold_round_trips,
        "cold_seconds": found.cold_seconds,
        "history_bytes_per_second": found.history,
    }
    return json.dumps(document, indent=1, allow_nan=False)


def _ceiling(claim: Claim) -> dict[str, Any]:
    told = asdict(claim.ceiling)
    del told["steps"], told["standing"]
    return {**told, "rule": claim.evidence[0]}


def _unknown(missing: Missing) -> dict[str, Any]:
    return {"component": missing.component, "side": missing.side, "needs": missing.needs}


def _given(found: Estimate) -> dict[str, Any]:
    given = found.given
    size, depth = given.shape
    told = {
        **asdict(given),
        "ip_version": 6 if given.ipv6 else 4,
        "request_bytes": size,
        "depth": depth,
        "read_bytes_per_second": None if given.read is None else given.read.usual,
        "write_bytes_per_second": None if given.write is None else given.write.usual,
    }
    return {key: told[key] for key in GIVEN}
