"""The figures of a ticket as a report, whatever mail did to them; what is not told is not known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from bottleneck import report, typed
from bottleneck.analysis import steps
from bottleneck.report import Report, ReportError, Step
from bottleneck.reports import units
from bottleneck.reports.safe import safe
from bottleneck.ticket_figures import (
    LONGEST_WORD,
    SCHEMA,
    TELLING,
    USUAL,
    WITH_DIALECT,
    usual_initiator,
)
from probes import STAGES
from probes.records import LEAST_TO_TRIM, SIDES, HostFacts, InterfaceFacts, Measured, Sample, Usage

MOST_ROWS = 200
RUN_SECONDS = 10.0
"""How long a run is taken to have lasted: the ticket tells its rate alone."""
_MARK = re.compile(rf'"{SCHEMA}"')
_BEFORE_LINE = re.compile(r"^[ \t]*(?:[>|][ \t]?)*")
_CURLED = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00a0": " "})


def is_ticket(content: bytes) -> bool:
    """Whether a text holds the figures of a ticket, of any version."""
    return b"copy-bottleneck/ticket/" in content


def told_report(content: bytes) -> Report:
    """The report that a ticket's figures amount to: what it does not tell is not known.

    Quoting marks and the line breaks of mail are undone. Errors: ReportError, one line.
    """
    if len(content) > report.LARGEST_FILE_BYTES:
        raise ReportError(f"larger than {report.LARGEST_FILE_BYTES} bytes")
    try:
        return _told(report.document(_block(content).encode("utf-8", "backslashreplace")))
    except typed.NotTyped as error:
        raise ReportError(f"the ticket's figures are damaged: {error}") from None
    except ReportError as error:
        raise ReportError(f"the ticket's figures are damaged: {error}") from None


def _block(content: bytes) -> str:
    """The JSON object of the figures, on one line."""
    text = content.decode("utf-8", "replace").translate(_CURLED)
    plain = [_BEFORE_LINE.sub("", line.rstrip()) for line in text.splitlines()]
    joined = " ".join(plain)
    mark = _MARK.search(joined)
    if mark is None:
        raise ReportError(f"they are not of {SCHEMA}, which this program reads")
    start = joined.rfind("{", 0, mark.start())
    end = joined.find("```", mark.end())
    body = joined[max(0, start) : end if end >= 0 else len(joined)]
    return body[: body.rfind("}") + 1]


def _told(found: dict[str, Any]) -> Report:
    started = typed.text(found.get("started"), "started")
    try:
        datetime.fromisoformat(started)
    except ValueError:
        raise typed.NotTyped("started is no time") from None
    rows = typed.array(found.get("rows"), "rows")
    if len(rows) > MOST_ROWS:
        raise typed.NotTyped("more rows than a ticket has")
    dialect = None if found.get("dialect") is None else typed.text(found["dialect"], "dialect")
    entries = [_entry(row, f"rows[{at}]", dialect) for at, row in enumerate(rows)]
    status = typed.text(found.get("status"), "status")
    if status not in report.STATUSES:
        raise typed.NotTyped("status is none that exists")
    target: dict[str, Any] = {"share": typed.text(found.get("share"), "share")}
    if found.get("rtt_seconds") is not None:
        target["connect_seconds"] = typed.number(found["rtt_seconds"], "rtt_seconds")
    return Report(
        status=status,
        tool={"version": typed.text(found.get("version"), "version"), "ticket": SCHEMA},
        started=started,
        elapsed_seconds=0.0,
        target=target,
        client=_facts(found.get("client"), "client"),
        server=_facts(found.get("server"), "server"),
        entries=tuple((step, outcome) for step, outcome, _ in entries),
        notes=("read from a ticket, which tells less than its run", *_caps(entries)),
    )


def _caps(entries: list[tuple[Step, Measured, str]]) -> Iterator[str]:
    told = [
        f"{steps.word(step.setting, 'copy')} by {safe(cap, LONGEST_WORD)}"
        for step, _, cap in entries
        if cap
    ]
    if told:
        yield f"its run named as caps: {', '.join(told)}"


def _entry(value: object, where: str, dialect: str | None) -> tuple[Step, Measured, str]:
    row = typed.mapping(value, where)
    stage = typed.text(row.get("stage", "smb-copy"), f"{where}.stage")
    if stage not in STAGES and stage != "running-copy":
        raise typed.NotTyped(f"{where}.stage is none that exists")
    setting = {**USUAL.get(stage, {})}
    if dialect is not None and stage in WITH_DIALECT:
        setting["dialect"] = dialect
    for name in TELLING:
        if name in row:
            plain = isinstance(row[name], str)
            read = typed.text if plain else typed.whole
            setting[name] = read(row[name], f"{where}.{name}")
    initiator = typed.text(row.get("initiator", usual_initiator(setting)), f"{where}.initiator")
    if initiator not in SIDES:
        raise typed.NotTyped(f"{where}.initiator is none that exists")
    cap = typed.text(row.get("cap", ""), f"{where}.cap")
    measured = _measured(row.get("rate"), f"{where}.rate")
    if "proven" in row:
        proven = typed.truth(row["proven"], f"{where}.proven")
        measured.details["cache"] = {"side": setting.get("side"), "proven": proven}
    return Step(stage, setting, initiator), measured, cap


def _measured(value: object, where: str) -> Measured:
    figures = typed.array(value, where)
    if len(figures) != 4:
        raise typed.NotTyped(f"{where} must be low, median, high and runs")
    low, median, high = (typed.number(each, where) for each in figures[:3])
    count = typed.whole(figures[3], where)
    if not 1 <= low <= median <= high <= units.MOST_RATE or not 1 <= count <= 1000:
        raise typed.NotTyped(f"{where} must rise from 1 on, and have runs")
    details: dict[str, Any] = {"told_by": "a ticket"}
    each = run_rates(low, median, high, count)
    if len(each) == 1 and low < high:
        details["window_rates_bytes_per_second"] = [low, high]
    runs = tuple((Sample(0.0, 0), _sample(rate)) for rate in each)
    return Measured(runs, _unseen(), None, details)


def _sample(rate: float) -> Sample:
    moved = max(1, round(rate * RUN_SECONDS))
    return Sample(moved / rate, moved)


def run_rates(low: float, median: float, high: float, count: int) -> list[float]:
    """Rates of runs whose median, lowest and highest are these, as records.rates() tells them.

    Of LEAST_TO_TRIM runs and more that leaves out those farthest off: so many are put there too.
    Four runs that are told so cannot be: they are three.
    """
    if count == 1:
        return [median]
    if count == 2:
        return [low, high] if abs(low + high - 2 * median) <= 1e-3 * median else [median, median]
    if count <= LEAST_TO_TRIM:
        return [low, median, high]
    far = low if median - low >= high - median else high
    trimmed = count // 4
    return sorted([*[far] * trimmed, low, high, *[median] * (count - trimmed - 2)])


def _unseen() -> Usage:
    """Of a host that nobody watched, as far as the ticket tells."""
    return Usage(
        wall_seconds=RUN_SECONDS,
        core_busy_ratios=(),
        busiest_core_ratio=0.0,
        softirq_ratio=0.0,
        steal_ratio=0.0,
        copy_cpu_seconds=0.0,
        busiest_process_ratio=0.0,
        other_cpu_seconds=0.0,
        **dict.fromkeys(_NOT_KNOWN),
    )


_NOT_KNOWN = (
    *("quota_cores", "throttled_ratio", "run_delay_seconds", "memory_total_bytes"),
    *("memory_used_bytes", "memory_cached_bytes", "memory_dirty_bytes", "interface_sent_bytes"),
    *("interface_received_bytes", "device_read_bytes", "device_written_bytes"),
    "device_busy_ratio",
)


def _facts(value: object, where: str) -> HostFacts | None:
    if value is None:
        return None
    told = typed.mapping(value, where)

    def count(name: str) -> int | None:
        return None if told.get(name) is None else typed.whole(told[name], f"{where}.{name}")

    link, mtu = count("link_bits_per_second"), count("mtu_bytes")
    interface = None
    if link is not None or mtu is not None:
        interface = InterfaceFacts("(as told)", "", link, None, mtu, None, False)
    return HostFacts(
        name=typed.text(told.get("name", where), f"{where}.name"),
        system=typed.text(told.get("system", ""), f"{where}.system"),
        distribution=None,
        python="",
        cores=count("cores") or 0,
        quota_cores=None,
        memory_total_bytes=count("memory_total_bytes"),
        virtual=None,
        privileged=False,
        interface=interface,
        congestion_control=None,
        socket_buffers={},
        folder=None,
        tools={},
    )
