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
    "verb cached dialect link_bits_per_second mtu_bytes ip_version vlan_tags rtt_seconds "
    "window_bytes streams request_bytes depth loss_ratio read_bytes_per_second "
    "write_bytes_per_second ram_bytes size_bytes"
).split()
"""Keys of the inputs that the document repeats."""
NOT_ESTIMATED = (
    "CPU, signing, encryption, other traffic and other I/O: run `bottleneck diagnose` to measure "
    "them."
)


def blocks(estimate: Estimate) -> Iterator[Block]:
    """Yields the estimate for a person; readable from 80 columns on."""
    yield Text(estimate.summary, "strong")
    yield Text(f"Confidence: {confidence_text(estimate.verdict)}; nothing was measured")
    table = Table("Limits, lowest first", columns("", "rate", "", right="1 2"))
    for each in estimate.claims:
        rate = each.ceiling.bytes_per_second
        table.add(cap_text(each.ceiling), rate_text(rate), bits_beside(rate))
    yield table
    rules = [f"{cap_text(each.ceiling)}: {each.evidence[0]}." for each in estimate.claims]
    yield from points("How each was computed", [*_expected_range(estimate), *rules])
    yield from points("Duration", _times(estimate))
    missing = [f"{part_name((e.component, e.side))}: use {e.needs}." for e in estimate.missing]
    yield from points("Not estimated", [*missing, NOT_ESTIMATED])


def _expected_range(estimate: Estimate) -> Iterator[str]:
    """Yields why the two ends of the expected range differ."""
    low, high = estimate.in_turn, estimate.overlapped
    if low is not None and high is not None and low < high:
        yield (
            f"Expected rate: {rate_text(high)} if disks and network work in parallel, "
            f"{rate_text(low)} if they take turns."
        )


def _times(estimate: Estimate) -> Iterator[str]:
    size, seconds = estimate.setup.size_bytes, estimate.seconds
    if size is not None and seconds is not None:
        low, high = (seconds_text(each) for each in seconds)
        span = low if low == high else f"{low} to {high}"
        yield f"{given_size_text(size)} take {span}."
    cold = estimate.cold_seconds
    if cold is not None:
        yield (
            "Connect, login, open, close and slow start need "
            f"{estimate.cold_round_trips} round trips ({seconds_text(cold)})."
        )


def estimate_json(estimate: Estimate) -> str:
    """Returns the estimate as one JSON document: bytes, seconds and ratios."""
    seconds = estimate.seconds
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "given": _inputs(estimate),
        "ceilings": [_ceiling_row(each) for each in estimate.claims],
        "unknown": [
            {name: getattr(each, name) for name in ("component", "side", "needs")}
            for each in estimate.missing
        ],
        "expected_bytes_per_second": {"low": estimate.in_turn, "high": estimate.overlapped},
        "verdict": asdict(estimate.verdict),
        "seconds": None if seconds is None else {"low": seconds[0], "high": seconds[1]},
        "cold_round_trips": estimate.cold_round_trips,
        "cold_seconds": estimate.cold_seconds,
    }
    return json.dumps(document, indent=1, allow_nan=False)


def _ceiling_row(claim: Claim) -> dict[str, Any]:
    ceiling = asdict(claim.ceiling)
    del ceiling["steps"], ceiling["standing"]
    return {**ceiling, "rule": claim.evidence[0]}


def _inputs(estimate: Estimate) -> dict[str, Any]:
    figures = estimate.setup
    size, depth = figures.shape
    values = {
        **asdict(figures),
        "ip_version": 6 if figures.ipv6 else 4,
        "window_bytes": figures.window_bytes,
        "request_bytes": size,
        "depth": depth,
        "read_bytes_per_second": None if figures.read is None else figures.read.usual,
        "write_bytes_per_second": None if figures.write is None else figures.write.usual,
    }
    return {key: values[key] for key in GIVEN}
