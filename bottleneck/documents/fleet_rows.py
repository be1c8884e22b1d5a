"""A fleet's result and its timetable for programs: JSON and CSV; bytes, seconds and ratios."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bottleneck import __version__
from bottleneck.documents import fleet_together
from bottleneck.documents.fleet import headline, nodes_by_pair, sentences
from bottleneck.documents.rows import cell
from bottleneck.fleet.records import Culprit, Fleet, Pair
from bottleneck.fleet.result import Result

SCHEMA = "copy-bottleneck/fleet/1"


def to_json(result: Result, extra: dict[str, Any] | None = None) -> str:
    """Returns one document: bytes, seconds and ratios; a figure not measured is absent."""
    finding = result.findings[0] if result.findings else None
    slow = {} if finding is None else nodes_by_pair(finding)
    pairs = sorted({pair for rates in result.rates.values() for pair in rates})
    document = {
        "schema": SCHEMA,
        "status": result.status,
        "tool": {"version": __version__},
        **(extra or {}),
        "sentence": headline(result),
        "evidence": list(sentences(result)),
        **_fleet_json(result.fleet),
        "copy": finding.copy if finding else None,
        "usual_bytes_per_second": finding.usual_bytes_per_second if finding else None,
        "noise_ratio": finding.noise_ratio if finding else None,
        "culprits": [
            {**_culprit_json(each), "copies": list(result.copies_of(each))}
            for each in result.culprits
        ],
        "undecided": [_culprit_json(each) for each in result.undecided_suspects],
        "unexplained": [each._asdict() for each in finding.unexplained] if finding else [],
        "common": [asdict(each) for each in result.common],
        "pairs": [
            {
                **pair._asdict(),
                "bytes_per_second": {
                    copy: rates[pair] for copy, rates in result.rates.items() if pair in rates
                },
                "at_most": pair in result.at_most,
                "explained_by": [each._asdict() for each in slow.get(pair, ())],
            }
            for pair in pairs
        ],
        **({"together": fleet_together.to_plain(result.together)} if result.together else {}),
        "missing": [{**pair._asdict(), "reason": why} for pair, why in result.missing.items()],
        "unread": list(result.unread),
        "skipped": list(result.skipped),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _fleet_json(fleet: Fleet) -> dict[str, Any]:
    return {
        "clients": list(fleet.clients),
        "servers": list(fleet.servers),
        "segments": [
            {**each.node._asdict(), "members": sorted(each.members)} for each in fleet.segments
        ],
    }


def _culprit_json(each: Culprit) -> dict[str, Any]:
    return {
        **each.node._asdict(),
        "bytes_per_second": each.bytes_per_second,
        "confidence": each.confidence,
        "slow_pairs": len(each.slow),
        "measured_pairs": each.measured,
        "verdict": {**asdict(each.verdict), "pairs": each.agreeing} if each.verdict else None,
        "opposed_pairs": each.opposed,
        "alternatives": [other._asdict() for other in each.alternatives],
        "measure": each.measure._asdict() if each.measure else None,
    }


def plan_json(fleet: Fleet, rounds: Sequence[Sequence[Pair]], extra: dict[str, Any]) -> str:
    """Returns the timetable as a document."""
    document = {
        "schema": SCHEMA,
        "status": "planned",
        **_fleet_json(fleet),
        "tests": sum(map(len, rounds)),
        **extra,
        "rounds": [[pair._asdict() for pair in each] for each in rounds],
    }
    return json.dumps(document, indent=1) + "\n"


def table_csv(result: Result) -> str:
    """Returns a row for each pair and copy."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("copy-bottleneck", "client", "server", "copy", "bytes_per_second"))
    figures = [
        (*pair, copy, rate)
        for copy, rates in result.rates.items()
        for pair, rate in sorted(rates.items())
    ]
    for client, server, copy, rate in (*figures, *fleet_together.rows(result.together)):
        rows.writerow((__version__, cell(client), cell(server), copy, f"{rate:.0f}"))
    return text.getvalue()
