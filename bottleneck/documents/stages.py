"""The tests of a run: rates and hosts' load, repeated runs, TCP alone; what is missing and why."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from bottleneck.analysis import steps
from bottleneck.analysis.hardware_limits import interfaces
from bottleneck.analysis.model import ETHERNET_MTU_BYTES, looks_like, payload_efficiency
from bottleneck.analysis.phrases import busy_text, cell_text, spread_text, stage_text
from bottleneck.analysis.usual import usual_rates
from bottleneck.documents.document import ON_PAGES, WIDE, Bar, Block, Column, Points, Table, points
from bottleneck.report.report import WARMED_UP, Report, Step
from bottleneck.text import units
from bottleneck.text.safe import safe
from probes.core.records import (
    SIDES,
    Details,
    Failed,
    Measured,
    Skipped,
    Spread,
    Usage,
    rates,
    run_rate,
)

RICHNESS = ((48, True), (24, True), (0, True), (0, False))
"""Characters of the bars, and whether both spreads and dirty memory are shown; richest first."""
Entry = tuple[Step, Measured, Spread]


def stages(report: Report) -> Iterator[Block]:
    """Yields a line for each test, as rich as the width allows; nothing where none was measured."""
    tests = [
        (step, outcome, spread)
        for step, outcome in report.entries
        if isinstance(outcome, Measured) and (spread := _spread_of(outcome))
    ]
    if not tests:
        return
    usages = [usage for _, outcome, _ in tests for usage in (outcome.initiator, outcome.responder)]
    throttled = any(usage and usage.throttled_ratio for usage in usages)
    note = f"{LOAD[:-1]}; *: throttled by a CPU quota." if throttled else LOAD
    usual = [f"{e.name} {units.range_text(e.low, e.high)}" for e in usual_rates(report)]
    note += f" Usual: {'; '.join(usual)}." if usual else ""
    table = None
    for bar_columns, full in reversed(RICHNESS):
        table = _table(tests, bar_columns, full, note, table)
    if table is not None:
        yield table


def short_lines(report: Report) -> Iterator[str]:
    """Yields each measured stage with its rate."""
    for step, outcome in report.entries:
        spread = _spread_of(outcome) if isinstance(outcome, Measured) else None
        if spread is not None:
            yield f"{stage_text(step)}: {units.rate_text(spread.median)}"


LOAD = "Load: busiest core and memory in use."
"""Note below the columns of both hosts."""
LOADS = tuple(Column(f"{side} load", right=True) for side in SIDES)


def _table(
    tests: list[Entry], bar_columns: int, full: bool, note: str, narrower: Table | None
) -> Table:
    least_columns = WIDE if narrower is not None else 0
    scale = (Column(units.scale_text(bar_columns), bar=lambda _: bar_columns),)
    table = Table(
        "Measurements",
        (
            Column("stage"),
            Column("rate", right=True),
            *(scale if bar_columns else ()),
            Column("range"),
            *LOADS,
            Column("runs", right=True, least_columns=ON_PAGES),
        ),
        note=note,
        narrower=narrower,
        least_columns=least_columns,
    )
    for step, outcome, spread in tests:
        usages = (outcome.initiator, outcome.responder)
        client, server = usages if step.initiator == "client" else usages[::-1]
        table.add(
            stage_text(step),
            units.rate_text(spread.median),
            *((_bar(spread.median),) if bar_columns else ()),
            _spread_text(spread),
            _usage_text(client, full),
            _usage_text(server, full),
            f"{spread.runs}",
        )
    return table


def _bar(bytes_per_second: float) -> Bar | str:
    share = units.log_share(bytes_per_second)
    return Bar(share, 1.0) if share > 0 else ""


def _spread_of(outcome: Measured) -> Spread | None:
    """Returns the rates of a test; None: it has none, as a stage that moves no payload."""
    try:
        spread = rates(outcome)
    except (ValueError, IndexError):
        return None
    return spread if spread.high > 0 else None


def _spread_text(spread: Spread) -> str:
    unit = units.rate_text(spread.median).split(" ")[1]
    return spread_text(spread.low, spread.high).removesuffix(f" {unit}")


def _usage_text(usage: Usage | None, full: bool) -> str | None:
    load = busy_text(usage)
    if usage is None or not load:
        return None
    dirty = usage.memory_dirty_bytes
    written = full and dirty is not None and usage.memory_used_bytes is not None
    return f"{load} dirty {units.size_text(dirty or 0)}" if written else load


ENDINGS = {
    "partial": "some tests were not made",
    "interrupted": "the run was interrupted",
    "failed": "the run failed",
}
LONGEST_REASON = 200


def costly(report: Report) -> Iterator[Points]:
    """Yields settings of the server's file sharing and of both hosts that cost throughput."""
    yield from points("Settings: smb.conf of the server", _server_settings(report))
    yield from points(
        "Settings: TCP and power of both hosts", _host_settings(report, "tcp_settings")
    )
    yield from points("Settings: disks of both hosts", _host_settings(report, "disk_settings"))
    title = "Settings: the system's own SMB client (known to cost on other systems)"
    yield from points(title, _host_settings(report, "smb_settings"))


def _server_settings(report: Report) -> Iterator[str]:
    """Yields lines of the file server's configuration that matter for what was measured."""
    settings = report.target.get("smb_conf")
    measured = [step for step, outcome in report.entries if isinstance(outcome, Measured)]
    done = [word for each in measured for word in (each.stage, each.setting.get("dialect"))]
    for each in settings if isinstance(settings, list) else ():
        only = each.get("matters_for") if isinstance(each, dict) else None
        if isinstance(each, dict) and (only not in ("small-files", "smb1") or only in done):
            words = {key: str(each.get(key) or "") for key in ("option", "value", "why", "remedy")}
            yield "{option} = {value}: {why}; {remedy}".format_map(words)


def _host_settings(
    report: Report, field: Literal["tcp_settings", "disk_settings", "smb_settings"]
) -> Iterator[str]:
    for side, host in (("client", report.client), ("server", report.server)):
        if side == "server" and field == "smb_settings":
            return  # copies that start there are made by another client
        for each in getattr(host, field) if host else ():
            untested = "" if each.tested else " (untested on such a system)"
            yield f"{side}: {each.option} = {each.value}: {each.why}; {each.remedy}{untested}"


def missing_tests(report: Report) -> Iterator[Points]:
    """Yields the tests that were not measured."""
    yield from points("Not measured", missing_lines(report))


def missing_lines(report: Report) -> tuple[str, ...]:
    """Returns each reason once, with all the steps that it holds for; not safe."""
    reasons: list[tuple[str, str]] = []
    for step, outcome in report.entries:
        match outcome:
            case Skipped(reason):
                reasons.append((reason, stage_text(step)))
            case Failed(error, samples):
                duration = units.seconds_text(samples[-1].elapsed_seconds) if samples else ""
                delay = f" after {duration}" if duration else ""
                reasons.append((f"failed{delay}: {error}", stage_text(step)))
    return tuple(f"{names}: {why}" for why, names in join_names(reasons).items())


def join_names(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns each reason once, in the order of the pairs, with the names of all it holds for."""
    names: dict[str, dict[str, None]] = {}
    for reason, name in pairs:
        names.setdefault(reason, {})[name] = None
    return {reason: ", ".join(each) for reason, each in names.items()}


def reasons(report: Report) -> Iterator[Points]:
    """Yields each reason for tests once, with the steps that were made for it."""
    pairs = ((safe(s.why, LONGEST_REASON), stage_text(s)) for s, _ in report.entries if s.why)
    lines = (f"{reason}: {names}" for reason, names in join_names(pairs).items())
    yield from points("Reasons for the tests", lines)


# -- repeated runs, as hyperfine shows them ---------------------------------------------------

LEAST_RUNS = 2
OUTLIER_DEVIATIONS = 1.4826 * 10.0
"""Least median absolute deviations from the median of an outlier: ten standard
deviations of a normal distribution. Source: hyperfine, src/outlier_detection.rs."""
BINS, BLOCKS = 12, " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


def runs(report: Report) -> Iterator[Block]:
    """Yields a line for each test, then its outliers; nothing where one run was asked for."""
    if WARMED_UP not in report.notes:
        return
    unit = units.megabytes_unit()
    table = Table(
        f"Repeated runs, {unit}",
        (
            Column("stage"),
            Column("mean \u00b1 deviation", right=True),
            Column("range (min \u2026 max)", right=True),
            Column("runs", right=True),
            Column("histogram, min to max"),
        ),
    )
    warned = []
    for step, outcome in report.entries:
        each = _rates(outcome) if isinstance(outcome, Measured) else []
        if len(each) < LEAST_RUNS:
            continue
        name, show = stage_text(step), units.megabytes_text
        table.add(
            name,
            f"{show(statistics.mean(each))} \u00b1 {show(statistics.stdev(each))}",
            f"{show(min(each))} \u2026 {show(max(each))}",
            f"{len(each)}",
            histogram(each),
        )
        count = outliers(each)
        if count:
            are = "is an outlier" if count == 1 else "are outliers"
            warned.append(f"{name}: {count} of {len(each)} runs {are}")
    if table.rows:
        yield table
    if warned:
        advice = "Repeat on hosts and a network where nothing else runs."
        yield Points("Statistical outliers", (*warned, advice))


def _rates(outcome: Measured) -> list[float]:
    """Returns bytes per second of each run; empty where the stage moves no payload."""
    try:
        values = [run_rate(run) for run in outcome.runs]
    except (ValueError, IndexError):
        return []
    return values if any(values) else []


def outliers(values: Sequence[float]) -> int:
    """Counts outliers by the modified Z-score: the distance from the median over the median of all
    such distances."""
    middle = statistics.median(values)
    distances = [abs(each - middle) for each in values]
    usual = statistics.median(distances)
    return sum(each > OUTLIER_DEVIATIONS * usual for each in distances)


def histogram(values: Sequence[float]) -> str:
    """Returns the spread of the values, from the lowest to the highest: a block for each bin."""
    low, high = min(values), max(values)
    counts = [0] * BINS
    for each in values:
        share = (each - low) / (high - low) if high > low else 0.5
        counts[min(BINS - 1, int(share * BINS))] += 1
    highest = max(counts)
    return "".join(BLOCKS[-(-count * (len(BLOCKS) - 1) // highest)] for count in counts)


# -- TCP as ttcp shows it ---------------------------------------------------------------------

ENDS = ("sender", "receiver")
OVER_THE_LINK = ("tcp", "udp", "smb-copy", "native-copy")
MOST_MTU_BYTES = 16_000
"""Largest MTU of a link; a larger one is loopback's."""


def transfers(report: Report) -> Iterator[Block]:
    """Yields what each end spent, then both directions at once, then the shares."""
    table = Table(
        "TCP: processes that sent and received",
        (
            Column("stage"),
            Column("process"),
            Column("user CPU", right=True),
            Column("system CPU", right=True),
            Column("calls", right=True),
            Column("time per call", right=True),
            Column("window granted", right=True),
        ),
    )
    for step, outcome in report.entries:
        details = outcome.details if isinstance(outcome, Measured) else {}
        for end in ENDS:
            process = details.get(end)
            if isinstance(process, dict) and steps.amount(process, "user_seconds") is not None:
                table.add(stage_text(step), *_end_cells(step, end, process))
    if table.rows:
        yield table
    yield from points("Both directions at once", _both_ways(report))
    yield from _shares(report)


def _end_cells(step: Step, end: str, process: Details) -> tuple[str | None, ...]:
    sender = steps.sender(str(step.setting.get("verb")), step.initiator)
    side = sender if end == "sender" or step.stage == "loopback" else steps.other(sender)
    names = ("user_seconds", "system_seconds", "calls", "seconds_per_call", "granted_bytes")
    user, system, calls, per_call, granted = (steps.amount(process, name) for name in names)
    return (
        f"{side} {end}",
        cell_text(units.seconds_text, user),
        cell_text(units.seconds_text, system),
        cell_text(units.count_text, calls),
        cell_text(units.seconds_text, per_call),
        cell_text(units.size_text, granted),
    )


def _link_rates(report: Report) -> Iterator[tuple[Step, float]]:
    """Yields the median rates of all that goes over the link."""
    for index, (step, _) in enumerate(report.entries):
        test = steps.found_at(report, index) if step.stage in OVER_THE_LINK else None
        if test is not None:
            yield step, test.rate.median


def _both_ways(report: Report) -> Iterator[str]:
    """Yields each direction with its rate by itself, and the sum."""
    tcp = [(step, rate) for step, rate in _link_rates(report) if step.stage == "tcp"]
    sums = [0.0, 0.0]
    for step, rate in tcp:
        if not step.setting.get("both_ways"):
            continue
        one_way = {**step.setting, "both_ways": False}
        by_itself = next((r for other, r in tcp if other.setting == one_way), None)
        if by_itself is None:
            continue
        sums = [sums[0] + rate, sums[1] + by_itself]
        share = units.percent_text(rate / by_itself)
        yield (
            f"{step.setting.get('verb')}: {units.rate_text(rate)}, {share} of "
            f"{units.rate_text(by_itself)} by itself"
        )
    if sums[1]:
        yield f"sum: {units.rate_text(sums[0])}"


def _shares(report: Report) -> Iterator[Points]:
    """Yields each rate as a share of the most that TCP carries over the hosts' link."""
    cards = [link for _, link in interfaces(report)]
    mtu = min((each.mtu_bytes for each in cards if each.mtu_bytes), default=ETHERNET_MTU_BYTES)
    rates = [(step, rate) for step, rate in _link_rates(report) if steps.is_undisturbed(step)]
    # A virtual card claims a rate that nothing holds it to.
    claims = [each.rate_bits_per_second for each in cards if not each.virtual]
    speeds = [each for each in claims if each]
    match = looks_like(max((rate for _, rate in rates), default=0.0), mtu)
    bits = min(speeds, default=match.bits_per_second if match is not None else 0)
    if not bits or mtu > MOST_MTU_BYTES:
        return
    maximum = bits / 8 * payload_efficiency(mtu)
    binary = units.binary_beside(maximum)
    yield from points(
        f"Share of the practical maximum of {units.link_text(bits)}, "
        f"{units.fine_rate_text(maximum)}{f' ({binary})' if binary else ''}",
        (f"{stage_text(step)}: {units.percent_text(rate / maximum)}" for step, rate in rates),
    )
