"""Copies that differ in one thing: dialect, direction, source, or the program that copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.axis import (
    Axis,
    Group,
    Groups,
    compare_with_noise,
    most_different,
    pair_rows,
    pick_widest,
)
from bottleneck.analysis.comparisons.table import Cell, Row
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.rules.smb import mount
from bottleneck.analysis.steps import OWN
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text

EXPLAINED_RATIO = 1.5
"""Most limit by the round trip / copy's rate at which the limit explains the rate."""


def _sound(report: Report) -> Iterator[Cell]:
    """Yields the copies with a sound rate: durable at the end, and physically possible."""
    for each in table.copies(report):
        if each.row["durable"] and hardware_limits.impossible(report, each.result) is None:
            yield each


def _slower(group: Group, axis: Axis) -> str | None:
    return group.slow.row[axis.varies] if group.significant else None


def _leading_groups(groups: Groups) -> Groups:
    """Returns the groups of the client's first dialect and program, most different first."""
    who = "initiator dialect engine"
    ends = [each.ends[0].row for each in groups]
    lead = next((each for each in ends if each["initiator"] == "client"), ends[0])
    matches = [e for e in groups if table.pick(e.ends[0].row, who) == table.pick(lead, who)]
    return most_different(matches)


def _rates(group: Group, axis: Axis) -> str:
    ends = zip(axis.names, group.ends, strict=True)
    texts = [f"{name} {rate_text(end.rate)}" for name, end in ends]
    return ", ".join((*texts, table.program_text(group.slow)))


def _dialects(report: Report) -> list[Cell]:
    """Returns the client's copies by this tool, those that a dialect changes most first."""
    cells = [
        e for e in table.copies(report) if (e.row["initiator"], e.row["engine"]) == ("client", OWN)
    ]

    def difference(cell: Cell) -> tuple[bool, float]:
        versions = [each for each in cells if each.row["copy"] == cell.row["copy"]]
        ratio, significant = compare_with_noise(table.slowest_and_fastest(versions))
        return significant, ratio or 0.0

    return sorted(cells, key=difference, reverse=True)


def _dialect_figures(group: Group, _: Groups) -> Row:
    slow, fast = group.slow.row, group.fast.row
    by_age = sorted(group.cells, key=lambda each: steps.age(each.row["dialect"]))
    trip, allowed = rtt(group.report, group.slow.result), None
    if trip is not None and slow["in_flight_bytes"]:
        allowed = slow["in_flight_bytes"] / trip.seconds
        # If it ran faster than that, the round trip is wrong.
        bound = max(EXPLAINED_RATIO * group.slow.rate, group.fast.rate)
        allowed = allowed if group.slow.spread.high <= allowed <= bound else None
    return {
        "rates": ", ".join(f"{each.row['name']} {rate_text(each.rate)}" for each in by_age),
        "allowed_bytes_per_second": allowed,
        "rtt_seconds": trip and trip.seconds,
        "connect": trip is not None and not trip.is_echo,
        "reason": None if allowed else group.why and group.why.words,
        "flights": group.significant and slow["flight"] != fast["flight"],
        "guards": group.significant and slow["security"] != fast["security"],
        "apart": group.significant,
    }


DIALECT = Axis(
    "dialect",
    cells=_dialects,
    equal="copy",
    minimum=2,
    ends=table.slowest_and_fastest,
    columns="copy dialect bytes_per_second low_bytes_per_second high_bytes_per_second runs "
    "request_bytes depth in_flight_bytes security",
    leading=pick_widest,
    figures=_dialect_figures,
    sentences=(
        "{same}{copy}: no significant difference ({rates}).",
        "{copy}: {slow.name} is {times} slower than {fast.name} ({rates}){reason}",
        "{apart}{copy}: {slow.name} is {times} slower than {fast.name} ({rates}). At an RTT of "
        "[{connect}about ]{rtt_seconds}, {slow.name} allows at most {allowed_bytes_per_second}.",
        "{flights}{slow.name} keeps {slow.flight} in flight, {fast.name} {fast.flight}.",
        "{guards}{slow.name} was {slow.security}, {fast.name} {fast.security}.",
    ),
)


def _cause(group: Group) -> tuple[Any, ...] | None:
    why = group.why
    return (group.slow.row["verb"], *why.ceiling.key) if why and why.ceiling else None


def _direction_figures(group: Group, groups: Groups) -> Row:
    """Returns the figures of a pair; a cause of several of them is written once."""
    leading = _leading_groups(groups)
    earlier = [_cause(each) for each in leading[: leading.index(group)]]
    row = {"subject": group.slow.row["cache"].capitalize(), "rates": _rates(group, DIRECTION)}
    again = _cause(group) is not None and _cause(group) in earlier
    return {**row, "reason": None, "again": True} if again else row


DIRECTION: Axis = Axis(
    "direction",
    cells=_sound,
    equal="initiator dialect engine cache proven is_of_file",
    varies="verb",
    names=("push", "pull"),
    columns="initiator dialect engine cache",
    rows=lambda group: pair_rows(group, DIRECTION, slower=_slower(group, DIRECTION)),
    leading=_leading_groups,
    figures=_direction_figures,
    sentences=(
        "{same}{subject}: no significant difference ({rates}).",
        "{subject}: {slow.verb}ing is {times} slower than {fast.verb}ing ({rates}){reason}",
        "{again}{subject}: the same cause ({slow.bytes_per_second}, {times}).",
    ),
)


def _cache_figures(group: Group, _: Groups) -> Row:
    row, uncached = group.slow.row, group.slow.row["cache"] == "uncached"
    return {
        "subject": f"{row['verb'].capitalize()}ing {'the' if row['is_of_file'] else 'a'} file",
        "source": "disk than from its cache" if uncached else "cache than from its disk",
        "rates": _rates(group, CACHE),
        "disk": uncached and group.why is not None and group.why.ceiling is None,
    }


CACHE: Axis = Axis(
    "cache",
    # Without proof of the cache's state, both copies may be the same.
    cells=lambda report: (each for each in _sound(report) if each.row["proven"]),
    equal="initiator dialect engine verb is_of_file",
    varies="cache",
    names=("cached", "uncached"),
    columns="copy initiator dialect engine sender",
    rows=lambda group: pair_rows(group, CACHE, slower=_slower(group, CACHE)),
    leading=_leading_groups,
    figures=_cache_figures,
    sentences=(
        "{same}{subject}: no significant difference ({rates}).",
        "{subject} is {times} slower from the {slow.sender}'s {source} ({rates}){reason}",
        "{disk}Only the {slow.sender}'s disk differs between the two copies.",
    ),
)


def _mount_and_own_copies(report: Report) -> Iterator[Cell]:
    """Yields the mount's copies, and the fastest that this tool made of the same source."""
    cells = list(table.copies(report))
    fastest = {each.source.beside.index for each in cells if each.source.beside is not None}
    return (each for each in cells if each.source.beside or each.result.index in fastest)


def _native_rows(group: Group) -> Iterator[Row]:
    native, tool = group.ends
    yield {
        **table.pick(native.row, "copy program"),
        "native_bytes_per_second": native.rate,
        "own_bytes_per_second": tool.rate,
        "filesystem": steps.word(native.result.outcome.details, "mount", "filesystem"),
        "options": _options(native),
        "ratio": group.ratio,
        "significant": group.significant,
        "verdict": _native_verdict(group, native, tool) if group.significant else None,
    }


def _native_verdict(group: Group, native: Cell, tool: Cell) -> Row:
    """Returns the cause of the gap, in the contract's words."""
    if group.fast is native:
        return {"component": "instrument", "side": "client", "cause": "ceiling"}
    cause = mount.cause(native.result, tool.result).word
    advice = f"{_remedy(native)}. Expected: up to {rate_text(tool.rate)}."
    return {"component": "smb", "side": "client", "cause": cause, "advice": advice}


def _native_figures(group: Group, _: Groups) -> Row:
    native, tool = group.ends
    program = native.row["program"] or "the operating system's copy"
    texts = f"{program} through the mount {rate_text(native.rate)}, this tool over "
    texts += f"{tool.row['name']} {rate_text(tool.rate)}"
    return {
        "rates": texts,
        "options": ", ".join(_options(native)) or None,
        "remedy": _remedy(native) if group.significant and group.slow is native else None,
    }


def _options(native: Cell) -> list[str]:
    return [text for text, _ in mount.slow_options(native.result, native.row["verb"])]


def _remedy(native: Cell) -> str:
    return mount.remedy(native.result, native.row["verb"])


NATIVE = Axis(
    "native",
    cells=_mount_and_own_copies,
    equal="copy initiator proven",
    varies="is_native",
    names=(True, False),
    rows=_native_rows,
    leading=pick_widest,
    figures=_native_figures,
    sentences=(
        "{same}{copy}: no significant difference ({rates}).",
        "{copy}: the mount[ with {options}] is {times} slower than this tool ({rates}). {remedy}.",
        "{less}{copy}: the operating system's copy is {times} as fast ({rates}). This tool "
        "itself may limit its own copies.",
    ),
)
