"""An estimate for a person and for a program: the rate to expect, each limit and its rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from bottleneck.analysis.estimate import Estimate
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.phrases import cap_text, confidence_text
from bottleneck.analysis.sentences import part_name
from bottleneck.documents.document import Block, Table, Text, columns, points
from bottleneck.text.units import bits_beside, given_size_text, rate_text, seconds_text

SCHEMA = "copy-bottleneck/estimate/1"
GIVEN = (
    *("verb", "cached", "dialect", "link_bits_per_second", "mtu_bytes", "ip_version", "vlan_tags"),
    *("rtt_seconds", "window_bytes", "streams", "request_bytes", "depth", "loss_ratio"),
    *("read_bytes_per_second", "write_bytes_per_second", "ram_bytes", "size_bytes"),
)
"""What the document repeats of the figures."""
NOT_ESTIMATED = (
    "CPU, signing, encryption, other traffic and other I/O: run `bottleneck diagnose` to measure "
    "them."
)


def blocks(found: Estimate) -> Iterator[Block]:
    """For a person; readable from 80 columns on."""
    yield Text(found.summary, "strong")
    yield Text(f"Confidence: {confidence_text(found.verdict)}; nothing was measured")
    table = Table("Limits, lowest first", columns("", "rate", "", right="1 2"))
    for each in found.claims:
        rate = each.ceiling.bytes_per_second
        table.add(cap_text(each.ceiling), rate_text(rate), bits_beside(rate))
    yield table
    rules = [f"{cap_text(each.ceiling)}: {each.evidence[0]}." for each in found.claims]
    yield from points("How each was computed", [*_expected(found), *rules])
    yield from points("Duration", _times(found))
    missing = [f"{part_name((e.component, e.side))}: use {e.needs}." for e in found.missing]
    yield from points("Not estimated", [*missing, NOT_ESTIMATED])


def _expected(found: Estimate) -> Iterator[str]:
    """What makes the two ends of the expected range."""
    low, high = found.in_turn, found.overlapped
    if low is not None and high is not None and low < high:
        yield (
            f"Expected rate: {rate_text(high)} if disks and network work in parallel, "
            f"{rate_text(low)} if they take turns."
        )


def _times(found: Estimate) -> Iterator[str]:
    size, seconds = found.given.size_bytes, found.seconds
    if size is not None and seconds is not None:
        least, most = (seconds_text(each) for each in seconds)
        span = least if least == most else f"{least} to {most}"
        yield f"{given_size_text(size)} take {span}."
    cold = found.cold_seconds
    if cold is not None:
        yield (
            f"Connect, login, open, close and slow start need {found.cold_round_trips} round trips "
            f"({seconds_text(cold)})."
        )


def estimate_json(found: Estimate) -> str:
    """The same as one JSON document: bytes, seconds and ratios."""
    seconds = found.seconds
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "given": _given(found),
        "ceilings": [_ceiling(each) for each in found.claims],
        "unknown": [
            {name: getattr(each, name) for name in ("component", "side", "needs")}
            for each in found.missing
        ],
        "expected_bytes_per_second": {"low": found.in_turn, "high": found.overlapped},
        "verdict": asdict(found.verdict),
        "seconds": None if seconds is None else {"low": seconds[0], "high": seconds[1]},
        "cold_round_trips": found.cold_round_trips,
        "cold_seconds": found.cold_seconds,
    }
    return json.dumps(document, indent=1, allow_nan=False)


def _ceiling(claim: Claim) -> dict[str, Any]:
    told = asdict(claim.ceiling)
    del told["steps"], told["standing"]
    return {**told, "rule": claim.evidence[0]}


def _given(found: Estimate) -> dict[str, Any]:
    given = found.given
    size, depth = given.shape
    told = {
        **asdict(given),
        "ip_version": 6 if given.ipv6 else 4,
        "window_bytes": given.window_bytes,
        "request_bytes": size,
        "depth": depth,
        "read_bytes_per_second": None if given.read is None else given.read.usual,
        "write_bytes_per_second": None if given.write is None else given.write.usual,
    }
    return {key: told[key] for key in GIVEN}
