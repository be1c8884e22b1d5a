"""Messages of each size, cold and warm, and datagrams: sent against arrived.

What programs pay that send many small ones, and the path's own loss apart from our tool's.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import Row
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import (
    count_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)
from probes.records import SIDES

COLUMNS = {
    ("cold", 0): "cold_none",
    ("cold", 1): "cold_one",
    ("cold", 2): "cold_two",
    ("warm", 1): "warm_one",
    ("warm", 2): "warm_two",
}
"""Connection and round trips."""
HELD_SECONDS = 0.02
"""A delayed acknowledgement comes after 40 ms (Linux) to 200 ms; RFC 1122 allows 500 ms."""
BIAS_RATIO = 1.1
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


# -- messages ----------------------------------------------------------------------------------


def latencies(report: Report) -> Iterator[Comparison]:
    """One comparison for each latency stage."""
    for found in steps.measured(report, "latency"):
        rows = tuple(_rows(found))
        if not rows:
            continue
        held = _held(found)
        small = _small_files(report, found)
        parts = (_line(found), _spread(found), _cold(found, rows), held, small and small[1])
        yield Comparison(
            about="messages",
            sentence=" ".join(part for part in parts if part),
            rows=rows,
            ratio=steps.positive(found.outcome.details, "nagle", "ratio") if held else None,
            significant=bool(held),
            steps=(found.index, *((small[0],) if small else ())),
        )


def _rows(found: Found) -> Iterator[Row]:
    """A row a size, with a time for each way that was measured."""
    by_size: dict[float, Row] = {}
    for told in steps.items(found.outcome.details, "table"):
        size, seconds = (steps.positive(told, name) for name in ("message_bytes", "seconds"))
        trips = steps.amount(told, "round_trips")
        name = COLUMNS.get((steps.word(told, "connection") or "", int(trips or 0)))
        if size is None or seconds is None or name is None:
            continue
        row = by_size.setdefault(size, {"message_bytes": int(size)})
        row[f"{name}_seconds"] = seconds
        if trips:
            row[f"{name}_bytes_per_second"] = size * trips / seconds
    every = [f"{name}_seconds" for name in COLUMNS.values()]
    every += [f"{name}_bytes_per_second" for (_, trips), name in COLUMNS.items() if trips]
    for size in sorted(by_size):
        yield {"message_bytes": int(size), **dict.fromkeys(every), **by_size[size]}


def _line(found: Found) -> str:
    details = found.outcome.details
    names = ("latency_seconds", "bandwidth_bytes_per_second", "n_half_bytes")
    latency, bandwidth, half = (steps.positive(details, "fit", name) for name in names)
    if latency is None or bandwidth is None or half is None:
        why = steps.word(details, "fit", "refused") or "there is none"
        return f"The times give no latency and no bandwidth: {why}."
    off = steps.amount(details, "fit", "worst_residual_ratio")
    doubt = "" if off is None else f" ({percent_text(off)} off at worst)"
    return (
        f"A message of n bytes and its answer take t(n) = {seconds_text(latency)} + n / "
        f"{rate_text(bandwidth)}{doubt}: half of the rate needs messages of {size_text(half)}."
    )


def _latency(found: Found) -> float | None:
    details = found.outcome.details
    fitted = steps.positive(details, "fit", "latency_seconds")
    return fitted or steps.positive(details, "percentiles", "p50_seconds")


def _spread(found: Found) -> str:
    told = found.outcome.details
    half, most = (
        steps.positive(told, "percentiles", f"p{percent}_seconds") for percent in (50, 99)
    )
    if half is None or most is None:
        return ""
    return (
        f"Of 1 byte, half of the exchanges took up to {seconds_text(half)} and 1 in 100 more than "
        f"{seconds_text(most)}."
    )


def _cold(found: Found, rows: tuple[Row, ...]) -> str:
    """What a connection of its own costs the shortest message."""
    cold, warm = rows[0]["cold_one_seconds"], rows[0]["warm_one_seconds"]
    if cold is None or warm is None or cold <= warm:
        return ""
    told = f"A connection of its own costs each message {seconds_text(cold - warm)} more"
    biased = steps.positive(found.outcome.details, "cold_fit", "latency_seconds")
    latency = steps.positive(found.outcome.details, "fit", "latency_seconds")
    if biased is None or latency is None or biased < BIAS_RATIO * latency:
        return f"{told}."
    return f"{told}; a line through those times would have {seconds_text(biased)} for latency."


def _held(found: Found) -> str:
    """The trap of small writes, where the path's ends fall into it."""
    details = found.outcome.details
    names = ("seconds", "plain_seconds", "ratio")
    split, plain, ratio = (steps.positive(details, "nagle", name) for name in names)
    if split is None or plain is None or ratio is None or split - 2 * plain < HELD_SECONDS:
        return ""
    return (
        "A program that writes head and body apart without TCP_NODELAY waits "
        f"{seconds_text(split)} for each answer in place of {seconds_text(plain)} "
        f"({times_text(ratio)}): Nagle's algorithm and the delayed acknowledgement wait for each "
        "other."
    )


def _small_files(report: Report, found: Found) -> tuple[int, str] | None:
    """What the latency alone costs a small file: the step that counted round trips, and it."""
    latency = _latency(found)
    for each in steps.measured(report, "small-files"):
        trips = steps.positive(each.outcome.details, "round_trips_per_file")
        if latency is not None and trips is not None and each.intact:
            many = "round trip" if trips == 1 else "round trips"
            verb = {"pull": "pulled", "push": "pushed"}.get(
                steps.word(each.step.setting, "verb") or "", "copied"
            )
            return each.index, (
                f"The {count_text(trips)} {many} of a small file that is {verb} are "
                f"{seconds_text(trips * latency)} at least."
            )
    return None


# -- datagrams ---------------------------------------------------------------------------------


def datagrams(report: Report) -> Iterator[Comparison]:
    """One comparison for each direction that datagrams were sent in."""
    for found in steps.measured(report, "udp"):
        row = _account(found)
        sent, lost = row["sent_datagrams"], row["lost_datagrams"]
        if sent is None or lost is None or sent < 1 or lost > sent or 0 < lost < 1:
            continue
        ratio = row["loss_ratio"] = lost / sent
        yield Comparison(
            about="datagrams",
            sentence=_datagram_sentence(found, row),
            rows=(row,),
            ratio=None if lost == sent else sent / (sent - lost),
            significant=lost >= LEAST_LOST and ratio >= LEAST_LOSS_RATIO,
            steps=(found.index,),
        )


def _account(found: Found) -> Row:
    return {
        "verb": table.verb(found),
        "bytes_per_second": found.rate.median,
        **{name: steps.amount(found.outcome.details, name) for name in FIGURES},
    }


def _datagram_sentence(found: Found, row: Row) -> str:
    pace = row["sent_bytes_per_second"] or row["bytes_per_second"]
    size = row["payload_bytes"]
    of = "" if size is None else f" of {count_text(size)} bytes"
    told = [
        f"{table.moving(found)} {rate_text(pace)} in datagrams{of}, {_lost(row)}{_jitter(row)}."
    ]
    told += _order(row)
    told += _drops(found, row)
    if row["pace_ratio"] is not None and row["pace_ratio"] < KEPT_RATIO:
        told.append(
            f"The sender kept {percent_text(row['pace_ratio'])} of the pace that was meant: what "
            "it did not send is not counted as lost."
        )
    return " ".join(told)


def _lost(row: Row) -> str:
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


def _jitter(row: Row) -> str:
    jitter = row["jitter_seconds"]
    return "" if jitter is None else f"; jitter {seconds_text(jitter)}"


def _order(row: Row) -> Iterator[str]:
    late, twice = row["reordered_ratio"], row["duplicate_datagrams"]
    if late and late >= LEAST_REORDERED_RATIO:
        yield (
            f"{_share(late)} came after one that was sent later: TCP takes that for loss where it "
            "goes on for long."
        )
    if twice:
        yield f"{count_text(twice)} came twice."


def _drops(found: Found, row: Row) -> Iterator[str]:
    dropped = row["receiver_dropped_datagrams"]
    if not dropped:
        return
    initiator = found.step.initiator
    receiver = initiator if row["verb"] == "pull" else SIDES[1 - SIDES.index(initiator)]
    yield (
        f"{count_text(dropped)} more reached the {receiver} and found no room in this tool's own "
        "socket, which is no loss of the path."
    )
