"""Every stage with its rate and its hosts' load, what is missing, and what costs throughput."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from bottleneck import units
from bottleneck.report import Report, Step
from bottleneck.reports.document import ON_PAGES, WIDE, Bar, Block, Column, Points, Table, points
from bottleneck.safe import safe
from bottleneck.words import busy_text, spread_text, stage_text
from probes.records import Failed, Measured, Skipped, Spread, Usage, rates

RICHNESS = ((48, True), (24, True), (0, True), (0, False))
"""Characters of the bars, and whether both spreads and dirty memory are shown; richest first."""
Known = tuple[Step, Measured, Spread]


def stages(report: Report) -> Iterator[Block]:
    """A line each, with all that the width has room for; nothing where no stage was measured."""
    known = [
        (step, outcome, spread)
        for step, outcome in report.entries
        if isinstance(outcome, Measured) and (spread := _spread_of(outcome))
    ]
    if not known:
        return
    usages = [usage for _, outcome, _ in known for usage in (outcome.initiator, outcome.responder)]
    throttled = any(usage and usage.throttled_ratio for usage in usages)
    note = "* throttled by its CPU quota" if throttled else ""
    table = None
    for bar_columns, full in reversed(RICHNESS):
        table = _table(known, bar_columns, full, note, table)
    if table is not None:
        yield table


def short_lines(report: Report) -> Iterator[str]:
    """Each measured stage with its rate."""
    for step, outcome in report.entries:
        spread = _spread_of(outcome) if isinstance(outcome, Measured) else None
        if spread is not None:
            yield f"{stage_text(step)}: {units.rate_text(spread.median)}"


def _table(
    known: list[Known], bar_columns: int, full: bool, note: str, narrower: Table | None
) -> Table:
    least = WIDE if narrower is not None else 0
    scale = (Column(units.scale_text(bar_columns), bar=lambda _: bar_columns),)
    table = Table(
        "Measurements",
        (
            Column("stage"),
            Column("rate", right=True),
            *(scale if bar_columns else ()),
            Column("range"),
            Column("client: busiest core, memory", right=True),
            Column("server: same", right=True),
            Column("runs", right=True, least_columns=ON_PAGES),
        ),
        note=note,
        narrower=narrower,
        least_columns=least,
    )
    for step, outcome, spread in known:
        usages = (outcome.initiator, outcome.responder)
        client, server = usages if step.initiator == "client" else usages[::-1]
        table.add(
            stage_text(step),
            units.rate_text(spread.median),
            *((_bar(spread.median),) if bar_columns else ()),
            _spread_text(step, spread, full),
            _usage_text(client, full),
            _usage_text(server, full),
            f"{spread.runs}",
        )
    return table


def _bar(bytes_per_second: float) -> Bar | str:
    share = units.log_share(bytes_per_second)
    return Bar(share, 1.0) if share > 0 else ""


def _spread_of(outcome: Measured) -> Spread | None:
    """Its rates; None: there is none to show, as of a stage that moves no payload."""
    try:
        spread = rates(outcome)
    except (ValueError, IndexError):
        return None
    return spread if spread.high > 0 else None


def _spread_text(step: Step, spread: Spread, full: bool) -> str:
    unit = units.rate_text(spread.median).split(" ")[1]
    about = spread_text(spread.low, spread.high).removesuffix(f" {unit}")
    bits = units.bits_beside(spread.median) if step.stage == "tcp" else ""
    return "  ".join(each for each in (bits, about) if each) if full else bits or about


def _usage_text(usage: Usage | None, full: bool) -> str | None:
    told = busy_text(usage)
    if usage is None or not told:
        return None
    dirty = usage.memory_dirty_bytes
    written = full and dirty is not None and usage.memory_used_bytes is not None
    return f"{told} dirty {units.size_text(dirty or 0)}" if written else told


ENDINGS = {
    "partial": "not every test was made",
    "interrupted": "the run was interrupted",
    "failed": "the run failed",
}
LONGEST_REASON = 200


def costly(report: Report) -> Iterator[Points]:
    """Settings of the server's file sharing and of both hosts that cost throughput."""
    yield from points("Settings: smb.conf of the server", _server_settings(report))
    yield from points("Settings: TCP of both hosts", _host_settings(report, "tcp_settings"))
    yield from points("Settings: disks of both hosts", _host_settings(report, "disk_settings"))


def _server_settings(report: Report) -> Iterator[str]:
    """Lines of the file server's configuration that matter for what was measured."""
    told = report.target.get("smb_conf")
    measured = [step for step, outcome in report.entries if isinstance(outcome, Measured)]
    done = [word for each in measured for word in (each.stage, each.setting.get("dialect"))]
    for each in told if isinstance(told, list) else ():
        only = each.get("matters_for") if isinstance(each, dict) else None
        if isinstance(each, dict) and (only not in ("small-files", "smb1") or only in done):
            words = {key: str(each.get(key) or "") for key in ("option", "value", "why", "remedy")}
            yield "{option} = {value}: {why}; {remedy}".format_map(words)


def _host_settings(
    report: Report, field: Literal["tcp_settings", "disk_settings"]
) -> Iterator[str]:
    for side, host in (("client", report.client), ("server", report.server)):
        for each in getattr(host, field) if host else ():
            untested = "" if each.tested else " (untested on such a system)"
            yield f"{side}: {each.option} = {each.value}: {each.why}; {each.remedy}{untested}"


def missing(report: Report) -> Iterator[Points]:
    """What was not measured."""
    yield from points("Not measured", missing_lines(report))


def missing_lines(report: Report) -> tuple[str, ...]:
    """Each reason once, with all the steps that it holds for; not safe."""
    unmade: list[tuple[str, str]] = []
    for step, outcome in report.entries:
        match outcome:
            case Skipped(reason):
                unmade.append((reason, stage_text(step)))
            case Failed(error, samples):
                took = units.seconds_text(samples[-1].elapsed_seconds) if samples else ""
                after = f" after {took}" if took else ""
                unmade.append((f"failed{after}: {error}", stage_text(step)))
    return tuple(f"{names}: {why}" for why, names in grouped(unmade).items())


def grouped(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Each reason once, in the order found, with the names of all that it holds for."""
    names: dict[str, dict[str, None]] = {}
    for why, name in found:
        names.setdefault(why, {})[name] = None
    return {why: ", ".join(each) for why, each in names.items()}


def reasons(report: Report) -> Iterator[Points]:
    """Why steps were made: each reason once, with the steps that were made for it."""
    made = ((safe(s.why, LONGEST_REASON), stage_text(s)) for s, _ in report.entries if s.why)
    told = (f"{why}: {names}" for why, names in grouped(made).items())
    yield from points("Reasons for the tests", told)
