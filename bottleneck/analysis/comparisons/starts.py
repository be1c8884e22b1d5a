"""Copies started by client and by server; acknowledged and durable rates of pushes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import axis, table
from bottleneck.analysis.comparisons.table import Cell, Cells, Row
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.link_end import is_supplied
from bottleneck.analysis.noise import REPEATED_RATIO
from bottleneck.analysis.steps import CACHES, OURS, OWN
from bottleneck.report.report import Report, median_run
from bottleneck.text.units import rate_text, times_text
from probes.core.records import SIDES, run_rate

LONGEST_WORDS = 120


def _comparable_copies(report: Report) -> list[Cell]:
    cells = [
        each
        for each in table.copies(report)
        if not each.row["is_native"]
        and (each.row["initiator"] == "server" or each.row["engine"] == OWN)
    ]
    return sorted(cells, key=lambda e: (SIDES.index(e.row["sender"]), CACHES.index(e.row["cache"])))


def _server_copy(pair: Cells) -> Cell:
    return next(each for each in pair if each.row["initiator"] == "server")


def _comparable_rates(pair: Cells) -> Cells:
    """Returns both copies by their acknowledged rate, if the server's was not flushed."""
    if _server_copy(pair).row["durable"]:
        return pair
    rates = (e.row["durable"] and e.row["acknowledged_bytes_per_second"] for e in pair)
    return [
        replace(each, spread=table.single(rate)) if rate else each
        for each, rate in zip(pair, rates, strict=True)
    ]


def _is_by_our_server(pair: Cells) -> bool:
    """Whether this tool itself is one of the file servers, so that a difference is its own."""
    return _server_copy(pair).row["engine_server"] in OURS


def _start_difference(pair: Cells) -> tuple[float | None, bool]:
    ratio, significant = axis.compare_with_noise(pair)
    return ratio, significant and not _is_by_our_server(pair)


def _initiator_rows(group: axis.Group) -> Iterator[Row]:
    row = _server_copy(group.ends).row
    better = group.fast.row["starter"] if group.significant else None
    return axis.pair_rows(
        group, INITIATOR, **table.pick(row, "engine engine_server durable"), better=better
    )


def _initiator_figures(group: axis.Group, groups: axis.Groups) -> Row:
    different = [each for each in groups if each.significant]
    engines = dict.fromkeys(_server_copy(each.ends).row["engine"] for each in groups)
    # The server's share may sign or encrypt while TARGET does not, which costs throughput.
    guards = {each.row["initiator"]: each.row["security"] for each in group.ends}
    others = len(groups) - len(different)
    comparable = not all(_is_by_our_server(each.ends) for each in groups)
    return {
        "not_comparable": not comparable,
        "same": comparable and not different,
        "advice": _advice(different) if different else None,
        "others": f"{others} cases" if others > 1 else "case",
        "any_other": bool(different) and others > 0,
        "programs": " and ".join(each for each in engines if each != OWN) or None,
        "apart": group.significant,
        "guards": guards,
        "security_differs": guards["client"] != guards["server"],
    }


def _advice(groups: list[axis.Group]) -> str:
    """Returns which host should start a copy, and the gain of each direction."""
    starts = [{each.fast.row[name] for each in groups} for name in ("starter", "initiator")]
    agreed = next((each for each in starts if len(each) == 1), None)
    start = f"Start the copy from the {agreed.pop()}" if agreed else ""
    by_ratio = sorted(groups, key=lambda each: each.ratio or 0.0)
    by_sender = {each.fast.row["sender"]: each for each in by_ratio}
    gains = [_gain(by_sender[side]) for side in SIDES if side in by_sender]
    gains[1:] = map(table.capital, gains[1:])
    return f"{start or 'The better initiator depends on the copy'}: {'. '.join(gains)}."


def _gain(group: axis.Group) -> str:
    acknowledged = "" if _server_copy(group.ends).row["durable"] else ", acknowledged"
    rates = f"{rate_text(group.fast.rate)} instead of {rate_text(group.slow.rate)}{acknowledged}"
    return table.write(
        "{direction} ({cache}) is {times} as fast if the {initiator} starts it ({rates})",
        {**group.fast.row, "times": times_text(group.ratio or 0.0), "rates": rates},
    )


def _reported_comparisons(report: Report) -> Iterator[Comparison]:
    """Yields a comparison for each direction that a person reported without figures."""
    for each in steps.items(report.target, "starts") if is_supplied(report) else ():
        sender, better = (steps.word(each, name) for name in ("sender", "better"))
        if sender in SIDES and better in INITIATOR.names:
            host = sender if better == "sender" else steps.other(sender)
            words = (steps.word(each, "words") or "faster")[:LONGEST_WORDS]
            sentence = (
                f"Start the copy from the {better}: {table.DIRECTIONS[sender]} was reported to be "
                f"{words} if the {host} starts the copy (no figures given)."
            )
            yield Comparison("initiator", sentence, significant=True)


INITIATOR = axis.Axis(
    "initiator",
    cells=_comparable_copies,
    equal="sender cache dialect is_of_file proven",
    varies="starter",
    names=("sender", "receiver"),
    ends=_comparable_rates,
    apart=_start_difference,
    rows=_initiator_rows,
    leading=axis.pick_widest,
    columns="direction cache dialect engine engine_server",
    figures=_initiator_figures,
    sentences=(
        "{not_comparable}Not comparable: the client's share was served by this tool, which is "
        "slower than a file server. Install Samba on the client, or use --client-share.",
        "{same}No significant difference between copies started by client and by server (at most "
        "{times}, {slow.direction}, {slow.cache}).",
        "{advice}",
        "{any_other}No significant difference in the other {others}.",
        "Started by the {slow.initiator}, the copy is slower{reason}",
        "The server's own copies were made by {programs}, the client's by this tool[{apart}; this "
        "may cause a part of the difference].",
        "{security_differs}The client's copies were {guards.client}, the server's {guards.server}; "
        "this may cause or hide a difference.",
    ),
    remarks=_reported_comparisons,
)


def _late_pushes(report: Report) -> Iterator[Cell]:
    """Yields the pushes that were flushed, and acknowledged faster than they were durable."""
    for each in table.copies(report):
        row, setting = each.row, each.result.plan.setting
        waits_for_flush = steps.flag(setting, "flushed") is not False
        # Both rates are of one run, so that noise cannot make them differ.
        durable_rate = run_rate(median_run(each.result.outcome))
        ratio = (row["acknowledged_bytes_per_second"] or 0.0) / durable_rate
        late = ratio >= REPEATED_RATIO and row["flush_seconds"] is not None
        if row["verb"] == "push" and row["durable"] and waits_for_flush and late:
            figures = {**row, "durable_bytes_per_second": durable_rate, "ratio": ratio}
            yield replace(each, row=figures)


DURABILITY = axis.Axis(
    "durability",
    cells=_late_pushes,
    apart=lambda ends: (ends[0].row["ratio"], True),
    columns="copy dialect acknowledged_bytes_per_second durable_bytes_per_second flush_seconds "
    "ratio",
    leading=axis.pick_widest,
    figures=lambda group, _: {"by": table.program_text(group.cells[0])},
    sentences=(
        "{copy} ({by}) was acknowledged at {acknowledged_bytes_per_second} but on the {receiver}'s "
        "disk at {durable_bytes_per_second}. A program that does not wait for the flush shows at "
        "least {times} the real rate and finishes {flush_seconds} too early.",
    ),
    is_unreliable_on_busy_cores=False,
)
