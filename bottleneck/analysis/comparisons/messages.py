"""Messages by size, on cold and warm connections; datagrams, sent and received.

They show the cost of many small messages, and the path's own loss apart from this tool's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.axis import MOVING, Axis, Group, Groups
from bottleneck.analysis.comparisons.table import Cell, Cells, Row
from bottleneck.analysis.noise import REPEATED_RATIO
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import count_text, percent_text

COLUMNS = {
    ("cold", 0): "cold_none",
    ("cold", 1): "cold_one",
    ("cold", 2): "cold_two",
    ("warm", 1): "warm_one",
    ("warm", 2): "warm_two",
}
"""Columns by kind of connection and number of round trips."""
HELD_SECONDS = 0.02
"""Least delay by an acknowledgement: it comes after 40 ms (Linux) to 200 ms; RFC 1122: 500 ms."""
LEAST_LOST, LEAST_LOSS_RATIO = 5, 0.0001
"""Fewest lost datagrams, and least share: fewer happen by chance, and hardly slow TCP down."""
LEAST_REORDERED_RATIO = 0.001
COLUMNS_OF_DATAGRAMS = (
    "verb= bytes_per_second= sent_datagrams! received_datagrams lost_datagrams "
    "receiver_dropped_datagrams reordered_datagrams duplicate_datagrams longest_gap_datagrams "
    "reordered_ratio jitter_seconds sent_bytes_per_second pace_ratio payload_bytes loss_ratio="
)


def _messages(report: Report) -> Iterator[Cell]:
    for result in steps.measured_steps(report, "latency"):
        small = next(_small_files(report), None)
        others = () if small is None or _latency(result) is None else (small,)
        for row in _message_rows(result):
            yield table.cell(result, row, None, *others)


def _message_rows(result: MeasuredStep) -> Iterator[Row]:
    by_size: dict[float, Row] = {}
    for each in steps.items(result.outcome.details, "table"):
        size, seconds = (steps.positive(each, name) for name in ("message_bytes", "seconds"))
        trips = steps.amount(each, "round_trips")
        name = COLUMNS.get((steps.word(each, "connection") or "", int(trips or 0)))
        if size is not None and seconds is not None and name is not None:
            row = by_size.setdefault(size, {})
            row[f"{name}_seconds"] = seconds
            if trips:
                row[f"{name}_bytes_per_second"] = size * trips / seconds
    columns = [f"{name}_seconds" for name in COLUMNS.values()]
    columns += [f"{name}_bytes_per_second" for (_, trips), name in COLUMNS.items() if trips]
    for size in sorted(by_size):
        yield {"message_bytes": int(size), **dict.fromkeys(columns), **by_size[size]}


def _message_figures(group: Group, _: Groups) -> Row:
    result, row = group.cells[0].result, group.cells[0].row
    details = result.outcome.details
    cold, warm = row["cold_one_seconds"], row["warm_one_seconds"]
    small = next(iter(group.cells[0].others), None)
    trips = small and steps.amount(small.outcome.details, "round_trips_per_file")
    verb = small.setting.verb if small else ""
    return {
        **_fit(result),
        **_measured_figures(group.cells),
        "p50_seconds": steps.positive(details, "percentiles", "p50_seconds"),
        "p99_seconds": steps.positive(details, "percentiles", "p99_seconds"),
        "cold_seconds": cold - warm if cold and warm and cold > warm else None,
        "biased_seconds": _biased_latency(result),
        "nagle": details.get("nagle") if group.significant else None,
        "trips": trips and table.number_text(trips, "round trip"),
        "copied": f"{verb}ed" if verb in MOVING else "copied",
        "trips_seconds": trips and trips * (_latency(result) or 0.0),
    }


def _fit(result: MeasuredStep) -> Row:
    """Returns the straight line through the times, or why there is none."""
    fit, details = asdict(result.details.fit), result.outcome.details
    if None in fit.values():
        return {
            "no_line": True,
            "refused": steps.word(details, "fit", "refused") or "no straight line fits",
        }
    pieces = steps.items(details, "fit", "pieces")
    first, then = pieces if len(pieces) == 2 else ({}, {})
    return {
        **fit,
        "first_bytes_per_second": steps.positive(first, "bandwidth_bytes_per_second"),
        "to_bytes": (steps.positive(first, "to_bytes") or 0) if first else None,
        "two": bool(first),
        "then_seconds": steps.amount(then, "seconds") or 0,
        "doubt_ratio": steps.amount(details, "fit", "worst_residual_ratio"),
    }


def _measured_figures(cells: Cells) -> Row:
    """Returns the shortest message, the best rate and half of it."""
    rows = [each.row for each in cells if each.row["warm_one_seconds"]]
    rates = {each["message_bytes"]: each["warm_one_bytes_per_second"] for each in rows}
    best = max(rates.values(), default=None)
    half = best and _size_at(rates, best / 2)
    return {"shortest": next(iter(rows), None), "best_bytes_per_second": best, "half_bytes": half}


def _size_at(rates: Mapping[int, float], level: float) -> int:
    """Returns the message size from which on a rate is reached, by linear interpolation of time."""
    size = min(size for size, rate in rates.items() if rate >= level)
    shorter = max((each for each in rates if each < size), default=0)
    if not shorter:
        return size
    first, then = shorter / rates[shorter], size / rates[size]
    slope = (then - first) / (size - shorter)
    # size / time = level, with time = first + slope x (size - shorter)
    return round(level * (first - slope * shorter) / (1 - slope * level))


def _latency(result: MeasuredStep) -> float | None:
    usual = steps.positive(result.outcome.details, "percentiles", "p50_seconds")
    return result.details.fit.latency_seconds or usual


def _biased_latency(result: MeasuredStep) -> float | None:
    """Returns the latency by a fit over cold connections, if it is far too high."""
    biased = steps.positive(result.outcome.details, "cold_fit", "latency_seconds")
    latency = result.details.fit.latency_seconds
    far = biased is not None and latency is not None and biased >= REPEATED_RATIO * latency
    return biased if far else None


def _nagle(ends: Cells) -> tuple[float | None, bool]:
    """Returns the cost of Nagle's algorithm for split writes, as a ratio; None: no cost."""
    row = table.read(ends[0].result.outcome.details.get("nagle"), "seconds! plain_seconds! ratio!")
    if row is None or row["seconds"] - 2 * row["plain_seconds"] < HELD_SECONDS:
        return None, False
    return row["ratio"], True


def _small_files(report: Report) -> Iterator[MeasuredStep]:
    for result in steps.measured_steps(report, "small-files"):
        if steps.positive(result.outcome.details, "round_trips_per_file") and result.is_intact:
            yield result


MESSAGES = Axis(
    "messages",
    cells=_messages,
    apart=_nagle,
    figures=_message_figures,
    sentences=(
        "A request of n bytes and its response take t(n) = {latency_seconds}[ + n / "
        "{first_bytes_per_second}][ up to {to_bytes} and {then_seconds}] + n / "
        "{bandwidth_bytes_per_second}[{two} from there][ (at most {doubt_ratio} off)]. Half of "
        "{bandwidth_bytes_per_second} needs messages of {n_half_bytes}.",
        "Latency and bandwidth cannot be separated: {refused}.",
        "{no_line}As measured: {shortest.message_bytes} takes {shortest.warm_one_seconds}, the "
        "best rate is {best_bytes_per_second}, and half of it comes with messages of {half_bytes}.",
        "With 1 byte, half of the requests took at most {p50_seconds} and 1% more than "
        "{p99_seconds}.",
        "A new connection for each message takes another {cold_seconds}[; a fit over those times "
        "would give a latency of {biased_seconds}].",
        "A program that writes header and body separately without TCP_NODELAY waits "
        "{nagle.seconds} for each response instead of {nagle.plain_seconds} ({times}). The "
        "reason is Nagle's algorithm with delayed acknowledgements.",
        "The {trips} of a small file that is {copied} take at least {trips_seconds}.",
    ),
)


def _datagrams(report: Report) -> Iterator[Cell]:
    for result in steps.measured_steps(report, "udp"):
        path = {"verb": result.setting.verb or None, "bytes_per_second": result.rate.median}
        row = table.read(result.outcome.details, COLUMNS_OF_DATAGRAMS, **path)
        if row is None or row["lost_datagrams"] is None:
            continue
        sent, lost = row["sent_datagrams"], row["lost_datagrams"]
        if sent >= 1 and lost <= sent and not 0 < lost < 1:
            yield table.cell(result, {**row, "loss_ratio": lost / sent})


def _compare_by_loss(ends: Cells) -> tuple[float | None, bool]:
    sent, lost = (ends[0].row[f"{name}_datagrams"] for name in ("sent", "lost"))
    significant = lost >= LEAST_LOST and lost / sent >= LEAST_LOSS_RATIO
    return None if lost == sent else sent / (sent - lost), significant


def _datagram_figures(group: Group, _: Groups) -> Row:
    row, result = group.cells[0].row, group.cells[0].result
    lost, gap = table.write("none of {sent_datagrams}", row), row["longest_gap_datagrams"] or 0
    if row["lost_datagrams"]:
        longest = f", up to {count_text(gap)} in a row" if gap >= 2 else ""
        lost = f"{_share(row['loss_ratio'])} of them{longest}"
    dropped, reordered, pace = (
        row[name] for name in ("receiver_dropped_datagrams", "reordered_ratio", "pace_ratio")
    )
    return {
        "payload": row["payload_bytes"],
        "pace_bytes_per_second": row["sent_bytes_per_second"] or row["bytes_per_second"],
        "unsure": dropped is None,
        "lost": lost,
        "late": _share(reordered) if reordered and reordered >= LEAST_REORDERED_RATIO else None,
        "twice": row["duplicate_datagrams"] or None,
        "receiver": steps.other(result.sender),
        "dropped": dropped or None,
        "pace_ratio": pace if pace is not None and pace < table.ENOUGH_RATIO else None,
    }


def _share(ratio: float) -> str:
    """Returns `2%`, or a share below 1 % as `1 in 2,000`."""
    return percent_text(ratio) if ratio >= 0.01 else f"1 in {count_text(round(1 / ratio))}"


DATAGRAMS = Axis(
    "datagrams",
    cells=_datagrams,
    apart=_compare_by_loss,
    figures=_datagram_figures,
    sentences=(
        "{moving} datagrams[ of {payload} bytes] at {pace_bytes_per_second}: the path[{unsure} or "
        "the receiver] lost {lost}[; jitter {jitter_seconds}].",
        "{late} arrived out of order: TCP treats long reordering as loss.",
        "{twice} arrived twice.",
        "The {receiver} dropped another {dropped} at this tool's own socket: that is not a loss of "
        "the path.",
        "The sender reached {pace_ratio} of the intended rate; datagrams that were not sent do not "
        "count as lost.",
    ),
)
