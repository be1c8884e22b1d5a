"""Messages of each size, cold and warm, and datagrams: sent and received.

The cost of many small messages, and the path's own loss apart from this tool's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import MOVING, Row
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import (
    count_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)

COLUMNS = {
    ("cold", 0): "cold_none",
    ("cold", 1): "cold_one",
    ("cold", 2): "cold_two",
    ("warm", 1): "warm_one",
    ("warm", 2): "warm_two",
}
"""Connection and round trips."""
PIECE = ("to_bytes", "bandwidth_bytes_per_second")
HELD_SECONDS = 0.02
"""A delayed acknowledgement comes after 40 ms (Linux) to 200 ms; RFC 1122 allows 500 ms."""
BIAS_RATIO = 1.1
LEAST_LOST = 5
LEAST_LOSS_RATIO = 0.0001
"""Fewer than that happen once; TCP hardly feels them."""
LEAST_REORDERED_RATIO = 0.001
KEPT_RATIO = 0.95
"""A sender below that share of its pace did not keep it."""


# -- messages ----------------------------------------------------------------------------------


def latencies(report: Report) -> Iterator[Comparison]:
    """One comparison for each latency stage."""
    for found in steps.measured(report, "latency"):
        rows = tuple(_rows(found))
        if rows:
            held, small = _held(found), _small_files(report, found)
            parts = (
                _line(found, rows),
                _spread(found),
                _cold(found, rows),
                held,
                small and small[1],
            )
            yield Comparison(
                about="messages",
                sentence=" ".join(filter(None, parts)),
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
        if size is not None and seconds is not None and name is not None:
            row = by_size.setdefault(size, {})
            row[f"{name}_seconds"] = seconds
            if trips:
                row[f"{name}_bytes_per_second"] = size * trips / seconds
    every = [f"{name}_seconds" for name in COLUMNS.values()]
    every += [f"{name}_bytes_per_second" for (_, trips), name in COLUMNS.items() if trips]
    for size in sorted(by_size):
        yield {"message_bytes": int(size), **dict.fromkeys(every), **by_size[size]}


def _line(found: Found, rows: tuple[Row, ...]) -> str:
    fit = found.details.fit
    latency, bandwidth, half = fit.latency_seconds, fit.bandwidth_bytes_per_second, fit.n_half_bytes
    if latency is None or bandwidth is None or half is None:
        why = steps.word(found.outcome.details, "fit", "refused") or "no straight line fits"
        return f"Latency and bandwidth cannot be separated: {why}.{_as_measured(rows)}"
    off = steps.amount(found.outcome.details, "fit", "worst_residual_ratio")
    doubt = "" if off is None else f" (at most {percent_text(off)} off)"
    times = f"t(n) = {seconds_text(latency)} + n / {rate_text(bandwidth)}"
    pieces = steps.items(found.outcome.details, "fit", "pieces")
    if len(pieces) == 2:
        to_bytes, first = (steps.positive(pieces[0], each) for each in PIECE)
        least = steps.amount(pieces[1], "seconds") or 0.0
        short = "" if first is None else f" + n / {rate_text(first)}"
        sign, then = "-" if least < 0 else "", seconds_text(abs(least))
        times = (
            f"t(n) = {seconds_text(latency)}{short} up to {size_text(to_bytes or 0)} and "
            f"{sign}{then} + n / {rate_text(bandwidth)} from there"
        )
    return (
        f"A request of n bytes and its response take {times}{doubt}. Half of "
        f"{rate_text(bandwidth)} needs messages of {size_text(half)}."
    )


def _as_measured(rows: tuple[Row, ...]) -> str:
    """The three figures without a line: the shortest message, the best rate, and half of it."""
    timed = [(row["message_bytes"], row["warm_one_seconds"]) for row in rows]
    known = [(size, seconds) for size, seconds in timed if size and seconds]
    if not known:
        return ""
    best = max(size / seconds for size, seconds in known)
    half = min(size for size, seconds in known if size / seconds >= best / 2)
    return (
        f" As measured: {size_text(known[0][0])} takes {seconds_text(known[0][1])}, the best rate "
        f"is {rate_text(best)}, and half of it comes with messages of {size_text(half)}."
    )


def _spread(found: Found) -> str:
    half, most = (
        steps.positive(found.outcome.details, "percentiles", f"p{each}_seconds")
        for each in (50, 99)
    )
    if half is None or most is None:
        return ""
    return (
        f"With 1 byte, half of the requests took at most {seconds_text(half)} and 1% more than "
        f"{seconds_text(most)}."
    )


def _cold(found: Found, rows: tuple[Row, ...]) -> str:
    """What a new connection costs the shortest message."""
    cold, warm = rows[0]["cold_one_seconds"], rows[0]["warm_one_seconds"]
    if cold is None or warm is None or cold <= warm:
        return ""
    told = f"A new connection for each message takes another {seconds_text(cold - warm)}"
    biased = steps.positive(found.outcome.details, "cold_fit", "latency_seconds")
    latency = found.details.fit.latency_seconds
    if biased is None or latency is None or biased < BIAS_RATIO * latency:
        return f"{told}."
    return f"{told}; a fit over those times would give a latency of {seconds_text(biased)}."


def _held(found: Found) -> str:
    """What Nagle's algorithm costs split writes, where it does."""
    names = ("seconds", "plain_seconds", "ratio")
    details = found.outcome.details
    split, plain, ratio = (steps.positive(details, "nagle", name) for name in names)
    if split is None or plain is None or ratio is None or split - 2 * plain < HELD_SECONDS:
        return ""
    return (
        "A program that writes header and body separately without TCP_NODELAY waits "
        f"{seconds_text(split)} for each response instead of {seconds_text(plain)} "
        f"({times_text(ratio)}). The reason is Nagle's algorithm with delayed acknowledgements."
    )


def _small_files(report: Report, found: Found) -> tuple[int, str] | None:
    """What the latency alone costs a small file: the step that counted round trips, and it."""
    usual = steps.positive(found.outcome.details, "percentiles", "p50_seconds")
    latency = found.details.fit.latency_seconds or usual
    for each in steps.measured(report, "small-files"):
        trips = steps.positive(each.outcome.details, "round_trips_per_file")
        if latency is not None and trips is not None and each.intact:
            many = "round trip" if trips == 1 else "round trips"
            verb = {"pull": "pulled", "push": "pushed"}.get(each.setting.verb, "copied")
            return each.index, (
                f"The {count_text(trips)} {many} of a small file that is {verb} take at least "
                f"{seconds_text(trips * latency)}."
            )
    return None


# -- datagrams ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Account:
    """Datagrams that were sent in one direction, and how many arrived."""

    verb: str | None
    bytes_per_second: float
    sent_datagrams: float
    received_datagrams: float | None
    lost_datagrams: float | None
    receiver_dropped_datagrams: float | None
    reordered_datagrams: float | None
    duplicate_datagrams: float | None
    longest_gap_datagrams: float | None
    reordered_ratio: float | None
    jitter_seconds: float | None
    sent_bytes_per_second: float | None
    pace_ratio: float | None
    payload_bytes: float | None
    loss_ratio: float | None


def datagrams(report: Report) -> Iterator[Comparison]:
    """One comparison for each direction that datagrams were sent in."""
    for found in steps.measured(report, "udp"):
        known = {"bytes_per_second": found.rate.median, "loss_ratio": None}
        verb = found.setting.verb or None
        told = table.read(Account, found.outcome.details, verb=verb, **known)
        if told is None or told.lost_datagrams is None:
            continue
        sent, lost = told.sent_datagrams, told.lost_datagrams
        if sent < 1 or lost > sent or 0 < lost < 1:
            continue
        told = replace(told, loss_ratio=lost / sent)
        yield Comparison(
            about="datagrams",
            sentence=" ".join(_account_sentences(found, told, lost / sent)),
            rows=(asdict(told),),
            ratio=None if lost == sent else sent / (sent - lost),
            significant=lost >= LEAST_LOST and lost / sent >= LEAST_LOSS_RATIO,
            steps=(found.index,),
        )


def _account_sentences(found: Found, told: Account, loss_ratio: float) -> Iterator[str]:
    pace = rate_text(told.sent_bytes_per_second or told.bytes_per_second)
    of = "" if told.payload_bytes is None else f" of {count_text(told.payload_bytes)} bytes"
    where = "" if told.receiver_dropped_datagrams is not None else " or the receiver"
    lost = f"none of {count_text(told.sent_datagrams)}"
    if told.lost_datagrams:
        gap = told.longest_gap_datagrams
        longest = "" if gap is None or gap < 2 else f", up to {count_text(gap)} in a row"
        lost = f"{_share(loss_ratio)} of them{longest}"
    jitter = "" if told.jitter_seconds is None else f"; jitter {seconds_text(told.jitter_seconds)}"
    yield (
        f"{MOVING.get(found.setting.verb, 'Moving')} datagrams{of} at {pace}: the path{where} lost "
        f"{lost}{jitter}."
    )
    if told.reordered_ratio and told.reordered_ratio >= LEAST_REORDERED_RATIO:
        yield (
            f"{_share(told.reordered_ratio)} arrived out of order: TCP treats long reordering as "
            "loss."
        )
    if told.duplicate_datagrams:
        yield f"{count_text(told.duplicate_datagrams)} arrived twice."
    if told.receiver_dropped_datagrams:
        yield (
            f"The {steps.other(found.sender)} dropped another "
            f"{count_text(told.receiver_dropped_datagrams)} at this tool's own socket: that is not "
            "a loss of the path."
        )
    if told.pace_ratio is not None and told.pace_ratio < KEPT_RATIO:
        yield (
            f"The sender reached {percent_text(told.pace_ratio)} of the intended rate; datagrams "
            "that were not sent do not count as lost."
        )


def _share(ratio: float) -> str:
    """`2 %`, and what is less as `1 in 2,000`."""
    return percent_text(ratio) if ratio >= 0.01 else f"1 in {count_text(round(1 / ratio))}"
