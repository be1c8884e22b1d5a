"""Datagrams sent against datagrams that arrived: the path's own loss, apart from our tool's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import (
    count_text,
    percent_text,
    rate_text,
    seconds_text,
)
from probes.records import SIDES

LEAST_LOST = 5
LEAST_LOSS_RATIO = 0.0001
"""Fewer than that happen once; TCP hardly feels them."""
LEAST_REORDERED_RATIO = 0.001
KEPT_RATIO = 0.95
"""A sender below that share of its pace did not keep it."""
FIGURES = (
    "sent_datagrams",
    "received_datagrams",
    "lost_datagrams",
    "receiver_dropped_datagrams",
    "reordered_datagrams",
    "duplicate_datagrams",
    "longest_gap_datagrams",
    "reordered_ratio",
    "jitter_seconds",
    "sent_bytes_per_second",
    "pace_ratio",
    "payload_bytes",
)


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each direction that datagrams were sent in."""
    for found in steps.measured(report, "udp"):
        row = _row(found)
        sent, lost = row["sent_datagrams"], row["lost_datagrams"]
        if sent is None or lost is None or sent < 1 or lost > sent or 0 < lost < 1:
            continue
        ratio = row["loss_ratio"] = lost / sent
        yield Comparison(
            about="datagrams",
            sentence=_sentence(found, row),
            rows=(row,),
            ratio=None if lost == sent else sent / (sent - lost),
            significant=lost >= LEAST_LOST and ratio >= LEAST_LOSS_RATIO,
            steps=(found.index,),
        )


def _row(found: Found) -> dict[str, Any]:
    return {
        "verb": steps.word(found.step.setting, "verb"),
        "bytes_per_second": found.rate.median,
        **{name: steps.amount(found.outcome.details, name) for name in FIGURES},
    }


def _sentence(found: Found, row: dict[str, Any]) -> str:
    verb = {"pull": "Pulling", "push": "Pushing"}.get(row["verb"] or "", "Moving")
    pace = row["sent_bytes_per_second"] or row["bytes_per_second"]
    size = row["payload_bytes"]
    of = "" if size is None else f" of {count_text(size)} bytes"
    told = [f"{verb} {rate_text(pace)} in datagrams{of}, {_lost(row)}{_jitter(row)}."]
    told += _order(row)
    told += _drops(found, row)
    if row["pace_ratio"] is not None and row["pace_ratio"] < KEPT_RATIO:
        told.append(
            f"The sender kept {percent_text(row['pace_ratio'])} of the pace that was meant: what "
            "it did not send is not counted as lost."
        )
    return " ".join(told)


def _lost(row: dict[str, Any]) -> str:
    sent = row["sent_datagrams"]
    where = "" if row["receiver_dropped_datagrams"] is not None else " or the receiver"
    if not row["lost_datagrams"]:
        return f"the path{where} lost none of {count_text(sent)}"
    gap = row["longest_gap_datagrams"]
    longest = "" if gap is None or gap < 2 else f", up to {count_text(gap)} in a row"
    return f"the path{where} lost {_share(row['loss_ratio'])} of them{longest}"


def _share(ratio: float) -> str:
    """`2 %`, and what is less as `1 in 2,000`."""
    return percent_text(ratio) if ratio >= 0.01 else f"1 in {count_text(round(1 / ratio))}"


def _jitter(row: dict[str, Any]) -> str:
    jitter = row["jitter_seconds"]
    return "" if jitter is None else f"; jitter {seconds_text(jitter)}"


def _order(row: dict[str, Any]) -> Iterator[str]:
    late, twice = row["reordered_ratio"], row["duplicate_datagrams"]
    if late and late >= LEAST_REORDERED_RATIO:
        yield (
            f"{_share(late)} came after one that was sent later: TCP takes that for loss where it "
            "goes on for long."
        )
    if twice:
        yield f"{count_text(twice)} came twice."


def _drops(found: Found, row: dict[str, Any]) -> Iterator[str]:
    dropped = row["receiver_dropped_datagrams"]
    if not dropped:
        return
    initiator = found.step.initiator
    receiver = initiator if row["verb"] == "pull" else SIDES[1 - SIDES.index(initiator)]
    yield (
        f"{count_text(dropped)} more reached the {receiver} and found no room in this tool's own "
        "socket, which is no loss of the path."
    )
