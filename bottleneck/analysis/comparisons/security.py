"""The same bytes plain, signed and encrypted: what security costs, and on whose CPU."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import Row
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.load import SATURATED_RATIO, load
from bottleneck.analysis.noise import differ, factor
from bottleneck.analysis.rules.smb.signing import NOUNS, PLAIN, cpu_seconds_per_byte
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import cost_text, percent_text, rate_text
from probes.records import SIDES

SECURITIES = (PLAIN, *NOUNS)
DEARER_RATIO = 1.5
"""CPU time that grew by less is not told as a cost."""
DEARER_SECONDS = 0.03
"""The same of one copy's whole CPU time: /proc counts it in ticks of 10 ms."""


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison a direction in which two kinds of security were measured."""
    taxes = [each for each in steps.measured(report, "smb-tax") if each.intact]
    for verb, moving in table.MOVING.items():
        made = {each.setting.security: each for each in taxes if each.setting.verb == verb}
        # The least security first.
        found = {name: made[name] for name in SECURITIES if name in made}
        if len(found) < 2:
            continue
        base_name, base = next(iter(found.items()))
        others = {name: each for name, each in found.items() if name != base_name}
        dearest = min(others.values(), key=lambda each: each.rate.median)
        costs = "; ".join(_cost(name, base, each) for name, each in others.items())
        yield Comparison(
            about="security",
            sentence=f"{moving} at {rate_text(base.rate.median)} {base_name}: {costs}.",
            rows=tuple(_row(verb, name, each, base) for name, each in found.items()),
            ratio=factor(base.rate.median, dearest.rate.median),
            significant=differ(base.rate, dearest.rate),
            steps=tuple(each.index for each in found.values()),
        )


def _row(verb: str, name: str, found: Found, base: Found) -> Row:
    row: Row = {
        "verb": verb,
        "security": name,
        "signing": found.details.signing,
        "encryption": found.details.encryption,
        "bytes_per_second": found.rate.median,
        "low_bytes_per_second": found.rate.low,
        "high_bytes_per_second": found.rate.high,
        "runs": found.rate.runs,
        "cost_ratio": 1 - found.rate.median / base.rate.median,
        "significant": found is not base and differ(found.rate, base.rate),
    }
    for side in SIDES:
        usage = found.usage(side)
        row[f"{side}_cpu_seconds_per_byte"] = cpu_seconds_per_byte(found, side)
        row[f"{side}_busiest_core_ratio"] = None if usage is None else usage.busiest_core_ratio
    return row


def _cost(name: str, base: Found, found: Found) -> str:
    """What one kind of security takes, and where the CPU time goes."""
    rate, before = found.rate.median, base.rate.median
    if not differ(found.rate, base.rate):
        told = f"{NOUNS[name]} costs no throughput that these runs can tell"
    elif rate > before:
        # Whatever made it faster, it was not the work added.
        told = f"{NOUNS[name]} runs at {rate_text(rate)}, so it costs no throughput"
    else:
        taken = percent_text(1 - rate / before)
        told = f"{NOUNS[name]} takes {taken} of the rate ({rate_text(rate)} left)"
    return told + _dearer(base, found) + _full(found)


def _dearer(base: Found, found: Found) -> str:
    """The host whose CPU time per byte grew most, where it grew."""
    grown = []
    for side in SIDES:
        before, after = cpu_seconds_per_byte(base, side), cpu_seconds_per_byte(found, side)
        if before is None or after is None:
            continue
        more_seconds = (after - before) * found.moved_bytes
        if after > DEARER_RATIO * before and more_seconds >= DEARER_SECONDS:
            grown.append((after - before, side, before, after))
    if not grown:
        return ""
    _, side, before, after = max(grown)
    return f", with {cost_text(after)} of the {side}'s CPU instead of {cost_text(before)}"


def _full(found: Found) -> str:
    """A core that is full: more of it would be faster."""
    client, server = (load(found.usage(side)) for side in SIDES)
    # a core that serves interrupts is the server's as well, but not this tool's
    for used, whose in (
        (0.0 if server is None else server.one_core_ratio, "the server's core"),
        (0.0 if client is None else client.process_ratio, "this tool's core on the client"),
    ):
        if used >= SATURATED_RATIO:
            return f", and {whose} is full ({percent_text(min(1.0, used))})"
    return ""
